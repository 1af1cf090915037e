// Arrays by name: what Weights keeps, and how it says that a name is not there.
#include "tenon/weights.h"

#include <fmt/format.h>

#include <cstring>

#include "ir/graph/sizes.h"
#include "ir/ops/suggest.h"
#include "ir/text/json_document.h"
#include "src/api/host_array.h"
#include "tenon/error.h"

namespace tenon {

std::size_t WeightView::byte_size() const {
  const auto bytes = ir::byte_count(dtype, shape);
  if (!bytes)
    throw Error(ErrorKind::argument,
                fmt::format("no array has the shape {}[{}]", name_of(dtype), fmt::join(shape, ", ")), {},
                "extents are 0 or more, and their product a number of bytes that there can be");
  return static_cast<std::size_t>(*bytes);
}

Array WeightView::array() const {
  Array copy = Array::empty(shape, dtype);
  if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), data, copy.bytes.size());
  return copy;
}

Weights::Weights(std::initializer_list<std::pair<std::string, Array>> arrays) {
  for (const auto& [name, array] : arrays) add(name, array);
}

void Weights::add(std::string name, Array array) {
  src::check_bytes(array);
  const auto owner = std::make_shared<const Array>(std::move(array));
  add(std::move(name), {owner->dtype, owner->shape, owner->bytes.empty() ? nullptr : owner->bytes.data()}, owner);
}

void Weights::add(std::string name, WeightView view, std::shared_ptr<const void> memory) {
  if (!places_.emplace(name, entries_.size()).second)
    throw Error(ErrorKind::argument, fmt::format("two arrays are called {}", ir::display(name)), {},
                "give each a name of its own");
  entries_.push_back({std::move(name), std::move(view), std::move(memory)});
}

const Weights::Entry* Weights::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &entries_[place->second];
}

namespace {

// Names that the user may have meant: the nearest, and those with the same last part, as "h.0.weight" for "weight".
std::string names_like(std::string_view name, const Weights& weights) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string_view> names;
  for (const Weights::Entry& entry : weights) names.push_back(entry.name);
  std::vector<std::string> like;
  if (const std::string_view near = ir::nearest(name, names); !near.empty()) like.push_back(ir::display(near));
  for (const std::string_view other : names)
    if (like.size() < kShown && !name.empty() && other.find(name) != std::string_view::npos)
      if (std::string shown = ir::display(other); like.empty() || like.front() != shown) like.push_back(shown);
  if (!like.empty()) return fmt::format("did you mean {}?", fmt::join(like, ", "));
  if (names.empty()) return "there is no array at all";
  for (const std::string_view other : names)
    if (like.size() < kShown) like.push_back(ir::display(other));
  return fmt::format("there are {}{}", fmt::join(like, ", "), names.size() > kShown ? ", …" : "");
}

}  // namespace

const WeightView& Weights::operator[](std::string_view name) const {
  if (const Entry* entry = find(name)) return entry->view;
  throw Error(ErrorKind::argument, fmt::format("no array is called {}", ir::display(name)), {},
              names_like(name, *this));
}

}  // namespace tenon
