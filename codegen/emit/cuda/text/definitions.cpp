// See definitions.h.
#include "codegen/emit/cuda/text/definitions.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

// The cosine in `scope` of what `id` is the sine of, or the other way round; -1 where there is none.
InstrId other_of_pair(const Kernel& kernel, InstrId id, const std::vector<InstrId>& scope) {
  const Instr& instr = kernel.instr(id);
  if (instr.kind != InstrKind::map || (instr.op != ir::Op::sin && instr.op != ir::Op::cos)) return -1;
  const ir::Op other = instr.op == ir::Op::sin ? ir::Op::cos : ir::Op::sin;
  const auto found = std::find_if(scope.begin(), scope.end(), [&](InstrId candidate) {
    const Instr& with = kernel.instr(candidate);
    return with.kind == InstrKind::map && with.op == other && with.args == instr.args && with.dtype == instr.dtype;
  });
  return found == scope.end() ? -1 : *found;
}

void define_pair(Writer& out, const Kernel& kernel, InstrId first, InstrId second) {
  const Instr& instr = kernel.instr(first);
  const bool is_sine = instr.op == ir::Op::sin;
  const std::string type = value_type(instr.dtype);
  out.line(fmt::format("{} v{}, v{};", type, first, second));
  out.line(fmt::format("{}({}, &v{}, &v{});", type == "double" ? "sincos" : "sincosf",
                       value_name(kernel, instr.args[0]), is_sine ? first : second, is_sine ? second : first),
           comment(instr) + ", " + comment(kernel.instr(second)));
}

}  // namespace

void define(Writer& out, const Kernel& kernel, InstrId id, const std::vector<InstrId>& scope, const Names& names) {
  if (kernel.instr(id).kind == InstrKind::literal) return;
  const InstrId other = other_of_pair(kernel, id, scope);
  if (other < 0) {
    out.line(definition(kernel, id, names), comment(kernel.instr(id)));
  } else if (id < other) {
    define_pair(out, kernel, id, other);
  }
}

void define(Writer& out, const Kernel& kernel, const std::vector<InstrId>& instrs, const Names& names) {
  for (InstrId id : instrs) define(out, kernel, id, instrs, names);
}

}  // namespace tenon::codegen::cuda
