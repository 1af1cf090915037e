// A thread writes the line, so that it moves while kernels are built or timed; it wakes once a second.
#include "tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tenon::tools {
namespace {

constexpr std::chrono::seconds kEach{1};
constexpr const char* kErase = "\r\033[K";

// Columns of the terminal; a longer line would wrap, and its first part stay.
std::size_t width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) != 0) writer_ = std::thread([this] { show_each_second(); });
}

Progress::~Progress() { end(); }

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (writer_.joinable()) writer_.join();
  hide();
}

void Progress::say(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  if (shown_) show();
}

void Progress::say(std::string what, std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = all == 0 ? 0 : kWidth * done / all;
  say(fmt::format("[{}{}] {}/{} {}", std::string(full, '#'), std::string(kWidth - full, '.'), done, all, what));
}

void Progress::hide() {
  const std::lock_guard lock(mutex_);
  if (shown_) std::fputs(kErase, stderr);
  shown_ = false;
}

void Progress::show_each_second() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kEach, [this] { return over_; })) {
    shown_ = true;
    show();
  }
}

void Progress::show() const {
  const auto elapsed = std::chrono::steady_clock::now() - begin_;
  std::string line = fmt::format("{}, {} s", what_, std::chrono::duration_cast<std::chrono::seconds>(elapsed).count());
  line.resize(std::min(line.size(), width() - 1));
  std::fprintf(stderr, "%s%s", kErase, line.c_str());
  std::fflush(stderr);
}

}  // namespace tenon::tools
