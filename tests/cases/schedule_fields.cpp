// See schedule_fields.h.
#include "tests/cases/schedule_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/schedule/fields.h"

namespace tenon::test {
namespace {

using codegen::fields;

constexpr std::array kClasses = {"map.", "reduce.", "contract.", "attend."};

class Collector {
 public:
  explicit Collector(const char* kernel_class) : class_(kernel_class) {}

  template <typename T>
  void operator()(const char* name, const T& value, const T& fallback) {
    found.push_back({class_ + name, text(value), text(fallback)});
  }
  template <typename T>
  void optional(const char* name, std::optional<T>& value) {
    found.push_back({class_ + name, value ? "there" : "none", "none"});
    if (value) fields(*this, *value);
  }
  template <typename Variant>
  void choice(const char* name, Variant& value) {
    const auto& words = codegen::words(value);
    found.push_back({class_ + name, words[value.index()], words[0]});
    std::visit([&](auto& chosen) { fields(*this, chosen); }, value);
  }

  std::vector<Field> found;

 private:
  template <typename T>
  static std::string text(T value) {
    if constexpr (std::is_enum_v<T>) {
      return codegen::words(value)[static_cast<std::size_t>(value)];
    } else {
      return fmt::format("{}", value);
    }
  }

  std::string class_;
};

// A schedule with each alternative of each choice in turn.
std::vector<codegen::Schedule> every_choice() {
  codegen::MapSchedule tiled;
  tiled.tile.emplace();
  std::vector<codegen::Schedule> all = {tiled};
  for (const codegen::Keep& keep : {codegen::Keep(codegen::Reread()), codegen::Keep(codegen::InRegisters()),
                                    codegen::Keep(codegen::InShared()), codegen::Keep(codegen::InBuffer())})
    for (const codegen::Cut& cut : {codegen::Cut(codegen::WholeRows()), codegen::Cut(codegen::Splits()),
                                    codegen::Cut(codegen::PersistentBlocks())})
      all.emplace_back(codegen::ReduceSchedule{.keep = keep, .cut = cut});
  all.emplace_back(codegen::ContractSchedule());
  all.emplace_back(codegen::AttendSchedule());
  return all;
}

}  // namespace

std::vector<Field> fields_of(const codegen::Schedule& schedule) {
  Collector collector(kClasses[schedule.index()]);
  codegen::Schedule copy = schedule;
  std::visit([&](auto& s) { fields(collector, s); }, copy);
  return collector.found;
}

std::vector<std::string> all_fields() {
  std::vector<std::string> names;
  for (const codegen::Schedule& schedule : every_choice())
    for (const Field& field : fields_of(schedule))
      if (std::find(names.begin(), names.end(), field.name) == names.end()) names.push_back(field.name);
  return names;
}

}  // namespace tenon::test
