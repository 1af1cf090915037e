// See square.h.
#include "codegen/emit/llvm/square.h"

#include "codegen/emit/llvm/classes.h"

namespace tenon::codegen::simd {
namespace {

using Rows = std::vector<Value*>;

constexpr int kLeastWordBytes = 4;
constexpr int kLaneBytes = 16;  // shuffles within these need no vector of indices

int bytes_of(DType dtype) { return static_cast<int>(size_of(dtype)); }
DType dtype_of(const Unit& unit, const Access& access) {
  return unit.kernel.operands[static_cast<std::size_t>(access.operand)].dtype;
}
int word_bytes(DType dtype) { return std::max(kLeastWordBytes, bytes_of(dtype)); }

// a0 b0 a1 b1 … of each `run` elements of both: the first half of that, or the second.
Value* interleave(Unit& unit, Value* a, Value* b, int run, bool second) {
  const int n = lanes_of(a);
  std::vector<int> mask;
  for (int from = second ? run / 2 : 0; from < n; from += run)
    for (int i = 0; i < run / 2; ++i) mask.insert(mask.end(), {from + i, n + from + i});
  return unit.b.CreateShuffleVector(a, b, mask);
}

// Of n rows, element i of all of them side by side, for i = 0, 1, … of each `run` elements: n rows of these.
Rows join(Unit& unit, const Rows& rows, int run) {
  if (rows.size() == 1) return rows;
  Rows even, odd, joined;
  for (std::size_t i = 0; i < rows.size(); ++i) (i % 2 == 0 ? even : odd).push_back(rows[i]);
  even = join(unit, even, run);
  odd = join(unit, odd, run);
  for (std::size_t i = 0; i < even.size(); ++i)
    for (const bool second : {false, true}) joined.push_back(interleave(unit, even[i], odd[i], run, second));
  return joined;
}

// Of `a` and then of `b` every other run of elements, from the first or the second on.
Value* every_other(Unit& unit, Value* a, Value* b, int run, bool second) {
  const int n = lanes_of(a);
  std::vector<int> mask;
  for (int from = second ? run : 0; from < 2 * n; from += 2 * run)
    for (int i = 0; i < run; ++i) mask.push_back(from + i);
  return unit.b.CreateShuffleVector(a, b, mask);
}

// Of n rows of n runs of elements, run i of all of them, for i = 0, 1, …
Rows deal(Unit& unit, const Rows& rows, int run) {
  if (rows.size() == 1) return rows;
  Rows dealt[2], all;
  for (const bool second : {false, true}) {
    for (std::size_t i = 0; i < rows.size(); i += 2)
      dealt[second].push_back(every_other(unit, rows[i], rows[i + 1], run, second));
    dealt[second] = deal(unit, dealt[second], run);
  }
  for (std::size_t i = 0; i < dealt[0].size(); ++i) all.insert(all.end(), {dealt[0][i], dealt[1][i]});
  return all;
}

// Element i of row l becomes element l of row i: first within lanes of 16 bytes, then lane by lane.
Rows turn(Unit& unit, const Rows& rows, int word) {
  const std::size_t lane = std::min(rows.size(), static_cast<std::size_t>(kLaneBytes / word));
  const int run = static_cast<int>(lane);
  std::vector<Rows> groups;
  for (std::size_t first = 0; first < rows.size(); first += lane)
    groups.push_back(join(unit, Rows(rows.begin() + first, rows.begin() + first + lane), run));
  std::vector<Rows> columns;  // [element of a lane][lane]
  for (std::size_t element = 0; element < lane; ++element) {
    Rows across;
    for (const Rows& group : groups) across.push_back(group[element]);
    columns.push_back(deal(unit, across, run));
  }
  Rows turned;
  for (std::size_t i = 0; i < rows.size(); ++i) turned.push_back(columns[i % lane][i / lane]);
  return turned;
}

// A square of a block from `row` on, all of it in use or `masked`.
class Square {
 public:
  Square(Unit& unit, Scope& scope, const Access& access, const Block& block, Value* row, bool masked)
      : unit_(unit),
        scope_(scope),
        access_(access),
        block_(block),
        row_(row),
        dtype_(dtype_of(unit, access)),
        side_(square_side(unit, dtype_)),
        joined_(word_bytes(dtype_) / bytes_of(dtype_)),
        words_(side_ / joined_),
        word_row_(vector_of(unit.b.getIntNTy(static_cast<unsigned>(8 * word_bytes(dtype_))), words_)),
        mask_(masked ? first_lanes(unit, unit.b.CreateSub(block.rows.end, row), side_) : nullptr) {}

  void emit(Value* column) {
    if (joined_ == 1) {
      Rows rows;
      for (int i = 0; i < side_; ++i) rows.push_back(as_words(load(scope_, plus(column, i))));
      return store(column, constant(unit_, 0), rows);
    }
    // Joined rows are more than the registers hold.
    auto& b = unit_.b;
    Value* memory = variable(unit_, llvm::ArrayType::get(word_row_, static_cast<std::uint64_t>(side_)), "joined");
    const auto slot = [&](Value* part, Value* row) {
      return advance(unit_, word_row_, memory, b.CreateAdd(b.CreateMul(part, constant(unit_, words_)), row));
    };
    loop_in(unit_, scope_, constant(unit_, 0), constant(unit_, words_), constant(unit_, 1), "join",
            [&](Scope& inside, Value* i) {
              Rows rows;
              for (int j = 0; j < joined_; ++j)
                rows.push_back(load(inside, plus(b.CreateAdd(column, b.CreateMul(i, constant(unit_, joined_))), j)));
              rows = join(unit_, rows, side_);
              for (int part = 0; part < joined_; ++part)
                b.CreateStore(as_words(rows[static_cast<std::size_t>(part)]), slot(constant(unit_, part), i));
            });
    loop_in(unit_, scope_, constant(unit_, 0), constant(unit_, joined_), constant(unit_, 1), "turn",
            [&](Scope&, Value* part) {
              Rows rows;
              for (int i = 0; i < words_; ++i) rows.push_back(b.CreateLoad(word_row_, slot(part, constant(unit_, i))));
              store(column, b.CreateMul(part, constant(unit_, words_)), rows);
            });
  }

 private:
  Value* plus(Value* base, int offset) {
    return offset == 0 ? base : unit_.b.CreateNSWAdd(base, constant(unit_, offset));
  }

  Value* as_words(Value* row) { return unit_.b.CreateBitCast(row, word_row_); }

  Value* load(Scope& scope, Value* column) {
    Scope line = child_of(scope, unit_);
    Value* mask = mask_;
    if (mask) mask = unit_.b.CreateAnd(mask, splat(unit_, unit_.b.CreateICmpSLT(column, block_.columns.end), side_));
    bind(line, block_.columns.axis, column);
    bind_lanes(line, block_.rows.axis, row_, side_, mask);
    Value* row = emit_load_stored(unit_, line, access_);
    // Too little is read of a line of memory at once for the hardware to see where it leads.
    emit_prefetch(unit_, line, access_, *access_.offset.coefficient(block_.rows.axis) * Dim(block_.ahead),
                  CacheLevel::second);
    return row;
  }

  // Turns `rows` and writes them from the square's row `first` on, at `column`.
  void store(Value* column, Value* first, const Rows& rows) {
    auto& b = unit_.b;
    Type* element = storage_type_of(unit_, dtype_);
    Value* to = advance(unit_, element, block_.to, b.CreateSub(column, block_.columns.begin));
    Value* row = b.CreateAdd(b.CreateSub(row_, block_.rows.begin), first);
    to = advance(unit_, element, to, b.CreateMul(row, constant(unit_, block_.pitch)));
    const Rows turned = turn(unit_, rows, word_bytes(dtype_));
    for (std::size_t i = 0; i < turned.size(); ++i)
      b.CreateAlignedStore(turned[i],
                           advance(unit_, element, to, constant(unit_, static_cast<std::int64_t>(i) * block_.pitch)),
                           llvm::Align(static_cast<std::uint64_t>(bytes_of(dtype_))));
  }

  Unit& unit_;
  Scope& scope_;
  const Access& access_;
  const Block& block_;
  Value* row_;
  DType dtype_;
  int side_, joined_, words_;
  Type* word_row_;
  Value* mask_;
};

}  // namespace

int square_side(const Unit& unit, DType dtype) { return unit.target.vector_bytes / bytes_of(dtype); }

void turn_block(Unit& unit, Scope& scope, const Access& access, const Block& block) {
  auto& b = unit.b;
  Value* side = constant(unit, square_side(unit, dtype_of(unit, access)));
  const auto whole = [&](const Span& span) {
    Value* squares = b.CreateSDiv(b.CreateSub(span.end, span.begin), side);
    return b.CreateAdd(span.begin, b.CreateMul(squares, side));
  };
  const auto squares = [&](Scope& outside, const Span& rows, const Span& columns, bool masked) {
    loop_in(unit, outside, columns.begin, columns.end, side, "column", [&](Scope& across, Value* column) {
      loop_in(unit, across, rows.begin, rows.end, side, "row",
              [&](Scope& inside, Value* row) { Square(unit, inside, access, block, row, masked).emit(column); });
    });
  };
  const auto& [rows, columns] = std::pair{block.rows, block.columns};
  Value *below = whole(rows), *behind = whole(columns);
  squares(scope, {rows.axis, rows.begin, below}, {columns.axis, columns.begin, behind}, false);
  loop_in(unit, scope, constant(unit, 0), constant(unit, 2), constant(unit, 1), "edge", [&](Scope& edges, Value* edge) {
    Value* is_below = b.CreateICmpEQ(edge, constant(unit, 0));
    squares(
        edges, {rows.axis, b.CreateSelect(is_below, below, rows.begin), rows.end},
        {columns.axis, b.CreateSelect(is_below, columns.begin, behind), b.CreateSelect(is_below, behind, columns.end)},
        true);
  });
}

}  // namespace tenon::codegen::simd
