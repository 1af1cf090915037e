// Compiling for an architecture where there is no device.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tenon/compile.h"
#include "tests/runtime/installed_nvrtc.h"

namespace tenon {
namespace {

TEST(WithoutADevice, ProductsCompileThoughNoDriverEncodesTheirTensorMaps) {
  const auto nvrtc = test::installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC";
  Options options = default_options();
  options.nvrtc_path = nvrtc->path;
  options.cache = false;
  const ir::Graph graph =
      ir::parse("graph g(x: f16[128, 64], w: f16[64, 128]) { y = matmul(x, w, dtype=f16); return y }");
  const Executable executable = compile(Graph(graph), "sm_90a", options);
  try {
    executable({Array::zeros({128, 64}, DType::f16), Array::zeros({64, 128}, DType::f16)});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::no_device);
    EXPECT_EQ(error.message(), "compiled for sm_90a without a device");
  }
}

}  // namespace
}  // namespace tenon
