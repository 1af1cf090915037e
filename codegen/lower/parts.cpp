// See parts.h.
#include "codegen/lower/parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

using ir::Op;

std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }

bool contains(const Region& region, InstrId id) { return std::find(region.begin(), region.end(), id) != region.end(); }

// The instructions whose values occur in `instr`.
std::vector<InstrId> operands_of(const Instr& instr) {
  std::vector<InstrId> operands = instr.args;
  const auto add = [&](const Index& index) {
    const std::vector<int> values = index.values();
    operands.insert(operands.end(), values.begin(), values.end());
  };
  add(instr.index);
  add(instr.access.offset);
  for (const Guard& guard : instr.access.guards) add(guard.index);
  for (const Guard& guard : instr.guards) add(guard.index);
  return operands;
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

std::uint64_t mask_of(const std::vector<int>& axes) {
  std::uint64_t mask = 0;
  for (int axis : axes) mask |= bit(axis);
  return mask;
}

void check_region(const Kernel& kernel, const Region& region, std::uint64_t axes, const char* what) {
  for (InstrId id : region) {
    const Instr& instr = kernel.instr(id);
    TENON_CHECK(instr.kind != InstrKind::reduce && instr.kind != InstrKind::contract,
                fmt::format("{}: v{} is a collective", what, id));
    TENON_CHECK((instr.depends & ~axes) == 0, fmt::format("{}: v{} varies along an axis that it must not", what, id));
  }
}

OperandPart operand_part(const Kernel& kernel, InstrId contract, std::size_t which, std::uint64_t batch, int outer,
                         int depth, const char* what) {
  OperandPart part;
  part.value = kernel.instr(contract).args.at(which);
  part.outer = outer;
  part.depth = depth;
  part.region = region_of(kernel, {part.value}, {});
  check_region(kernel, part.region, batch | bit(outer) | bit(depth), what);
  return part;
}

// What every store needs, with `given` known; no store may run along a combined axis.
Region epilogue_of(const Kernel& kernel, const std::vector<InstrId>& given, const std::vector<InstrId>& also,
                   std::uint64_t kept) {
  std::vector<InstrId> roots = also;
  for (const Store& store : kernel.stores) {
    roots.push_back(store.value);
    for (int value : store.access.offset.values()) roots.push_back(value);
    for (const Guard& guard : store.access.guards)
      for (int value : guard.index.values()) roots.push_back(value);
  }
  Region region = region_of(kernel, roots, given);
  check_region(kernel, region, kept, "epilogue");
  return region;
}

// ---- attend -------------------------------------------------------------------------------------------------------

// Past casts and roundings between reals.
InstrId behind_casts(const Kernel& kernel, InstrId id) {
  while (true) {
    const Instr& instr = kernel.instr(id);
    const bool cast = instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == Op::cast);
    if (!cast || !is_real(instr.dtype) || !is_real(kernel.instr(instr.args[0]).dtype)) return id;
    id = instr.args[0];
  }
}

bool is_exponential(const Instr& instr) {
  return instr.kind == InstrKind::map && (instr.op == Op::exp || instr.op == Op::exp2);
}

bool varies(const Kernel& kernel, InstrId id, int axis) { return (kernel.instr(id).depends & bit(axis)) != 0; }

bool is_zero(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  return instr.kind == InstrKind::literal &&
         std::visit([](auto value) { return static_cast<double>(value); }, instr.literal) == 0;
}

bool comes_from_exponential(const Kernel& kernel, InstrId id, int axis) {
  for (InstrId each : region_of(kernel, {id}, {}))
    if (is_exponential(kernel.instr(each)) && varies(kernel, each, axis)) return true;
  return false;
}

// One step from the second contraction's first operand back to the exponential: takes in what `instr` multiplies the
// weights by, and gives the operand through which they come.
InstrId pass_factor(const Kernel& kernel, AttendParts& parts, InstrId id) {
  const Instr& instr = kernel.instr(id);
  const bool linear =
      instr.kind == InstrKind::map && (instr.op == Op::mul || instr.op == Op::div || instr.op == Op::where);
  TENON_CHECK(linear, fmt::format("attend: v{} stands between the weights and the second contraction", id));
  if (instr.op == Op::where) {
    const bool kept = is_zero(kernel, instr.args[2]);
    TENON_CHECK(kept || is_zero(kernel, instr.args[1]), fmt::format("attend: v{} selects more than weights", id));
    if (varies(kernel, instr.args[0], parts.j)) {
      parts.key_factors.insert(parts.key_factors.begin(), {Op::where, instr.args[0], kept});
    } else {
      parts.factors.insert(parts.factors.begin(), {Op::where, instr.args[0], kept});
    }
    return instr.args[kept ? 1 : 2];
  }
  const bool left = instr.op == Op::div || comes_from_exponential(kernel, instr.args[0], parts.j);
  const InstrId factor = instr.args[left ? 1 : 0];
  if (varies(kernel, factor, parts.j)) {
    parts.key_factors.insert(parts.key_factors.begin(), {instr.op, factor, true});
  } else {
    parts.factors.insert(parts.factors.begin(), {instr.op, factor, true});
  }
  return instr.args[left ? 0 : 1];
}

void find_weight(const Kernel& kernel, AttendParts& parts) {
  InstrId at = kernel.instr(parts.mix).args[0];
  parts.weight_dtype = kernel.instr(at).dtype;
  for (at = behind_casts(kernel, at); !is_exponential(kernel.instr(at)); at = behind_casts(kernel, at))
    at = pass_factor(kernel, parts, at);
  parts.weight = at;
}

void find_score(const Kernel& kernel, AttendParts& parts) {
  const InstrId exponent = kernel.instr(parts.weight).args[0];
  const Instr& difference = kernel.instr(exponent);
  const bool shifted = difference.kind == InstrKind::map && difference.op == Op::sub &&
                       varies(kernel, difference.args[0], parts.j) && !varies(kernel, difference.args[1], parts.j);
  const bool by_maximum =
      shifted && parts.maximum >= 0 && contains(region_of(kernel, {difference.args[1]}, {}), parts.maximum);
  parts.score = by_maximum ? difference.args[0] : exponent;
  parts.shift = by_maximum ? difference.args[1] : -1;
}

void find_reductions(const Kernel& kernel, AttendParts& parts) {
  for (InstrId id : instrs_of_kind(kernel, InstrKind::reduce)) {
    const Instr& instr = kernel.instr(id);
    TENON_CHECK(instr.op == Op::max || instr.op == Op::sum, "attend: a reduction is neither max nor sum");
    InstrId& slot = instr.op == Op::max ? parts.maximum : parts.sum;
    TENON_CHECK(slot < 0, "attend: two reductions of one kind");
    slot = id;
  }
}

void check_form(const Kernel& kernel, const AttendParts& parts) {
  if (parts.maximum >= 0)
    TENON_CHECK(behind_casts(kernel, kernel.instr(parts.maximum).args[0]) == behind_casts(kernel, parts.score),
                "attend: the maximum is not that of the exponentiated scores");
  if (parts.sum >= 0)
    TENON_CHECK(behind_casts(kernel, kernel.instr(parts.sum).args[0]) == parts.weight,
                "attend: the sum is not that of the weights");
}

// ---- masks --------------------------------------------------------------------------------------------------------

// An integer value as i_slope * i + j_slope * j + constant.
struct Affine {
  std::int64_t i = 0, j = 0;
  Dim constant;
};

std::optional<Affine> affine(const Index& index, int i, int j) {
  Affine sum;
  sum.constant = index.constant();
  for (const IndexTerm& term : index.terms()) {
    const bool known = term.atom->kind == IndexAtom::Kind::axis && term.coefficient.is_constant();
    if (!known || (term.atom->id != i && term.atom->id != j)) return std::nullopt;
    (term.atom->id == i ? sum.i : sum.j) += term.coefficient.constant();
  }
  return sum;
}

Affine combined(const Affine& a, const Affine& b, int sign) {
  return {a.i + sign * b.i, a.j + sign * b.j, a.constant + b.constant * Dim(sign)};
}

std::optional<Affine> affine(const Kernel& kernel, InstrId id, int i, int j) {
  const Instr& instr = kernel.instr(id);
  if (!is_integer(instr.dtype) || size_of(instr.dtype) < 4) return std::nullopt;
  if (instr.kind == InstrKind::index) return affine(instr.index, i, j);
  if (instr.kind == InstrKind::literal) {
    const auto value = std::visit([](auto v) { return static_cast<std::int64_t>(v); }, instr.literal);
    return Affine{0, 0, Dim(value)};
  }
  if (instr.kind != InstrKind::map) return std::nullopt;
  if (instr.op == Op::cast) return affine(kernel, instr.args[0], i, j);
  if (instr.op != Op::add && instr.op != Op::sub) return std::nullopt;
  const auto a = affine(kernel, instr.args[0], i, j), b = affine(kernel, instr.args[1], i, j);
  return a && b ? std::optional(combined(*a, *b, instr.op == Op::add ? 1 : -1)) : std::nullopt;
}

// difference <= 0, where the coefficient of j is 1 or -1.
std::vector<KeyBound> bound_from(const Affine& difference) {
  if (difference.j == 1) return {{true, -difference.i, Dim(0) - difference.constant}};
  if (difference.j == -1) return {{false, difference.i, difference.constant}};
  return {};
}

// a < b is a - b + 1 <= 0.
std::vector<KeyBound> comparison_bounds(const Affine& a, const Affine& b, Op op) {
  const auto at_most = [](const Affine& lesser, const Affine& greater, std::int64_t strict) {
    Affine difference = combined(lesser, greater, -1);
    difference.constant = difference.constant + Dim(strict);
    return bound_from(difference);
  };
  if (op == Op::less) return at_most(a, b, 1);
  if (op == Op::less_equal) return at_most(a, b, 0);
  if (op == Op::greater) return at_most(b, a, 1);
  if (op == Op::greater_equal) return at_most(b, a, 0);
  if (op != Op::equal) return {};
  std::vector<KeyBound> both = at_most(a, b, 0);
  const std::vector<KeyBound> other = at_most(b, a, 0);
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

// The comparison that holds where `op` does not; not_equal, which bounds nothing, for the rest.
Op negated(Op op) {
  if (op == Op::less) return Op::greater_equal;
  if (op == Op::less_equal) return Op::greater;
  if (op == Op::greater) return Op::less_equal;
  if (op == Op::greater_equal) return Op::less;
  return op == Op::not_equal ? Op::equal : Op::not_equal;
}

bool is_minus_infinity(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return false;
  const auto value = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  return value < 0 && value * 2 == value && value != 0;
}

// Where `score` is not -inf: through casts, selects and additions of a bias that is itself a mask.
void mask_bounds(const Kernel& kernel, InstrId score, int i, int j, int depth, std::vector<KeyBound>& bounds) {
  const Instr& instr = kernel.instr(behind_casts(kernel, score));
  if (instr.kind != InstrKind::map || depth == 0) return;
  const auto add = [&](const std::vector<KeyBound>& found) { bounds.insert(bounds.end(), found.begin(), found.end()); };
  if (instr.op == Op::where) {
    if (is_minus_infinity(kernel, instr.args[2])) {
      add(key_bounds(kernel, instr.args[0], true, i, j));
      mask_bounds(kernel, instr.args[1], i, j, depth - 1, bounds);
    } else if (is_minus_infinity(kernel, instr.args[1])) {
      add(key_bounds(kernel, instr.args[0], false, i, j));
      mask_bounds(kernel, instr.args[2], i, j, depth - 1, bounds);
    }
  }
}

}  // namespace

Region region_of(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<InstrId>& given) {
  std::vector<bool> wanted(kernel.body.size(), false);
  for (InstrId root : roots) wanted[static_cast<std::size_t>(root)] = true;
  for (InstrId id : given) wanted[static_cast<std::size_t>(id)] = false;
  Region region;
  for (std::size_t id = kernel.body.size(); id-- > 0;) {  // definition order backwards: users come first
    if (!wanted[id]) continue;
    region.insert(region.begin(), static_cast<InstrId>(id));
    for (InstrId operand : operands_of(kernel.body[id]))
      if (!contains(given, operand)) wanted[static_cast<std::size_t>(operand)] = true;
  }
  return region;
}

ContractParts contract_parts(const Kernel& kernel) {
  TENON_CHECK(kernel.kernel_class == ir::KernelClass::contract, "not a contract kernel");
  const std::vector<InstrId> contractions = instrs_of_kind(kernel, InstrKind::contract);
  TENON_CHECK(contractions.size() == 1, "a contract kernel has one contraction");
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
  const std::uint64_t batch = mask_of(parts.batch);
  parts.a = operand_part(kernel, parts.contract, 0, batch, parts.m, parts.k, "first operand");
  parts.b = operand_part(kernel, parts.contract, 1, batch, parts.n, parts.k, "second operand");
  parts.epilogue = epilogue_of(kernel, {parts.contract}, {}, batch | bit(parts.m) | bit(parts.n));
  return parts;
}

AttendParts attend_parts(const Kernel& kernel) {
  TENON_CHECK(kernel.kernel_class == ir::KernelClass::attend, "not an attend kernel");
  const std::vector<InstrId> contractions = instrs_of_kind(kernel, InstrKind::contract);
  TENON_CHECK(contractions.size() == 2, "an attend kernel has two contractions");
  AttendParts parts;
  parts.batch = leading_axes(kernel, 4);
  const int first = static_cast<int>(parts.batch.size());
  parts.i = first;
  parts.e = first + 1;
  parts.j = first + 2;
  parts.d = first + 3;
  const bool in_order = kernel.instr(contractions[0]).axes == std::vector<int>{parts.d};
  parts.scores = contractions[in_order ? 0 : 1];
  parts.mix = contractions[in_order ? 1 : 0];
  TENON_CHECK(kernel.instr(parts.scores).axes == std::vector<int>{parts.d} &&
                  kernel.instr(parts.mix).axes == std::vector<int>{parts.j},
              "the contractions of an attend kernel are not over d and j");
  find_reductions(kernel, parts);
  find_weight(kernel, parts);
  find_score(kernel, parts);
  check_form(kernel, parts);

  const std::uint64_t row = mask_of(parts.batch) | bit(parts.i);
  parts.q = operand_part(kernel, parts.scores, 0, mask_of(parts.batch), parts.i, parts.d, "queries");
  parts.k = operand_part(kernel, parts.scores, 1, mask_of(parts.batch), parts.j, parts.d, "keys");
  parts.v = operand_part(kernel, parts.mix, 1, mask_of(parts.batch), parts.e, parts.j, "values");
  parts.score_region = region_of(kernel, {parts.score}, {parts.scores});
  check_region(kernel, parts.score_region, row | bit(parts.j), "scores");
  std::vector<InstrId> known = {parts.score};
  if (parts.shift >= 0) {
    parts.shift_region = region_of(kernel, {parts.shift}, {parts.maximum});
    check_region(kernel, parts.shift_region, row, "shift");
    known.push_back(parts.shift);
  }
  parts.weight_region = region_of(kernel, {parts.weight}, known);
  check_region(kernel, parts.weight_region, row | bit(parts.j), "weights");
  std::vector<InstrId> key_factors;
  for (const KeyFactor& factor : parts.key_factors) key_factors.push_back(factor.value);
  parts.factor_region = region_of(kernel, key_factors, {});
  check_region(kernel, parts.factor_region, row | bit(parts.j), "factors of weights");
  std::vector<InstrId> given = {parts.mix};
  if (parts.maximum >= 0) given.push_back(parts.maximum);
  if (parts.sum >= 0) given.push_back(parts.sum);
  std::vector<InstrId> factors;
  for (const RowFactor& factor : parts.factors) factors.push_back(factor.value);
  parts.epilogue = epilogue_of(kernel, given, factors, row | bit(parts.e));
  mask_bounds(kernel, parts.score, parts.i, parts.j, 8, parts.bounds);
  return parts;
}

std::vector<KeyBound> key_bounds(const Kernel& kernel, InstrId condition, bool holds, int i, int j) {
  const Instr& instr = kernel.instr(condition);
  if (instr.kind != InstrKind::map) return {};
  if (instr.op == Op::logical_not) return key_bounds(kernel, instr.args[0], !holds, i, j);
  if (instr.op == (holds ? Op::logical_and : Op::logical_or)) {
    std::vector<KeyBound> bounds = key_bounds(kernel, instr.args[0], holds, i, j);
    const std::vector<KeyBound> more = key_bounds(kernel, instr.args[1], holds, i, j);
    bounds.insert(bounds.end(), more.begin(), more.end());
    return bounds;
  }
  if (instr.args.size() != 2) return {};
  const auto a = affine(kernel, instr.args[0], i, j), b = affine(kernel, instr.args[1], i, j);
  if (!a || !b) return {};
  return comparison_bounds(*a, *b, holds ? instr.op : negated(instr.op));
}

}  // namespace tenon::codegen
