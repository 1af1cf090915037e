// Runs by name: arrays are put in the order of the graph's inputs, results get the names of its outputs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/ops/suggest.h"
#include "ir/text/json_document.h"
#include "src/api/run_arrays.h"
#include "tenon/compile.h"

namespace tenon {
namespace {

std::string said_of(std::string_view name, const std::vector<std::string_view>& known, const char* what) {
  std::string list =
      known.empty() ? fmt::format("there are no {}", what) : fmt::format("the {} are {}", what, fmt::join(known, ", "));
  const std::string_view near = ir::nearest(name, known);
  return near.empty() ? list : fmt::format("did you mean {}? {}", near, list);
}

// The free inputs of an executable by name.
class Inputs {
 public:
  explicit Inputs(const Executable::Impl& executable) : graph_(executable.plan.graph) {
    for (std::size_t i = 0; i < executable.free_inputs(); ++i) names_.push_back(graph_.value(graph_.inputs[i]).name);
  }

  // One array for each, in the graph's order; of views that no kernel can read where they lie, copies in `kept`.
  std::vector<Buffer> in_order(std::span<const NamedArray> arrays, std::vector<Array>& kept) const {
    std::vector<const NamedArray*> found(names_.size());
    for (const NamedArray& array : arrays) {
      const auto name = std::find(names_.begin(), names_.end(), array.name());
      if (name == names_.end()) refuse("has no free input", ir::display(array.name()), array.name());
      const NamedArray*& place = found[static_cast<std::size_t>(name - names_.begin())];
      if (place != nullptr) refuse("was given twice input", ir::display(array.name()), {});
      place = &array;
    }
    check_all(found);
    std::vector<Buffer> buffers;
    kept.reserve(found.size());
    for (const NamedArray* array : found) buffers.push_back(buffer_of_named(*array, kept));
    return buffers;
  }

 private:
  [[noreturn]] void refuse(const char* what, const std::string& names, std::string_view meant) const {
    throw Error(ErrorKind::argument, fmt::format("graph '{}' {} {}", graph_.name, what, names), {},
                said_of(meant, names_, "inputs"));
  }
  void check_all(const std::vector<const NamedArray*>& found) const {
    std::vector<std::string_view> missing;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] == nullptr) missing.push_back(names_[i]);
    if (!missing.empty()) refuse("was not given input", fmt::format("{}", fmt::join(missing, ", ")), {});
  }
  static Buffer buffer_of_named(const NamedArray& array, std::vector<Array>& kept) {
    if (array.array() != nullptr) return buffer_of(*array.array());
    const WeightView& view = *array.view();
    if (reinterpret_cast<std::uintptr_t>(view.data) % kBufferAlignment != 0)
      return buffer_of(kept.emplace_back(view.array()));
    return {const_cast<std::byte*>(view.data), view.dtype,
            view.shape};  // NOLINT(*-const-cast): an input is not written
  }

  static constexpr std::uintptr_t kBufferAlignment = 16;

  const ir::Graph& graph_;
  std::vector<std::string_view> names_;
};

}  // namespace

std::size_t NamedResults::place_of(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end() && arrays.size() == names.size()) return static_cast<std::size_t>(found - names.begin());
  throw Error(ErrorKind::argument, fmt::format("no result is called {}", ir::display(name)), {},
              said_of(name, {names.begin(), names.end()}, "results"));
}

void Executable::run_named(std::span<const NamedArray> inputs, NamedResults& results, const Bindings& bindings) const {
  std::vector<Array> kept;
  src::run_on_host(*impl_, Inputs(*impl_).in_order(inputs, kept), results.arrays, bindings);
  if (results.names != impl_->plan.graph.outputs_names) results.names = impl_->plan.graph.outputs_names;
}

NamedResults Executable::run_named(std::span<const NamedArray> inputs, const Bindings& bindings) const {
  NamedResults results;
  run_named(inputs, results, bindings);
  return results;
}

}  // namespace tenon
