// Capturing, instantiating and updating CUDA graphs.
#include "runtime/cuda/graph.h"

#include <utility>

namespace tenon::runtime::cuda {
namespace {

// A graph as captured: only needed until it is instantiated.
class Captured {
 public:
  Captured(const Driver& driver, StreamHandle stream, const std::function<void()>& record) : driver_(driver) {
    // Thread-local: other threads of the process may allocate and synchronise meanwhile.
    check(driver, driver.stream_begin_capture(stream, CaptureMode::thread_local_), "beginning a capture");
    try {
      record();
    } catch (...) {
      if (driver.stream_end_capture(stream, &graph_) == Result::success) driver.graph_destroy(graph_);
      throw;
    }
    check(driver, driver.stream_end_capture(stream, &graph_), "ending a capture");
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { driver_.graph_destroy(graph_); }

  GraphHandle get() const { return graph_; }

  GraphExecHandle instantiate() const {
    GraphExecHandle exec = nullptr;
    check(driver_, driver_.graph_instantiate_with_flags(&exec, graph_, 0), "instantiating a graph");
    return exec;
  }

 private:
  const Driver& driver_;
  GraphHandle graph_ = nullptr;
};

}  // namespace

LaunchGraph::LaunchGraph(DevicePtr device, StreamHandle stream, const std::function<void()>& record)
    : device_(std::move(device)) {
  const CurrentContext current(*device_);
  exec_ = Captured(device_->driver(), stream, record).instantiate();
}

LaunchGraph::LaunchGraph(LaunchGraph&& other) noexcept
    : device_(std::move(other.device_)), exec_(std::exchange(other.exec_, nullptr)) {}

LaunchGraph& LaunchGraph::operator=(LaunchGraph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(exec_, other.exec_);
  return *this;
}

LaunchGraph::~LaunchGraph() {
  if (exec_ != nullptr) device_->driver().graph_exec_destroy(exec_);
}

void LaunchGraph::launch(StreamHandle stream) const {
  const CurrentContext current(*device_);
  check(device_->driver(), device_->driver().graph_launch(exec_, stream), "launching a graph");
}

void LaunchGraph::update(StreamHandle stream, const std::function<void()>& record) {
  const Driver& driver = device_->driver();
  const CurrentContext current(*device_);
  const Captured captured(driver, stream, record);
  GraphUpdateInfo info{};
  const Result result = driver.graph_exec_update(exec_, captured.get(), &info);
  if (result != Result::graph_exec_update_failure) return check(driver, result, "updating a graph");
  GraphExecHandle replacement = captured.instantiate();
  std::swap(exec_, replacement);
  driver.graph_exec_destroy(replacement);
}

}  // namespace tenon::runtime::cuda
