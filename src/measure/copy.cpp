// See copy.h. The kernel is compiled like a user's.
#include "src/measure/copy.h"

#include <algorithm>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"

namespace tenon::src {
namespace {

Executable inversion(const std::shared_ptr<const runtime::Backend>& backend, const Options& options) {
  const ir::Graph invert = ir::parse("graph invert(x: i32[n]) {\n  y = bitwise_not(x)\n  return y\n}\n");
  return src::make_executable(src::plan(invert, *backend, options), backend, options);
}

}  // namespace

std::int64_t Copy::words(std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / 2 / kWord); }

Copy::Copy(std::int64_t bytes, const std::shared_ptr<const runtime::Backend>& backend, const Options& options)
    : backend_(backend),
      words_(words(bytes)),
      from_(allocate(*backend, words_ * kWord)),
      to_(allocate(*backend, words_ * kWord)),
      kernel_(inversion(backend, options)) {
  backend_->fill(from_.get(), 1, static_cast<std::size_t>(words_ * kWord), nullptr);
}

std::vector<std::function<void()>> Copy::works(std::int64_t bytes) const {
  const std::int64_t count = std::min(words(bytes), words_);
  kernel_.prepare({{"n", count}});
  const auto by_driver = [this, count] {
    backend_->copy(to_.get(), from_.get(), static_cast<std::size_t>(count * kWord), nullptr);
  };
  const auto by_kernel = [this, count] {
    const Buffer in{from_.get(), DType::i32, {count}}, out{to_.get(), DType::i32, {count}};
    kernel_.run_async({&in, 1}, {&out, 1}, nullptr, {{"n", count}});
  };
  return {by_driver, by_kernel};
}

}  // namespace tenon::src
