// See box.h.
#include "codegen/analysis/box.h"

#include <algorithm>

#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::size_t kMostDimensions = 4;     // that the prelude's copies take (hopper.cuh)
constexpr std::int64_t kMostExtent = 1 << 30;  // coordinates are 31 bits, beside a tile's size
constexpr int kOfOneRow = 64;                  // elements to a next row, where there is one row

// Of an access whose rows lie along `depth`, or along `outer`.
std::optional<BoxAccess> paged_box(const Kernel& kernel, const Access& access, int outer, int depth,
                                   const std::vector<int>& batch, std::string& why_not) {
  const auto refuse = [&](const char* why) {
    why_not = why;
    return std::nullopt;
  };
  if (!access.guards.empty()) return refuse("an operand is guarded");
  const bool along_depth = access.offset.coefficient(depth).value_or(Dim(0)).is(1);
  const auto offset = paged_offset(kernel, access.offset, along_depth ? outer : depth, batch);
  if (!offset) return refuse("an operand's rows are no plain function of the loops");
  const auto stride = [&](int axis) { return offset->within.coefficient(axis).value_or(Dim(0)); };
  BoxAccess box{access.operand, offset->within.constant(), {}, {}, {}, along_depth, offset->page};
  if (!box.along_depth && !stride(outer).is(1)) return refuse("no axis of an operand's tile is contiguous");
  const auto extent = [&](int axis) { return kernel.axes[static_cast<std::size_t>(axis)].extent; };
  const auto begin = [&](int axis) {
    box.axes.push_back({axis});
    box.extents.push_back(extent(axis));
    if (box.axes.size() > 1) box.strides.push_back(stride(axis));
  };
  begin(box.along_depth ? depth : outer);
  begin(box.along_depth ? outer : depth);
  if (box.page && box.page->rows > 0) box.extents.back() = Dim(box.page->rows);
  std::vector<int> inner_first = batch;  // as they lie, in whatever order they are walked
  std::sort(inner_first.rbegin(), inner_first.rend());
  for (auto axis = inner_first.begin(); axis != inner_first.end(); ++axis) {
    if (stride(*axis).is(0) || extent(*axis).is(1)) continue;
    const bool as_one = box.axes.size() > 2 && stride(*axis) == box.strides.back() * box.extents.back();
    if (!as_one) {
      begin(*axis);
      continue;
    }
    box.axes.back().insert(box.axes.back().begin(), *axis);
    box.extents.back() = box.extents.back() * extent(*axis);
  }
  if (box.page) {
    box.axes.emplace_back();
    box.extents.push_back(box.page->count);
    box.strides.push_back(box.page->stride);
  }
  if (box.axes.size() > kMostDimensions) return refuse("an operand has more than two axes of batches, pages included");
  const auto bytes = element_bytes(kernel, access);
  const auto aligned = [&](const Dim& elements) {
    const int whole = static_cast<int>(16 / bytes);
    return power_of_two_divisor(elements, whole, kernel.symbols) == whole;
  };
  const auto too_many = [&](const Dim& rows) { return rows.bounds(kernel.symbols).max > kMostExtent; };
  if (kernel.wide_index && std::any_of(box.extents.begin(), box.extents.end(), too_many))
    return refuse("an operand has too many rows");
  if (box.extents[1].is(1)) box.strides.front() = Dim(kOfOneRow);  // leads nowhere
  if (box.strides.front().is(0)) return refuse("an operand's rows are all the same");
  // A tensor map's strides have no sign.
  const auto may_fall = [&](const Dim& elements) { return elements.bounds(kernel.symbols).min < 0; };
  if (std::any_of(box.strides.begin(), box.strides.end(), may_fall)) return refuse("an operand's rows lie backwards");
  if (!aligned(box.offset) || !std::all_of(box.strides.begin(), box.strides.end(), aligned))
    return refuse("an operand's rows begin off 16-byte boundaries");
  return box;
}

}  // namespace

std::optional<BoxAccess> paged_box_access(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch,
                                          std::string& why_not) {
  const Instr& load = kernel.instr(part.value);
  if (load.kind == InstrKind::load) return paged_box(kernel, load.access, part.outer, part.depth, batch, why_not);
  why_not = "an operand is computed on its way";
  return std::nullopt;
}

std::optional<BoxAccess> box_access(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch,
                                    std::string& why_not) {
  auto box = paged_box_access(kernel, part, batch, why_not);
  if (!box || !box->page) return box;
  why_not = "an operand is gathered";
  return std::nullopt;
}

std::optional<BoxAccess> result_box(const Kernel& kernel, const ContractParts& parts, std::string& why_not) {
  const auto refuse = [&](const char* why) {
    why_not = why;
    return std::nullopt;
  };
  if (kernel.stores.size() != 1) return refuse("boxes take one result");
  const Access& access = kernel.stores.front().access;
  if (element_bytes(kernel, access) != 2) return refuse("boxes take results of 16 bits");
  // The epilogue's text stands for every column of a tile, two sums at a time, and no operand waits at each point.
  constexpr int kShort = 6;  // issue slots
  const std::uint64_t row = 1ull << parts.m, column = 1ull << parts.n;
  int slots = 0;
  for (const InstrId id : parts.epilogue)
    if (kernel.instr(id).kind == InstrKind::map) slots += ir::info(kernel.instr(id).op).cost;
  if (slots > kShort || parts.second) return refuse("an epilogue is short where boxes take results");
  for (const InstrId id : parts.epilogue) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || (instr.depends & (row | column)) == 0) continue;
    if ((instr.depends & row) != 0 || !instr.access.guards.empty() || !instr.access.offset.values().empty())
      return refuse("what is read beside a result that boxes take depends on the column alone");
  }
  const Dim& columns = kernel.axes[static_cast<std::size_t>(parts.n)].extent;
  if (power_of_two_divisor(columns, 8, kernel.symbols) != 8) return refuse("a result's rows are no whole vectors");
  auto box = paged_box(kernel, access, parts.m, parts.n, parts.batch, why_not);
  if (box && (box->page || !box->along_depth)) return refuse("a result's columns are no neighbours");
  return box;
}

std::string why_not_stored(const Kernel& kernel, const BoxAccess& box, DType element) {
  const DType stored = kernel.operands[static_cast<std::size_t>(box.operand)].dtype;
  const bool both_f8 = is_f8(stored) && is_f8(element);  // of both kinds beside each other
  return stored == element || both_f8 ? "" : "an operand is not stored as it is multiplied";
}

std::string why_not_boxed(const Kernel& kernel, const OperandPart& part, const std::vector<int>& batch, DType element) {
  std::string why_not;
  const auto box = box_access(kernel, part, batch, why_not);
  return box ? why_not_stored(kernel, *box, element) : why_not;
}

}  // namespace tenon::codegen
