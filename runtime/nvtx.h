// Ranges for the timelines of NVIDIA's tools (Nsight Systems, Nsight Compute, CUPTI): what the host does while which
// kernel is launched. Without a tool there is nothing to call, and nothing is paid but a test of a null pointer.
#pragma once

#include <string>

namespace tenon::runtime {

/// The tool that watches this process.
class Nvtx {
 public:
  /// Attaches the tool whose library is `path` (what NVTX_INJECTION64_PATH says) to this process. Null when `path` is
  /// empty or the library is no tool's. A process has one tool: the first path that is given counts. Thread-safe.
  static const Nvtx* attach(const std::string& path);

  /// Opens a range of the calling thread within its last open one.
  void push(const char* name) const;
  /// Closes the thread's last open range.
  void pop() const;

 private:
  explicit Nvtx(const std::string& path);
  bool attached_ = false;
};

/// A range for the length of a scope; none where there is no tool.
class NvtxRange {
 public:
  NvtxRange(const Nvtx* nvtx, const std::string& name) : nvtx_(nvtx) {
    if (nvtx_ != nullptr) nvtx_->push(name.c_str());
  }
  ~NvtxRange() {
    if (nvtx_ != nullptr) nvtx_->pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  const Nvtx* nvtx_;
};

}  // namespace tenon::runtime
