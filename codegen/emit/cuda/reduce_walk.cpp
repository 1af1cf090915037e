// Blocks that walk over many rows, and keep the outer reductions of theirs. See reduce_emitter.h.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/outer.h"
#include "codegen/emit/cuda/reduce_emitter.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

constexpr const char* kNow = "load_now";  // a load that is to be under way while other work is done

}  // namespace

Source ReduceEmitter::emit_walk() {
  out_.line(fmt::format("const {} member = threadIdx.x;", index_type(kernel_)));
  declare_outer(out_, rows_, walk_.chunks());
  const std::vector<InstrId> loads = held_in(0);
  std::vector<InstrId> of_rows, of_all;  // what changes from row to row, and what does not
  for (InstrId id : loads) (varies_by_row(id) ? of_rows : of_all).push_back(id);
  for (InstrId id : loads) declare(id);
  fill(of_all, "x");
  if (schedule_.ahead) {
    of_rows = take_ahead(of_rows);
    emit_ahead("blockIdx.x", of_rows);
  }
  const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
  out_.open(fmt::format("for ({} row = blockIdx.x; row < {}; row += {}) {{", type, count, schedule_.walkers));
  decode_axes(out_, kernel_, 0, rows_.kept, "row");
  for (const Held& held : held_)
    if (kernel_.instr(held.value).kind != InstrKind::load) declare(held.value);
  if (schedule_.ahead) {
    copy_ahead(of_rows);
    emit_ahead(fmt::format("row + {}", schedule_.walkers), of_rows);
  } else {
    fill(of_rows, "x");
  }
  std::size_t collectives = 0;
  for (std::size_t sweep = 0; sweep < rows_.rounds.sweeps.size(); ++sweep) {
    emit_sweep(sweep);
    collectives += rows_.rounds.sweeps[sweep].reduces.size();
  }
  define(out_, rows_, rows_.rounds.after);
  emit_row_stores(out_, rows_, team_);
  // Two buffers take turns: whoever writes the first again has seen all threads behind their reading of it.
  if (collectives == 1) out_.line("__syncthreads();", "the next row uses the same buffer");
  out_.close();
  emit_outer_parts(out_, rows_, walk_);
  LaunchRule launch;
  launch.grid_x = Dim(schedule_.walkers);
  launch.block = schedule_.threads;
  return finish(kernel_, out_, launch, target_, outer_finisher(rows_), resident());
}

bool ReduceEmitter::varies_by_row(InstrId id) const {
  return (kernel_.instr(id).depends & ((std::uint64_t{1} << rows_.kept) - 1)) != 0;
}

std::vector<InstrId> ReduceEmitter::elements_of(const std::vector<InstrId>& loads) const {
  std::vector<InstrId> elements;
  for (InstrId id : loads)
    if (element_level(kernel_, id)) elements.push_back(id);
  return elements;
}

std::vector<InstrId> ReduceEmitter::take_ahead(std::vector<InstrId> loads) {
  for (InstrId id : loads) declare(id, "next");
  for (Sweep& sweep : rows_.rounds.sweeps) {
    auto& before = sweep.before;
    const auto once = std::stable_partition(before.begin(), before.end(), [&](InstrId id) {
      return kernel_.instr(id).kind != InstrKind::load || !operands_of(kernel_.instr(id)).empty() || !varies_by_row(id);
    });
    for (auto id = once; id != before.end(); ++id) {
      out_.line(fmt::format("{} next{};", held_type(kernel_, *id), *id));
      loads.push_back(*id);
    }
    before.erase(once, before.end());
  }
  return loads;
}

void ReduceEmitter::emit_ahead(const std::string& text, const std::vector<InstrId>& loads) {
  if (loads.empty()) return;
  const std::string type = unsigned_index_type(kernel_), count = dim_text(rows_.count, rows_.names);
  out_.open("{");
  out_.line(fmt::format("const {} ahead = {};", type, text));
  out_.open(fmt::format("if (ahead < {}) {{", count));
  decode_axes(out_, kernel_, 0, rows_.kept, "ahead");
  for (InstrId id : loads)
    if (!element_level(kernel_, id)) {
      const Access& access = kernel_.instr(id).access;
      out_.line(fmt::format("next{} = ({})[0];", id, guarded_load(kernel_, access, 1, 1, rows_.names, false, kNow)));
    }
  fill(elements_of(loads), "next", kNow);
  out_.close();
  out_.close();
}

void ReduceEmitter::copy_ahead(const std::vector<InstrId>& loads) {
  if (loads.empty()) return;
  out_.unrolled(fmt::format("for (int c = 0; c < {}; ++c) {{", walk_.chunks()));
  for (InstrId id : elements_of(loads)) out_.line(fmt::format("x{0}[c] = next{0}[c];", id));
  out_.close();
  for (InstrId id : loads)
    if (!element_level(kernel_, id))
      out_.line(fmt::format("const {} v{} = {};", value_type(kernel_.instr(id).dtype), id,
                            decoded(fmt::format("next{}", id), stored_dtype(kernel_, kernel_.instr(id).access))));
}

}  // namespace tenon::codegen::cuda
