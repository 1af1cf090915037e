// See walk.h.
#include "codegen/emit/cuda/reduce/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

// Of what a thread copies to shared memory: the first sweep works on one while the others are on their way.
constexpr int kPartsOfShared = 4;

}  // namespace

Walk::Walk(Writer& out, const Rows& rows, const Team& team, const Access* peeled)
    : out_(out), rows_(rows), team_(team), peeled_(peeled), step_(team.size * vector_) {
  if (holds_rows(rows.schedule)) {
    shared_ = shared_elements(rows.schedule) / rows.schedule.vector;
    chunks_ = held_elements(rows.schedule) / rows.schedule.vector - shared_;
  }
  if (tiled()) chunks_ = unroll_of(rows.schedule);
}

void Walk::emit_bounds() {
  const int vector = rows_.schedule.vector;
  if (peeled_ != nullptr) {
    const Index row = peeled_->offset - Index::axis(static_cast<int>(rows_.kernel.axes.size()) - 1);
    const std::string type = index_type(rows_.kernel), length = parenthesized(dim_text(rows_.length, rows_.names));
    out_.line(fmt::format("const {0} head = min(({0})(-({1}){2} & {3}), ({0}){4});", type,
                          unsigned_index_type(rows_.kernel), parenthesized(index_text(row, rows_.names)), vector - 1,
                          length));
    out_.line(fmt::format("const {0} tail = head + ({1} - head) / {2} * {2};", type, length, vector));
    out_.line(fmt::format("const {} edge = member < head ? member : member - head + tail;", type));
  }
  if (parts_of(rows_.schedule) > 1)
    emit_part(out_, rows_, std::int64_t{step_} * std::max(1, chunks_), peeled_ == nullptr ? "" : "head",
              end_of_vectors());
}

void Walk::open_edge() {
  out_.open(fmt::format("if (edge < {}{}) {{", dim_text(rows_.length, rows_.names),
                        parts_of(rows_.schedule) > 1 ? " && part == 0" : ""));
  out_.line(fmt::format("const {} {} = edge;", index_type(rows_.kernel), rows_.element()));
}

std::string Walk::end_of_vectors() const { return peeled_ == nullptr ? dim_text(rows_.length, rows_.names) : "tail"; }

std::string Walk::end() const { return parts_of(rows_.schedule) > 1 ? "end" : end_of_vectors(); }

int Walk::turns_of_parts() const { return parts_take_turns(rows_) ? parts_of(rows_.schedule) : 1; }

// Where this thread's first vector stands in the row, or in this block's part of it.
std::string Walk::first() const {
  const std::string place = vector_ == 1 ? "member" : fmt::format("member * {}", vector_);
  const std::string begin = parts_of(rows_.schedule) > 1 ? "begin" : peeled_ != nullptr ? "head" : "";
  return team_.size == 1 ? (begin.empty() ? "0" : begin) : begin + (begin.empty() ? "" : " + ") + place;
}

// A row that takes one turn is no loop: the compiler does not see that of bounds which differ from row to row, and
// keeps registers for a turn that never comes (36 for 22 in rows of 4095: a block of four less on a multiprocessor).
void Walk::open_loop(const std::string& name, int step) {
  const std::string type = index_type(rows_.kernel);
  step *= turns_of_parts();
  if (in_block_)
    out_.open(fmt::format("for ({0} {1} = block; {1} < stop; {1} += {2}) {{", type, name, step));
  else if (takes_one_turn(step))
    out_.open(fmt::format("if (const {0} {1} = {2}; {1} < {3}) {{", type, name, first(), end()));
  else
    out_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, name, first(), end(), step));
}

bool Walk::takes_one_turn(int step) const {
  if (columns_ || parts_of(rows_.schedule) > 1) return false;
  const std::int64_t longest = rows_.length.bounds(rows_.kernel.symbols).max;
  return (peeled_ == nullptr ? longest : longest / rows_.schedule.vector * rows_.schedule.vector) <= step;
}

void Walk::open_blocks() {
  const int turn = step_ * std::max(1, chunks_), terms = turn / team_.size;
  open_block(out_, rows_, first(), end(), std::int64_t{turn} * turns_of_block(terms) * turns_of_parts());
  in_block_ = true;
}

void Walk::close_blocks() {
  in_block_ = false;
  out_.close();
}

void Walk::open_first() {
  out_.open(fmt::format("if ({} < {}) {{", first(), end()));
  out_.line(fmt::format("const {} {} = {};", index_type(rows_.kernel), rows_.element(), first()));
  decode_element();
}

void Walk::open_tile() { open_loop("tile", step_ * chunks_); }

int Walk::open_elements() {
  if (chunks_ > 0) {
    out_.unrolled("c", chunks_);
    return open_chunks(fmt::format("{} + {} * {}", tiled() ? "tile" : first(),
                                   shared_ == 0 ? "c" : fmt::format("(c + {})", shared_), step_));
  }
  if (columns_ && unroll_of(rows_.schedule) > 1) out_.line(fmt::format("#pragma unroll {}", unroll_of(rows_.schedule)));
  open_loop(rows_.element(), step_);
  decode_element();
  return 1;
}

int Walk::open_ahead() {
  out_.unrolled("c", chunks_);
  const std::string type = index_type(rows_.kernel), start = fmt::format("tile + c * {}", step_);
  out_.line(fmt::format("const {} {} = {};", type, rows_.element(),
                        whole_chunks() ? start : fmt::format("min({}, ({})({}) - 1)", start, type, end())));
  decode_element();
  return 1;
}

int Walk::parts_of_shared() const { return std::min(kPartsOfShared, shared_); }

int Walk::open_shared() { return open_shared(0, shared_); }

int Walk::open_shared_part(int part) {
  const int parts = parts_of_shared();
  return open_shared(part * shared_ / parts, (part + 1) * shared_ / parts);
}

int Walk::open_shared(int begin, int end) {
  out_.line(fmt::format("#pragma unroll {}", std::get<InShared>(rows_.schedule.keep).unroll));
  out_.open(fmt::format("for (int c = {}; c < {}; ++c) {{", begin, end));
  return open_chunks(fmt::format("{} + c * {}", first(), step_));
}

// The element at which chunk `c` begins, and the scope of those that have it.
int Walk::open_chunks(const std::string& start) {
  const std::string e = rows_.element();
  out_.line(fmt::format("const {} {} = {};", index_type(rows_.kernel), e, start));
  const bool checked = peeled_ != nullptr || !whole_chunks();
  if (checked) out_.open(fmt::format("if ({} < {}) {{", e, end()));
  decode_element();
  return checked ? 2 : 1;
}

void Walk::decode_element() {
  if (rows_.element() == "e")
    decode_axes(out_, rows_.kernel, rows_.kept, rows_.kernel.axes.size(),
                fmt::format("({})e", unsigned_index_type(rows_.kernel)));
}

void Walk::close(int opened) {
  for (; opened > 0; --opened) out_.close();
}

bool Walk::whole_chunks() const {
  const std::int64_t covered = std::int64_t{step_} * (chunks_ + shared_) * parts_of(rows_.schedule);
  return holds_rows(rows_.schedule) ? rows_.length.is(covered)
                                    : rows_.length.is_constant() && rows_.length.constant() % covered == 0;
}

}  // namespace tenon::codegen::cuda
