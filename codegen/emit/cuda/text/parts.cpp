// See parts.h. A piece is needed when a word that it provides occurs outside comments.
#include "codegen/emit/cuda/text/parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "codegen/emit/cuda/text/writer.h"
#include "codegen/prelude/prelude.h"

namespace tenon::codegen::cuda {
namespace {

constexpr std::string_view kMark = "//@";

// The identifiers of a text, in order of appearance, each once.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (const std::string_view word = text.substr(i, end - i); !word.empty() && seen.insert(word).second)
      words.emplace_back(word);
    i = end == i ? i + 1 : end;
  }
  return words;
}

std::map<std::string, Piece> all_pieces() {
  std::map<std::string, Piece> pieces;
  for (const PreludeFile& file : prelude_files())
    for (const Piece& piece : pieces_of(file.text))
      for (const std::string& name : piece.provides) pieces.emplace(name, piece);
  return pieces;
}

void paste(std::string_view text, const std::map<std::string, Piece>& pieces, std::set<std::string>& pasted,
           std::string& result) {
  for (const std::string& word : words_of(text)) {
    const auto found = pieces.find(word);
    if (found == pieces.end() || pasted.contains(word)) continue;
    const Piece& piece = found->second;
    pasted.insert(piece.provides.begin(), piece.provides.end());
    paste(piece.text, pieces, pasted, result);
    result += piece.text;
  }
}

}  // namespace

std::vector<Piece> pieces_of(std::string_view file) {
  std::vector<Piece> pieces;
  std::istringstream lines{std::string(file)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMark)) {
      pieces.push_back({words_of(std::string_view(line).substr(kMark.size())), {}});
    } else if (!pieces.empty()) {
      pieces.back().text += line + '\n';
    }
  }
  for (Piece& piece : pieces)  // one blank line after each, none before the next mark
    while (piece.text.ends_with("\n\n")) piece.text.pop_back();
  return pieces;
}

std::string prelude_for(std::string_view text) {
  const std::map<std::string, Piece> pieces = all_pieces();
  std::set<std::string> pasted;
  std::string result;
  paste(text, pieces, pasted, result);
  return result;
}

}  // namespace tenon::codegen::cuda
