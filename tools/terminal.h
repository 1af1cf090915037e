// Colour, where a terminal shows it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace tenon::tools {

enum class Tone { heading, good, warning, bad };

/// Whether `stream` is a terminal that may be written to in colour: NO_COLOR is unset or empty (no-color.org), and TERM
/// is not "dumb".
bool takes_colour(std::FILE* stream);

/// The text in the tone's colour, for `stream`; as it is where that takes none. Line ends stay outside.
std::string toned(Tone tone, std::string_view text, std::FILE* stream = stdout);

}  // namespace tenon::tools
