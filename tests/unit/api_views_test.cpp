// The elements of a host array where they lie: typed spans, single numbers, and arrays of spans, pointers and raw
// bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>

#include "tenon/tenon.h"

namespace {

struct Half {  // as a library's half type
  std::uint16_t bits;
};

}  // namespace

template <>
struct tenon::DTypeOf<Half> {
  static constexpr tenon::DType value = tenon::DType::f16;
};

namespace tenon {
namespace {

std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ApiViews, ASpanReadsAndWritesTheArraysOwnBytes) {
  Array x = Array::zeros({2, 3});
  const std::span<float> values = x.data<float>();
  ASSERT_EQ(values.size(), 6U);
  std::iota(values.begin(), values.end(), 1.0F);
  EXPECT_EQ(x.to<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const Array& constant = x;
  EXPECT_EQ(static_cast<const void*>(constant.data<float>().data()), x.bytes.data());
  EXPECT_EQ(std::accumulate(constant.data<float>().begin(), constant.data<float>().end(), 0.0F), 21);
  EXPECT_TRUE(Array::zeros({0, 4}, DType::i64).bytes.empty());
}

TEST(ApiViews, OfEveryNumberAndOfAHalfThatIsGivenADType) {
  EXPECT_EQ(Array::from(std::vector<double>{2}, {}).item<double>(), 2);
  EXPECT_EQ(Array::from(std::vector<bool>{true}, {}).item<bool>(), true);
  const Array flags = Array::from(std::vector<bool>{false, true}, {2});
  EXPECT_EQ(std::count(flags.data<bool>().begin(), flags.data<bool>().end(), true), 1);
  const Array halves = Array::from({1, -2}, {2}).cast(DType::f16);
  EXPECT_EQ(halves.data<Half>()[1].bits, 0xc000);
}

TEST(ApiViews, OfAnotherDTypeAreRefused) {
  Array x = Array::zeros({2}, DType::bf16);
  EXPECT_EQ(message_of([&] { x.data<float>(); }),
            "argument error: the array is bf16, not f32\n  help: convert it first: cast(DType::f32)");
  EXPECT_EQ(message_of([&] { x.data<Half>(); }),
            "argument error: the array is bf16, not f16\n  help: convert it first: cast(DType::f16)");
  x.bytes.resize(3);
  EXPECT_EQ(message_of([&] { Array(x).cast(DType::f32); }),
            "argument error: an array of bf16[2] has 3 bytes, not 4\n  help: make it with Array::from or Array::zeros");
  x.dtype = DType::f16;
  EXPECT_EQ(message_of([&] { x.data<Half>(); }),
            "argument error: an array of f16[2] has 3 bytes, not 4\n  help: make it with Array::from or Array::zeros");
}

TEST(ApiViews, AnItemIsTheOnlyElement) {
  EXPECT_EQ(Array::from({7}, {}).item<float>(), 7);
  EXPECT_EQ(Array::from(std::vector<std::int64_t>{-1}, {1, 1}).item<std::int64_t>(), -1);
  EXPECT_EQ(message_of([] { Array::zeros({2, 3}).item<float>(); }),
            "argument error: the array f32[2, 3] has 6 elements, not one\n  help: take them with data() or to()");
  EXPECT_EQ(message_of([] { Array::zeros({0}).item<float>(); }),
            "argument error: the array f32[0] has 0 elements, not one\n  help: take them with data() or to()");
  EXPECT_EQ(message_of([] { Array::zeros({1}).item<double>(); }),
            "argument error: the array is f32, not f64\n  help: convert it first: cast(DType::f64)");
}

#ifdef __cpp_lib_mdspan
TEST(ApiViews, AnMdspanHasTheArraysExtents) {
  Array x = Array::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto view = x.view<float, 2>();
  EXPECT_EQ(view.extent(1), 3);
  view[std::array{1, 2}] = 7;
  EXPECT_EQ(x.data<float>()[5], 7);
  EXPECT_EQ(message_of([&] { x.view<float, 1>(); }),
            "argument error: the array f32[2, 3] has rank 2, not 1\n  help: ask for a view of rank 2");
}
#endif

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(ApiBytes, ArraysAreAlignedForAnyKernel) {
  for (const std::int64_t n : {1, 3, 1000, 100003, 3 << 20}) {
    const Array x = Array::zeros({n}), copy = x, cast = x.cast(DType::i8);
    for (const Array* array : {&x, &copy, &cast})
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->bytes.data()) % kHostAlignment, 0U) << n;
  }
}

TEST(ApiBytes, AreAVectorOfBytesToWhoeverUsesThemSo) {
  const std::vector<std::byte> plain(8, std::byte{1});
  Array x{DType::u8, {8}, plain};
  const std::vector<std::byte> back = x.bytes;
  EXPECT_EQ(back, plain);
  x.bytes.resize(10);
  EXPECT_EQ(x.bytes[9], std::byte{0});  // as of a vector
  x.bytes.resize(12, std::byte{5});
  EXPECT_EQ(x.bytes[11], std::byte{5});
  x.bytes.push_back(std::byte{9});
  Bytes copy = x.bytes;
  EXPECT_EQ(copy, x.bytes);
  copy = Bytes{std::byte{3}};
  EXPECT_EQ(copy.size(), 1U);
  x.bytes = copy;
  EXPECT_EQ(x.bytes, Bytes(1, std::byte{3}));
  EXPECT_EQ(Bytes(4), Bytes(4, std::byte{0}));
}

// ---- made from ------------------------------------------------------------------------------------------------------

TEST(ApiFrom, SpansAndPointers) {
  const std::array<double, 4> values{1, 2, 3, 4};
  const Array x = Array::from(std::span(values), {2, 2});
  EXPECT_EQ(x.dtype, DType::f64);
  EXPECT_EQ(x.to<double>(), (std::vector<double>{1, 2, 3, 4}));
  std::vector<std::int32_t> integers{5, 6, 7};
  EXPECT_EQ(Array::from(std::span(integers).subspan(1), {2}).to<std::int32_t>(), (std::vector<std::int32_t>{6, 7}));
  const std::int32_t* pointer = integers.data();
  EXPECT_EQ(Array::from(pointer, {3}).to<std::int32_t>(), integers);
  EXPECT_EQ(Array::from(integers.data(), {1}).item<std::int32_t>(), 5);
  const Half one{0x3c00};
  EXPECT_EQ(Array::from(&one, {}).cast(DType::f32).item<float>(), 1);
}

TEST(ApiFrom, RawBytesOfTheDTypesThatCppLacks) {
  const std::vector<std::uint16_t> bits{0x3f80, 0xc000};
  const Array x = Array::from_bytes(std::as_bytes(std::span(bits)), {2}, DType::bf16);
  EXPECT_EQ(x.to_doubles(), (std::vector<double>{1, -2}));
  const std::byte flags[] = {std::byte{0}, std::byte{1}};
  EXPECT_EQ(Array::from_bytes(flags, {2}, DType::bool_).to<bool>(), (std::vector<bool>{false, true}));
}

TEST(ApiFrom, WhatDoesNotFitIsRefused) {
  const std::vector<float> values{1, 2};
  EXPECT_EQ(message_of([&] { Array::from(std::span(values), {3}); }),
            "argument error: 2 values for an array of f32[3]\n  help: give 3 values");
  const float* nowhere = nullptr;
  EXPECT_EQ(message_of([&] { Array::from(nowhere, {3}); }),
            "argument error: no values for an array of f32[3]\n  help: give a pointer to as many as the shape has");
  EXPECT_EQ(Array::from(nowhere, {0}).size(), 0);
  EXPECT_EQ(message_of([&] { Array::from(values.data(), {-1}); }),
            "argument error: an array of shape [-1]\n  help: extents are 0 or more");
  const std::byte bytes[] = {std::byte{0}, std::byte{1}, std::byte{7}};
  EXPECT_EQ(message_of([&] { Array::from_bytes(bytes, {1}, DType::f16); }),
            "argument error: 3 bytes are no whole number of f16 values\n  help: give 2 for each");
  EXPECT_EQ(message_of([&] { Array::from_bytes(bytes, {4}, DType::u8); }),
            "argument error: 3 values for an array of u8[4]\n  help: give 4 values");
  EXPECT_EQ(message_of([&] { Array::from_bytes(bytes, {3}, DType::bool_); }),
            "argument error: bool 2 is 7\n  help: bools are 0 or 1");
}

}  // namespace
}  // namespace tenon
