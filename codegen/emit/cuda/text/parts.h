// Pastes those pieces of the prelude that a text needs in front of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::codegen::cuda {

/// The pieces of codegen/prelude/*.cuh that the words of `text` name, and those that they need in turn, each once and
/// after what it needs. A function of the text alone.
std::string prelude_for(std::string_view text);

/// One piece: what stands between two "//@" lines. Those of "//@ a | b" are two that share most of their text: behind a
/// line "//? b", lines are of b alone, behind "//?" of both again.
struct Piece {
  std::vector<std::string> provides;
  std::string text;
};
/// The pieces of one prelude file. What stands before the first mark is about the file and belongs to none.
std::vector<Piece> pieces_of(std::string_view file);

}  // namespace tenon::codegen::cuda
