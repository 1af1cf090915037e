// Tensor maps on the host: what cuTensorMapEncodeTiled and cp.async.bulk.tensor do with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/interpret/interpret.h"
#include "runtime/backend.h"
#include "tests/harness/hopper_memory.h"

namespace tenon::test {

/// With its sizes filled in. std::runtime_error for what the driver does not take.
runtime::EncodedTensorMap encode_on_host(const codegen::TensorMap& map, const Bindings& bindings);

/// The same map over what lies at `address`: 128 bytes that a kernel takes.
runtime::EncodedTensorMap at_address(const runtime::EncodedTensorMap& map, const void* address);

/// Bytes of a whole box of `map`, as a kernel has it.
unsigned box_bytes(const void* map);

/// Writes a box to `address`: zeros for what lies outside the tensor, and 16-byte pieces of lines in changed places.
void write_box(SharedMemory& memory, unsigned address, const void* map, const std::array<int, 4>& at);

/// The way back, of a box that was asked for at `asked` (SharedMemory::clock). Why it may not be read, or nothing.
std::string read_box(SharedMemory& memory, unsigned address, const void* map, const std::array<int, 4>& at,
                     std::uint32_t asked);

}  // namespace tenon::test
