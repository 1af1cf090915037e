// See parts.h.
#include "codegen/lower/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

using ir::Op;

std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }

// Everything that `roots` need, in definition order, without `given` and what only they need.
Region region_of(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<InstrId>& given) {
  std::vector<bool> defined(kernel.body.size(), false);
  for (InstrId id : given)
    if (id >= 0) defined[static_cast<std::size_t>(id)] = true;
  return needed(kernel, roots, defined);
}

std::vector<InstrId> instrs_of_kind(const Kernel& kernel, InstrKind kind) {
  std::vector<InstrId> found;
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (kernel.body[id].kind == kind) found.push_back(static_cast<InstrId>(id));
  return found;
}

std::vector<int> leading_axes(const Kernel& kernel, std::size_t fixed) {
  TENON_CHECK(kernel.axes.size() >= fixed, "a contraction's kernel lacks its last axes");
  std::vector<int> axes;
  for (std::size_t axis = 0; axis + fixed < kernel.axes.size(); ++axis) axes.push_back(static_cast<int>(axis));
  return axes;
}

void check_region(const Kernel& kernel, const Region& region, std::uint64_t axes, const char* what) {
  for (InstrId id : region) {
    const Instr& instr = kernel.instr(id);
    TENON_CHECK(instr.kind != InstrKind::reduce && instr.kind != InstrKind::contract,
                fmt::format("{}: v{} is a collective", what, id));
    TENON_CHECK((instr.depends & ~axes) == 0, fmt::format("{}: v{} varies along an axis that it must not", what, id));
  }
}

OperandPart operand_part(const Kernel& kernel, InstrId contract, std::size_t which, int outer, int depth) {
  OperandPart part;
  part.value = kernel.instr(contract).args.at(which);
  part.outer = outer;
  part.depth = depth;
  part.region = region_of(kernel, {part.value}, {});
  return part;
}

// What every store needs, and `also`, with `given` known.
Region epilogue_of(const Kernel& kernel, const std::vector<InstrId>& given, std::vector<InstrId> also = {}) {
  for (const Store& store : kernel.stores)
    for (InstrId root : roots_of(store)) also.push_back(root);
  return region_of(kernel, also, given);
}

// ---- attend -------------------------------------------------------------------------------------------------------

// What a step from weights on to the second contraction applies to them; nothing for a cast.
std::optional<Factor> factor_of(const Instr& step, InstrId weight) {
  if (step.kind != InstrKind::map || step.op == Op::cast) return std::nullopt;
  if (step.op == Op::where) return Factor{Op::where, step.args[0], step.args[1] == weight};
  return Factor{step.op, step.args[step.args[0] == weight ? 1 : 0], true};
}

void read_factors(const Kernel& kernel, AttendParts& parts) {
  InstrId weight = parts.weight;
  for (InstrId id : parts.scaling) {
    if (const auto factor = factor_of(kernel.instr(id), weight)) {
      const bool of_key = (kernel.instr(factor->value).depends & bit(parts.j)) != 0;
      (of_key ? parts.key_factors : parts.factors).push_back(*factor);
    }
    weight = id;
  }
}

// f8 has few exponents: what it rounds depends on the scale.
double weight_scale(const Kernel& kernel, const AttendParts& parts) {
  double scale = 1;
  for (const Factor& factor : parts.factors) {
    const Instr& value = kernel.instr(factor.value);
    if (factor.op == Op::mul && value.kind == InstrKind::literal)
      scale *= std::visit([](auto number) { return static_cast<double>(number); }, value.literal);
  }
  int exponent = 0;
  return is_f8(parts.weight_dtype) && std::frexp(scale, &exponent) == 0.5 ? scale : 1;
}

std::vector<InstrId> values_of(const std::vector<Factor>& factors) {
  std::vector<InstrId> values;
  for (const Factor& factor : factors) values.push_back(factor.value);
  return values;
}

}  // namespace

ContractParts contract_parts(const Kernel& kernel) {
  TENON_CHECK(kernel.kernel_class == ir::KernelClass::contract, "not a contract kernel");
  const std::vector<InstrId> contractions = instrs_of_kind(kernel, InstrKind::contract);
  TENON_CHECK(contractions.size() == 1 || contractions.size() == 2, "a contract kernel has one contraction, or a pair");
  TENON_CHECK(instrs_of_kind(kernel, InstrKind::reduce).empty(), "a contract kernel has no reductions");
  ContractParts parts;
  parts.batch = leading_axes(kernel, 3);
  const int first = static_cast<int>(parts.batch.size());
  parts.m = first;
  parts.n = first + 1;
  parts.k = first + 2;
  parts.contract = contractions[0];
  TENON_CHECK(kernel.instr(parts.contract).axes == std::vector<int>{parts.k},
              "the contraction is not over the last axis");
  const std::uint64_t batch = bit(parts.m) - 1;
  parts.a = operand_part(kernel, parts.contract, 0, parts.m, parts.k);
  parts.b = operand_part(kernel, parts.contract, 1, parts.n, parts.k);
  if (contractions.size() == 2) {
    const InstrId second = contractions[1];
    TENON_CHECK(kernel.instr(second).args[0] == parts.a.value && kernel.instr(second).axes == std::vector<int>{parts.k},
                "the products of a pair share their rows");
    parts.second = {second, operand_part(kernel, second, 1, parts.n, parts.k)};
    check_region(kernel, parts.second->b.region, batch | bit(parts.n) | bit(parts.k), "second operand of the second");
  }
  parts.epilogue = epilogue_of(kernel, contractions);
  check_region(kernel, parts.a.region, batch | bit(parts.m) | bit(parts.k), "first operand");
  check_region(kernel, parts.b.region, batch | bit(parts.n) | bit(parts.k), "second operand");
  check_region(kernel, parts.epilogue, batch | bit(parts.m) | bit(parts.n), "epilogue");
  return parts;
}

namespace {

// Batches that read the same beside scores lie next to each other, and find it in the caches: the axes along which it
// varies come first.
void order_batch(const Kernel& kernel, AttendParts& parts) {
  std::uint64_t read = 0;  // the axes along which something varies that is read for each score
  for (const Region* region : {&parts.score_region, &parts.factor_region})
    for (const InstrId id : *region) {
      const Instr& instr = kernel.instr(id);
      if (instr.kind == InstrKind::load && varies(kernel, id, parts.j)) read |= instr.depends;
    }
  if (read != 0)
    std::stable_partition(parts.batch.begin(), parts.batch.end(), [&](int axis) { return (read >> axis & 1) != 0; });
}

}  // namespace

AttendParts attend_parts(const Kernel& kernel) {
  TENON_CHECK(kernel.kernel_class == ir::KernelClass::attend, "not an attend kernel");
  AttendParts parts;
  static_cast<Attention&>(parts) = kernel.attention;
  parts.batch = leading_axes(kernel, 4);
  const int first = static_cast<int>(parts.batch.size());
  parts.i = first;
  parts.e = first + 1;
  parts.j = first + 2;
  parts.d = first + 3;
  parts.weight_dtype = kernel.instr(kernel.instr(parts.mix).args[0]).dtype;
  read_factors(kernel, parts);
  parts.weight_scale = weight_scale(kernel, parts);
  parts.q = operand_part(kernel, parts.scores, 0, parts.i, parts.d);
  parts.k = operand_part(kernel, parts.scores, 1, parts.j, parts.d);
  parts.v = operand_part(kernel, parts.mix, 1, parts.e, parts.j);
  parts.score_region = region_of(kernel, {parts.score}, {parts.scores});
  parts.weight_region = region_of(kernel, {parts.weight}, {parts.score, parts.shift});
  if (parts.shift >= 0) parts.shift_region = region_of(kernel, {parts.shift}, {parts.maximum});
  parts.factor_region = region_of(kernel, values_of(parts.key_factors), {});
  parts.epilogue = epilogue_of(kernel, {parts.mix, parts.maximum, parts.sum}, values_of(parts.factors));
  order_batch(kernel, parts);
  return parts;
}

}  // namespace tenon::codegen
