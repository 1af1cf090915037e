// Dimensions and shapes. A dimension is an integer or an expression over named symbols, so that one graph,
// compiled once, serves every batch size.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What is known of a symbol: min <= value <= max and value % divisor == 0.
struct SymbolBounds {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::int64_t divisor = 1;
  bool operator==(const SymbolBounds&) const = default;
};

/// The symbols of a graph by name.
using Symbols = std::map<std::string, SymbolBounds>;

/// A value for each symbol.
using Bindings = std::map<std::string, std::int64_t>;

struct DimTerms;  // the symbolic part; defined in ir/graph/dim.cpp

/// An exact 64-bit integer polynomial over symbols and floor divisions by constants, in canonical form:
/// two dimensions that are equal as polynomials compare equal. Immutable and cheap to copy.
/// Arithmetic that would leave 64 bits throws Error(type).
class Dim {
 public:
  Dim() : constant_(0) {}
  /// The constant `value`, of any integer type; Error(type) when it leaves 64 bits.
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Dim(T value) : constant_(static_cast<std::int64_t>(value)) {  // NOLINT: 3 is a dimension
    if (!std::in_range<std::int64_t>(value)) leave_range();
  }
  /// The symbol `name` (letters, digits and '_', not starting with a digit).
  static Dim symbol(const std::string& name);

  bool is_constant() const { return terms_ == nullptr; }
  bool is(std::int64_t value) const { return is_constant() && constant_ == value; }
  /// The value of a constant dimension; Error(internal) for a symbolic one.
  std::int64_t constant() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// The quotient by a positive constant that divides whatever the symbols are: (6*n + 4) / 2 is 3*n + 2. Error(type)
  /// otherwise. A dimension knows its symbols' names only, not what bounds a graph gives them: n / 2 is an error though
  /// n's divisor be 8. There floor_div serves, or the quotient as the symbol, with 2*half for n.
  friend Dim operator/(const Dim& a, const Dim& divisor);
  friend bool operator==(const Dim& a, const Dim& b) {
    return a.constant_ == b.constant_ && (a.terms_ == b.terms_ || same_terms(a, b));
  }
  friend bool operator<(const Dim& a, const Dim& b);  ///< an arbitrary but fixed order, for containers

  /// Floor division by a positive constant.
  Dim floor_div(std::int64_t divisor) const;
  /// The quotient when `divisor` is known to divide this exactly (as polynomials), or nothing.
  std::optional<Dim> exact_div(const Dim& divisor) const;

  /// The value under `bindings`; Error(argument) when a symbol is missing or the value leaves 64 bits.
  std::int64_t evaluate(const Bindings& bindings) const;
  /// This dimension with some symbols replaced by values.
  Dim substitute(const Bindings& bindings) const;
  /// Adds the names of all symbols to `names`.
  void collect_symbols(std::set<std::string>& names) const;

  /// Bounds that hold for every value of the symbols; saturates at the ends of the 64-bit range.
  SymbolBounds bounds(const Symbols& symbols) const;

  /// "4096", "rows", "2*rows + 1", "floordiv(rows + 3, 4)": what the text form reads back.
  std::string str() const;

 private:
  Dim(std::int64_t constant, std::shared_ptr<const DimTerms> terms) : constant_(constant), terms_(std::move(terms)) {}
  friend struct DimTerms;
  [[noreturn]] static void leave_range();
  static bool same_terms(const Dim& a, const Dim& b);

  std::int64_t constant_;
  std::shared_ptr<const DimTerms> terms_;  // null when constant
};

/// Extents, outermost first. At most kMaxRank of them.
using Shape = std::vector<Dim>;

inline constexpr int kMaxRank = 8;

/// "[rows, 4096]".
std::string str(const Shape& shape);

/// The number of elements; 1 for rank 0.
Dim element_count(const Shape& shape);

}  // namespace tenon
