// How an Error becomes the text a person reads.
#include "tenon/error.h"

#include <fmt/format.h>

#include <utility>

#include "ir/graph/check.h"

namespace tenon {
namespace {

std::string place_line(const Place& place) {
  std::string position;
  if (place.line > 0) {
    position = fmt::format("{}:{}", place.file.empty() ? "<input>" : place.file, place.line);
    if (place.column > 0) position += fmt::format(":{}", place.column);
  } else {
    position = place.file;
  }
  if (place.value.empty()) return position.empty() ? "" : "\n  at " + position;
  return position.empty() ? fmt::format("\n  at value {}", place.value)
                          : fmt::format("\n  at {} (value {})", position, place.value);
}

std::string full_text(ErrorKind kind, const std::string& message, const Place& place, const std::string& remedy) {
  return fmt::format("{} error: {}{}{}", name_of(kind), message, place_line(place),
                     remedy.empty() ? "" : "\n  help: " + remedy);
}

}  // namespace

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::parse: return "parse";
    case ErrorKind::type: return "type";
    case ErrorKind::argument: return "argument";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::resource: return "resource";
    case ErrorKind::compile: return "compile";
    case ErrorKind::launch: return "launch";
    case ErrorKind::out_of_memory: return "out of memory";
    case ErrorKind::device_lost: return "device lost";
    case ErrorKind::no_device: return "no device";
    case ErrorKind::io: return "i/o";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message, Place place, std::string remedy)
    : std::runtime_error(full_text(kind, message, place, remedy)),
      kind_(kind),
      message_(std::move(message)),
      place_(std::move(place)),
      remedy_(std::move(remedy)) {}

Error Error::at(const Place& place) const {
  Place merged = place_;
  if (merged.line == 0) {
    merged.file = place.file;
    merged.line = place.line;
    merged.column = place.column;
  }
  if (merged.value.empty()) merged.value = place.value;
  return Error(kind_, message_, merged, remedy_);
}

namespace ir {

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  std::string path = file;
  const auto slash = path.find_last_of('/');
  throw Error(ErrorKind::internal,
              fmt::format("{} (check '{}' at {}:{})", message, condition,
                          slash == std::string::npos ? path : path.substr(slash + 1), line),
              {}, "this is a defect of Tenon; please report it with the graph");
}

}  // namespace ir
}  // namespace tenon
