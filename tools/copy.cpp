// See copy.h. The kernel is compiled like a user's.
#include "tools/copy.h"

#include <algorithm>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"

namespace tenon::tools {
namespace {

Executable inversion(std::int64_t words, const std::shared_ptr<const runtime::Backend>& backend,
                     const Options& options) {
  const ir::Graph invert = ir::parse("graph invert(x: i32[n]) {\n  y = bitwise_not(x)\n  return y\n}\n");
  Executable executable = src::make_executable(src::plan(invert, *backend, options), backend, options);
  executable.prepare({{"n", words}});
  return executable;
}

}  // namespace

Copy::Copy(std::int64_t bytes, const std::shared_ptr<const runtime::Backend>& backend, const Options& options)
    : backend_(backend),
      words_(std::max<std::int64_t>(1, bytes / 2 / 4)),
      from_(allocate(*backend, words_ * 4)),
      to_(allocate(*backend, words_ * 4)),
      kernel_(inversion(words_, backend, options)) {
  backend_->fill(from_.get(), 1, static_cast<std::size_t>(words_ * 4), nullptr);
}

std::vector<std::function<void()>> Copy::works() const {
  const auto by_driver = [this] {
    backend_->copy(to_.get(), from_.get(), static_cast<std::size_t>(words_ * 4), nullptr);
  };
  const auto by_kernel = [this] {
    const Buffer in{from_.get(), DType::i32, {words_}}, out{to_.get(), DType::i32, {words_}};
    kernel_.run_async({&in, 1}, {&out, 1}, nullptr, {{"n", words_}});
  };
  return {by_driver, by_kernel};
}

}  // namespace tenon::tools
