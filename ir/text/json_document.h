// JSON text to a document, within limits: the depth, the number of values, no key twice, no number beyond its type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tenon::ir {

/// Reads a whole JSON text. Error(parse) with line and column for malformed text, Error(resource) beyond the limits.
nlohmann::json read_json_document(std::string_view text, const std::string& file);

/// `text` in quotes, fit to be shown: at most kMaxNameLength characters, bytes outside printable ASCII as \xNN.
std::string display(std::string_view text);

}  // namespace tenon::ir
