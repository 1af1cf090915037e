// A user's program: only installed headers, only the public API. Where the build has a CPU target, it runs.
#include <cstdio>

#include "tenon/tenon.h"

namespace {

// 1 when the operators said of a mistake what they should.
int errors_name_the_remedy() {
  tenon::Graph g;
  try {
    g.input("x", tenon::DType::f32, {2}) + g.input("i", tenon::DType::i32, {2});
  } catch (const tenon::Error& error) {
    std::puts(error.what());
    return error.kind() == tenon::ErrorKind::type && !error.remedy().empty();
  }
  return 0;
}

bool runs_on(const char* target) {
  tenon::Graph g("package");
  const tenon::Dim rows = g.dim("rows");
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {rows, 4});
  g.output("y", maximum(2 * x - 1, 0));
  std::puts(g.str().c_str());
  const tenon::Executable run = tenon::compile(g, target);
  const std::vector<float> y = run({tenon::Array::from({0, 0.5F, 1, 2}, {1, 4})})[0].to<float>();
  return y == std::vector<float>{0, 0, 1, 3};
}

// What a static library needs of libzip must be there too.
bool keeps_weights() {
  const char* const path = "uses_tenon.npz";
  try {
    tenon::save_npz(path, {{"w", tenon::Array::from({1, 2}, {2})}});
  } catch (const tenon::Error& error) {
    return error.kind() == tenon::ErrorKind::unsupported;  // a build without libzip
  }
  const std::vector<float> w = tenon::load_npz(path)["w"].array().to<float>();
  std::remove(path);
  return w == std::vector<float>{1, 2};
}

}  // namespace

int main() {
  if (!errors_name_the_remedy() || !keeps_weights()) return 1;
  try {
    return runs_on("cpu") ? 0 : 1;
  } catch (const tenon::Error& error) {
    std::puts(error.what());
    return error.kind() == tenon::ErrorKind::unsupported ? 0 : 1;  // a build without the CPU target
  }
}
