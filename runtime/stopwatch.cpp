// What a launch costs the host hides behind the flush before it. Lines that a kernel had the second-level cache keep
// (keep_reads) would outlast the flush, and be found there by the next one that reads them.
#include "runtime/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace tenon::runtime {
namespace {

Times summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  const auto count = static_cast<int>(times.size());
  return {at(0.5), at(0.1), at(0.9), sum / count, times.front(), times.back(), count};
}

}  // namespace

Stopwatch::Stopwatch(const runtime::Backend& backend, double seconds, std::int64_t flush_bytes)
    : backend_(backend), seconds_(seconds), flush_bytes_(flush_bytes), flush_(allocate(backend, flush_bytes)) {}

void Stopwatch::sample(const std::function<void()>& work, const Timer& timer) const {
  if (flush_bytes_ > 0) backend_.forget_kept(nullptr);
  backend_.fill(flush_.get(), 0, static_cast<std::size_t>(flush_bytes_), nullptr);
  timer.begin(nullptr);
  work();
  timer.end(nullptr);
}

Times Stopwatch::operator()(const std::function<void()>& work) const { return taking_turns({work})[0]; }

std::vector<Times> Stopwatch::taking_turns(const std::vector<std::function<void()>>& works) const {
  using Clock = std::chrono::steady_clock;
  constexpr int kTrials = 3, kFewest = 5, kMost = 1000;
  const Timer timer(backend_);
  const auto turn = [&] {
    for (const auto& work : works) sample(work, timer);
  };
  turn();  // loads and first touches
  backend_.synchronize(nullptr);
  const auto begin = Clock::now();
  for (int i = 0; i < kTrials; ++i) turn();
  backend_.synchronize(nullptr);
  const double each = std::chrono::duration<double>(Clock::now() - begin).count() / kTrials;
  const double turns = seconds_ * static_cast<double>(works.size()) / each;
  const int count = static_cast<int>(std::clamp(turns, double{kFewest}, double{kMost}));
  for (int i = kTrials; i < count / 4; ++i) turn();  // clocks reach what they keep up
  std::vector<std::vector<Timer>> timers(works.size());
  for (int i = 0; i < count; ++i)
    for (std::size_t work = 0; work < works.size(); ++work) {
      timers[work].emplace_back(backend_);
      sample(works[work], timers[work].back());
    }
  std::vector<Times> all;
  for (const auto& samples : timers) {
    std::vector<double> times;
    for (const Timer& each_timer : samples) times.push_back(each_timer.milliseconds());
    all.push_back(summary(std::move(times)));
  }
  return all;
}

}  // namespace tenon::runtime
