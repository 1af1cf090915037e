// See tiling.h.
#include "codegen/analysis/tiling.h"

#include <algorithm>

#include "codegen/analysis/box.h"
#include "codegen/analysis/read_ahead.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/limits.h"

namespace tenon::codegen {
namespace {

bool is_16_bit(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool varies(const Kernel& kernel, InstrId id, int axis) { return (kernel.instr(id).depends >> axis & 1) != 0; }

DType stored_dtype(const Kernel& kernel, const Instr& load) {
  return kernel.operands[static_cast<std::size_t>(load.access.operand)].dtype;
}

// The widest vector along `axis` that some load of the region can use, at most `limit` elements and 16 bytes.
int widest_load(const Kernel& kernel, const OperandPart& part, int axis, int limit) {
  const int whole = power_of_two_divisor(kernel.axes[static_cast<std::size_t>(axis)].extent, limit, kernel.symbols);
  int widest = 0;
  for (InstrId id : part.region) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || !varies(kernel, id, axis)) continue;
    const int bytes = static_cast<int>(size_of(stored_dtype(kernel, instr)));
    const auto in_one = [&](int vector) {
      if (vector * bytes <= 16 && vector_width(instr.access, axis, vector, kernel) == vector) return true;
      const auto shared = shared_elements(instr.access, axis, vector, kernel);
      return shared && shared->width > 1 && shared->width * shared->points == vector;
    };
    for (int vector = whole; vector > widest; vector /= 2)
      if (in_one(vector)) widest = vector;
  }
  return widest;
}

}  // namespace

TileElement tile_element(const Kernel& kernel, InstrId contract, const Target& target) {
  const Instr& instr = kernel.instr(contract);
  const DType a = kernel.instr(instr.args[0]).dtype, b = kernel.instr(instr.args[1]).dtype;
  return ir::contraction_element(a, b, instr.dtype, instr.tf32, tensor_cores(target));
}

TileElement warpgroup_element(const Kernel& kernel, const ContractParts& parts, const Target& target) {
  const TileElement element = tile_element(kernel, parts.contract, target);
  const Instr& instr = kernel.instr(parts.contract);
  const auto stored = [&](const OperandPart& part) {
    std::string why_not;
    const auto box = box_access(kernel, part, parts.batch, why_not);
    return box && box->along_depth ? kernel.operands[static_cast<std::size_t>(box->operand)].dtype : DType::f32;
  };
  const DType a = stored(parts.a), b = stored(parts.b);
  if (!element.tensor_cores || !target.may.wgmma || !ir::may_multiply_f8(a, b, instr.dtype, instr.block))
    return element;
  return {a, true};
}

Lines contract_lines(TileElement element) {
  if (!element.tensor_cores) return Lines::along_outer;
  return is_16_bit(element.dtype) ? Lines::as_read : Lines::along_depth;
}

TileElement loop_element(const ContractSchedule& schedule, const Kernel& kernel, InstrId contract,
                         const Target& target) {
  const TileElement element = tile_element(kernel, contract, target);
  return schedule.loop != MainLoop::mma_sync && element.tensor_cores ? TileElement{DType::f32, false} : element;
}

Lines loop_lines(const ContractSchedule& schedule, TileElement element) {
  return schedule.loop == MainLoop::mma_3xtf32 ? Lines::as_read : contract_lines(element);
}

TileAccess tile_access(const Kernel& kernel, const OperandPart& part, TileElement element, Lines lines,
                       const Target& target, int vector_limit) {
  TileAccess access;
  const int along_depth = widest_load(kernel, part, part.depth, vector_limit);
  const int along_outer = widest_load(kernel, part, part.outer, vector_limit);
  access.along_depth = along_depth >= along_outer;
  access.vector = std::max(1, std::max(along_depth, along_outer));
  const Instr& value = kernel.instr(part.value);
  const int axis = access.along_depth ? part.depth : part.outer;
  const bool plain = value.kind == InstrKind::load && value.access.guards.empty() &&
                     (access.vector == 1 || vector_width(value.access, axis, access.vector, kernel) == access.vector);
  access.as_stored = plain && stored_dtype(kernel, value) == element.dtype;
  access.widened = plain && is_f8(stored_dtype(kernel, value)) && is_16_bit(element.dtype);
  const auto bytes = access.vector * size_of(element.dtype);
  const bool in_line = lines == Lines::as_read || (lines == Lines::along_depth) == access.along_depth;
  access.async = target.sm >= 80 && access.as_stored && part.region.size() == 1 && bytes >= 4 && in_line;
  return access;
}

TileAccess columns_access(const Kernel& kernel, const ContractParts& parts, const OperandPart& part,
                          TileElement element, const Target& target) {
  const TileAccess access = tile_access(kernel, part, element, Lines::as_read, target);
  if (!parts.second) return access;
  const auto lines = [&](const OperandPart& b) {
    return tile_access(kernel, b, element, Lines::as_read, target).along_depth;
  };
  if (lines(parts.b) == lines(parts.second->b)) return access;
  TileAccess single = tile_access(kernel, part, element, Lines::as_read, target, 1);
  single.along_depth = true;  // element by element a tile's lines may run either way
  single.async = false;
  return single;
}

int block_terms(const Kernel& kernel, InstrId contract, TileElement element) {
  constexpr int kLongDepth = 4096;  // from it on the totals' registers are worth their price
  constexpr int kBlock = 512;
  const int least = static_cast<int>(128 / size_of(element.dtype));  // a step of warpgroups
  const Instr& instr = kernel.instr(contract);
  const SymbolBounds depth = kernel.axes[static_cast<std::size_t>(instr.axes.back())].extent.bounds(kernel.symbols);
  if (instr.block > 0) return instr.block >= depth.max ? 0 : std::max<int>(least, instr.block / least * least);
  if (is_f8(element.dtype)) return depth.max <= ir::kBlockOfF8 ? 0 : ir::kBlockOfF8;
  return size_of(instr.dtype) == 4 && depth.min >= kLongDepth ? kBlock : 0;
}

std::int64_t matrix_tile_bytes(int outer, int depth, bool along_depth, DType dtype) {
  const int chunk = static_cast<int>(16 / size_of(dtype));
  const int lines = along_depth ? outer : depth;
  const int chunks = (along_depth ? depth : outer) / chunk;
  const bool padded = !(chunks == 4 || chunks == 2 || chunks == 1);
  return std::int64_t{16} * lines * (padded ? chunks | 1 : chunks);
}

bool ends_early(const ContractSchedule& schedule, const Kernel& kernel, const ContractParts& parts) {
  constexpr std::int64_t kShort = 512;
  const Dim& depth = kernel.axes[static_cast<std::size_t>(parts.k)].extent;
  return schedule.loop == MainLoop::mma_3xtf32 && depth.bounds(kernel.symbols).max <= kShort && depth.is_constant() &&
         depth.constant() % schedule.tile_k != 0;
}

std::int64_t f32_tile_bytes(int outer, int depth, bool along_depth) {
  return std::int64_t{4} * (along_depth ? outer * (depth + 4) : depth * (outer + 8));
}

std::int64_t plain_tile_bytes(int outer, int depth, DType dtype) { return depth * (outer * size_of(dtype) + 16); }

std::int64_t shared_bytes(const ContractSchedule& schedule, TileElement element, const TileAccess& a,
                          const TileAccess& b) {
  const int m = schedule.tile_m, n = schedule.tile_n, k = schedule.tile_k;
  const int threads = 32 * schedule.warps_m * schedule.warps_n;
  const bool turn = is_16_bit(element.dtype);
  if (schedule.loop == MainLoop::mma_3xtf32)
    return std::max(schedule.stages * (f32_tile_bytes(m, k, a.along_depth) + f32_tile_bytes(n, k, b.along_depth)),
                    std::int64_t{4} * schedule.warps_k * 16 * schedule.warps_m * (n + 8));
  if (!element.tensor_cores) {
    const std::int64_t tiles = plain_tile_bytes(m, k, element.dtype) + plain_tile_bytes(n, k, element.dtype);
    return std::max(schedule.stages * tiles, schedule.warps_k * plain_tile_bytes(n, threads / 16, element.dtype));
  }
  const std::int64_t tiles = matrix_tile_bytes(m, k, a.along_depth || !turn, element.dtype) +
                             matrix_tile_bytes(n, k, b.along_depth || !turn, element.dtype);
  return std::max(schedule.stages * tiles, std::int64_t{16} * schedule.warps_m * (n + 8) * 4);
}

std::int64_t wgmma_shared_bytes(const ContractSchedule& schedule) {
  constexpr std::int64_t kLine = 128, kBarriers = 16;
  const std::int64_t sums_of_warp = schedule.products == 1 ? 8 * (64 + 8) * 4 : schedule.products * 8 * (32 + 8) * 4;
  return schedule.stages * (kLine * (schedule.tile_m + schedule.tile_n) + kBarriers) +
         4 * schedule.consumers * sums_of_warp;
}

int loaded_words(const Kernel& kernel, const OperandPart& part, int axis, int vector) {
  std::int64_t bytes = 0;
  std::vector<std::pair<int, const Index*>> known;
  for (const InstrId id : part.region) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || !varies(kernel, id, axis)) continue;
    const auto shared = shared_elements(instr.access, axis, vector, kernel);
    const bool again = std::any_of(known.begin(), known.end(), [&](const auto& one) {
      return one.first == instr.access.operand && *one.second == instr.access.offset;
    });
    known.emplace_back(instr.access.operand, &instr.access.offset);
    if (!again) bytes += size_of(stored_dtype(kernel, instr)) * (vector / (shared ? shared->points : 1));
  }
  return static_cast<int>((bytes + 3) / 4);
}

StreamParts stream_parts(const ContractSchedule& schedule, const Kernel& kernel, const ContractParts& parts,
                         TileElement element, const Target& target) {
  StreamParts stream;
  const auto most = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).max;
  };
  stream.few_are_rows = schedule.tile_m != schedule.tile_n ? schedule.tile_m < schedule.tile_n  // of a square tile by
                                                           : most(parts.m) <= most(parts.n);    // what there is
  stream.matrix = stream.few_are_rows ? parts.b : parts.a;
  stream.few = stream.few_are_rows ? parts.a : parts.b;
  const auto access = [&](const OperandPart& part, int limit) {
    TileAccess result = tile_access(kernel, part, element, Lines::as_read, target, limit);
    result.async = false;  // what comes into registers is waited for where it is used
    return result;
  };
  constexpr int kFew = 8;  // steps of a lane in fragments
  const int of_matrix = stream.few_are_rows ? schedule.vector_b : schedule.vector_a;
  stream.matrix_access = access(stream.matrix, std::min(of_matrix, kWidestStreamed));
  stream.ahead = stream.matrix_access.along_depth && !stream.matrix_access.as_stored && stream.matrix_access.vector > 1;
  if (!stream.ahead) stream.matrix_access = access(stream.matrix, std::min(of_matrix, kFew));
  stream.few_access = access(stream.few, std::min(stream.few_are_rows ? schedule.vector_a : schedule.vector_b, kFew));
  if (!stream.few_access.along_depth) stream.few_access = access(stream.few, 1);
  if (stream.ahead) stream.chunk = 4 * std::max(kFew, stream.matrix_access.vector);
  stream.words = loaded_words(kernel, stream.matrix, stream.matrix.depth, std::max(kFew, stream.matrix_access.vector));
  return stream;
}

int stream_registers(const ContractSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr int kAddresses = 40, kConverted = 24, kConvertedBesideMany = 56;
  const ContractParts parts = contract_parts(kernel);
  const StreamParts stream =
      stream_parts(schedule, kernel, parts, tile_element(kernel, parts.contract, target), target);
  const int wide = std::max(schedule.tile_m, schedule.tile_n), few = std::min(schedule.tile_m, schedule.tile_n);
  const int turn = schedule.tile_k / stream.chunk, span = stream.chunk / 4;
  const int sums = wide * few / 32;
  if (!stream.ahead) return sums + turn * (wide + few) / 2 + kAddresses;
  // A turn and the next, of the few one chunk.
  const int loaded = 2 * turn * stream.words * wide / 8 + span * few / 16;
  return sums + loaded + kAddresses + (few > 8 ? kConvertedBesideMany : kConverted);
}

std::int64_t stream_shared_bytes(const ContractSchedule& schedule) {
  return std::int64_t{4} * schedule.warps_k * schedule.tile_m * (schedule.tile_n + 4);
}

AttendTiles attend_tiles(const Kernel& kernel, const AttendParts& parts, const Target& target) {
  const auto most = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).max;
  };
  const auto padded = [](std::int64_t extent) {
    return static_cast<int>(std::max<std::int64_t>(1, (extent + 15) / 16) * 16);
  };
  const TileElement scores = tile_element(kernel, parts.scores, target), mix = tile_element(kernel, parts.mix, target);
  const std::int64_t depth = most(parts.d), width = most(parts.e);
  const bool tensor_cores = scores.tensor_cores && mix.tensor_cores && scores.dtype == mix.dtype &&
                            is_16_bit(mix.dtype) && depth <= kAttendExtent && width <= kAttendExtent;
  if (tensor_cores) return {mix, padded(depth), padded(width)};
  const bool wide = scores.dtype == DType::f64 || mix.dtype == DType::f64;
  const int block_width = width > 64 ? kAttendColumns / (wide ? 2 : 1) : width > 32 ? 64 : width > 16 ? 32 : 16;
  return {{wide ? DType::f64 : DType::f32, false}, 16, block_width};
}

AttendTiles warpgroup_tiles(const Kernel& kernel, const AttendParts& parts, const Target& target) {
  AttendTiles tiles = attend_tiles(kernel, parts, target);
  if (const auto scores = boxed_scores(kernel, parts, key_masks(kernel))) tiles.score_bytes = scores->bytes;
  const auto stored = [&](const OperandPart& part) {
    std::string why_not;
    const auto box = box_access(kernel, part, parts.batch, why_not);
    return box && box->along_depth ? kernel.operands[static_cast<std::size_t>(box->operand)].dtype : DType::f32;
  };
  const auto may = [&](InstrId product, DType a, DType b) {
    return ir::may_multiply_f8(a, b, kernel.instr(product).dtype, kernel.instr(product).block);
  };
  const bool rounded = parts.weight_dtype == DType::f8e4m3 && parts.weight_scale > 1 && parts.maximum >= 0;
  if (!tiles.element.tensor_cores || !target.may.wgmma || !rounded || !parts.key_factors.empty() ||
      !may(parts.scores, stored(parts.q), stored(parts.k)) || !may(parts.mix, parts.weight_dtype, stored(parts.v)))
    return tiles;
  return {{DType::f8e4m3, true}, (tiles.depth + 31) / 32 * 32, tiles.width, tiles.score_bytes};
}

int wgmma_width(const AttendTiles& tiles) { return (tiles.width + 31) / 32 * 32; }

std::int64_t wgmma_shared_bytes(const AttendSchedule& schedule, const AttendTiles& tiles, AttendStages stages) {
  constexpr int kLine = 128, kBarrier = 8;                                   // bytes: a line of a panel
  const int of_warp = 4 * (schedule.split_kv > 1 ? 24 * 32 : 8 * (32 + 8));  // rows on their way out
  constexpr int kZeros = 1024;                      // the operands of a product that has no tile of keys
  constexpr int kOfTests = 6 * (2 * kBarrier + 8);  // of 32 tiles of keys: two barriers, two words
  const int elements = kLine / static_cast<int>(size_of(tiles.element.dtype));
  const auto panels = [&](int count) { return std::int64_t{(count + elements - 1) / elements}; };
  const bool turned = is_f8(tiles.element.dtype);  // lines of values lie along the keys
  const std::int64_t queries = panels(tiles.depth) * schedule.tile_q, keys = panels(tiles.depth) * schedule.tile_kv;
  const std::int64_t values = turned ? std::int64_t{schedule.tile_kv} * wgmma_width(tiles) / kLine
                                     : panels(wgmma_width(tiles)) * schedule.tile_kv;
  const int warps = schedule.tile_q / 16;
  const int of_line = tiles.score_bytes > 0 ? kLine / tiles.score_bytes : schedule.tile_kv;
  const std::int64_t scores = std::int64_t{(schedule.tile_kv + of_line - 1) / of_line} * schedule.tile_q;
  return kLine * (stages.queries * queries + schedule.stages * (keys + values) + stages.scores * scores) +
         kBarrier * (2 * stages.queries + 4 * schedule.stages + stages.scores * schedule.tile_q / 32) +
         (schedule.block_mask ? (schedule.stages + 3) / 4 * 16 + kOfTests : 0) + of_warp * warps + kZeros;
}

std::int64_t wgmma_shared_limit(const AttendSchedule& schedule, const Target& target) {
  return target.shared_memory_per_multiprocessor / schedule.resident - target.reserved_shared_memory_per_block;
}

AttendStages attend_stages(const AttendSchedule& schedule, const AttendTiles& tiles, const Target& target) {
  AttendStages stages{.queries = 1, .scores = schedule.score_boxes ? 1 : 0};
  const auto fits = [&](AttendStages more) {
    return wgmma_shared_bytes(schedule, tiles, more) <= wgmma_shared_limit(schedule, target);
  };
  if (stages.scores == 1 && fits({1, 2})) stages.scores = 2;
  if (schedule.parts * schedule.split_kv == 1 && fits({2, stages.scores})) stages.queries = 2;
  return stages;
}

std::int64_t shared_bytes(const AttendSchedule& schedule, const AttendTiles& tiles) {
  const DType dtype = tiles.element.dtype;
  const int q = schedule.tile_q, kv = schedule.tile_kv;
  if (!tiles.element.tensor_cores) {
    const std::int64_t scores = plain_tile_bytes(q, tiles.depth, dtype) + plain_tile_bytes(kv, tiles.depth, dtype);
    const std::int64_t loop =
        plain_tile_bytes(q, kv, dtype) + std::max(scores, plain_tile_bytes(tiles.width, 16, dtype));
    return std::max(loop, plain_tile_bytes(tiles.width, q / 4, dtype) + 2 * (q / 4) * size_of(dtype));
  }
  const int columns = tiles.width % 64 == 0 ? 64 : tiles.width % 32 == 0 ? 32 : 16;
  const std::int64_t loop = matrix_tile_bytes(q, tiles.depth, true, dtype) +
                            matrix_tile_bytes(kv, tiles.depth, true, dtype) +
                            matrix_tile_bytes(tiles.width, kv, false, dtype);
  return std::max(loop, std::int64_t{4} * q * (columns + 8 + 2));
}

int epilogue_vector(const Kernel& kernel, int axis, int limit) {
  int widest = 1;
  for (const Store& store : kernel.stores) {
    const auto bytes = element_bytes(kernel, store.access);
    const int whole = power_of_two_divisor(kernel.axes[static_cast<std::size_t>(axis)].extent,
                                           std::min<int>(limit, static_cast<int>(16 / bytes)), kernel.symbols);
    for (int vector = whole; vector > widest; vector /= 2)
      if (vector_width(store.access, axis, vector, kernel) == vector) widest = vector;
  }
  return widest;
}

}  // namespace tenon::codegen
