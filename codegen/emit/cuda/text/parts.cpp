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

// All pieces of the prelude, and of each those that its text names, in order of appearance.
struct Table {
  std::vector<Piece> pieces;
  std::map<std::string, std::size_t, std::less<>> providers;
  std::vector<std::vector<std::size_t>> needs;

  Table() {
    for (const PreludeFile& file : prelude_files())
      for (Piece& piece : pieces_of(file.text)) {
        for (const std::string& name : piece.provides) providers.emplace(name, pieces.size());
        pieces.push_back(std::move(piece));
      }
    for (const Piece& piece : pieces) needs.push_back(named_in(piece.text));
  }

  std::vector<std::size_t> named_in(std::string_view text) const {
    std::vector<std::size_t> named;
    for (const std::string& word : words_of(text))
      if (const auto found = providers.find(word); found != providers.end()) named.push_back(found->second);
    return named;
  }
};

void paste(const std::vector<std::size_t>& named, const Table& table, std::vector<bool>& pasted, std::string& result) {
  for (const std::size_t piece : named) {
    if (pasted[piece]) continue;
    pasted[piece] = true;
    paste(table.needs[piece], table, pasted, result);
    result += table.pieces[piece].text;
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
  static const Table
      table;  // a constant: it follows from the prelude's text, which takes longer to read than a kernel's
  std::vector<bool> pasted(table.pieces.size());
  std::string result;
  paste(table.named_in(text), table, pasted, result);
  return result;
}

}  // namespace tenon::codegen::cuda
