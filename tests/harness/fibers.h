// Threads of a block that run on one thread of the host, each until it waits: what they do depends on a seed and on
// nothing else, and that all of them wait is seen at once.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tenon::test {

class Fibers {
 public:
  /// What the fibers do and what happens around them.
  struct Hooks {
    std::function<void(int fiber)> body;
    std::function<void(int fiber)> resume;  ///< ahead of each time that one goes on
    std::function<bool()> idle;             ///< when all wait: whether something has happened that may wake one
    std::function<std::string()> deadlock;  ///< what to say when nothing has
  };

  /// So many neighbours, a warp, go on ahead of others or behind them together.
  static constexpr int kWarp = 32;

  Fibers(int count, std::uint64_t seed);
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Until all have ended; in an order that the seed gives. std::runtime_error when all wait, or for what fail() said.
  void run(Hooks hooks);

  int current() const { return current_; }
  bool ended(int fiber) const { return fibers_[static_cast<std::size_t>(fiber)].ended; }
  std::mt19937_64& random() { return random_; }

  /// The current one waits until it is woken.
  void wait();
  void wake(int fiber) { warps_[static_cast<std::size_t>(fiber / kWarp)].ready.push_back(fiber); }
  /// Ends the run. Nothing on the fibers' stacks is destroyed.
  [[noreturn]] void fail(std::string message);

 private:
  struct Fiber {
    ucontext_t context = {};
    bool ended = false;
    void* tsan = nullptr;  ///< what ThreadSanitizer knows of it
  };
  struct Warp {
    std::vector<int> ready;
    std::uint64_t rank = 0;  ///< the first of those that can goes on
  };
  int take_ready();
  static void start(unsigned high, unsigned low, int fiber);
  void leave();

  std::vector<Fiber> fibers_;
  ucontext_t scheduler_ = {};
  void* scheduler_tsan_ = nullptr;
  void* stacks_ = nullptr;
  std::size_t stack_bytes_ = 0;
  std::vector<Warp> warps_;
  std::mt19937_64 random_;
  Hooks hooks_;
  int current_ = -1;
  bool failed_ = false;
  std::string message_;
};

}  // namespace tenon::test
