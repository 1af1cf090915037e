// Schedules as text: "reduce team=block threads=512 vector=8 keep=registers elements=16". A number or a word stands
// behind its field's name, a flag for itself; what has its default is left out, but for what every schedule is about.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "codegen/schedule/fields.h"
#include "tenon/error.h"

namespace tenon::codegen {
namespace {

constexpr std::array kClasses = {"map", "reduce", "contract", "attend"};

template <typename T>
const char* word_of(T value) {
  return words(value)[static_cast<std::size_t>(value)];
}

bool always_shown(std::string_view name) {
  return name == "team" || name == "threads" || name == "vector" || name == "loop";
}

class Printer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value, const T& fallback) {
    if (value == fallback && !always_shown(name)) return;
    if constexpr (std::is_same_v<T, bool>) {
      text += fmt::format(" {}", name);
    } else if constexpr (std::is_enum_v<T>) {
      text += fmt::format(" {}={}", name, word_of(value));
    } else {
      text += fmt::format(" {}={}", name, value);
    }
  }

  template <typename T>
  void optional(const char* name, std::optional<T>& value) {
    if (!value) return;
    text += fmt::format(" {}", name);
    fields(*this, *value);
  }

  template <typename Variant>
  void choice(const char* name, Variant& value) {
    if (value.index() > 0) text += fmt::format(" {}={}", name, words(value)[value.index()]);
    std::visit([&](auto& chosen) { fields(*this, chosen); }, value);
  }

  std::string text;
};

// Takes one word, "name=value" or "name", into the field of that name.
class Parser {
 public:
  explicit Parser(std::string_view word) : name_(word.substr(0, word.find('='))) {
    if (name_.size() < word.size()) value_ = word.substr(name_.size() + 1);
  }

  template <typename T>
  void operator()(std::string_view name, T& value, const T&) {
    if (done || name != name_) return;
    if constexpr (std::is_same_v<T, bool>) {
      done = value = !value_;
    } else if constexpr (std::is_enum_v<T>) {
      done = take_word(words(value), [&](std::size_t i) { value = static_cast<T>(i); });
    } else {
      done = value_ && take_number(value);
    }
  }

  template <typename T>
  void optional(std::string_view name, std::optional<T>& value) {
    if (done) return;
    if (value) return fields(*this, *value);
    if (name != name_ || value_) return;
    value.emplace();
    done = true;
  }

  template <typename Variant>
  void choice(std::string_view name, Variant& value) {
    if (done) return;
    if (name == name_)
      done = take_word(words(value), [&](std::size_t i) { emplace(value, i); });
    else
      std::visit([&](auto& chosen) { fields(*this, chosen); }, value);
  }

  bool done = false;

 private:
  template <typename Words, typename Take>
  bool take_word(const Words& words, const Take& take) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (value_ && *value_ == words[i]) {
        take(i);
        return true;
      }
    return false;
  }

  template <typename Number>
  bool take_number(Number& value) const {
    const auto [end, error] = std::from_chars(value_->data(), value_->data() + value_->size(), value);
    return error == std::errc() && end == value_->data() + value_->size();
  }

  template <typename... Alternatives>
  static void emplace(std::variant<Alternatives...>& value, std::size_t chosen) {
    std::size_t i = 0;
    ((i++ == chosen ? void(value.template emplace<Alternatives>()) : void()), ...);
  }

  std::string_view name_;
  std::optional<std::string_view> value_;
};

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

[[noreturn]] void refuse(std::string_view word, const char* what) {
  throw Error(ErrorKind::parse, fmt::format("'{}' is no {} of a schedule", word, what), {},
              "write a schedule as `tenon dump --emit schedule` shows it");
}

Schedule schedule_of(std::string_view name) {
  if (name == kClasses[0]) return MapSchedule{};
  if (name == kClasses[1]) return ReduceSchedule{};
  if (name == kClasses[2]) return ContractSchedule{};
  if (name == kClasses[3]) return AttendSchedule{};
  refuse(name, "class");
}

}  // namespace

std::string print(const Schedule& schedule) {
  Printer printer;
  Schedule copy = schedule;
  std::visit([&](auto& s) { fields(printer, s); }, copy);
  return kClasses[schedule.index()] + printer.text;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule = schedule_of(next_word(text));
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    Parser parser(word);
    std::visit([&](auto& s) { fields(parser, s); }, schedule);
    if (!parser.done) refuse(word, "field");
  }
  return schedule;
}

}  // namespace tenon::codegen
