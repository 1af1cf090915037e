// See held.h.
#include "codegen/analysis/held.h"

#include <algorithm>
#include <optional>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

// What is computed again costs issue slots, which a kernel has left over as long as its bytes take longer: 128 lanes
// issue at a time, and about 15 bytes come and go meanwhile (H100: 3.35 TB/s, 132 multiprocessors at 1.7 GHz).
constexpr int kSlotsOfMovedByte = 8;
// Held bytes cost registers. Drawing a random element again, a share of a call for four, costs about what 3 of them do.
constexpr int kSlotsOfHeldByte = 7, kSlotsOfRandom = 3 * kSlotsOfHeldByte;

bool varies_inside(const Kernel& kernel, InstrId id) {
  return (kernel.instr(id).depends >> (kernel.axes.size() - 1) & 1) != 0;
}

// The first sweep that evaluates each instruction, and how many do.
struct Uses {
  std::vector<std::size_t> first;
  std::vector<int> count;
};

Uses uses_in(const Kernel& kernel, const Rounds& rounds) {
  Uses uses{std::vector<std::size_t>(kernel.body.size(), 0), std::vector<int>(kernel.body.size(), 0)};
  for (std::size_t sweep = rounds.sweeps.size(); sweep-- > 0;)
    for (InstrId id : rounds.sweeps[sweep].instrs) {
      uses.first[static_cast<std::size_t>(id)] = sweep;
      ++uses.count[static_cast<std::size_t>(id)];
    }
  return uses;
}

// What is held when `computed` is: that, and the loads that several sweeps still use.
std::vector<Held> all_held(const Kernel& kernel, const Rounds& rounds, const std::vector<Held>& computed) {
  const Uses uses = uses_in(kernel, with_held(kernel, rounds, computed));
  std::vector<Held> held = computed;
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (uses.count[id] > 1 && is_plain_load(kernel, static_cast<InstrId>(id)))
      held.push_back({static_cast<InstrId>(id), 0});
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.value < b.value; });
  return held;
}

int slots_of(const Instr& instr) {
  if (instr.kind == InstrKind::random) return kSlotsOfRandom;
  return instr.kind == InstrKind::map ? ir::info(instr.op).cost : 0;
}

// Whether all sweeps together take longer to compute an element than to move it, of rows that stay in registers whether
// what is held of an element is larger or not: long rows whose elements are stored would be read again.
bool computes_longest(const Kernel& kernel, const Rounds& rounds) {
  constexpr std::int64_t kMostElements = 8192;
  std::int64_t slots = 0, bytes = 0, elements = 1;
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) elements *= axis.extent.is_constant() ? axis.extent.constant() : kMostElements + 1;
  if (elements > kMostElements && stores_elements(kernel)) return false;
  for (const Sweep& sweep : rounds.sweeps)
    for (const InstrId id : sweep.instrs)
      if (varies_inside(kernel, id)) slots += slots_of(kernel.instr(id));
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (is_plain_load(kernel, static_cast<InstrId>(id))) bytes += held_size(kernel, static_cast<InstrId>(id));
  for (const Store& store : kernel.stores)
    if (store.access.offset.depends_on(static_cast<int>(kernel.axes.size()) - 1))
      bytes += element_bytes(kernel, store.access);
  return slots > kSlotsOfMovedByte * bytes;
}

// Issue slots for each element: of what is held, and of what later sweeps compute again. What a kernel has slots left
// for costs nothing, but for random elements.
int cost_of(const Kernel& kernel, const Rounds& rounds, const std::vector<Held>& computed, bool all_count) {
  int slots = 0;
  for (const Held& held : all_held(kernel, rounds, computed)) slots += kSlotsOfHeldByte * held_size(kernel, held.value);
  const Rounds after = with_held(kernel, rounds, computed);
  const Uses uses = uses_in(kernel, after);
  for (std::size_t sweep = 0; sweep < after.sweeps.size(); ++sweep)
    for (InstrId id : after.sweeps[sweep].instrs)
      if ((all_count || kernel.instr(id).kind == InstrKind::random) && varies_inside(kernel, id) &&
          uses.first[static_cast<std::size_t>(id)] != sweep &&
          std::none_of(computed.begin(), computed.end(), [&](const Held& held) { return held.value == id; }))
        slots += slots_of(kernel.instr(id));
  return slots;
}

bool may_be_held(const Kernel& kernel, InstrId id) {
  const InstrKind kind = kernel.instr(id).kind;
  return varies_inside(kernel, id) && (kind == InstrKind::map || kind == InstrKind::round || kind == InstrKind::random);
}

}  // namespace

bool is_plain_load(const Kernel& kernel, InstrId id) {
  return kernel.instr(id).kind == InstrKind::load && varies_inside(kernel, id) && operands_of(kernel.instr(id)).empty();
}

int held_size(const Kernel& kernel, InstrId value) {
  const Instr& instr = kernel.instr(value);
  if (instr.kind == InstrKind::load) return static_cast<int>(element_bytes(kernel, instr.access));
  return static_cast<int>(size_of(instr.kind == InstrKind::round ? instr.dtype : compute_type(instr.dtype)));
}

Rounds with_held(const Kernel& kernel, Rounds rounds, const std::vector<Held>& held) {
  for (std::size_t at = 1; at < rounds.sweeps.size(); ++at) {
    Sweep& sweep = rounds.sweeps[at];
    std::vector<bool> stop(kernel.body.size(), false);
    for (std::size_t id = 0; id < stop.size(); ++id) stop[id] = !element_level(kernel, static_cast<InstrId>(id));
    std::vector<bool> there(kernel.body.size(), false);
    for (const Held& each : held)
      if (each.sweep < at && kernel.instr(each.value).kind != InstrKind::load)
        stop[static_cast<std::size_t>(each.value)] = there[static_cast<std::size_t>(each.value)] = true;
    const std::vector<InstrId> roots = sweep_roots(kernel, sweep);
    std::vector<InstrId> instrs = needed(kernel, roots, stop);
    std::vector<InstrId> reached;
    const auto reach = [&](InstrId id) {
      if (there[static_cast<std::size_t>(id)] && std::find(reached.begin(), reached.end(), id) == reached.end())
        reached.push_back(id);
    };
    for (InstrId root : roots) reach(root);
    for (InstrId id : instrs)
      for (InstrId operand : operands_of(kernel.instr(id))) reach(operand);
    instrs.insert(instrs.end(), reached.begin(), reached.end());
    std::sort(instrs.begin(), instrs.end());
    sweep.instrs = std::move(instrs);
  }
  return rounds;
}

std::vector<InstrId> kept_in_tile(const Kernel& kernel, const Sweep& sweep, int dear) {
  if (!sweep.online && !sweep.moments) return {};
  const auto done = [&](InstrId id) {
    return std::find(sweep.instrs.begin(), sweep.instrs.end(), id) != sweep.instrs.end();
  };
  int slots = 0;
  std::vector<InstrId> kept;
  for (const InstrId id : sweep.online ? sweep.online->instrs : sweep.moments->instrs) {
    if (done(id)) {
      if (varies_inside(kernel, id)) slots += slots_of(kernel.instr(id));
      continue;
    }
    for (const InstrId operand : operands_of(kernel.instr(id)))
      if (done(operand) && may_be_held(kernel, operand) && std::find(kept.begin(), kept.end(), operand) == kept.end())
        kept.push_back(operand);
  }
  return slots > dear && kept.size() == 1 ? kept : std::vector<InstrId>{};
}

std::vector<InstrId> instrs_behind(const Kernel& kernel, const std::vector<InstrId>& instrs, InstrId reduce,
                                   const std::vector<InstrId>& kept) {
  std::vector<bool> stop(kernel.body.size(), false);
  for (const InstrId id : kept) stop[static_cast<std::size_t>(id)] = true;
  const std::vector<InstrId> wanted = needed(kernel, kernel.instr(reduce).args, stop);
  std::vector<InstrId> behind;
  for (const InstrId id : instrs)
    if (stop[static_cast<std::size_t>(id)] || std::find(wanted.begin(), wanted.end(), id) != wanted.end())
      behind.push_back(id);
  return behind;
}

std::vector<Held> held_loads(const Kernel& kernel, const Rounds& rounds) { return all_held(kernel, rounds, {}); }

std::vector<Held> held_values(const Kernel& kernel, const Rounds& rounds) {
  std::vector<Held> computed;
  if (rounds.sweeps.size() < 2) return {};
  const Uses uses = uses_in(kernel, rounds);
  const bool all_count = computes_longest(kernel, rounds);
  for (int cost = cost_of(kernel, rounds, computed, all_count);;) {
    std::optional<Held> best;
    for (std::size_t id = kernel.body.size(); id-- > 0;) {
      if (uses.count[id] < 2 || !may_be_held(kernel, static_cast<InstrId>(id))) continue;
      std::vector<Held> with = computed;
      with.push_back({static_cast<InstrId>(id), uses.first[id]});
      if (const int its = cost_of(kernel, rounds, with, all_count); its < cost) {
        cost = its;
        best = with.back();
      }
    }
    if (!best) return all_held(kernel, rounds, computed);
    computed.push_back(*best);
  }
}

}  // namespace tenon::codegen
