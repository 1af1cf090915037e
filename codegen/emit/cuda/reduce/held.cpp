// What a row keeps from one sweep to the next: in registers, in shared memory, and at its edges. See emitter.h.
#include <fmt/format.h>

#include "codegen/analysis/rows_ring.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/emit/cuda/bytes.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {

std::vector<InstrId> ReduceEmitter::plain_loads(const std::vector<InstrId>& instrs) const {
  std::vector<InstrId> loads;
  for (InstrId id : instrs)
    if (is_plain_load(kernel_, id)) loads.push_back(id);
  return loads;
}

std::vector<InstrId> ReduceEmitter::held_in(std::size_t number) const {
  std::vector<InstrId> there =
      number == 0 && holds_rows(schedule_) ? plain_loads(rows_.rounds.sweeps[0].instrs) : std::vector<InstrId>{};
  for (const Held& held : held_)
    if ((kernel_.instr(held.value).kind == InstrKind::load || held.sweep < number) && !contains(there, held.value))
      there.push_back(held.value);
  return there;
}

void ReduceEmitter::emit_held() {
  for (const Held& held : held_)
    if (kernel_.instr(held.value).kind != InstrKind::load) declare(held.value);
  emit_loads(held_in(0));
}

void ReduceEmitter::emit_edge_loads() {
  for (const Sweep& sweep : rows_.rounds.sweeps)
    for (InstrId id : plain_loads(sweep.instrs))
      if (!contains(edges_, id)) edges_.push_back(id);
  for (InstrId id : edges_) out_.line(fmt::format("pack<{}, 1> e{} = {{}};", held_type(kernel_, id), id));
  if (edges_.empty()) return;
  walk_.open_edge();
  for (InstrId id : edges_) out_.line(fmt::format("e{}[0] = {};", id, guarded_element(kernel_, id, rows_.names)));
  out_.close();
}

void ReduceEmitter::declare(InstrId id, const std::string& name) {
  const std::string type = held_type(kernel_, id);
  // Bytes as the words that they are loaded in, where they are.
  const Instr& instr = kernel_.instr(id);
  const bool words = instr.kind == InstrKind::load && is_byte(stored_dtype(kernel_, instr.access)) &&
                     schedule_.vector % 4 == 0 && width_of(kernel_, instr.access, lanes_) != 0;
  out_.line(fmt::format("{}<{}, {}> {}{}[{}];", words ? "byte_vector" : "pack", type, schedule_.vector, name, id,
                        walk_.chunks()));
  if (peeled_ != nullptr && kernel_.instr(id).kind != InstrKind::load)
    out_.line(fmt::format("pack<{}, 1> e{};", type, id));
}

void ReduceEmitter::emit_loads(const std::vector<InstrId>& loads) {
  for (InstrId id : loads) declare(id);
  fill(loads, "x");
}

void ReduceEmitter::fill(const std::vector<InstrId>& loads, const std::string& name, bool waiting) {
  if (loads.empty()) return;
  const int opened = walk_.open_elements();
  for (InstrId id : loads) {
    const int width = width_of(kernel_, kernel_.instr(id).access, lanes_);
    if (waiting && width != 0)
      out_.line(fmt::format("{}{}[c] = {};", name, id, waiting_load(id, schedule_.vector, width)));
    else
      emit_load_into(out_, kernel_, id, lanes_, rows_.names, cache_, fmt::format("{}{}[c]", name, id));
  }
  walk_.close(opened);
}

void ReduceEmitter::declare_shared(const std::vector<InstrId>& loads, BytesOf bytes) {
  if (persistent_ == nullptr || schedule_.team.mapping == RowMapping::block)
    out_.line("extern __shared__ __align__(16) unsigned char shared[];");
  std::int64_t offset = 0;
  for (InstrId load : loads) {
    out_.line(fmt::format("{0}* s{1} = ({0}*)(shared{2}) + threadIdx.x * {3};", held_type(kernel_, load), load,
                          offset == 0 ? "" : fmt::format(" + {}", offset), schedule_.vector));
    offset += bytes(kernel_, schedule_, load);
  }
}

std::string ReduceEmitter::shared_place() const {
  return fmt::format("c * {}", schedule_.team.threads * schedule_.vector);
}

std::string ReduceEmitter::ring_place(const std::string& slot) const {
  return fmt::format("{} * {} + {}", slot, slot_elements(schedule_), shared_place());
}

void ReduceEmitter::copy_row() {
  declare_shared(shared_, shared_load_bytes);
  for (int part = 0; part < walk_.parts_of_shared(); ++part) {
    const int opened = walk_.open_shared_part(part);
    emit_copies(schedule_.cache.keep_reads ? "copy_async_kept" : "copy_async", shared_, shared_place());
    walk_.close(opened);
    out_.line("commit_copies();");
  }
}

void ReduceEmitter::emit_copies(const char* function, const std::vector<InstrId>& loads, const std::string& place) {
  for (InstrId id : loads)
    out_.line(fmt::format("{}<{}>(s{} + {}, {}, true);", function, schedule_.vector * held_size(kernel_, id), id, place,
                          address(kernel_, kernel_.instr(id).access, rows_.names)));
}

void ReduceEmitter::emit_shared_points(Points points, const Moments* counted) {
  points.registers.held.clear();
  points.shared = {.loads = shared_, .place = shared_place()};
  const int parts = copies_arrived_ ? 1 : walk_.parts_of_shared();
  for (int part = 0; part < parts; ++part) {
    if (!copies_arrived_) out_.line(fmt::format("wait_copies<{}>();", parts - 1 - part));
    const int opened = copies_arrived_ ? walk_.open_shared() : walk_.open_shared_part(part);
    emit_points(out_, kernel_, points);
    if (counted != nullptr) count_points(*counted);
    walk_.close(opened);
  }
  copies_arrived_ = true;
}

}  // namespace tenon::codegen::cuda
