// Running out of host memory as an Error: the caller can do something about it, and Tenon is not broken.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "tenon/error.h"

namespace tenon::ir {

/// Calls work(). Error(out_of_memory) where memory runs out meanwhile: "no host memory is left for <what>".
template <typename Work>
decltype(auto) with_host_memory(const std::string& what, const Work& work) {
  const auto fail = [&]() -> Error {
    return Error(ErrorKind::out_of_memory, "no host memory is left for " + what, {},
                 "use a smaller graph or smaller sizes, or free memory");
  };
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw fail();
  } catch (const std::length_error&) {  // of a container, beyond what can be addressed
    throw fail();
  }
}

}  // namespace tenon::ir
