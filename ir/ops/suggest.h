// What the user may have meant: the nearest known spelling of a mistyped or foreign word.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::ir {

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`: the optimal string alignment distance.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, the first of several, or "" when none is near enough to be a slip of the pen.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// The op meant by `word`: what other libraries call it, or the nearest spelling; "" when there is none.
std::string_view suggest_op(std::string_view word);
/// The dtype meant by `word` ("float32", "half", "f23"), or "".
std::string_view suggest_dtype(std::string_view word);

/// The attribute among `known` meant by `word` ("dim" for "axis"), or "".
std::string_view suggest_attr(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c".
std::string join(std::span<const std::string_view> words);
/// Every dtype, as a list.
std::string dtype_list();

}  // namespace tenon::ir
