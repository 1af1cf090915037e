// Errors that reach the user: what happened, where in the graph or file, and what to do about it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tenon {

enum class ErrorKind : std::uint8_t {
  parse,          ///< the text or JSON form is malformed
  type,           ///< shapes, dtypes or attributes do not fit the operator
  argument,       ///< a call's arguments do not fit: a missing input, a buffer of the wrong size
  unsupported,    ///< a valid request that this build or target cannot serve
  resource,       ///< a limit of the device or of Tenon is exceeded
  compile,        ///< NVRTC or LLVM refused generated code
  launch,         ///< a kernel could not be launched or failed while running
  out_of_memory,  ///< host or device memory is exhausted
  device_lost,    ///< the CUDA context is unusable from here on
  no_device,      ///< no GPU, driver or NVRTC where one is needed
  io,             ///< a file could not be read or written
  internal,       ///< a defect of Tenon itself: please report it
};

/// "parse", "type", … as it stands at the head of a message.
const char* name_of(ErrorKind kind);

/// Where an error belongs: a place in a file, a graph value, or both. Empty fields are not printed.
struct Place {
  std::string file;
  int line = 0;  ///< from 1; 0 when unknown
  int column = 0;
  std::string value;  ///< name of the graph value
  /// What of a call is at fault, as the API names it: "bindings[rows]", "symbols", "options.disable"; not printed. A
  /// program finds its own words by it: the command says --dim for bindings.
  std::string argument = {};
};

/// Every failure that Tenon reports. `what()` is the whole message:
///
///     type error: matmul: inner dimensions differ: 768 and 512
///       at block.tn:7:9 (value h)
///       help: transpose one operand or check its shape
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, Place place = {}, std::string remedy = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const Place& place() const { return place_; }
  const std::string& remedy() const { return remedy_; }

  /// The same error, said to be at `place` where it had none.
  Error at(const Place& place) const;

 private:
  ErrorKind kind_;
  std::string message_;
  Place place_;
  std::string remedy_;
};

}  // namespace tenon
