// See bytes.h.
#include "codegen/emit/cuda/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "codegen/analysis/exact.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

using ir::Op;

constexpr std::int64_t kMostAdded = 1 << 21;  // to a byte in the mantissa of 2^23
constexpr int kWidest = 32;                   // points of a vector, a bit each

bool is_shift(Op op) { return op == Op::left_shift || op == Op::right_shift; }

// The prelude's function of two bytes, or null.
const char* function_of(Op op) {
  constexpr std::array<std::pair<Op, const char*>, 5> kFunctions{{{Op::bitwise_and, "bytes_and"},
                                                                  {Op::bitwise_or, "bytes_or"},
                                                                  {Op::bitwise_xor, "bytes_xor"},
                                                                  {Op::add, "bytes_add"},
                                                                  {Op::sub, "bytes_sub"}}};
  for (const auto& [known, function] : kFunctions)
    if (known == op) return function;
  return nullptr;
}

}  // namespace

bool is_byte(DType dtype) { return dtype == DType::i8 || dtype == DType::u8; }

std::string bytes_type(DType dtype, int count) {
  return fmt::format("byte_vector<{}, {}>", storage_type(dtype), count);
}

ByteVectors::ByteVectors(const Kernel& kernel, const Points& points) : kernel_(kernel), points_(points) {
  const int vector = points.lanes.vector;
  if (vector % 4 != 0 || vector > kWidest) return;
  do {
    forms_.clear();
    for (const InstrId id : points.instrs)
      if (const auto form = form_of(id)) forms_.emplace(id, *form);
  } while (spread_one_that_is_read());
}

const ByteForm* ByteVectors::form(InstrId id) const {
  const auto found = forms_.find(id);
  return found == forms_.end() ? nullptr : &found->second;
}

bool ByteVectors::has_bytes(InstrId id) const { return form(id) != nullptr && form(id)->points == 1; }

bool ByteVectors::shares(InstrId id) const { return form(id) != nullptr && form(id)->points > 1; }

bool ByteVectors::varies(InstrId id) const { return cuda::varies(points_.lanes, kernel_.instr(id).depends); }

std::optional<std::int64_t> ByteVectors::literal(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (instr.kind != InstrKind::literal) return std::nullopt;
  const auto range = integer_range(kernel_, id);
  return range ? std::optional(range->low) : std::nullopt;
}

// A shared load whose words are whole; others are vectors of bytes as all are.
std::optional<ByteForm> ByteVectors::form_of_load(InstrId id) const {
  const Lanes& lanes = points_.lanes;
  if (contains(points_.registers.held, id) || contains(points_.shared.loads, id)) return ByteForm{};
  for (const Overlap& overlap : points_.overlaps)
    for (const Overlap::Load& load : overlap.loads)
      if (load.id == id) return std::nullopt;
  const Access& access = kernel_.instr(id).access;
  if (width_of(kernel_, access, lanes) != 0) return ByteForm{};
  if (lanes.flat || lanes.peeled != nullptr || lanes.axis < 0) return std::nullopt;
  const auto shared = shared_elements(access, lanes.axis, lanes.vector, kernel_);
  if (!shared) return std::nullopt;
  if (lanes.vector / shared->points % 4 != 0 || contains(spread_, id)) return ByteForm{};
  return ByteForm{shared->points, shared->visible};
}

// Bit j: the condition of a `where` holds at point j.
std::optional<std::uint32_t> ByteVectors::chosen(const Instr& where) const {
  const Instr& condition = kernel_.instr(where.args[0]);
  const Lanes& lanes = points_.lanes;
  if (condition.kind != InstrKind::inside || lanes.flat || lanes.peeled != nullptr || lanes.axis < 0)
    return std::nullopt;
  return visible_points(condition.guards, lanes.axis, lanes.vector, kernel_);
}

std::optional<ByteForm> ByteVectors::form_of_choice(const Instr& instr) const {
  if (!varies(instr.args[0])) {  // one of two vectors
    const ByteForm *a = form(instr.args[1]), *b = form(instr.args[2]);
    if (a == nullptr || b == nullptr || a->points != b->points) return std::nullopt;
    return ByteForm{a->points, a->visible & b->visible};
  }
  const auto mask = chosen(instr);
  if (!mask) return std::nullopt;
  int points = 0;
  for (std::size_t i = 1; i < 3; ++i) {
    const InstrId arg = instr.args[i];
    if (!varies(arg)) continue;
    const ByteForm* of = form(arg);
    const std::uint32_t all = ~0u >> (32 - points_.lanes.vector), asked = (i == 1 ? *mask : ~*mask) & all;
    if (of == nullptr || (points != 0 && points != of->points) || (asked & ~of->visible) != 0) return std::nullopt;
    points = of->points;
  }
  return points != 0 ? std::optional(ByteForm{}) : std::nullopt;
}

std::optional<ByteForm> ByteVectors::form_of_map(const Instr& instr) const {
  if (instr.op == Op::where) return form_of_choice(instr);
  const bool same_bits = instr.op == Op::cast && is_byte(kernel_.instr(instr.args[0]).dtype);
  if (is_shift(instr.op)) {
    const auto by = literal(instr.args[1]);
    if (!by || *by < 0 || *by > 7) return std::nullopt;
  } else if (function_of(instr.op) == nullptr && !same_bits) {
    return std::nullopt;
  }
  std::optional<ByteForm> result;
  for (const InstrId arg : instr.args) {
    if (!varies(arg)) continue;
    const ByteForm* of = form(arg);
    if (of == nullptr || (result && result->points != of->points)) return std::nullopt;
    result = ByteForm{of->points, of->visible & (result ? result->visible : ~0u)};
  }
  return result;
}

std::optional<ByteForm> ByteVectors::form_of(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (!is_byte(instr.dtype) || !varies(id)) return std::nullopt;
  if (instr.kind == InstrKind::load) return form_of_load(id);
  if (contains(points_.registers.held, id) || instr.kind != InstrKind::map) return std::nullopt;
  return form_of_map(instr);
}

// All shared loads that `id` comes from.
void ByteVectors::spread(InstrId id) {
  if (!shares(id)) return;
  const Instr& instr = kernel_.instr(id);
  if (instr.kind == InstrKind::load) spread_.push_back(id);
  for (const InstrId arg : instr.args) spread(arg);
}

// Whether points ask for a byte that they share with others, which then each get it.
bool ByteVectors::spread_one_that_is_read() {
  std::vector<InstrId> read = points_.registers.saved;
  for (const int store : points_.stores)
    for (const InstrId id : roots_of(kernel_.stores[static_cast<std::size_t>(store)])) read.push_back(id);
  for (const auto* reduces : {&points_.accumulators.reduces, &points_.accumulators.outer})
    for (const InstrId id : *reduces) read.push_back(kernel_.instr(id).args[0]);
  if (points_.packed.value >= 0) read.push_back(points_.packed.value);
  for (const InstrId id : points_.instrs)
    if (form(id) == nullptr && !contains(points_.registers.held, id))
      for (const InstrId operand : operands_of(kernel_.instr(id))) read.push_back(operand);
  const auto found = std::find_if(read.begin(), read.end(), [&](InstrId id) { return shares(id); });
  if (found == read.end()) return false;
  spread(*found);
  return true;
}

std::string ByteVectors::type(InstrId id) const {
  return bytes_type(kernel_.instr(id).dtype, points_.lanes.vector / form(id)->points);
}

std::string ByteVectors::name(InstrId id) const {
  if (shares(id)) return fmt::format("s{}", id);
  const Registers& registers = points_.registers;
  return contains(registers.held, id) ? fmt::format("{}{}{}", registers.name, id, registers.index)
                                      : fmt::format("x{}", id);
}

// Held values are as they were loaded.
std::string ByteVectors::in_words(InstrId id) const {
  return contains(points_.registers.held, id) ? fmt::format("to_bytes({})", name(id)) : name(id);
}

std::string ByteVectors::operand(InstrId id) const {
  if (const auto value = literal(id))
    return fmt::format("{:#x}u", static_cast<std::uint32_t>(*value & 0xff) * 0x01010101u);
  return varies(id) ? name(id) : fmt::format("splat_byte({})", value_name(kernel_, id));
}

std::string ByteVectors::expression(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (instr.op == Op::where && !varies(instr.args[0]))
    return fmt::format("{} ? {} : {}", value_name(kernel_, instr.args[0]), in_words(instr.args[1]),
                       in_words(instr.args[2]));
  if (instr.op == Op::where) {
    const ByteForm* first = form(instr.args[1]);
    const int points = (first != nullptr ? first : form(instr.args[2]))->points;
    return fmt::format("bytes_choose<{}, {}, {:#x}u>({}, {})", type(id), points, *chosen(instr), operand(instr.args[1]),
                       operand(instr.args[2]));
  }
  const std::string first = operand(instr.args[0]);
  if (instr.op == Op::cast) return fmt::format("bytes_or<{}>({}, 0u)", type(id), first);
  if (instr.op == Op::left_shift)
    return fmt::format("bytes_left<{}, {}>({})", type(id), *literal(instr.args[1]), first);
  if (instr.op == Op::right_shift)
    return fmt::format("bytes_right<{}, {}, {}>({})", type(id), *literal(instr.args[1]), instr.dtype == DType::i8,
                       first);
  return fmt::format("{}<{}>({}, {})", function_of(instr.op), type(id), first, operand(instr.args[1]));
}

std::optional<ByteVectors::Fold> ByteVectors::fold(InstrId reduce) const {
  const Instr& instr = kernel_.instr(reduce);
  const InstrId arg = instr.args[0];
  if (instr.op == Op::max || instr.op == Op::min) {
    if (!has_bytes(arg)) return std::nullopt;
    return Fold{instr.op == Op::max ? "greatest_byte" : "least_byte", arg};
  }
  if (instr.op != Op::sum) return std::nullopt;
  const Instr& summand = kernel_.instr(arg);
  const bool cast = summand.kind == InstrKind::map && summand.op == Op::cast && contains(points_.instrs, arg);
  const InstrId bytes = has_bytes(arg) ? arg : cast ? summand.args[0] : -1;
  if (bytes < 0 || !has_bytes(bytes)) return std::nullopt;
  const bool exact = !is_real(summand.dtype) || is_exact_in(kernel_, bytes, summand.dtype);
  return exact && instr.dtype != DType::bool_ ? std::optional(Fold{"sum_of_bytes", bytes}) : std::nullopt;
}

std::optional<ExactBytes> ByteVectors::exact(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (contains(points_.registers.held, id) || !is_real(instr.dtype) || compute_type(instr.dtype) != DType::f32 ||
      !contains(points_.instrs, id))
    return std::nullopt;
  const bool cast = instr.kind == InstrKind::map && instr.op == Op::cast;
  if (cast || instr.kind == InstrKind::round) {
    const InstrId from = instr.args[0];
    if (!is_exact_in(kernel_, from, instr.dtype)) return std::nullopt;
    return has_bytes(from) ? std::optional(ExactBytes{from, 0}) : exact(from);
  }
  if (instr.kind != InstrKind::map || (instr.op != Op::add && instr.op != Op::sub)) return std::nullopt;
  const bool literal_first = instr.op == Op::add && literal(instr.args[0]).has_value();
  auto sum = exact(instr.args[literal_first ? 1 : 0]);
  const auto by = literal(instr.args[literal_first ? 0 : 1]);
  if (!sum || !by || !is_exact_in(kernel_, id, DType::f32)) return std::nullopt;
  sum->plus += instr.op == Op::sub ? -*by : *by;
  return std::abs(sum->plus) <= kMostAdded ? sum : std::nullopt;
}

std::optional<ByteVectors::Pairs> ByteVectors::both(const char* function, const std::optional<Pairs>& a,
                                                    const std::optional<Pairs>& b) {
  if (!a || !b) return std::nullopt;
  Pairs result{fmt::format("{}({}, {})", function, a->value, b->value), a->vectors};
  result.vectors.insert(result.vectors.end(), b->vectors.begin(), b->vectors.end());
  return result;
}

// Integers that `dtype` holds, made of bytes by sums that it holds too.
std::optional<ByteVectors::Pairs> ByteVectors::exact_pairs(InstrId id, DType dtype) const {
  if (!is_exact_in(kernel_, id, dtype)) return std::nullopt;
  const auto sum = exact(id);
  if (!sum) {
    const Instr& instr = kernel_.instr(id);
    if (instr.kind == InstrKind::round && instr.dtype == dtype) return exact_pairs(instr.args[0], dtype);
    if (instr.kind != InstrKind::map || (instr.op != Op::add && instr.op != Op::sub) || !contains(points_.instrs, id))
      return std::nullopt;
    return both(instr.op == Op::add ? "add_pairs" : "subtract_pairs", exact_pairs(instr.args[0], dtype),
                exact_pairs(instr.args[1], dtype));
  }
  const auto range = integer_range(kernel_, sum->bytes);
  const std::int64_t most = dtype == DType::f16 ? 2048 - 1152 : 256 - 128;  // beside what mantissas begin with
  const bool few = std::abs(sum->plus) <= most, low = few && range && range->low >= 0 && range->high < 128;
  if (dtype == DType::f16 && !few) return std::nullopt;
  return Pairs{fmt::format("bytes_to_16<{}, {}, {}>({})", storage_type(dtype), low, sum->plus, name(sum->bytes)),
               {sum->bytes}};
}

// What memory holds as `dtype`, where it is loaded as a vector.
std::optional<ByteVectors::Pairs> ByteVectors::stored_pairs(InstrId id, DType dtype) const {
  const Instr& instr = kernel_.instr(id);
  if (instr.kind != InstrKind::load || !varies(id) || contains(points_.registers.held, id) ||
      contains(points_.shared.loads, id) || stored_dtype(kernel_, instr.access) != dtype ||
      vector_load(kernel_, id, points_.lanes, names_of(kernel_)).empty())
    return std::nullopt;
  return Pairs{fmt::format("x{}", id), {id}};
}

std::optional<ByteVectors::Pairs> ByteVectors::pairs(InstrId id, DType dtype) const {
  if ((dtype != DType::f16 && dtype != DType::bf16) || points_.lanes.vector % 4 != 0) return std::nullopt;
  const Instr& instr = kernel_.instr(id);
  if (auto integers = exact_pairs(id, dtype)) return integers;
  if (instr.kind == InstrKind::round && instr.dtype == dtype) return pairs(instr.args[0], dtype);
  if (instr.kind != InstrKind::map || instr.op != Op::mul || instr.dtype != dtype) return std::nullopt;
  // f32 has all bits of the product of an integer that `dtype` holds and a number of it, so that it is rounded once.
  if (auto scaled = both("multiply_pairs", exact_pairs(instr.args[0], dtype), stored_pairs(instr.args[1], dtype)))
    return scaled;
  return both("multiply_pairs", stored_pairs(instr.args[0], dtype), exact_pairs(instr.args[1], dtype));
}

std::vector<InstrId> ByteVectors::operands(InstrId id) const {
  const Instr& instr = kernel_.instr(id);
  if (form(id) != nullptr && instr.kind == InstrKind::map)
    return instr.op == Op::where && varies(instr.args[0]) ? std::vector{instr.args[1], instr.args[2]} : instr.args;
  if (const auto sum = exact(id)) return {sum->bytes};
  return operands_of(instr);
}

}  // namespace tenon::codegen::cuda
