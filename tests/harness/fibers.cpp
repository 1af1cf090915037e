// See fibers.h. Contexts of the C library, on stacks in one mapping.
#include "tests/harness/fibers.h"

#include <sys/mman.h>

#include <stdexcept>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#define TENON_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TENON_TSAN 1
#endif
#endif
#ifdef TENON_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tenon::test {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 17;
constexpr std::uint64_t kTurnsOfRank = 64;  // until another warp is first, in the mean

}  // namespace

Fibers::Fibers(int count, std::uint64_t seed)
    : fibers_(static_cast<std::size_t>(count)),
      stack_bytes_(fibers_.size() * kStackBytes),
      warps_(static_cast<std::size_t>((count + kWarp - 1) / kWarp)),
      random_(seed) {
  for (Warp& warp : warps_) warp.rank = random_();
  stacks_ = mmap(nullptr, stack_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks_ == MAP_FAILED) throw std::runtime_error("no memory for the stacks of fibers");
}

Fibers::~Fibers() {
#ifdef TENON_TSAN
  for (const Fiber& fiber : fibers_)
    if (fiber.tsan != nullptr) __tsan_destroy_fiber(fiber.tsan);
#endif
  munmap(stacks_, stack_bytes_);
}

void Fibers::run(Hooks hooks) {
  hooks_ = std::move(hooks);
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    Fiber& fiber = fibers_[i];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = static_cast<std::byte*>(stacks_) + i * kStackBytes;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Fibers::start), 3, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self), static_cast<int>(i));
#ifdef TENON_TSAN
    fiber.tsan = __tsan_create_fiber(0);
#endif
    wake(static_cast<int>(i));
  }
#ifdef TENON_TSAN
  scheduler_tsan_ = __tsan_get_current_fiber();
#endif
  std::size_t left = fibers_.size();
  while (left > 0 && !failed_) {
    current_ = take_ready();
    if (current_ < 0) {
      if (!hooks_.idle()) throw std::runtime_error(hooks_.deadlock());
      continue;
    }
    hooks_.resume(current_);
    Fiber& fiber = fibers_[static_cast<std::size_t>(current_)];
#ifdef TENON_TSAN
    __tsan_switch_to_fiber(fiber.tsan, 0);
#endif
    swapcontext(&scheduler_, &fiber.context);
    if (fiber.ended) --left;
  }
  current_ = -1;
  if (failed_) throw std::runtime_error(message_);
}

// -1: there is none.
int Fibers::take_ready() {
  if (random_() % kTurnsOfRank == 0) warps_[random_() % warps_.size()].rank = random_();
  Warp* first = nullptr;
  for (Warp& warp : warps_)
    if (!warp.ready.empty() && (first == nullptr || warp.rank < first->rank)) first = &warp;
  if (first == nullptr) return -1;
  std::swap(first->ready[random_() % first->ready.size()], first->ready.back());
  const int fiber = first->ready.back();
  first->ready.pop_back();
  return fiber;
}

void Fibers::start(unsigned high, unsigned low, int fiber) {
  auto& self = *reinterpret_cast<Fibers*>(static_cast<std::uintptr_t>(high) << 32 | low);
  self.hooks_.body(fiber);
  self.fibers_[static_cast<std::size_t>(fiber)].ended = true;
  self.leave();
}

void Fibers::leave() {
#ifdef TENON_TSAN
  __tsan_switch_to_fiber(scheduler_tsan_, 0);
#endif
  swapcontext(&fibers_[static_cast<std::size_t>(current_)].context, &scheduler_);
}

void Fibers::wait() { leave(); }

void Fibers::fail(std::string message) {
  message_ = std::move(message);
  failed_ = true;
  leave();
  std::terminate();  // nobody goes on
}

}  // namespace tenon::test
