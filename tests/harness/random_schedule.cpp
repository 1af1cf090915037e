// See random_schedule.h.
#include "tests/harness/random_schedule.h"

#include <array>
#include <type_traits>

#include "codegen/schedule/fields.h"

namespace tenon::test {
namespace {

using codegen::fields;
using codegen::words;

constexpr std::array kNumbers = {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048};
constexpr std::array kShares = {0.02, 0.08, 0.3};  // of the fields that are drawn anew

// Draws fields anew, told of each by the table of fields.
class Drawer {
 public:
  explicit Drawer(std::mt19937_64& random) : random_(random), share_(kShares[below(kShares.size())]) {}

  template <typename T>
  void operator()(const char*, T& value, const T&) {
    if (!draws()) return;
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(below(words(value).size()));
    } else {
      value = number(value);
    }
  }

  template <typename T>
  void optional(const char*, std::optional<T>& value) {
    if (draws()) value = value ? std::nullopt : std::optional<T>(T{});
    if (value) fields(*this, *value);
  }

  template <typename Variant>
  void choice(const char*, Variant& value) {
    if (draws()) emplace(value, below(words(value).size()));
    std::visit([&](auto& chosen) { fields(*this, chosen); }, value);
  }

 private:
  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  bool draws() { return std::bernoulli_distribution(share_)(random_); }

  template <typename T>
  T number(T value) {
    switch (below(3)) {
      case 0: return value * 2;
      case 1: return value / 2;
      default: return static_cast<T>(kNumbers[below(kNumbers.size())]);
    }
  }

  template <typename... Alternatives>
  static void emplace(std::variant<Alternatives...>& value, std::size_t chosen) {
    std::size_t i = 0;
    ((i++ == chosen ? void(value.template emplace<Alternatives>()) : void()), ...);
  }

  std::mt19937_64& random_;
  const double share_;
};

codegen::Schedule one_of(const std::vector<codegen::Schedule>& candidates, std::mt19937_64& random) {
  return candidates[std::uniform_int_distribution<std::size_t>(0, candidates.size() - 1)(random)];
}

codegen::Schedule drawn_from(codegen::Schedule schedule, std::mt19937_64& random) {
  Drawer drawer(random);
  std::visit([&](auto& s) { fields(drawer, s); }, schedule);
  return schedule;
}

}  // namespace

codegen::Schedule random_schedule(const codegen::Kernel& kernel, const codegen::Target& target,
                                  std::mt19937_64& random) {
  return drawn_from(one_of(candidate_schedules(kernel, target), random), random);
}

codegen::Schedule random_legal_schedule(const codegen::Kernel& kernel, const codegen::Target& target,
                                        std::mt19937_64& random) {
  const std::vector<codegen::Schedule> candidates = candidate_schedules(kernel, target);
  for (int draw = 0; draw < 100; ++draw)
    if (const auto schedule = drawn_from(one_of(candidates, random), random); verify(schedule, kernel, target).empty())
      return schedule;
  return one_of(candidates, random);
}

}  // namespace tenon::test
