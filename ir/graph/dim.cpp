// Dim: polynomials over symbols and floor divisions, kept canonical so that equality is structural.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "ir/graph/check.h"
#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxTerms = 64;
constexpr std::size_t kMaxFactors = 32;     // of one term
constexpr std::size_t kMaxAtomText = 1024;  // bounds the depth of floor divisions too
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void overflow() {
  throw Error(ErrorKind::type, "dimension arithmetic leaves the 64-bit range", {}, "use smaller extents");
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) overflow();
  return sum;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) overflow();
  return product;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? kMin : kMax) : sum;
}

std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ((a < 0) != (b < 0) ? kMin : kMax) : product;
}

// Whether a is b times a 64-bit integer. The lowest integer is not one of -1, and dividing it by -1 would trap.
bool is_multiple(std::int64_t a, std::int64_t b) { return b == -1 ? a != kMin : a % b == 0; }

// |a|, which is not an int64 for the lowest one.
std::uint64_t magnitude(std::int64_t a) {
  return a < 0 ? -static_cast<std::uint64_t>(a) : static_cast<std::uint64_t>(a);
}

// A divisor of every product of a multiple of a and a multiple of b: a * b, or the larger where that leaves 64 bits.
std::uint64_t product_divisor(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::max(a, b) : product;
}

}  // namespace

// One factor: a symbol, or floordiv(numerator, divisor). Ordered and compared by its text, which is canonical.
struct DimAtom {
  std::string text;
  std::optional<Dim> numerator;
  std::int64_t divisor = 1;
};

using DimAtomPtr = std::shared_ptr<const DimAtom>;

// coefficient * product of atoms; atoms sorted by text, repeated for powers.
struct DimTerm {
  std::vector<DimAtomPtr> atoms;
  std::int64_t coefficient = 0;
};

struct DimTerms {
  std::vector<DimTerm> terms;  // sorted by atoms, coefficients not 0

  static Dim make(std::int64_t constant, std::vector<DimTerm> terms);
  static const std::vector<DimTerm>& of(const Dim& dim) {
    static const std::vector<DimTerm> none;
    return dim.terms_ ? dim.terms_->terms : none;
  }
};

namespace {

int compare(const std::vector<DimAtomPtr>& a, const std::vector<DimAtomPtr>& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (const int order = a[i]->text.compare(b[i]->text)) return order;
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

// The power product a / b, when b's atoms all occur in a.
std::optional<std::vector<DimAtomPtr>> quotient(std::vector<DimAtomPtr> a, const std::vector<DimAtomPtr>& b) {
  for (const DimAtomPtr& atom : b) {
    const auto found = std::find_if(a.begin(), a.end(), [&](const DimAtomPtr& x) { return x->text == atom->text; });
    if (found == a.end()) return std::nullopt;
    a.erase(found);
  }
  return a;
}

std::string term_text(const DimTerm& term) {
  std::string text = term.coefficient == 1 ? "" : fmt::format("{}*", term.coefficient);
  for (std::size_t i = 0; i < term.atoms.size(); ++i) text += (i ? "*" : "") + term.atoms[i]->text;
  return text;
}

}  // namespace

Dim DimTerms::make(std::int64_t constant, std::vector<DimTerm> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return compare(a.atoms, b.atoms) < 0; });
  std::vector<DimTerm> merged;
  for (DimTerm& term : terms) {
    if (!merged.empty() && compare(merged.back().atoms, term.atoms) == 0) {
      merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
      if (merged.back().coefficient == 0) merged.pop_back();
    } else if (term.coefficient != 0) {
      merged.push_back(std::move(term));
    }
  }
  if (merged.size() > kMaxTerms)
    throw Error(ErrorKind::resource, fmt::format("a dimension has more than {} terms", kMaxTerms), {},
                "name the dimension with a symbol of its own");
  for (const DimTerm& term : merged)
    if (term.atoms.size() > kMaxFactors)
      throw Error(ErrorKind::resource, fmt::format("a dimension has a term of more than {} factors", kMaxFactors), {},
                  "name the dimension with a symbol of its own");
  if (merged.empty()) return Dim(constant);
  return Dim(constant, std::make_shared<const DimTerms>(DimTerms{std::move(merged)}));
}

void Dim::leave_range() { overflow(); }

Dim Dim::symbol(const std::string& name) {
  const bool valid =
      !name.empty() && name.size() <= 64 && !std::isdigit(static_cast<unsigned char>(name[0])) &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
  if (!valid)
    throw Error(ErrorKind::type, fmt::format("'{}' is no name for a dimension", name), {},
                "use up to 64 letters, digits and '_', not starting with a digit");
  return DimTerms::make(0, {{{std::make_shared<const DimAtom>(DimAtom{name, std::nullopt, 1})}, 1}});
}

std::int64_t Dim::constant() const {
  TENON_CHECK(is_constant(), "dimension " + str() + " is not constant");
  return constant_;
}

// Most dimensions of most graphs are constants, and the planner and the lowering count with them all the time.
Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return Dim(checked_add(a.constant_, b.constant_));
  std::vector<DimTerm> terms = DimTerms::of(a);
  const auto& others = DimTerms::of(b);
  terms.insert(terms.end(), others.begin(), others.end());
  return DimTerms::make(checked_add(a.constant_, b.constant_), std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return Dim(checked_mul(a.constant_, b.constant_));
  std::vector<DimTerm> terms;
  for (const DimTerm& x : DimTerms::of(a)) {
    terms.push_back({x.atoms, checked_mul(x.coefficient, b.constant_)});
    for (const DimTerm& y : DimTerms::of(b)) {
      DimTerm product{x.atoms, checked_mul(x.coefficient, y.coefficient)};
      product.atoms.insert(product.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(product.atoms.begin(), product.atoms.end(),
                [](const DimAtomPtr& p, const DimAtomPtr& q) { return p->text < q->text; });
      terms.push_back(std::move(product));
    }
  }
  for (const DimTerm& y : DimTerms::of(b)) terms.push_back({y.atoms, checked_mul(a.constant_, y.coefficient)});
  return DimTerms::make(checked_mul(a.constant_, b.constant_), std::move(terms));
}

bool Dim::same_terms(const Dim& a, const Dim& b) {
  const auto& x = DimTerms::of(a);
  const auto& y = DimTerms::of(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const DimTerm& p, const DimTerm& q) {
    return p.coefficient == q.coefficient && compare(p.atoms, q.atoms) == 0;
  });
}

bool operator<(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.constant_ < b.constant_;
  return a.str() < b.str();
}

Dim Dim::floor_div(std::int64_t divisor) const {
  if (divisor <= 0)
    throw Error(ErrorKind::type, fmt::format("floor division of a dimension by {}", divisor), {},
                "divide by a positive constant");
  if (is_constant()) return Dim(floor_quotient(constant_, divisor));
  // Take out the part that divides exactly: (q*d + r) floordiv d = q + (r floordiv d).
  std::vector<DimTerm> whole, rest;
  for (const DimTerm& term : DimTerms::of(*this)) {
    if (term.coefficient % divisor == 0) {
      whole.push_back({term.atoms, term.coefficient / divisor});
    } else {
      rest.push_back(term);
    }
  }
  const Dim outside = DimTerms::make(floor_quotient(constant_, divisor), std::move(whole));
  if (rest.empty()) return outside;
  // The quotient times the divisor may leave 64 bits near the lowest number; what is left over does not.
  const std::int64_t left = constant_ % divisor;
  const Dim inside = DimTerms::make(left < 0 ? left + divisor : left, std::move(rest));
  if (divisor == 1) return outside + inside;
  std::string text = fmt::format("floordiv({}, {})", inside.str(), divisor);
  if (text.size() > kMaxAtomText)
    throw Error(ErrorKind::resource,
                fmt::format("a dimension's floor division of more than {} characters", kMaxAtomText), {},
                "name the dimension with a symbol of its own");
  auto atom = std::make_shared<const DimAtom>(DimAtom{std::move(text), inside, divisor});
  return outside + DimTerms::make(0, {{{std::move(atom)}, 1}});
}

namespace {

// The last term by degree, then by atoms: an order that products keep, as long division needs it. Nothing of a
// constant.
const DimTerm* leading(const Dim& dim) {
  const DimTerm* last = nullptr;
  for (const DimTerm& term : DimTerms::of(dim))
    if (last == nullptr || term.atoms.size() > last->atoms.size() ||
        (term.atoms.size() == last->atoms.size() && compare(term.atoms, last->atoms) > 0))
      last = &term;
  return last;
}

// Of an exact quotient times the divisor, the leading term is the product of theirs, so each step finds one term of the
// quotient or shows that there is none. Where a step leaves what a Dim can hold, nothing is known.
std::optional<Dim> long_division(const Dim& dividend, const Dim& divisor) try {
  const DimTerm& lead = *leading(divisor);
  Dim result(0), remainder = dividend;
  for (std::size_t step = 0; step < kMaxTerms && !remainder.is(0); ++step) {
    const DimTerm* top = leading(remainder);
    if (top == nullptr || !is_multiple(top->coefficient, lead.coefficient)) return std::nullopt;
    const auto atoms = quotient(top->atoms, lead.atoms);
    if (!atoms) return std::nullopt;
    const std::int64_t coefficient = top->coefficient / lead.coefficient;
    const Dim piece = atoms->empty() ? Dim(coefficient) : DimTerms::make(0, {{*atoms, coefficient}});
    result = result + piece;
    remainder = remainder - piece * divisor;
  }
  return remainder.is(0) ? std::optional(result) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

std::optional<Dim> Dim::exact_div(const Dim& divisor) const {
  if (divisor.is(0)) return std::nullopt;
  if (*this == divisor) return Dim(1);
  if (is_constant() && divisor.is_constant())
    return is_multiple(constant_, divisor.constant_) ? std::optional(Dim(constant_ / divisor.constant_)) : std::nullopt;
  if (divisor.is_constant()) {
    if (!is_multiple(constant_, divisor.constant_)) return std::nullopt;
    std::vector<DimTerm> terms = DimTerms::of(*this);
    for (DimTerm& term : terms) {
      if (!is_multiple(term.coefficient, divisor.constant_)) return std::nullopt;
      term.coefficient /= divisor.constant_;
    }
    return DimTerms::make(constant_ / divisor.constant_, std::move(terms));
  }
  return long_division(*this, divisor);
}

Dim operator/(const Dim& a, const Dim& divisor) {
  if (!divisor.is_constant() || divisor.constant() <= 0)
    throw Error(ErrorKind::type, fmt::format("division of a dimension by {}", divisor.str()), {},
                "divide by a positive constant");
  if (const auto quotient = a.exact_div(divisor)) return *quotient;
  throw Error(ErrorKind::type, fmt::format("{} is not known to be a multiple of {}", a.str(), divisor.str()), {},
              fmt::format("floor_div({0}) rounds down; or name the quotient with a symbol and write {0} times it here",
                          divisor.str()));
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  std::int64_t sum = constant_;
  for (const DimTerm& term : DimTerms::of(*this)) {
    std::int64_t product = term.coefficient;
    for (const DimAtomPtr& atom : term.atoms) {
      if (atom->numerator) {
        product = checked_mul(product, floor_quotient(atom->numerator->evaluate(bindings), atom->divisor));
        continue;
      }
      const auto found = bindings.find(atom->text);
      if (found == bindings.end())
        throw Error(ErrorKind::argument, fmt::format("dimension '{}' has no value", atom->text),
                    Place{{}, 0, 0, {}, fmt::format("bindings[{}]", atom->text)},
                    "give it one in the bindings, or an input whose shape decides it");
      product = checked_mul(product, found->second);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim Dim::substitute(const Bindings& bindings) const {
  Dim sum(constant_);
  for (const DimTerm& term : DimTerms::of(*this)) {
    Dim product(term.coefficient);
    for (const DimAtomPtr& atom : term.atoms) {
      if (atom->numerator) {
        product = product * atom->numerator->substitute(bindings).floor_div(atom->divisor);
      } else if (const auto found = bindings.find(atom->text); found != bindings.end()) {
        product = product * Dim(found->second);
      } else {
        product = product * symbol(atom->text);
      }
    }
    sum = sum + product;
  }
  return sum;
}

void Dim::collect_symbols(std::set<std::string>& names) const {
  for (const DimTerm& term : DimTerms::of(*this))
    for (const DimAtomPtr& atom : term.atoms) {
      if (atom->numerator) {
        atom->numerator->collect_symbols(names);
      } else {
        names.insert(atom->text);
      }
    }
}

SymbolBounds Dim::bounds(const Symbols& symbols) const {
  SymbolBounds sum{constant_, constant_, 1};
  std::uint64_t sum_divisor = magnitude(constant_);
  for (const DimTerm& term : DimTerms::of(*this)) {
    SymbolBounds product{term.coefficient, term.coefficient, 1};
    std::uint64_t divisor = magnitude(term.coefficient);
    for (const DimAtomPtr& atom : term.atoms) {
      SymbolBounds factor;
      if (atom->numerator) {
        const SymbolBounds inner = atom->numerator->bounds(symbols);
        factor = {inner.min == kMin ? kMin : floor_quotient(inner.min, atom->divisor),
                  inner.max == kMax ? kMax : floor_quotient(inner.max, atom->divisor),
                  inner.divisor % atom->divisor == 0 ? std::max<std::int64_t>(1, inner.divisor / atom->divisor) : 1};
      } else if (const auto found = symbols.find(atom->text); found != symbols.end()) {
        factor = found->second;
      }
      const std::int64_t corners[] = {saturating_mul(product.min, factor.min), saturating_mul(product.min, factor.max),
                                      saturating_mul(product.max, factor.min), saturating_mul(product.max, factor.max)};
      product.min = *std::min_element(std::begin(corners), std::end(corners));
      product.max = *std::max_element(std::begin(corners), std::end(corners));
      divisor = product_divisor(divisor, magnitude(factor.divisor));
    }
    sum.min = saturating_add(sum.min, product.min);
    sum.max = saturating_add(sum.max, product.max);
    sum_divisor = std::gcd(sum_divisor, divisor);
  }
  // 0 is a multiple of everything, of 1 as well; 2^63 is no int64, its half divides what it divides.
  if (sum_divisor > magnitude(kMax)) sum_divisor = sum_divisor % 2 == 0 ? sum_divisor / 2 : 1;
  sum.divisor = std::max<std::int64_t>(1, static_cast<std::int64_t>(sum_divisor));
  return sum;
}

std::string Dim::str() const {
  std::string text;
  for (const DimTerm& term : DimTerms::of(*this)) text += (text.empty() ? "" : " + ") + term_text(term);
  if (constant_ != 0 || text.empty()) text += (text.empty() ? "" : " + ") + std::to_string(constant_);
  return text;
}

std::string str(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].str();
  return text + "]";
}

Dim element_count(const Shape& shape) {
  Dim count(1);
  for (const Dim& extent : shape) count = count * extent;
  return count;
}

}  // namespace tenon
