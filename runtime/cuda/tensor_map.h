// Tensor maps: the driver's description of a box of global memory that one thread copies (sm_90 on).
#pragma once

#include "codegen/emit/source.h"
#include "runtime/backend.h"
#include "runtime/cuda/driver.h"

namespace tenon::runtime::cuda {

/// `map` at these sizes, without an address. Error(argument) with the driver's reason for what it does not take.
EncodedTensorMap encode(const Driver& driver, const codegen::TensorMap& map, const Bindings& bindings);

/// `encoded` over the memory at `address`, which is aligned to 16 bytes.
TensorMap at_address(const Driver& driver, const EncodedTensorMap& encoded, void* address);

}  // namespace tenon::runtime::cuda
