// The products of a warpgroup (PTX ISA: wgmma): what its threads issue together runs later, in order. Until a thread
// has waited for them its sums are NaN. Operands that are not there when a product is issued, or that change before it
// has run, are errors.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tenon/dtype.h"
#include "tests/harness/hopper_memory.h"

namespace tenon::test {

/// Of one product, as all threads of the warpgroup give it.
struct ProductCall {
  std::uint64_t a = 0, b = 0;  ///< descriptors
  bool add = false;
  int columns = 0;
  DType type_a = DType::bf16, type_b = DType::bf16;
  bool across_a = false, across_b = false;
  bool a_in_registers = false;  ///< a fragment in each thread instead of the descriptor

  bool operator==(const ProductCall&) const = default;
};

class Products {
 public:
  static constexpr int kThreads = 128;

  explicit Products(SharedMemory& memory) : memory_(memory) {}

  // The instructions of thread `thread` of the warpgroup. Each returns what is wrong, or nothing.
  std::string begin(int thread);
  /// `fragment`: four words of a, where it is in registers; they do not change before the product has run.
  std::string multiply(int thread, float* sums, const ProductCall& call, const unsigned* fragment = nullptr);
  void commit(int thread);
  /// Whether all but the last `pending` groups have run: the thread need not wait. If so its sums are there.
  bool arrived(int thread, int pending);
  std::string end(int thread) const;

  /// Whether a product is issued by all threads and has not run, and running the first of those.
  bool has_next() const { return done_ < first_ + products_.size() && next().threads == kThreads; }
  std::string run_next();

 private:
  // 64 rows of sums, in the registers of all threads.
  struct Sums {
    int columns = 0;
    std::vector<float> values;
  };
  struct Product {
    ProductCall call;
    std::shared_ptr<Sums> sums;
    int threads = 0;  ///< that have issued it
    std::array<const unsigned*, kThreads> fragments = {};
    std::vector<std::array<unsigned, 4>> words = {};  ///< of the fragments, as they were then
    std::uint32_t issued = 0;                         ///< when the last did
  };
  // Registers that products are under way to: the last of them.
  struct Held {
    float* registers = nullptr;
    std::shared_ptr<Sums> sums;
    std::uint64_t last = 0;
  };
  struct Thread {
    std::uint64_t issued = 0;
    std::vector<std::uint64_t> groups;  ///< how many products were issued when each was committed
    std::vector<Held> held;
    bool begun = false;  ///< nothing has touched the sums since wgmma.fence
  };

  const Product& next() const { return products_[done_ - first_]; }
  std::string check_operands(const Product& product, bool running) const;
  std::vector<float> first_operand(const Product& product) const;

  SharedMemory& memory_;
  std::deque<Product> products_;
  std::uint64_t first_ = 0, done_ = 0;  ///< numbers of products: the first in the queue, the first that has not run
  std::array<Thread, kThreads> threads_;
};

}  // namespace tenon::test
