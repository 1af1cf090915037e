// Nearest spellings. The alias tables hold the names that NumPy, PyTorch, XLA and ONNX give to ops and dtypes.
#include "ir/ops/suggest.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "ir/ops/op.h"

namespace tenon::ir {
namespace {

using Alias = std::pair<std::string_view, std::string_view>;

constexpr Alias kOpAliases[] = {
    {"amax", "max"},
    {"amin", "min"},
    {"and", "logical_and"},
    {"arange", "iota"},
    {"astype", "cast"},
    {"bmm", "matmul"},
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"const", "full"},
    {"constant", "full"},
    {"convert", "cast"},
    {"divide", "div"},
    {"dot", "matmul"},
    {"embedding", "take"},
    {"eq", "equal"},
    {"expand", "broadcast_to"},
    {"fabs", "abs"},
    {"gather", "take"},
    {"ge", "greater_equal"},
    {"gt", "greater"},
    {"le", "less_equal"},
    {"logistic", "sigmoid"},
    {"lt", "less"},
    {"mm", "matmul"},
    {"multiply", "mul"},
    {"narrow", "slice"},
    {"ne", "not_equal"},
    {"negative", "neg"},
    {"not", "logical_not"},
    {"ones", "full"},
    {"or", "logical_or"},
    {"permute", "transpose"},
    {"power", "pow"},
    {"remainder", "mod"},
    {"rint", "round"},
    {"sdpa", "attention"},
    {"select", "where"},
    {"shl", "left_shift"},
    {"shr", "right_shift"},
    {"subtract", "sub"},
    {"swish", "silu"},
    {"unsqueeze", "expand_dims"},
    {"view", "reshape"},
    {"xor", "bitwise_xor"},
    {"zeros", "full"},
    {"if", "where"},
    {"rand", "random_uniform"},
    {"randn", "random_normal"},
};

constexpr Alias kDTypeAliases[] = {
    {"bfloat16", "bf16"}, {"boolean", "bool"}, {"double", "f64"},  {"e4m3", "f8e4m3"}, {"e5m2", "f8e5m2"},
    {"float", "f32"},     {"float16", "f16"},  {"float32", "f32"}, {"float64", "f64"}, {"fp16", "f16"},
    {"fp32", "f32"},      {"fp64", "f64"},     {"half", "f16"},    {"i1", "bool"},     {"int", "i32"},
    {"int16", "i16"},     {"int32", "i32"},    {"int64", "i64"},   {"int8", "i8"},     {"long", "i64"},
    {"uint8", "u8"},      {"byte", "u8"},
};

constexpr Alias kAttrAliases[] = {
    {"axes", "axis"},        {"dim", "axis"},
    {"dims", "axis"},        {"keep_dims", "keepdims"},
    {"keepdim", "keepdims"}, {"newshape", "shape"},
    {"size", "shape"},       {"permutation", "perm"},
    {"axes", "perm"},        {"epsilon", "eps"},
    {"begin", "start"},      {"end", "stop"},
    {"stride", "step"},      {"strides", "step"},
    {"type", "dtype"},       {"is_causal", "causal"},
    {"correction", "ddof"},  {"split_size", "sections"},
    {"rate", "p"},
};

std::string_view find_alias(std::span<const Alias> aliases, std::string_view word) {
  const auto found = std::find_if(aliases.begin(), aliases.end(), [&](const Alias& a) { return a.first == word; });
  return found == aliases.end() ? std::string_view{} : found->second;
}

std::string lower(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (DType dtype : kAllDTypes) names.push_back(tenon::name_of(dtype));
  return names;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), row(b.size() + 1), last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  int best_distance = std::max<int>(1, static_cast<int>(word.size()) / 3) + 1;
  for (std::string_view candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < static_cast<int>(std::max(word.size(), candidate.size()))) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string_view suggest_op(std::string_view word) {
  const std::string small = lower(word);
  if (const auto alias = find_alias(kOpAliases, small); !alias.empty()) return alias;
  std::vector<std::string_view> names;
  for (const OpInfo& op : all_ops())
    if (op.op != Op::input) names.push_back(op.name);
  return nearest(small, names);
}

std::string_view suggest_dtype(std::string_view word) {
  const std::string small = lower(word);
  if (const auto alias = find_alias(kDTypeAliases, small); !alias.empty()) return alias;
  return nearest(small, dtype_names());
}

std::string_view suggest_attr(std::string_view word, std::span<const std::string_view> known) {
  for (const auto& [foreign, own] : kAttrAliases)
    if (foreign == word && std::find(known.begin(), known.end(), own) != known.end()) return own;
  return nearest(word, known);
}

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

std::string dtype_list() { return join(dtype_names()); }

}  // namespace tenon::ir
