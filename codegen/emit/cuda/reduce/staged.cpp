// The rows of a block as runs in shared memory (codegen/analysis/staged_rows.h). See emitter.h.
#include <fmt/format.h>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/staged_rows.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {

std::int64_t ReduceEmitter::elements_of_block() const { return rows_of_block(schedule_) * shape_of(kernel_).length; }

std::string ReduceEmitter::run_in_memory(int operand) const {
  return fmt::format("{} + first_row * {}", operand_name(whole_, operand), shape_of(kernel_).length);
}

void ReduceEmitter::bring_rows() {
  const std::string type = unsigned_index_type(kernel_);
  const int rows = rows_of_block(schedule_);
  const std::int64_t length = shape_of(kernel_).length;
  out_.line("extern __shared__ __align__(16) unsigned char shared[];");
  out_.line(fmt::format("const {0} first_row = ({0})blockIdx.x * {1};", type, rows));
  out_.line(fmt::format("const int own_row_at = (int)(row - first_row) * {};", length));
  out_.line(whole_blocks(rows_, team_)
                ? fmt::format("const int staged = {};", elements_of_block())
                : fmt::format("const int staged = (int)min(({0})({1}) - first_row, ({0}){2}) * {3};", type,
                              dim_text(rows_.count, rows_.names), rows, length));
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const StagedRun& run = runs_[i];
    const std::string element = storage_type(run.dtype);
    out_.line(fmt::format("{0}* run{1} = ({0}*)(shared + {2});", element, i, offset));
    offset += elements_of_block() * size_of(run.dtype);
    if (run.loaded >= 0) {
      out_.line(fmt::format("stage_run<{}, {}, {}>(run{}, {}, staged);", schedule_.team.threads, elements_of_block(),
                            schedule_.cache.keep_reads, i, run_in_memory(run.loaded)));
      out_.line(fmt::format("const {}* {} = run{} + own_row_at;", element, staged_name(whole_, run.loaded), i));
    }
    if (run.stored >= 0)
      out_.line(fmt::format("{}* {} = run{} + own_row_at;", element, staged_name(whole_, run.stored), i));
  }
  out_.line("commit_copies();");
  out_.line("wait_copies<0>();");
  out_.line("__syncthreads();");
}

void ReduceEmitter::take_rows() {
  bool meets = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].stored < 0) continue;
    if (!meets) out_.line("__syncthreads();");
    meets = true;
    out_.line(fmt::format("store_run<{}, {}, {}>({}, run{}, staged);", schedule_.team.threads, elements_of_block(),
                          schedule_.cache.streaming, run_in_memory(runs_[i].stored), i));
  }
}

}  // namespace tenon::codegen::cuda
