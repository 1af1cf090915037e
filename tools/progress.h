// What the command waits for, on the terminal's last line.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::tools {

/// From a second on, a line on stderr that says what is done and for how long: rewritten each second, erased at the
/// end. Nothing where stderr is no terminal. While one lives, others and what is printed would write into its line:
/// call hide() first.
class Progress {
 public:
  explicit Progress(std::string what);  ///< "building gpt2_block"
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(std::string what);                                     ///< what is done now
  void say(std::string what, std::size_t done, std::size_t all);  ///< with a bar
  void hide();                                                    ///< until the next second
  void end();                                                     ///< for good

 private:
  void show_each_second();
  void show() const;

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string what_;
  bool over_ = false, shown_ = false;
  std::thread writer_;  ///< only on a terminal
};

/// What `work` returns, with its name on the terminal where it takes long.
template <typename Work>
auto waiting(const std::string& what, const Work& work) {
  const Progress progress(what);
  return work();
}

}  // namespace tenon::tools
