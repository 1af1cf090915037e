// Index arithmetic: canonical sums of terms, and the floor-division and modulo rules that ranges allow.
// Rules (floor semantics): (q*d + r) / d = q + r/d;  r/d = 0 and r mod d = r when 0 <= r < d;
// (x/a)/b = x/(a*b);  (x mod (a*b)) mod a = x mod a;  (x mod (a*b)) / a = (x/a) mod b;
// (s*x + r) / (s*d) = x/d and (s*x + r) mod (s*d) = s*(x mod d) + r when 0 <= r < s.
#include "codegen/kernel/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

namespace tenon::codegen {
namespace {

IndexAtomPtr make_atom(IndexAtom atom) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: atom.text = fmt::format("i{}", atom.id); break;
    case IndexAtom::Kind::value: atom.text = fmt::format("v{}", atom.id); break;
    case IndexAtom::Kind::floor_div:
      atom.text = fmt::format("(({}) / ({}))", atom.operand.str(), atom.divisor.str());
      break;
    case IndexAtom::Kind::mod: atom.text = fmt::format("(({}) % ({}))", atom.operand.str(), atom.divisor.str()); break;
  }
  return std::make_shared<const IndexAtom>(std::move(atom));
}

bool non_negative(const Dim& dim, const Symbols& symbols) { return dim.bounds(symbols).min >= 0; }
bool non_positive(const Dim& dim, const Symbols& symbols) { return dim.bounds(symbols).max <= 0; }

// The largest value of an atom as a polynomial, when it is known (the least is 0 for every kind that has an upper one).
std::optional<Dim> atom_maximum(const IndexAtom& atom, const IndexContext& context) {
  switch (atom.kind) {
    case IndexAtom::Kind::axis: return (*context.axes)[static_cast<std::size_t>(atom.id)].extent - 1;
    case IndexAtom::Kind::value:
    case IndexAtom::Kind::mod: return atom.divisor - 1;
    case IndexAtom::Kind::floor_div: {
      const auto low = lower_bound(atom.operand, context);
      const auto high = upper_bound(atom.operand, context);
      if (!low || !high || !non_negative(*low, *context.symbols)) return std::nullopt;
      if (atom.divisor.is_constant()) return high->floor_div(atom.divisor.constant());
      // floor((n*d - 1) / d) = n - 1 for the common case of a whole extent.
      if (const auto parts = (*high + 1).exact_div(atom.divisor)) return *parts - 1;
      return *high;
    }
  }
  return std::nullopt;
}

std::optional<Dim> bound(const Index& index, const IndexContext& context, bool upper) {
  Dim sum = index.constant();
  for (const IndexTerm& term : index.terms()) {
    const bool positive = non_negative(term.coefficient, *context.symbols);
    if (!positive && !non_positive(term.coefficient, *context.symbols)) return std::nullopt;
    const auto maximum = atom_maximum(*term.atom, context);
    if (!maximum) return std::nullopt;
    if (positive == upper) sum = sum + term.coefficient * *maximum;
  }
  return sum;
}

// index = divisor * quotient + rest, with every term that divides exactly in the quotient.
struct Division {
  Index quotient, rest;
};

Division split_multiples(const Index& index, const Dim& divisor) {
  std::vector<IndexTerm> quotient, rest;
  for (const IndexTerm& term : index.terms()) {
    if (const auto factor = term.coefficient.exact_div(divisor)) {
      quotient.push_back({*factor, term.atom});
    } else {
      rest.push_back(term);
    }
  }
  Dim whole(0);
  if (divisor.is_constant() && index.constant().is_constant()) {
    whole = index.constant().floor_div(divisor.constant());
  } else if (const auto exact = index.constant().exact_div(divisor)) {
    whole = *exact;
  }
  return {Index::sum(whole, std::move(quotient)), Index::sum(index.constant() - whole * divisor, std::move(rest))};
}

// The only atom of an index that is nothing else.
const IndexAtom* lone_atom(const Index& index) {
  const bool alone = index.terms().size() == 1 && index.constant().is(0) && index.terms()[0].coefficient.is(1);
  return alone ? index.terms()[0].atom.get() : nullptr;
}

Index atom_index(IndexAtom::Kind kind, const Index& operand, const Dim& divisor) {
  return Index::sum(0, {{Dim(1), make_atom({kind, 0, operand, divisor, {}})}});
}

// index = scale * high + low with 0 <= low < scale, where scale divides a divisor: then low never carries, and
//     index / divisor = high / (divisor/scale)   and   index mod divisor = scale * (high mod (divisor/scale)) + low.
struct Scaled {
  Dim scale, divisor;  ///< divisor: what is left of it
  Index high, low;
};

// A constant that divides `coefficient` whatever its symbols are.
std::int64_t content(const Dim& coefficient, const IndexContext& context) {
  if (coefficient.is_constant()) return std::abs(coefficient.constant());
  return coefficient.bounds(*context.symbols).divisor;
}

// What may be the scale: a coefficient that divides the divisor, or what the largest of them and the divisor have in
// common, as far as they are constants.
std::vector<Dim> scales(const Index& index, const Dim& divisor, const IndexContext& context) {
  std::vector<Dim> found;
  if (!divisor.is_constant()) {
    for (const IndexTerm& term : index.terms())
      found.push_back(non_negative(term.coefficient, *context.symbols) ? term.coefficient : term.coefficient * Dim(-1));
    return found;
  }
  std::vector<std::pair<bool, std::int64_t>> largest_first;
  for (const IndexTerm& term : index.terms())
    largest_first.emplace_back(!term.coefficient.is_constant(), content(term.coefficient, context));
  std::sort(largest_first.begin(), largest_first.end(), std::greater<>());
  std::int64_t common = divisor.constant();
  for (const auto& [symbolic, each] : largest_first) {
    common = std::gcd(common, each);
    found.emplace_back(common);
  }
  return found;
}

std::optional<Scaled> split_scale(const Index& index, const Dim& divisor, const IndexContext& context) {
  for (const Dim& scale : scales(index, divisor, context)) {
    const auto left = divisor.exact_div(scale);
    if (scale.is(1) || scale.is(0) || !left || !non_negative(scale, *context.symbols)) continue;
    const auto [high, low] = split_multiples(index, scale);
    const bool nothing = low.is_constant() && low.constant().is(0);
    if (high.terms().empty() || !(nothing || proven_inside(low, scale, context))) continue;
    return Scaled{scale, *left, high, low};
  }
  return std::nullopt;
}

// c*d*floor(x/d) + c*(x mod d) = c*x, for the pairs that stand in `terms`. True when one was merged.
bool merge_division_pair(std::vector<IndexTerm>& terms, Dim& constant) {
  for (std::size_t m = 0; m < terms.size(); ++m) {
    const IndexAtom& rest = *terms[m].atom;
    if (rest.kind != IndexAtom::Kind::mod) continue;
    Index inner = rest.operand;
    Dim divisor = rest.divisor;
    if (const IndexAtom* nested = lone_atom(inner); nested && nested->kind == IndexAtom::Kind::floor_div) {
      divisor = divisor * nested->divisor;
      inner = nested->operand;
    }
    const std::string wanted = fmt::format("(({}) / ({}))", inner.str(), divisor.str());
    for (std::size_t q = 0; q < terms.size(); ++q) {
      if (terms[q].atom->text != wanted || !(terms[q].coefficient == terms[m].coefficient * rest.divisor)) continue;
      const Index merged = rest.operand * terms[m].coefficient;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(m, q)));
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(m, q)));
      constant = constant + merged.constant();
      terms.insert(terms.end(), merged.terms().begin(), merged.terms().end());
      return true;
    }
  }
  return false;
}

}  // namespace

Index Index::sum(Dim constant, std::vector<IndexTerm> terms) {
  std::vector<IndexTerm> merged;
  do {
    std::sort(terms.begin(), terms.end(),
              [](const IndexTerm& a, const IndexTerm& b) { return a.atom->text < b.atom->text; });
    merged.clear();
    for (IndexTerm& term : terms) {
      if (!merged.empty() && merged.back().atom->text == term.atom->text) {
        merged.back().coefficient = merged.back().coefficient + term.coefficient;
      } else {
        merged.push_back(std::move(term));
      }
      if (merged.back().coefficient.is(0)) merged.pop_back();
    }
    terms = merged;
  } while (merge_division_pair(terms, constant));
  Index index;
  index.constant_ = std::move(constant);
  index.terms_ = std::move(terms);
  return index;
}

Index Index::axis(int axis) { return sum(0, {{Dim(1), make_atom({IndexAtom::Kind::axis, axis, {}, {}, {}})}}); }

Index Index::value(int instruction, const Dim& extent) {
  return sum(0, {{Dim(1), make_atom({IndexAtom::Kind::value, instruction, {}, extent, {}})}});
}

Index operator+(const Index& a, const Index& b) {
  std::vector<IndexTerm> terms = a.terms_;
  terms.insert(terms.end(), b.terms_.begin(), b.terms_.end());
  return Index::sum(a.constant_ + b.constant_, std::move(terms));
}

Index operator-(const Index& a, const Index& b) { return a + b * Dim(-1); }

Index operator*(const Index& a, const Dim& b) {
  if (b.is(0)) return Index(0);
  std::vector<IndexTerm> terms = a.terms_;
  for (IndexTerm& term : terms) term.coefficient = term.coefficient * b;
  return Index::sum(a.constant_ * b, std::move(terms));
}

bool operator==(const Index& a, const Index& b) {
  return a.constant_ == b.constant_ && std::equal(a.terms_.begin(), a.terms_.end(), b.terms_.begin(), b.terms_.end(),
                                                  [](const auto& x, const auto& y) {
                                                    return x.coefficient == y.coefficient &&
                                                           x.atom->text == y.atom->text;
                                                  });
}

namespace {

bool atom_depends_on(const IndexAtom& atom, int axis) {
  return (atom.kind == IndexAtom::Kind::axis && atom.id == axis) || atom.operand.depends_on(axis);
}

void collect_values(const Index& index, std::vector<int>& values) {
  for (const IndexTerm& term : index.terms()) {
    if (term.atom->kind == IndexAtom::Kind::value) values.push_back(term.atom->id);
    collect_values(term.atom->operand, values);
  }
}

}  // namespace

bool Index::depends_on(int axis) const {
  return std::any_of(terms_.begin(), terms_.end(),
                     [&](const IndexTerm& term) { return atom_depends_on(*term.atom, axis); });
}

std::optional<Dim> Index::coefficient(int axis) const {
  Dim result(0);
  for (const IndexTerm& term : terms_) {
    if (term.atom->kind == IndexAtom::Kind::axis) {
      if (term.atom->id == axis) result = term.coefficient;
    } else if (atom_depends_on(*term.atom, axis)) {
      return std::nullopt;
    }
  }
  return result;
}

std::vector<int> Index::values() const {
  std::vector<int> values;
  collect_values(*this, values);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::string Index::str() const {
  std::string text;
  for (const IndexTerm& term : terms_) {
    if (!text.empty()) text += " + ";
    if (term.coefficient.is(1)) {
      text += term.atom->text;
    } else if (term.coefficient.is_constant()) {
      text += fmt::format("{}*{}", term.coefficient.constant(), term.atom->text);
    } else {
      text += fmt::format("({})*{}", term.coefficient.str(), term.atom->text);
    }
  }
  if (text.empty() || !constant_.is(0)) text += (text.empty() ? "" : " + ") + constant_.str();
  return text;
}

Index floor_div(const Index& index, const Dim& divisor, const IndexContext& context) {
  if (divisor.is(1)) return index;
  if (divisor.is(0)) return Index(0);  // an empty extent: there is no point to index
  const auto [quotient, rest] = split_multiples(index, divisor);
  if (proven_inside(rest, divisor, context)) return quotient;
  if (const IndexAtom* atom = lone_atom(rest)) {
    if (atom->kind == IndexAtom::Kind::floor_div)
      return quotient + floor_div(atom->operand, atom->divisor * divisor, context);
    if (atom->kind == IndexAtom::Kind::mod)
      if (const auto blocks = atom->divisor.exact_div(divisor))
        return quotient + mod(floor_div(atom->operand, divisor, context), *blocks, context);
  }
  if (const auto scaled = split_scale(rest, divisor, context))
    return quotient + floor_div(scaled->high, scaled->divisor, context);
  return quotient + atom_index(IndexAtom::Kind::floor_div, rest, divisor);
}

Index mod(const Index& index, const Dim& divisor, const IndexContext& context) {
  if (divisor.is(1)) return Index(0);
  // No point to index: a loop over nothing stays what it is, anything else is nowhere.
  if (divisor.is(0)) return proven_inside(index, divisor, context) ? index : Index(0);
  const Index rest = split_multiples(index, divisor).rest;
  if (proven_inside(rest, divisor, context)) return rest;
  if (const IndexAtom* atom = lone_atom(rest);
      atom && atom->kind == IndexAtom::Kind::mod && atom->divisor.exact_div(divisor))
    return mod(atom->operand, divisor, context);
  if (const auto scaled = split_scale(rest, divisor, context))
    return mod(scaled->high, scaled->divisor, context) * scaled->scale + scaled->low;
  return atom_index(IndexAtom::Kind::mod, rest, divisor);
}

Index with_later_values(const Index& index, int from, int shift, const IndexContext& context) {
  Index result(index.constant());
  for (const IndexTerm& term : index.terms()) {
    const IndexAtom& atom = *term.atom;
    const auto operand = [&] { return with_later_values(atom.operand, from, shift, context); };
    switch (atom.kind) {
      case IndexAtom::Kind::axis: result = result + Index::sum(0, {term}); break;
      case IndexAtom::Kind::value:
        result = result + Index::value(atom.id < from ? atom.id : atom.id + shift, atom.divisor) * term.coefficient;
        break;
      case IndexAtom::Kind::floor_div:
        result = result + floor_div(operand(), atom.divisor, context) * term.coefficient;
        break;
      case IndexAtom::Kind::mod: result = result + mod(operand(), atom.divisor, context) * term.coefficient; break;
    }
  }
  return result;
}

std::optional<Dim> lower_bound(const Index& index, const IndexContext& context) { return bound(index, context, false); }
std::optional<Dim> upper_bound(const Index& index, const IndexContext& context) { return bound(index, context, true); }

SymbolBounds bounds(const Index& index, const IndexContext& context) {
  SymbolBounds result{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), 1};
  if (const auto low = lower_bound(index, context)) result.min = low->bounds(*context.symbols).min;
  if (const auto high = upper_bound(index, context)) result.max = high->bounds(*context.symbols).max;
  return result;
}

bool proven_inside(const Index& index, const Dim& bound, const IndexContext& context) {
  const auto low = lower_bound(index, context);
  const auto high = upper_bound(index, context);
  return low && high && non_negative(*low, *context.symbols) && non_negative(bound - *high - 1, *context.symbols);
}

Index linearize(const std::vector<Index>& coordinates, const Shape& shape) {
  Index linear(0);
  Dim stride(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    linear = linear + coordinates[i] * stride;
    stride = stride * shape[i];
  }
  return linear;
}

std::vector<Index> delinearize(const Index& linear, const Shape& shape, const IndexContext& context) {
  std::vector<Index> coordinates(shape.size());
  Index rest = linear;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i].is(1)) {
      coordinates[i] = Index(0);
    } else if (i == 0) {
      coordinates[i] = rest;
    } else {
      coordinates[i] = mod(rest, shape[i], context);
      rest = floor_div(rest, shape[i], context);
    }
  }
  return coordinates;
}

}  // namespace tenon::codegen
