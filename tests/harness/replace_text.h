// Text in place of other text: of generated CUDA, for the host or with a fault.
#pragma once

#include <string>
#include <vector>

namespace tenon::test {

/// The first `what`; false where there is none.
inline bool replace(std::string& text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return false;
  text.replace(at, what.size(), by);
  return true;
}

inline void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

/// The asm statements that begin with `opcode`, each by the next of `by`.
inline void replace_asm(std::string& text, const std::string& opcode, const std::vector<std::string>& by) {
  std::size_t at = 0;
  for (const std::string& host : by) {
    at = text.find("\"" + opcode, at);
    if (at == std::string::npos) return;
    const std::size_t begin = text.rfind("asm", at), end = text.find(");", at) + 2;
    text.replace(begin, end - begin, host);
    at = begin;
  }
}

}  // namespace tenon::test
