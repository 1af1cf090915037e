// The SAX side of JSON reading. nlohmann's own DOM builder keeps the last of two equal keys and has no limits, so the
// document is built here, one event at a time.
#include "ir/text/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/graph/limits.h"
#include "tenon/error.h"

namespace tenon::ir {
namespace {

using Json = nlohmann::json;

class Builder {
 public:
  Builder(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Json take() { return std::move(root_); }

  // The events of nlohmann's SAX interface; each returns whether to go on.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (open_.back()->contains(name))
      throw Error(ErrorKind::parse, fmt::format("the key {} stands twice in one object", display(name)),
                  {file_, 0, 0, {}}, "keep one of them");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    const bool overflow = error.id == 406;
    const std::string_view before = text_.substr(0, std::min(position == 0 ? 0 : position - 1, text_.size()));
    const auto newline = before.rfind('\n');
    const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    throw Error(ErrorKind::parse, overflow ? "a number beyond f64" : "malformed JSON",
                {file_, line, static_cast<int>(column) + 1, {}},
                overflow ? "write \"inf\" or \"-inf\"" : "check quotes, commas and brackets up to this place");
  }

 private:
  template <typename T>
  bool add(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json&& container) {
    if (open_.size() >= static_cast<std::size_t>(kMaxNesting))
      throw Error(ErrorKind::resource, fmt::format("JSON nested more than {} deep", kMaxNesting), {file_, 0, 0, {}},
                  "a graph needs no more than 6 levels");
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json* place(Json&& value) {
    if (++count_ > kMaxJsonValues)
      throw Error(ErrorKind::resource, fmt::format("a JSON file of more than {} values", kMaxJsonValues),
                  {file_, 0, 0, {}}, "split the graph");
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  std::string_view text_;
  const std::string& file_;
  Json root_;
  std::vector<Json*> open_;  // containers not yet closed; only the last one grows, so the pointers stay good
  std::string key_;
  std::size_t count_ = 0;
};

}  // namespace

Json read_json_document(std::string_view text, const std::string& file) {
  Builder builder(text, file);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string display(std::string_view text) {
  std::string shown = "'";
  for (char c : text.substr(0, kMaxNameLength)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown + (text.size() > kMaxNameLength ? "…'" : "'");
}

}  // namespace tenon::ir
