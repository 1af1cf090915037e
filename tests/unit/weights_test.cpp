// Arrays by name: what is added is found, in order, and a name that is not there is answered with those like it.
#include "tenon/weights.h"

#include <gtest/gtest.h>

#include <functional>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string text_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Weights, KeepsArraysInTheirOrderUnderTheirNames) {
  Weights weights{{"w", Array::from({1, 2, 3, 4}, {2, 2})}, {"b", Array::zeros({0, 3}, DType::f16)}};
  weights.add("a", Array::from({7}, {}));
  std::string names;
  for (const auto& [name, view, memory] : weights) names += name + ":" + std::to_string(view.byte_size()) + " ";
  EXPECT_EQ(names, "w:16 b:0 a:4 ");
  EXPECT_EQ(weights["w"].array().to<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(weights.contains("b"));
  EXPECT_TRUE(weights["b"].array().bytes.empty());
  EXPECT_EQ(weights.find("c"), nullptr);
}

TEST(Weights, CopiesShareTheArraysAndOutliveTheFirst) {
  auto first = std::make_unique<Weights>();
  first->add("w", Array::from({5}, {1}));
  const Weights second = *first;
  EXPECT_EQ(second["w"].data, (*first)["w"].data);
  first.reset();
  EXPECT_EQ(second["w"].array().item<float>(), 5);
}

TEST(Weights, ANameThatIsNotThereIsAnsweredWithThoseLikeIt) {
  const Array one = Array::zeros({1});
  const Weights weights{{"h.0.weight", one}, {"h.1.weight", one}, {"bias", one}};
  EXPECT_EQ(text_of([&] { (void)weights["weight"]; }),
            "argument error: no array is called 'weight'\n"
            "  help: did you mean 'h.0.weight', 'h.1.weight'?");
  EXPECT_EQ(text_of([&] { (void)weights["bais"]; }),
            "argument error: no array is called 'bais'\n"
            "  help: did you mean 'bias'?");
  EXPECT_EQ(text_of([&] { (void)weights["running_mean"]; }),
            "argument error: no array is called 'running_mean'\n"
            "  help: there are 'h.0.weight', 'h.1.weight', 'bias'");
  EXPECT_EQ(text_of([] { (void)Weights()["x"]; }),
            "argument error: no array is called 'x'\n"
            "  help: there is no array at all");
}

TEST(Weights, ANameStandsOnce) {
  EXPECT_EQ(text_of([] { (void)Weights{{"w", Array::zeros({1})}, {"w", Array::zeros({2})}}; }),
            "argument error: two arrays are called 'w'\n"
            "  help: give each a name of its own");
}

}  // namespace
}  // namespace tenon
