// What a run works on: somebody's memory, and what lies there.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/array.h"
#include "tenon/dtype.h"

namespace tenon {

/// A caller's array: dense, row-major, of the graph's dtype. Host memory for the CPU target, device memory of the
/// executable's device for CUDA; 16-byte aligned. Outputs overlap neither with inputs nor with each other
/// (Error(argument) otherwise), but for updates in place: an output may have exactly the buffer of an input of its
/// dtype and shape if the one kernel that writes it is elementwise (class map, without a tile), computes each element
/// from that element of the input, takes no other one, and nothing reads the input beside or behind this kernel; nor,
/// where the dtype is not real, does another result of the kernel. Which kernel that is, the plan says: what fits one
/// size or target need not fit another. Inputs may overlap with each other.
struct Buffer {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// The array's own bytes as a buffer, for a run on the CPU target: good until its `bytes` are given another size or it
/// ends. Of a constant array for an input alone. Error(argument) when it has not as many bytes as its shape says.
Buffer buffer_of(Array& array);
Buffer buffer_of(const Array& array);
Buffer buffer_of(const Array&& array) = delete;  // which ends before the run
/// The same of each.
std::vector<Buffer> buffers_of(std::vector<Array>& arrays);
std::vector<Buffer> buffers_of(const std::vector<Array>& arrays);
std::vector<Buffer> buffers_of(const std::vector<Array>&& arrays) = delete;

}  // namespace tenon
