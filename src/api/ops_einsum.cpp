// einsum: each operand made to have every label once, then contracted from left to right, two by two.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/api/einsum_spec.h"
#include "src/api/recorder.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using src::contains;
using src::Label;
using src::Labels;

struct Term {
  Tensor value;
  Labels labels;  // of its axes
};

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The labels of `from` for which `wanted` holds.
template <typename Wanted>
Labels filtered(const Labels& from, const Wanted& wanted) {
  Labels result;
  std::copy_if(from.begin(), from.end(), std::back_inserter(result), wanted);
  return result;
}

std::string type_of(const Tensor& x) { return fmt::format("{}{}", name_of(x.dtype()), str(x.shape())); }

class Einsum {
 public:
  Einsum(const std::vector<Tensor>& operands, std::optional<DType> dtype, bool tf32, const Location& at)
      : dtype_(dtype), tf32_(tf32), at_(at) {
    for (const Tensor& operand : operands) terms_.push_back({operand, {}});
  }

  Tensor run(const std::string& spec) {
    read(spec);
    for (std::size_t i = 0; i < terms_.size(); ++i) squeeze(terms_[i]);
    for (std::size_t i = 0; i < terms_.size(); ++i) take_diagonals(i);
    if (terms_.size() == 1 && size_of(result_dtype()) > size_of(terms_[0].value.dtype()))
      terms_[0].value = cast(on(terms_[0].value), result_dtype());
    for (std::size_t i = 0; i < terms_.size(); ++i) sum_lone(i);
    while (terms_.size() > 1) {
      terms_[0] = product(terms_[0], terms_[1], terms_.size() == 2);
      terms_.erase(terms_.begin() + 1);
    }
    const Tensor result = permuted(terms_[0], output_);
    return result.dtype() == result_dtype() ? result : cast(on(result), result_dtype());
  }

 private:
  Operand on(const Tensor& x) const { return {x, at_}; }

  [[noreturn]] void fail(const std::string& message, const std::string& remedy) const {
    throw Error(ErrorKind::type, "einsum: " + message, src::place_of(at_), remedy);
  }

  // ---- what the subscripts say ----------------------------------------------------------------------------------

  void read(const std::string& spec) {
    if (terms_.empty())
      throw Error(ErrorKind::argument, "einsum: no tensor is given", src::place_of(at_), "give at least one");
    std::vector<int> ranks;
    std::vector<std::string> types;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      src::tensor_of("einsum", on(terms_[i].value), i + 1);
      ranks.push_back(terms_[i].value.rank());
      types.push_back(type_of(terms_[i].value));
    }
    src::EinsumSpec read = src::read_einsum(spec, ranks, types, src::place_of(at_));
    for (std::size_t i = 0; i < terms_.size(); ++i) terms_[i].labels = std::move(read.operands[i]);
    output_ = std::move(read.output);
    operand_dtype_ = terms_[0].value.dtype();
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      check_dtype(terms_[i].value);
      for (std::size_t axis = 0; axis < terms_[i].labels.size(); ++axis)
        meet(terms_[i].labels[axis], terms_[i].value.shape()[axis], i);
    }
  }

  void check_dtype(const Tensor& x) const {
    if (x.dtype() == operand_dtype_ || (is_f8(x.dtype()) && is_f8(operand_dtype_))) return;
    fail(fmt::format("operands have different dtypes: {} and {}", type_of(terms_[0].value), type_of(x)),
         fmt::format("cast one side: cast(x, dtype={})", name_of(operand_dtype_)));
  }

  // The extent of a label: that of all its axes, but for those of extent 1, which broadcast.
  void meet(Label label, const Dim& extent, std::size_t operand) {
    const auto [known, fresh] = extents_.try_emplace(label, extent);
    if (fresh) first_[label] = operand;
    if (known->second == extent || extent.is(1)) return;
    if (!known->second.is(1)) {
      const std::string where = first_[label] == operand
                                    ? fmt::format("operand {}", operand + 1)
                                    : fmt::format("operands {} and {}", first_[label] + 1, operand + 1);
      const bool symbolic = !extent.is_constant() || !known->second.is_constant();
      fail(fmt::format("{} has extents {} and {} in {}, {}", src::describe(label), known->second.str(), extent.str(),
                       where, types_of(first_[label], operand)),
           symbolic ? "use one symbol for both, or make one of them 1" : "make them equal or one of them 1");
    }
    known->second = extent;
    first_[label] = operand;
  }

  std::string types_of(std::size_t a, std::size_t b) const {
    return a == b ? type_of(terms_[a].value) : type_of(terms_[a].value) + " and " + type_of(terms_[b].value);
  }

  DType result_dtype() const { return dtype_ ? *dtype_ : is_f8(operand_dtype_) ? DType::f32 : operand_dtype_; }

  // ---- each operand by itself -----------------------------------------------------------------------------------

  Shape shape_of(const Labels& labels) const {
    Shape shape;
    for (Label label : labels) shape.push_back(extents_.at(label));
    return shape;
  }

  Tensor reshaped(const Tensor& x, const Shape& shape) const { return x.shape() == shape ? x : reshape(on(x), shape); }

  Tensor permuted(const Term& term, const Labels& order) const {
    if (order == term.labels) return term.value;
    std::vector<std::int64_t> perm;
    for (Label label : order)
      perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
    return transpose(on(term.value), perm);
  }

  // Axes that only broadcast are left out: what the others have of the label counts.
  void squeeze(Term& term) const {
    const Shape shape = term.value.shape();
    Shape kept;
    Labels labels;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == extents_.at(term.labels[axis])) {
        kept.push_back(shape[axis]);
        labels.push_back(term.labels[axis]);
      }
    term = {reshaped(term.value, kept), labels};
  }

  void take_diagonals(std::size_t i) {
    const Term& term = terms_[i];
    const Labels labels = term.labels;
    for (Label label : labels)
      while (std::count(term.labels.begin(), term.labels.end(), label) > 1) take_diagonal(i, label);
  }

  // Of two axes of extent n, put last and made one, every (n + 1)-th element.
  void take_diagonal(std::size_t i, Label label) {
    Term& term = terms_[i];
    const Dim extent = extents_.at(label);
    if (!extent.is_constant())
      fail(fmt::format("{} is twice in operand {}, and its extent {} is symbolic", src::describe(label), i + 1,
                       extent.str()),
           "a diagonal needs a constant extent: label the axes apart, and mask with where before");
    std::vector<std::int64_t> perm, pair;
    Labels rest;
    for (std::size_t axis = 0; axis < term.labels.size(); ++axis) {
      const bool taken = term.labels[axis] == label && pair.size() < 2;
      (taken ? pair : perm).push_back(static_cast<std::int64_t>(axis));
      if (!taken) rest.push_back(term.labels[axis]);
    }
    perm.insert(perm.end(), pair.begin(), pair.end());
    Shape shape = shape_of(rest);
    shape.push_back(extent * extent);
    const Tensor flat = reshaped(transpose(on(term.value), perm), shape);
    term = {slice(on(flat), -1, 0, extent * extent, extent.constant() + 1), joined(rest, {label})};
  }

  // Whether the result or another operand, from `first` on, has the label.
  bool is_wanted(Label label, std::size_t first, std::size_t but) const {
    if (contains(output_, label)) return true;
    for (std::size_t i = first; i < terms_.size(); ++i)
      if (i != but && contains(terms_[i].labels, label)) return true;
    return false;
  }

  void sum_lone(std::size_t i) {
    Term& term = terms_[i];
    std::vector<std::int64_t> axes;
    Labels kept;
    for (std::size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (is_wanted(term.labels[axis], 0, i)) {
        kept.push_back(term.labels[axis]);
      } else {
        axes.push_back(static_cast<std::int64_t>(axis));
      }
    }
    if (axes.empty()) return;
    const bool narrow = is_f8(term.value.dtype());
    term = {sum(narrow ? on(cast(on(term.value), DType::f32)) : on(term.value), axes), kept};
  }

  // ---- two operands ---------------------------------------------------------------------------------------------

  // The axes of a product: in both and in the result, of one only, in both and summed over.
  struct ProductAxes {
    Labels batch, rows, columns, inner;
  };

  ProductAxes axes_of(const Term& a, const Term& b) const {
    const auto both = [&](Label label) { return contains(a.labels, label) && contains(b.labels, label); };
    const auto kept = [&](Label label) { return is_wanted(label, 2, terms_.size()); };
    ProductAxes axes;
    axes.batch = filtered(output_, both);
    for (Label label : a.labels)
      if (both(label) && kept(label) && !contains(axes.batch, label)) axes.batch.push_back(label);
    axes.rows = filtered(a.labels, [&](Label label) { return !both(label); });
    axes.columns = filtered(b.labels, [&](Label label) { return !both(label); });
    axes.inner = filtered(a.labels, [&](Label label) { return both(label) && !kept(label); });
    return axes;
  }

  Term product(Term a, Term b, bool last) const {
    unify(a.value, b.value);
    unify(b.value, a.value);
    ProductAxes axes = axes_of(a, b);
    if (axes.inner.empty() || !is_real(a.value.dtype())) return elementwise(a, b, axes, last);
    const auto place = [&](const Labels& labels) {
      return std::find_first_of(output_.begin(), output_.end(), labels.begin(), labels.end());
    };
    if (last && place(axes.columns) < place(axes.rows)) {  // the result is this one's transpose
      std::swap(a, b);
      std::swap(axes.rows, axes.columns);
    }
    return contracted(a, b, axes, last);
  }

  // An f8 operand beside a wider product takes its dtype.
  void unify(Tensor& x, const Tensor& other) const {
    if (is_f8(x.dtype()) && !is_f8(other.dtype())) x = cast(on(x), other.dtype());
  }

  // The extents of a matrix's batch axes, of which there are at most six.
  Shape batch_shape(const Labels& batch) const {
    const Shape shape = shape_of(batch);
    return static_cast<int>(shape.size()) + 2 > kMaxRank ? Shape{element_count(shape)} : shape;
  }

  Term contracted(const Term& a, const Term& b, const ProductAxes& axes, bool last) const {
    const auto matrix = [&](const Term& term, const Labels& first, const Labels& second, const Labels& absent) {
      Shape shape = batch_shape(axes.batch);
      for (const Labels* side : {&first, &second})
        if (!(side == &absent && absent.empty() && axes.batch.empty())) shape.push_back(element_count(shape_of(*side)));
      return reshaped(permuted(term, joined(joined(axes.batch, first), second)), shape);
    };
    const Tensor left = matrix(a, axes.rows, axes.inner, axes.rows);
    const Tensor right = matrix(b, axes.inner, axes.columns, axes.columns);
    const Tensor y = matmul(on(left), on(right), last ? dtype_ : std::nullopt, tf32_);
    const Labels labels = joined(joined(axes.batch, axes.rows), axes.columns);
    return {reshaped(y, shape_of(labels)), labels};
  }

  // What no matrix product is: nothing summed over, or integers.
  Term elementwise(const Term& a, const Term& b, const ProductAxes& axes, bool last) const {
    const Labels kept = joined(joined(axes.batch, axes.rows), axes.columns), all = joined(kept, axes.inner);
    const auto aligned = [&](const Term& term) {
      const Tensor x = permuted(term, filtered(all, [&](Label label) { return contains(term.labels, label); }));
      const bool widens = last && size_of(result_dtype()) > size_of(x.dtype());
      const DType dtype = widens ? result_dtype() : is_f8(x.dtype()) ? DType::f32 : x.dtype();
      Shape shape;
      for (Label label : all) shape.push_back(contains(term.labels, label) ? extents_.at(label) : Dim(1));
      return reshaped(dtype == x.dtype() ? x : cast(on(x), dtype), shape);
    };
    const Tensor y = mul(on(aligned(a)), on(aligned(b)));
    if (axes.inner.empty()) return {y, kept};
    std::vector<std::int64_t> summed(axes.inner.size());
    for (std::size_t i = 0; i < summed.size(); ++i) summed[i] = -1 - static_cast<std::int64_t>(i);
    return {sum(on(y), summed), kept};
  }

  std::vector<Term> terms_;
  Labels output_;
  std::map<Label, Dim> extents_;
  std::map<Label, std::size_t> first_;  // an operand that has the label's extent
  DType operand_dtype_ = DType::f32;
  std::optional<DType> dtype_;
  bool tf32_;
  Location at_;
};

}  // namespace

Tensor einsum(const std::string& spec, const std::vector<Tensor>& operands, std::optional<DType> dtype, bool tf32,
              Location at) {
  return Einsum(operands, dtype, tf32, at).run(spec);
}

}  // namespace tenon
