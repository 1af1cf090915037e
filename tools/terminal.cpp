// See terminal.h.
#include "tools/terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace tenon::tools {
namespace {

const char* code_of(Tone tone) {
  switch (tone) {
    case Tone::heading: return "\033[1m";
    case Tone::good: return "\033[32m";
    case Tone::warning: return "\033[33m";
    case Tone::bad: return "\033[1;31m";
  }
  return "";
}

}  // namespace

bool takes_colour(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == '\0') && (terminal == nullptr || std::string_view(terminal) != "dumb") &&
         isatty(fileno(stream)) != 0;
}

std::string toned(Tone tone, std::string_view text, std::FILE* stream) {
  if (!takes_colour(stream)) return std::string(text);
  const std::size_t end = text.find_last_not_of('\n') + 1;
  return code_of(tone) + std::string(text.substr(0, end)) + "\033[0m" + std::string(text.substr(end));
}

}  // namespace tenon::tools
