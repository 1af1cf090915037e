// See parts.h. A piece is needed when a word that it provides occurs outside comments.
#include "codegen/emit/cuda/text/parts.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/emit/cuda/text/writer.h"
#include "codegen/prelude/prelude.h"

namespace tenon::codegen::cuda {
namespace {

constexpr std::string_view kMark = "//@", kVariant = "//?";

// Calls visit(word) for each identifier of a text, in order of appearance.
template <typename Visit>
void for_each_word(std::string_view text, const Visit& visit) {
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '/' && text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) visit(text.substr(i, end - i));
    i = end == i ? i + 1 : end;
  }
}

// All pieces of the prelude, and of each those that its text names, in order of appearance.
struct Table {
  std::vector<Piece> pieces;
  std::unordered_map<std::string_view, std::size_t> providers;  // by names that the pieces hold
  std::vector<std::vector<std::size_t>> needs;

  Table() {
    for (const PreludeFile& file : prelude_files())
      for (Piece& piece : pieces_of(file.text)) pieces.push_back(std::move(piece));
    for (std::size_t i = 0; i < pieces.size(); ++i)
      for (const std::string& name : pieces[i].provides) providers.emplace(name, i);
    for (const Piece& piece : pieces) needs.push_back(named_in(piece.text));
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  std::vector<std::size_t> named_in(std::string_view text) const {
    std::vector<std::size_t> named;
    std::vector<bool> seen(pieces.size());
    for_each_word(text, [&](std::string_view word) {
      const auto found = providers.find(word);
      if (found == providers.end() || seen[found->second]) return;
      seen[found->second] = true;
      named.push_back(found->second);
    });
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
  std::size_t first = 0;    // of the pieces that share the lines at hand
  std::string_view chosen;  // the one that has them alone; empty where all have them
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.starts_with(kMark)) {
      first = pieces.size(), chosen = {};
      for (std::string_view names = line.substr(kMark.size()); !names.empty();) {
        const std::size_t bar = std::min(names.find('|'), names.size());
        pieces.emplace_back();
        for_each_word(names.substr(0, bar), [&](std::string_view word) { pieces.back().provides.emplace_back(word); });
        names.remove_prefix(std::min(bar + 1, names.size()));
      }
    } else if (line.starts_with(kVariant)) {
      chosen = {};
      for_each_word(line.substr(kVariant.size()), [&](std::string_view word) { chosen = word; });
    } else {
      for (std::size_t i = first; i < pieces.size(); ++i)
        if (chosen.empty() || pieces[i].provides.front() == chosen) pieces[i].text.append(line) += '\n';
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
