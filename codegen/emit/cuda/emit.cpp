// Kernel -> CUDA C++: chooses the class's emitter, and puts prelude, signature and body together.
#include "codegen/emit/cuda/emit.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/text/parts.h"
#include "codegen/emit/cuda/text/spell.h"
#include "ir/graph/check.h"

namespace tenon::codegen {

Source emit_cuda(const Kernel& kernel, const Target& target) {
  const std::string why_not = verify(kernel.schedule, kernel, target);
  TENON_CHECK(why_not.empty(), fmt::format("{}: {}\n{}", why_not, print(kernel.schedule), print(kernel)));
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: return cuda::emit_map(kernel, target);
    case ir::KernelClass::reduce: return cuda::emit_reduce(kernel, target);
    case ir::KernelClass::contract: return cuda::emit_contract(kernel, target);
    case ir::KernelClass::attend: return cuda::emit_attend(kernel, target);
  }
  TENON_CHECK(false, "unknown kernel class");
  return {};
}

namespace cuda {

namespace {

std::string body_text(const Kernel& kernel, const Writer& body) {
  Writer out(1);
  for (const std::string& definition : dimension_definitions(kernel)) out.line(definition);
  return without_unused(out.text() + body.text());
}

std::string with_maps(std::string parameters, const LaunchRule& launch) {
  for (std::size_t i = 0; i < launch.tensor_maps.size(); ++i)
    parameters += fmt::format(", const __grid_constant__ tensor_map map{}", i);
  return parameters;
}

std::string function_text(const std::string& name, const std::string& bounds, const std::string& parameters,
                          const std::string& body) {
  Writer out;
  out.open(fmt::format("extern \"C\" __global__ void {} {}({}) {{", bounds, name, parameters));
  return out.text() + body + "}\n";
}

// The copy engine fetches a tensor map from memory before the first box that it describes. No kernel writes one, so it
// is asked for ahead of the kernels ahead.
std::string asks_for_maps(const LaunchRule& launch) {
  if (launch.tensor_maps.empty()) return {};
  Writer out(1);
  out.open("if (threadIdx.x == 0) {");
  for (std::size_t i = 0; i < launch.tensor_maps.size(); ++i) out.line(fmt::format("prefetch_map(map{});", i));
  out.close();
  return out.text();
}

}  // namespace

void join_stream(Writer& out, const Target& target) {
  if (target.may.dependent_launch) out.line("join_stream();");
}

void join_later(Writer& out, const Target& target) {
  out.line(target.may.dependent_launch ? "const auto join = [] { join_stream(); };" : "const auto join = [] {};");
}

std::string bounds_of(const LaunchRule& launch, int resident) {
  const std::string cluster = launch.cluster > 1 ? fmt::format(" __cluster_dims__({}, 1, 1)", launch.cluster) : "";
  return fmt::format("__launch_bounds__({}{}){}", launch.block, resident > 0 ? fmt::format(", {}", resident) : "",
                     cluster);
}

std::string with_prelude(const std::string& text) {
  const std::string prelude = prelude_for(text);
  return prelude + (prelude.empty() ? "" : "\n") + text;
}

Source finish(const Kernel& kernel, const Writer& body, LaunchRule launch, const Target& target, int resident,
              const Meeting& meeting) {
  launch.dependent = target.may.dependent_launch && launch.together == 1;
  launch.constant_inputs = takes_inputs_for_constant(kernel);
  Source source{{}, kernel.name, launch, kernel.dims};
  source.body = body_text(kernel, body);
  source.resident = resident;
  source.scratch_bytes = meeting.scratch_bytes;
  source.zeroed_bytes = meeting.zeroed_bytes;
  const std::string list = parameters(kernel, !meeting.scratch_bytes.is(0), !meeting.zeroed_bytes.is(0));
  source.text = with_prelude(function_text(kernel.name, bounds_of(launch, resident), with_maps(list, launch),
                                           asks_for_maps(launch) + source.body));
  return source;
}

Source finish(const Kernel& kernel, const Writer& body, LaunchRule launch, const Target& target,
              const Finisher& finisher, int resident) {
  launch.dependent = target.may.dependent_launch;
  launch.constant_inputs = takes_inputs_for_constant(kernel);
  Source source{{}, kernel.name, launch, kernel.dims};
  source.finish_entry = kernel.name + "_finish";
  source.finish.grid_x = finisher.grid;
  source.finish.block = finisher.block;
  source.finish.dependent = launch.dependent;
  source.scratch_bytes = finisher.scratch_bytes;
  const auto function = [&](const std::string& name, const std::string& bounds, const Writer& text) {
    return function_text(name, bounds, parameters(kernel, true), body_text(kernel, text));
  };
  source.text =
      with_prelude(function(source.entry, bounds_of(launch, resident), body) + "\n" +
                   function(source.finish_entry, fmt::format("__launch_bounds__({})", finisher.block), finisher.body));
  return source;
}

Dim blocks_of(const Dim& count, std::int64_t size) { return (count + Dim(size - 1)).floor_div(size); }

Dim extent_of(const Kernel& kernel, std::size_t first, std::size_t last) {
  Dim product(1);
  for (std::size_t axis = first; axis < last; ++axis) product = product * kernel.axes[axis].extent;
  return product;
}

void decode_digits(Writer& out, const Kernel& kernel, const std::vector<Digit>& digits, const std::string& linear) {
  const std::string type = index_type(kernel);
  std::string rest = linear;
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::string& name = digits[i].name;
    if (i == 0) {
      out.line(fmt::format("const {0} {1} = ({0}){2};", type, name, parenthesized(rest)));
      return;
    }
    const std::string extent = parenthesized(dim_text(digits[i].extent, names_of(kernel)));
    out.line(fmt::format("const {0} {1} = ({0})({2} % {3});", type, name, rest, extent));
    if (i == 1) {
      rest = fmt::format("{} / {}", rest, extent);
    } else {
      out.line(fmt::format("const {} outer_{} = {} / {};", unsigned_index_type(kernel), name, rest, extent));
      rest = "outer_" + name;
    }
  }
}

void decode_axes(Writer& out, const Kernel& kernel, std::size_t first, std::size_t last, const std::string& linear) {
  std::vector<Digit> digits;
  for (std::size_t axis = first; axis < last; ++axis)
    digits.push_back({kernel.axes[axis].name, kernel.axes[axis].extent});
  decode_digits(out, kernel, digits, linear);
}

}  // namespace cuda
}  // namespace tenon::codegen
