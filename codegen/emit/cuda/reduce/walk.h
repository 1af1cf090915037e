// A thread's way over its elements of a row: the bounds, loops and scopes around the work on each vector. Relies on the
// names that emit_row defines (team.h).
#pragma once

#include <string>

#include "codegen/analysis/gathers_ahead.h"
#include "codegen/emit/cuda/reduce/team.h"

namespace tenon::codegen::cuda {

class Walk {
 public:
  /// `peeled`: vectors begin where this access is aligned in each row. Null: they begin with the row.
  Walk(Writer& out, const Rows& rows, const Team& team, const Access* peeled);

  /// Vectors of a thread that are known by number: those of a held row, or of a tile; else 0, and one loop has all. Of
  /// columns, whose vectors lie across the rows, the thread has an element of the row at each.
  int chunks() const { return chunks_; }
  /// Vectors of a thread, before those, that lie in shared memory.
  int shared_chunks() const { return shared_; }
  /// Elements of the whole team's vectors.
  int step() const { return step_; }
  /// Whether a loop goes over tiles of `unroll` vectors, whose loads are in flight together.
  bool tiled() const {
    return columns_ ? is_online(rows_.schedule) || gathers_
                    : !holds_rows(rows_.schedule) && unroll_of(rows_.schedule) > 1;
  }

  /// A peeled row is whole vectors from `head` to `tail`; of what stands before and behind, each thread has at most the
  /// element `edge`. A part of a row is within [begin, end).
  void emit_bounds();
  void open_tile();
  /// Opens the scope of a thread that has elements, at the first.
  void open_first();
  /// Opens a loop over blocks of vectors (long_sums.h), in which the loop that is opened next goes over one.
  void open_blocks();
  void close_blocks();
  /// Opens the loop over the thread's vectors: all of them, or the chunks `c` of a tile or of a held row. Returns how
  /// many braces it opened.
  int open_elements();
  /// Opens a loop over the chunks `c` of a tile, those behind the end at its last element: what is loaded there may be.
  int open_ahead();
  /// The same for the vectors in shared memory, and for those of one of the parts in which they arrive.
  int open_shared();
  int open_shared_part(int part);
  int parts_of_shared() const;
  /// Opens the scope of a thread that has an edge element. The row's axis is that element there.
  void open_edge();
  void close(int opened);

 private:
  std::string end_of_vectors() const;
  std::string end() const;
  std::string first() const;
  int turns_of_parts() const;
  void open_loop(const std::string& name, int step);
  bool takes_one_turn(int step) const;
  int open_shared(int begin, int end);
  int open_chunks(const std::string& start);
  bool whole_chunks() const;
  void decode_element();

  Writer& out_;
  const Rows& rows_;
  const Team& team_;
  const Access* peeled_;
  const bool columns_ = rows_.schedule.team.mapping == RowMapping::column;
  const int vector_ = columns_ ? 1 : rows_.schedule.vector;  // elements of a row that a thread has at once
  const bool gathers_ = !gathers_ahead(rows_.kernel, rows_.schedule).empty();  // of columns
  int step_ = 1, chunks_ = 0, shared_ = 0;
  bool in_block_ = false;
};

}  // namespace tenon::codegen::cuda
