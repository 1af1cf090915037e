// Kernels that run between guard bands: every allocation of a backend (inputs, outputs, intermediates) is surrounded by
// NaN patterns and starts as one, so that what is read or written where it should not be shows.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/interpret/interpret.h"
#include "tenon/compile.h"
#include "tests/harness/forwarding.h"

namespace tenon::test {

/// Another backend, with guard bands around its memory.
class GuardedBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  ~GuardedBackend() override;

  /// What fresh memory holds in every byte.
  void fill_with(unsigned char fill) { fill_ = fill; }
  /// What was written outside of an allocation so far; empty when nothing was.
  std::string damage() const;

  std::unique_ptr<runtime::Recording> record(const std::function<void(void*)>&) const override { return nullptr; }
  void* allocate(std::size_t bytes) const override;
  void release(void* memory) const noexcept override;

 private:
  void inspect(const std::byte* memory, std::size_t bytes) const;

  unsigned char fill_ = 0xff;
  mutable std::mutex mutex_;
  mutable std::map<std::byte*, std::size_t> live_;
  mutable std::string damage_;
};

/// A graph compiled for guarded runs on a target.
class GuardedProgram {
 public:
  GuardedProgram(const ir::Graph& graph, const std::string& target, bool fuse);

  /// The outputs. Runs twice, on memory filled with different patterns: std::runtime_error when a guard band changed,
  /// or when the runs differ (an element was never written, or is not deterministic).
  std::vector<ir::HostArray> operator()(const std::vector<ir::HostArray>& inputs, const Bindings& bindings = {});

  ExecutableStats stats() const { return executable_.stats(); }

 private:
  std::vector<ir::HostArray> run(const std::vector<ir::HostArray>& inputs, const Bindings& bindings);

  ir::Graph graph_;
  std::shared_ptr<GuardedBackend> backend_;
  Executable executable_;
};

/// Whether an output is right: equal within the tolerances, or so nearly that only the tolerances' being estimates from
/// a few disturbed runs tells it apart.
bool is_right(const ir::Comparison& output);

/// Data for a graph's inputs: reals from a normal distribution times `scale`, integers from -9 (or 0) to 12.
std::vector<ir::HostArray> data_for(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed = 1,
                                    double scale = 1);

/// Compiles `graph` with and without fusion and runs it at each of `sizes`: every output must be what the interpreter
/// says, every element written, every guard band whole. Failures are added to the current test. `scale`: see data_for.
void expect_right(const ir::Graph& graph, const std::string& target, const std::vector<Bindings>& sizes = {{}},
                  double scale = 1);
/// The same on the given data.
void expect_right_on(const ir::Graph& graph, const std::string& target, const std::vector<ir::HostArray>& inputs,
                     const Bindings& bindings = {});

}  // namespace tenon::test
