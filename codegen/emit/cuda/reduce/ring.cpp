// Rows in flight: while a persistent block works on one row, it loads the next ones. One row waits in registers, in the
// words of its loads. More rows wait in a ring in shared memory, one slot (stage) each, which asynchronous copies fill.
// Each thread copies its own vectors, which needs no barrier; or one thread asks for whole rows (bulk), and a slot is
// filled again once all threads have read it. See emitter.h.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/rows_ring.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {

void ReduceEmitter::begin_stages(const std::vector<InstrId>& loads) {
  (has_ring(schedule_) ? copied_ : waiting_) = loads;
  for (Sweep& sweep : rows_.rounds.sweeps) {  // what there is once for each row, which no sweep then loads
    auto& before = sweep.before;
    const auto once = std::stable_partition(before.begin(), before.end(), [&](InstrId id) {
      return kernel_.instr(id).kind != InstrKind::load || !operands_of(kernel_.instr(id)).empty() || !varies_by_row(id);
    });
    waiting_.insert(waiting_.end(), once, before.end());
    before.erase(once, before.end());
  }
  for (InstrId id : waiting_)
    out_.line(fmt::format("{} next{}{};", waiting_type(id), id,
                          element_level(kernel_, id) ? fmt::format("[{}]", walk_.chunks()) : ""));
  const bool all_have_one = waiting_.empty() || rows_.count.bounds(kernel_.symbols).min >= rows_at_once();
  const std::string has_one = all_have_one ? "" : first_row() + " < " + dim_text(rows_.count, rows_.names);
  out_.open_if(has_one);
  emit_waiting(first_row());
  out_.close_if(has_one);
  if (copied_.empty()) return;
  declare_shared(copied_, ring_load_bytes);
  const int slots = persistent_->stages + 1;
  if (persistent_->bulk) {
    out_.line(fmt::format("__shared__ arrival there[{}];", slots));
    out_.line(fmt::format("begin_arrivals<{}>(there);", slots));
  }
  out_.unrolled("slot", persistent_->bulk ? slots : persistent_->stages);
  emit_row_copy(fmt::format("{} + slot * {}", first_row(), rows_at_once()), "slot");
  out_.close();
  out_.line("int slot = 0;");
  if (persistent_->bulk) out_.line("u32 parity = 0;");
}

void ReduceEmitter::take_row() {
  if (!copied_.empty() && !persistent_->bulk) {
    out_.line(fmt::format("const int before = slot == 0 ? {} : slot - 1;", persistent_->stages), "read, and free");
    emit_row_copy(fmt::format("row + {}", persistent_->stages * rows_at_once()), "before");
  }
  for (InstrId id : waiting_) {
    if (element_level(kernel_, id)) {
      out_.unrolled("c", walk_.chunks());
      out_.line(waits_in_words(id) ? fmt::format("x{0}[c] = arrived(next{0}[c]);", id)
                                   : fmt::format("x{0}[c] = next{0}[c];", id));
      out_.close();
    } else {
      out_.line(
          fmt::format("const {} v{} = {};", value_type(kernel_.instr(id).dtype), id,
                      decoded(fmt::format("arrived(next{})[0]", id), stored_dtype(kernel_, kernel_.instr(id).access))));
    }
  }
  const std::string last = parenthesized(dim_text(rows_.count, rows_.names)) + " - 1";
  emit_waiting(fmt::format("min(row + {}, ({}){})", rows_at_once(), unsigned_index_type(kernel_), last));
  if (copied_.empty()) return;
  out_.line(persistent_->bulk ? "wait_arrival(there + slot, parity);"
                              : fmt::format("wait_copies<{}>();", persistent_->stages));
  const int opened = walk_.open_elements();
  for (InstrId id : copied_)
    out_.line(fmt::format("x{0}[c] = load<{1}, {1}>(s{0} + {2});", id, schedule_.vector, ring_place("slot")));
  walk_.close(opened);
}

void ReduceEmitter::next_slot() {
  if (copied_.empty()) return;
  if (persistent_->bulk) out_.line(fmt::format("parity ^= slot == {};", persistent_->stages));
  out_.line(fmt::format("slot = slot == {} ? 0 : slot + 1;", persistent_->stages));
}

void ReduceEmitter::refill_slot() {
  if (persistent_->bulk) emit_row_copy(fmt::format("row + {}", (persistent_->stages + 1) * rows_at_once()), "slot");
}

bool ReduceEmitter::waits_in_words(InstrId id) const {
  return width_of(kernel_, kernel_.instr(id).access, lanes_) != 0;
}

std::string ReduceEmitter::waiting_type(InstrId id) const {
  const std::string type = held_type(kernel_, id);
  if (!element_level(kernel_, id)) return fmt::format("under_way<{}, 1, 1>", type);
  const int width = width_of(kernel_, kernel_.instr(id).access, lanes_);
  return width == 0 ? fmt::format("pack<{}, {}>", type, schedule_.vector)
                    : fmt::format("under_way<{}, {}, {}>", type, schedule_.vector, width);
}

std::string ReduceEmitter::waiting_load(InstrId id, int vector, int width) const {
  const Access& access = kernel_.instr(id).access;
  const std::string load = fmt::format("load_now<{}, {}>({})", vector, width, address(kernel_, access, rows_.names));
  const std::string guard = guard_text(access.guards, rows_.names);
  return guard.empty() ? load : fmt::format("{} ? {} : {}{{}}", guard, load, waiting_type(id));
}

void ReduceEmitter::emit_waiting(const std::string& row) {
  if (waiting_.empty()) return;
  out_.open("{");
  out_.line(fmt::format("const {} ahead = {};", unsigned_index_type(kernel_), row));
  decode_axes(out_, kernel_, 0, rows_.kept, "ahead");
  std::vector<InstrId> elements;
  for (InstrId id : waiting_) {
    if (element_level(kernel_, id)) {
      elements.push_back(id);
    } else {
      out_.line(fmt::format("next{} = {};", id, waiting_load(id, 1, 1)));
    }
  }
  fill(elements, "next", true);
  out_.close();
}

void ReduceEmitter::emit_row_copy(const std::string& row, const std::string& slot) {
  out_.open(persistent_->bulk ? "if (threadIdx.x == 0) {" : "{");
  out_.line(fmt::format("const {} ahead = {};", unsigned_index_type(kernel_), row));
  out_.open(fmt::format("if (ahead < {}) {{", dim_text(rows_.count, rows_.names)));
  decode_axes(out_, kernel_, 0, rows_.kept, "ahead");
  if (persistent_->bulk) {
    emit_bulk_copies(slot);
  } else {
    const int opened = walk_.open_elements();
    emit_copies("copy_async", copied_, ring_place(slot));
    walk_.close(opened);
  }
  out_.close();
  out_.close();
  if (!persistent_->bulk) out_.line("commit_copies();");
}

void ReduceEmitter::emit_bulk_copies(const std::string& slot) {
  std::int64_t bytes = 0;
  for (InstrId id : copied_) bytes += row_bytes(kernel_, id);
  out_.line(fmt::format("expect_bytes(there + {}, {});", slot, bytes));
  for (InstrId id : copied_)  // of the first thread, whose vectors are the first of the slot
    out_.line(fmt::format("{}(s{} + {} * {}, {}, {}, there + {});",
                          schedule_.cache.keep_reads ? "copy_bulk_kept" : "copy_bulk", id, slot,
                          schedule_.team.threads * held_elements(schedule_),
                          address(kernel_, row_begin(kernel_, id), rows_.names), row_bytes(kernel_, id), slot));
}

}  // namespace tenon::codegen::cuda
