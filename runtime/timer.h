// The time between two points of a stream's work.
#pragma once

#include <memory>

#include "runtime/backend.h"

namespace tenon::runtime {

class Timer {
 public:
  explicit Timer(const Backend& backend) : begin_(backend.make_event()), end_(backend.make_event()) {}

  void begin(void* stream) const { begin_->record(stream); }
  void end(void* stream) const { end_->record(stream); }
  /// From the begin to the end, for which this waits.
  double milliseconds() const { return end_->milliseconds_since(*begin_); }
  /// From the begin of `first`, a timer of the same backend, to this one's.
  double milliseconds_after(const Timer& first) const { return begin_->milliseconds_since(*first.begin_); }

 private:
  std::unique_ptr<Event> begin_, end_;
};

}  // namespace tenon::runtime
