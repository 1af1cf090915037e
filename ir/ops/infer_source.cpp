// Result types of sources, random bits and matmul.
#include <fmt/format.h>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;

void check_rank(const Dims& shape) {
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    type_error(fmt::format("rank {} is over the limit of {}", shape.size(), kMaxRank), "use fewer axes");
}

void check_number(DType dtype) {
  if (dtype == DType::bool_) type_error("yields numbers, not bool", "use dtype=i64");
}

// NumPy's matmul sees a 1-D operand as a row on the left, a column on the right, and drops that axis again.
struct Matrix {
  Shape batch;
  Dim rows, columns;
};

Matrix as_matrix(const Shape& shape, bool left) {
  if (shape.size() == 1) return left ? Matrix{{}, Dim(1), shape[0]} : Matrix{{}, shape[0], Dim(1)};
  return {Shape(shape.begin(), shape.end() - 2), shape[shape.size() - 2], shape[shape.size() - 1]};
}

DType matmul_dtype(const Type& a, const Type& b, const Attrs& attrs) {
  for (const Type& type : {a, b})
    if (!is_real(type.dtype))
      type_error(fmt::format("takes reals, not {}", str(type)), "cast the operand: cast(x, dtype=f32)");
  if (a.dtype != b.dtype && !(is_f8(a.dtype) && is_f8(b.dtype)))
    type_error(fmt::format("operands have different dtypes: {} and {}", str(a), str(b)),
               fmt::format("cast one side: cast(x, dtype={})", name_of(a.dtype)));
  if (attrs.get<bool>("tf32") && a.dtype != DType::f32)
    type_error(fmt::format("tf32 is for f32 operands, not {}", name_of(a.dtype)), "leave tf32 out");
  if (!attrs.has("dtype")) return is_f8(a.dtype) ? DType::f32 : a.dtype;
  const DType dtype = attrs.get<DType>("dtype");
  if (!is_real(dtype)) type_error(fmt::format("dtype={} is no real dtype", name_of(dtype)), "cast the result instead");
  return dtype;
}

}  // namespace

Type infer_source(const Inference& in) {
  const DType dtype = in.attrs.get<DType>("dtype");
  if (in.op == Op::dim_value) {
    check_number(dtype);
    if (in.attrs.get<Dims>("value").size() != 1) type_error("value must be one dimension", "write value=[rows]");
    return {dtype, {}};
  }
  const auto& shape = in.attrs.get<Dims>("shape");
  check_rank(shape);
  if (in.op == Op::full) fit_scalar(in.attrs.get<Scalar>("value"), dtype);
  if (in.op == Op::iota) {
    check_number(dtype);
    normalize_axis(in.attrs.get<std::int64_t>("axis"), static_cast<int>(shape.size()));
  }
  return {dtype, shape};
}

Type infer_random(const Inference& in) {
  const Type& seed = in.operands[0];
  if (!(seed == Type{DType::i64, {}}))
    type_error(fmt::format("the seed must be i64[], not {}", str(seed)), "pass one i64 number");
  const std::int64_t word = in.attrs.get<std::int64_t>("word");
  if (word < -1 || word > 3)
    type_error(fmt::format("word {} is not in 0 to 3", word), "a block has words 0 to 3; -1 uses all");
  const std::int64_t stream = in.attrs.get<std::int64_t>("stream");
  if (stream < 0) type_error(fmt::format("stream {} is negative", stream), "number streams from 0");
  check_rank(in.attrs.get<Dims>("shape"));
  return {DType::i32, in.attrs.get<Dims>("shape")};
}

Type infer_matmul(const Inference& in) {
  const Type& a = in.operands[0];
  const Type& b = in.operands[1];
  const DType dtype = matmul_dtype(a, b, in.attrs);
  if (a.shape.empty() || b.shape.empty())
    type_error(fmt::format("{} and {}: rank 0 cannot be multiplied as a matrix", str(a), str(b)), "use mul");
  const Matrix left = as_matrix(a.shape, true);
  const Matrix right = as_matrix(b.shape, false);
  if (!(left.columns == right.rows))
    type_error(fmt::format("inner dimensions differ: {} and {} in {} x {}", left.columns.str(), right.rows.str(),
                           str(a), str(b)),
               "transpose one operand or check its shape");
  const Shape batches[] = {left.batch, right.batch};
  Shape shape = broadcast(batches);
  if (a.shape.size() > 1) shape.push_back(left.rows);
  if (b.shape.size() > 1) shape.push_back(right.columns);
  return {dtype, shape};
}

}  // namespace tenon::ir
