// Memory of a target that frees itself.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/backend.h"

namespace tenon::runtime {

using Memory = std::shared_ptr<void>;

/// Null for no bytes. The backend must live longer.
inline Memory allocate(const runtime::Backend& backend, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  return {backend.allocate(static_cast<std::size_t>(bytes)), [&backend](void* memory) { backend.release(memory); }};
}

}  // namespace tenon::runtime
