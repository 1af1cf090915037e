// See vector_product.h.
#include "codegen/lower/vector_product.h"

#include <algorithm>

#include "codegen/analysis/tiling.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/visit.h"
#include "codegen/lower/parts.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

bool has_vector(const Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::contract) return false;
  const auto is_one = [&](std::size_t from_end) { return kernel.axes[kernel.axes.size() - from_end].extent.is(1); };
  const auto products = std::count_if(kernel.body.begin(), kernel.body.end(),
                                      [](const Instr& instr) { return instr.kind == InstrKind::contract; });
  return products == 1 && (is_one(3) || is_one(2));  // m, n
}

// In which products are added up.
DType dtype_of_sum(DType dtype) { return is_real(dtype) && size_of(dtype) < 4 ? DType::f32 : dtype; }

// A matrix whose rows along the vector's sum lie apart: a reduction cuts them in parts, which a second function adds
// up. Blocks that stream 64 bytes of each row need none, as long as there are enough of them. In clocks of an H100,
// bf16: [4096] x [4096, 1024] took 11 us either way, [4096, 4096] 18.4 and 20.9, [4096, 14336] 47.6 and 51.5.
bool streams_across(const Kernel& kernel, const ContractParts& parts, const OperandPart& matrix, int along, int vector,
                    const Target& target) {
  constexpr std::int64_t kLine = 64, kLineBytes = 21, kCopied = 18, kFinish = 10000;  // bytes; bytes a clock; clocks
  constexpr int kBytes = 2, kLeastVector = 4;
  const Instr& read = kernel.instr(matrix.value);
  if (read.kind != InstrKind::load || element_bytes(kernel, read.access) != kBytes || vector < kLeastVector)
    return false;
  const auto extent = [&](int axis) {
    return typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols);
  };
  std::int64_t columns = extent(along);
  for (const int axis : parts.batch) columns *= extent(axis);
  const std::int64_t depth = extent(parts.k);
  return depth * kLine / kLineBytes <=
         depth * columns * kBytes / (kCopied * std::int64_t{target.multiprocessors}) + kFinish;
}

}  // namespace

bool streams_past_vector(const Kernel& kernel, const Target& target) {
  // Of a multiprocessor in a clock: what it reads at the speed of a copy (H200), and what it issues. A reduction takes
  // five instructions for an element at least: the vector's element becomes f32, the matrix's in two, a multiply-add,
  // and a share of loads and loop.
  constexpr int kBytesCopied = 18, kIssued = 128, kInstructions = 5, kLeastVector = 8;
  if (!has_vector(kernel) || target.kind != TargetKind::cuda || target.sm < 80) return false;
  const ContractParts parts = contract_parts(kernel);
  const auto is_one = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent.is(1); };
  if (is_one(parts.m) && is_one(parts.n)) return false;
  const OperandPart& matrix = is_one(parts.m) ? parts.b : parts.a;
  const TileElement element = tile_element(kernel, parts.contract, target);
  if (!element.tensor_cores || size_of(element.dtype) != 2) return false;
  const TileAccess access = tile_access(kernel, matrix, element, Lines::as_read, target, kWidestStreamed);
  if (!access.along_depth)
    return streams_across(kernel, parts, matrix, is_one(parts.m) ? parts.n : parts.m, access.vector, target);
  if (access.vector < kLeastVector) return false;
  return 4 * loaded_words(kernel, matrix, matrix.depth, access.vector) * kIssued <
         access.vector * kBytesCopied * kInstructions;
}

namespace {

// The contraction as a sum of products.
void sum_products(Kernel& kernel) {
  const auto at = std::find_if(kernel.body.begin(), kernel.body.end(),
                               [](const Instr& instr) { return instr.kind == InstrKind::contract; });
  TENON_CHECK(at != kernel.body.end(), "a contract kernel has one contraction");
  const auto position = static_cast<InstrId>(at - kernel.body.begin());
  std::vector<Instr> added;
  const auto add = [&](InstrKind kind, DType dtype, std::vector<InstrId> args, std::uint64_t depends) {
    Instr instr;
    instr.kind = kind;
    instr.dtype = dtype;
    instr.args = std::move(args);
    instr.depends = depends;
    added.push_back(std::move(instr));
    return position + static_cast<InstrId>(added.size()) - 1;
  };
  const auto cast = [&](InstrId id, DType from, DType to, std::uint64_t depends) {
    if (from == to) return id;
    const InstrId result = add(InstrKind::map, to, {id}, depends);
    added.back().op = ir::Op::cast;
    return result;
  };
  const DType dtype = dtype_of_sum(at->dtype);
  std::vector<InstrId> factors;
  for (const InstrId factor : at->args) {
    const Instr& instr = kernel.instr(factor);
    // A contraction takes values as they are stored.
    const bool rounds = instr.kind != InstrKind::load && dtype_of_sum(instr.dtype) != instr.dtype;
    const InstrId rounded = rounds ? add(InstrKind::round, instr.dtype, {factor}, instr.depends) : factor;
    factors.push_back(cast(rounded, instr.dtype, dtype, instr.depends));
  }
  const InstrId product =
      add(InstrKind::map, dtype, factors, kernel.instr(at->args[0]).depends | kernel.instr(at->args[1]).depends);
  added.back().op = ir::Op::mul;
  add(InstrKind::reduce, dtype, {product}, at->depends);
  added.back().op = ir::Op::sum;
  added.back().axes = at->axes;
  added.back().note = at->note;
  cast(position + static_cast<InstrId>(added.size()) - 1, dtype, at->dtype, at->depends);

  const auto shift = static_cast<InstrId>(added.size()) - 1;  // the last takes the contraction's place
  for (auto instr = kernel.body.begin() + position + 1; instr != kernel.body.end(); ++instr)
    for (InstrId& arg : instr->args)
      if (arg >= position) arg += shift;
  for (Store& store : kernel.stores)
    if (store.value >= position) store.value += shift;
  const IndexContext context = kernel.context();
  visit_indices(kernel, [&](Index& index) { index = with_later_values(index, position, shift, context); });
  kernel.body.erase(kernel.body.begin() + position);
  kernel.body.insert(kernel.body.begin() + position, added.begin(), added.end());
  kernel.kernel_class = ir::KernelClass::reduce;
}

// The axis of the few rows, or columns, of a product whose other operand a reduction reads at the speed of memory; -1
// where there is none. Lanes that lie along the depth read a vector of each row for one of the matrix (H100, f32, 8
// rows, depth 4096: 1024 columns in 16 us, cuBLAS in 25; 14336 in 184, tiles in 218, cuBLAS in 152). Lanes that lie
// across it have a sum for each row, of which 16 are too many (8256 x 16 x 27328: 1291 us, cuBLAS in 398).
int few_along(const Kernel& kernel, const Target& target) {
  constexpr std::int64_t kMost = 8, kMostOfSmall = 16;
  constexpr std::int64_t kTile = 64, kLeastBytes = 256 << 10;  // of the matrix: tiles serve many small products
  // From so many rows on tensor cores take f32 in parts, and of a large matrix (H200: 8 x 14336 x 4096 183 us, 78; 16 x
  // 3795 x 1344 559 and 17; 4 of these 15 and 16).
  constexpr std::int64_t kFewestInParts = 5, kFewestOfLarge = 3, kLargeMatrix = 128 << 20;
  if (kernel.kernel_class != ir::KernelClass::contract || target.kind != TargetKind::cuda) return -1;
  const ContractParts parts = contract_parts(kernel);
  const TileElement element = tile_element(kernel, parts.contract, target);
  if (parts.second || element.tensor_cores) return -1;
  const auto extent = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; };
  const auto size = [&](int axis) { return typical(extent(axis), kernel.symbols); };
  const bool rows = size(parts.m) <= size(parts.n);
  const int few = rows ? parts.m : parts.n, other = rows ? parts.n : parts.m;
  const auto along_depth = [&](const OperandPart& part) {
    return tile_access(kernel, part, element, Lines::as_read, target).along_depth;
  };
  const bool matrix_along = along_depth(rows ? parts.b : parts.a), rows_along = along_depth(rows ? parts.a : parts.b);
  const std::int64_t most = matrix_along && size(other) <= kTile * target.multiprocessors ? kMostOfSmall : kMost;
  const auto bytes = static_cast<std::int64_t>(size_of(kernel.instr(parts.contract).dtype));
  if (may_split_f32(target) && element.dtype == DType::f32 &&
      size(few) >= (size(other) * size(parts.k) * bytes >= kLargeMatrix ? kFewestOfLarge : kFewestInParts))
    return -1;
  const bool fits = extent(few).is_constant() && size(few) >= 2 && size(few) <= most && can_unroll(kernel, few);
  return fits && (rows_along || !matrix_along) && size(other) * size(parts.k) * bytes >= kLeastBytes ? few : -1;
}

}  // namespace

bool sum_vector_products(Kernel& kernel) {
  if (!has_vector(kernel)) return false;
  sum_products(kernel);
  return true;
}

bool sum_few_products(Kernel& kernel, const Target& target) {
  const int few = few_along(kernel, target);
  if (few < 0) return false;
  sum_products(kernel);
  unroll_axis(kernel, few);
  return true;
}

}  // namespace tenon::codegen
