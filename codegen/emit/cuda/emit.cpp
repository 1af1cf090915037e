// Kernel -> CUDA C++: chooses the class's emitter, and puts prelude, signature and body together.
#include "codegen/emit/cuda/emit.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/parts.h"
#include "codegen/emit/cuda/spell.h"
#include "ir/check.h"

namespace tenon::codegen {

Source emit_cuda(const Kernel& kernel, const Target& target) {
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

Source finish(const Kernel& kernel, const Writer& body, LaunchRule launch, const Target& target, bool whole_registers) {
  Writer out;
  launch.dependent = target.dependent_launch;
  out.open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{", launch.block,
                       whole_registers ? ", 1" : "", kernel.name, parameters(kernel)));
  if (launch.dependent) out.line("join_stream();");
  for (const std::string& definition : dimension_definitions(kernel)) out.line(definition);
  const std::string text = without_unused(out.text() + body.text() + "}\n");
  const std::string prelude = prelude_for(text);
  return {prelude + (prelude.empty() ? "" : "\n") + text, kernel.name, launch, kernel.dims};
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
