// Guard bands are 0xff bytes: NaN in every real dtype, so that even a read of them is likely to show in a result.
#include "tests/harness/guarded.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "ir/graph/build.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"
#include "runtime/memory.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

constexpr std::size_t kGuard = 1024;  // on either side; a multiple of every alignment
constexpr unsigned char kGuardByte = 0xff;

Executable executable_of(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend, bool fuse) {
  Options options = default_options();
  options.fuse = fuse;
  return src::make_executable(src::plan(graph, backend->target().kind, options), backend, options);
}

}  // namespace

GuardedBackend::~GuardedBackend() {
  for (const auto& [memory, bytes] : live_) inner_->release(memory);
}

void* GuardedBackend::allocate(std::size_t bytes) const {
  std::vector<unsigned char> initial(bytes + 2 * kGuard, kGuardByte);
  std::fill_n(initial.begin() + kGuard, bytes, fill_);
  auto* memory = static_cast<std::byte*>(inner_->allocate(initial.size()));
  inner_->copy_in(memory, initial.data(), initial.size(), nullptr);
  inner_->synchronize(nullptr);
  const std::lock_guard lock(mutex_);
  live_[memory] = bytes;
  return memory + kGuard;
}

void GuardedBackend::release(void* memory) const noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(static_cast<std::byte*>(memory) - kGuard);
  if (found == live_.end()) return;
  try {
    inspect(found->first, found->second);
  } catch (const std::exception& error) {
    damage_ = error.what();
  }
  inner_->release(found->first);
  live_.erase(found);
}

void GuardedBackend::inspect(const std::byte* memory, std::size_t bytes) const {
  std::vector<unsigned char> content(kGuard);
  for (const bool after : {false, true}) {
    inner_->copy_out(content.data(), memory + (after ? kGuard + bytes : 0), kGuard, nullptr);
    inner_->synchronize(nullptr);
    for (std::size_t i = 0; i < kGuard && damage_.empty(); ++i)
      if (content[i] != kGuardByte)
        damage_ = after ? fmt::format("byte {} after the end of {} bytes was written", i, bytes)
                        : fmt::format("byte {} before the start of {} bytes was written", kGuard - i, bytes);
  }
}

std::string GuardedBackend::damage() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [memory, bytes] : live_) inspect(memory, bytes);
  return damage_;
}

GuardedProgram::GuardedProgram(const ir::Graph& graph, const std::string& target, bool fuse)
    : graph_(graph),
      backend_(std::make_shared<GuardedBackend>(backend_of(target))),
      executable_(executable_of(graph, backend_, fuse)) {}

// On buffers of the guarded memory: on arrays a CPU would work where they lie.
std::vector<ir::HostArray> GuardedProgram::run(const std::vector<ir::HostArray>& inputs, const Bindings& bindings) {
  std::vector<runtime::Memory> memory;
  const auto buffer_for = [&](const ir::HostArray& array) {
    memory.push_back(runtime::allocate(*backend_, static_cast<std::int64_t>(array.bytes.size())));
    return Buffer{memory.back().get(), array.dtype, array.shape};
  };
  std::vector<Buffer> from, to;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ir::HostArray& input : inputs) {
    from.push_back(buffer_for(input));
    shapes.push_back(input.shape);
    if (!input.bytes.empty()) backend_->copy_in(from.back().data, input.bytes.data(), input.bytes.size(), nullptr);
  }
  std::vector<ir::HostArray> results;
  const auto own_shapes = executable_.output_shapes(shapes, bindings);
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const int updated = graph_.updates[i];
    results.push_back(ir::make_array(graph_.type(graph_.outputs[i]).dtype,
                                     updated < 0 ? own_shapes[to.size()] : shapes[static_cast<std::size_t>(updated)]));
    if (updated < 0) to.push_back(buffer_for(results.back()));
  }
  executable_.run(from, to, bindings);
  auto own = to.begin();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int updated = graph_.updates[i];
    const void* data = updated < 0 ? (own++)->data : from[static_cast<std::size_t>(updated)].data;
    if (!results[i].bytes.empty()) backend_->copy_out(results[i].bytes.data(), data, results[i].bytes.size(), nullptr);
  }
  backend_->synchronize(nullptr);
  if (const std::string damage = backend_->damage(); !damage.empty()) throw std::runtime_error(damage);
  return results;
}

std::vector<ir::HostArray> GuardedProgram::operator()(const std::vector<ir::HostArray>& inputs,
                                                      const Bindings& bindings) {
  backend_->fill_with(0xff);
  std::vector<ir::HostArray> first = run(inputs, bindings);
  backend_->fill_with(0x5a);
  const std::vector<ir::HostArray> second = run(inputs, bindings);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto [here, there] = std::mismatch(first[i].bytes.begin(), first[i].bytes.end(), second[i].bytes.begin());
    if (here != first[i].bytes.end())
      throw std::runtime_error(fmt::format(
          "output '{}': element {} was not written, or differs from run to run", graph_.outputs_names[i],
          std::distance(first[i].bytes.begin(), here) / static_cast<std::ptrdiff_t>(size_of(first[i].dtype))));
  }
  return first;
}

std::vector<ir::HostArray> data_for(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed,
                                    double scale) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<ir::HostArray> arrays;
  for (ir::ValueId input : graph.inputs) {
    const ir::Type& type = graph.type(input);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(bindings));
    arrays.push_back(ir::make_array(type.dtype, shape));
    const bool has_sign = is_integer(type.dtype) && type.dtype != DType::u8;
    for (std::int64_t i = 0; i < ir::element_count(arrays.back()); ++i)
      if (is_real(type.dtype))
        ir::set_real(arrays.back(), i, normal(engine));
      else if (type.dtype == DType::bool_)
        ir::set_integer(arrays.back(), i, static_cast<std::int64_t>(engine() % 2));
      else
        ir::set_integer(arrays.back(), i, static_cast<std::int64_t>(engine() % 22) - (has_sign ? 9 : 0));
  }
  return arrays;
}

namespace {

// The graph, of its results only those at `positions` (empty: all).
std::string text_of(ir::Graph graph, const Bindings& bindings, const std::vector<std::size_t>& positions = {}) {
  if (!positions.empty()) {
    const ir::Graph whole = graph;
    graph.outputs.clear();
    graph.outputs_names.clear();
    graph.updates.clear();
    for (std::size_t i : positions) {
      ir::append_output(graph, whole.outputs[i], whole.outputs_names[i]);
      graph.updates.back() = whole.updates[i];
    }
    graph = ir::eliminate_dead_code(graph);
  }
  std::string text = ir::print(graph);
  if (text.size() > 4000) text = text.substr(0, 4000) + "…\n";
  for (const auto& [symbol, value] : bindings) text += fmt::format("# {} = {}\n", symbol, value);
  return text;
}

// Element `at` of the output and what the interpreter gives; and, of an elementwise output, the operands there.
std::string element_text(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const ir::HostArray& actual,
                         const ir::HostArray& expected, std::size_t output, std::int64_t at) {
  std::string text = fmt::format("got {:.9g}, expected {:.9g}", ir::get_real(actual, at), ir::get_real(expected, at));
  const ir::Node& node = graph.producer(graph.outputs[output]);
  text += fmt::format(" [{}", ir::name_of(node.op));
  for (ir::ValueId operand : node.operands) {
    const auto input = std::find(graph.inputs.begin(), graph.inputs.end(), operand);
    if (input == graph.inputs.end()) continue;
    const ir::HostArray& array = inputs[static_cast<std::size_t>(input - graph.inputs.begin())];
    if (array.shape == actual.shape) text += fmt::format(" {:.9g}", ir::get_real(array, at));
  }
  return text + "]";
}

bool same_bytes(const std::vector<ir::HostArray>& a, const std::vector<ir::HostArray>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::HostArray& x, const ir::HostArray& y) { return x.bytes == y.bytes; });
}

void judge(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const Bindings& bindings,
           const std::vector<ir::HostArray>& actual, const std::string& how) {
  const auto comparisons = ir::compare_with_interpreter(graph, inputs, actual, bindings, 2);
  std::vector<ir::HostArray> expected;
  std::string differences;
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const ir::Comparison& one = comparisons[i];
    if (is_right(one)) continue;
    wrong.push_back(i);
    if (expected.empty()) expected = ir::interpret(graph, inputs, bindings);
    differences +=
        fmt::format("  {}: {} of {} elements differ, {:.3g} times the tolerance; element {}: {}\n",
                    graph.outputs_names[i], one.mismatches, one.elements, one.max_tolerance_ratio, one.first_mismatch,
                    element_text(graph, inputs, actual[i], expected[i], i, one.first_mismatch));
  }
  if (!differences.empty()) ADD_FAILURE() << how << ":\n" << differences << text_of(graph, bindings, wrong);
}

// A program compiled one way, and what it was last found right on.
struct Way {
  const char* name;
  std::unique_ptr<GuardedProgram> program;
};

std::vector<Way> compiled_ways(const ir::Graph& graph, const std::string& target) {
  std::vector<Way> ways;
  for (const bool fuse : {true, false}) {
    const char* name = fuse ? "fused" : "unfused";
    try {
      ways.push_back({name, std::make_unique<GuardedProgram>(graph, target, fuse)});
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << " on " << target << " does not compile: " << error.what() << "\n" << text_of(graph, {});
    }
  }
  return ways;
}

void run_and_judge(const ir::Graph& graph, const std::string& target, std::vector<Way>& ways,
                   const std::vector<ir::HostArray>& inputs, const Bindings& bindings) {
  std::vector<ir::HostArray> before;
  for (Way& way : ways) {
    const std::string how = std::string(way.name) + " on " + target;
    try {
      std::vector<ir::HostArray> actual = (*way.program)(inputs, bindings);
      if (before.empty() || !same_bytes(before, actual)) judge(graph, inputs, bindings, actual, how);
      before = std::move(actual);
    } catch (const std::exception& error) {
      ADD_FAILURE() << how << ": " << error.what() << "\n" << text_of(graph, bindings);
    }
  }
}

}  // namespace

// Tolerances are estimates from a few disturbed runs: among many thousand elements that hang on 16-bit roundings, one
// may lie just outside of its own. Wrong code is further off, or in more places.
bool is_right(const ir::Comparison& output) {
  return output.equal || (output.mismatches * 5000 <= output.elements && output.max_tolerance_ratio <= 2);
}

void expect_right(const ir::Graph& graph, const std::string& target, const std::vector<Bindings>& sizes, double scale) {
  std::vector<Way> ways = compiled_ways(graph, target);
  std::uint64_t seed = 1;
  for (const Bindings& bindings : sizes)
    run_and_judge(graph, target, ways, data_for(graph, bindings, seed++, scale), bindings);
}

void expect_right_on(const ir::Graph& graph, const std::string& target, const std::vector<ir::HostArray>& inputs,
                     const Bindings& bindings) {
  std::vector<Way> ways = compiled_ways(graph, target);
  run_and_judge(graph, target, ways, inputs, bindings);
}

}  // namespace tenon::test
