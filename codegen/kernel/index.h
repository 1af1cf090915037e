// Quasi-affine index expressions over the axes of a kernel:
//     constant + sum of coefficient * { axis, gathered index, floor(e / d), e mod d }
// Constants, coefficients and divisors may be symbolic. Immutable values; simplified as they are built, with the ranges
// that an IndexContext proves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/shape.h"

namespace tenon::codegen {

/// One loop of a kernel's domain.
struct Axis {
  std::string name;  ///< "i0", "r1": what the emitters call it
  Dim extent;
  bool reduced = false;  ///< combined away by a reduction or contraction
};

/// What is known while an index is simplified.
struct IndexContext {
  const std::vector<Axis>* axes;  ///< axis i runs over 0 <= i < extent
  const Symbols* symbols;
};

struct IndexAtom;
using IndexAtomPtr = std::shared_ptr<const IndexAtom>;

struct IndexTerm {
  Dim coefficient;
  IndexAtomPtr atom;
};

class Index {
 public:
  Index() = default;
  Index(Dim constant) : constant_(std::move(constant)) {}  // NOLINT: a dimension is an index
  static Index axis(int axis);
  /// The value of the kernel instruction `instruction`, known to lie in [0, extent).
  static Index value(int instruction, const Dim& extent);
  /// The canonical form of constant + sum of terms.
  static Index sum(Dim constant, std::vector<IndexTerm> terms);

  const Dim& constant() const { return constant_; }
  const std::vector<IndexTerm>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b);
  friend Index operator*(const Index& a, const Dim& b);
  friend bool operator==(const Index& a, const Index& b);

  /// The coefficient of `axis` when it occurs only as a plain term (0 when it does not occur); nothing when it also
  /// stands under a floor division or modulo.
  std::optional<Dim> coefficient(int axis) const;
  bool depends_on(int axis) const;
  /// The instructions whose values occur.
  std::vector<int> values() const;

  /// A canonical text: "4096*i0 + i1", "i0 mod 12". Also the identity used for memoisation.
  std::string str() const;

 private:
  Dim constant_;
  std::vector<IndexTerm> terms_;
};

struct IndexAtom {
  enum class Kind : std::uint8_t { axis, value, floor_div, mod };
  Kind kind;
  int id = 0;     ///< axis or instruction
  Index operand;  ///< of floor_div and mod
  Dim divisor;    ///< of floor_div and mod; the extent of a value
  std::string text;
};

/// floor(index / divisor), divisor >= 1.
Index floor_div(const Index& index, const Dim& divisor, const IndexContext& context);
/// index mod divisor in [0, divisor), divisor >= 1.
Index mod(const Index& index, const Dim& divisor, const IndexContext& context);

/// Inclusive bounds as polynomials; nothing when a sign is unknown.
std::optional<Dim> lower_bound(const Index& index, const IndexContext& context);
std::optional<Dim> upper_bound(const Index& index, const IndexContext& context);
/// Numeric inclusive bounds, saturating.
SymbolBounds bounds(const Index& index, const IndexContext& context);
/// Whether 0 <= index < bound is proven.
bool proven_inside(const Index& index, const Dim& bound, const IndexContext& context);

/// `index` with the instructions from number `from` on, whose values occur, `shift` numbers later.
Index with_later_values(const Index& index, int from, int shift, const IndexContext& context);

/// The row-major offset of `coordinates` in an array of `shape`.
Index linearize(const std::vector<Index>& coordinates, const Shape& shape);
/// The coordinates in `shape` of the row-major offset `linear`.
std::vector<Index> delinearize(const Index& linear, const Shape& shape, const IndexContext& context);

}  // namespace tenon::codegen
