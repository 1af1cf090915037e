// tenon_generated_text FOLDER: what the compiler generates for every benchmark case, example and fusion test, so that
// two commits can be compared:
//     tenon_generated_text before && … && tenon_generated_text after && diff -r before after
// A file for each graph and target, FOLDER/TARGET/graphs/of/NAME.txt: of each launch its schedules and its text. CUDA
// text for three architectures, as planned without a device; LLVM text for three widths of this processor's vectors.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "src/driver/cost_model.h"
#include "src/driver/pipeline.h"
#ifdef TENON_WITH_CPU
#include "runtime/cpu/backend.h"
#include "runtime/cpu/host.h"
#endif

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"bench/cases", "bench/cases/cpu", "examples", "tests/fusion"};
constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_120"};

std::vector<fs::path> graph_files() {
  std::vector<fs::path> files;
  for (const char* folder : kFolders)
    for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw Error(ErrorKind::io, fmt::format("cannot write {}", path.string()));
}

// Calls emit(launch) for each launch of the plan; that gives its source.
template <typename Emit>
std::string text_of(const ir::Plan& plan, const codegen::Target& target, Emit emit) {
  std::string text = ir::print(plan);
  for (const std::vector<int>& set : ir::launched_together(plan))
    for (const codegen::Launch& launch : src::make_launches(plan, set, codegen::unspecialized(plan), target)) {
      for (std::size_t i = 0; i < launch.members.size(); ++i)
        text += fmt::format("\n{}: {}\n", launch.members[i].name, codegen::print(launch.members[i].schedule));
      text += emit(launch).text;
    }
  return text;
}

std::string cuda_text(const ir::Graph& graph, const std::string& architecture) {
  const codegen::Target target = codegen::cuda_target(architecture);
  const ir::Plan plan = src::plan(graph, codegen::TargetKind::cuda, default_options(), src::assumed_cost_model(target));
  return text_of(plan, target, [&](const codegen::Launch& launch) { return codegen::emit_cuda(launch, target); });
}

#ifdef TENON_WITH_CPU
constexpr int kVectorBytes[] = {64, 32, 16};

std::string cpu_text(const ir::Graph& graph, const runtime::Backend& backend) {
  const ir::Plan plan = src::plan(graph, backend.target().kind, default_options());
  return text_of(plan, backend.target(), [&](const codegen::Launch& launch) { return backend.emit(launch); });
}
#endif

void write_all(const fs::path& folder) {
  const std::vector<fs::path> files = graph_files();
  const auto place = [&](const std::string& target, const fs::path& file) {
    return (folder / target / fs::relative(file, TENON_SOURCE_DIR)).replace_extension(".txt");
  };
  for (const fs::path& file : files) {
    const ir::Graph graph = ir::read_file(file);
    for (const char* architecture : kArchitectures)
      write_text(place(architecture, file), cuda_text(graph, architecture));
  }
#ifdef TENON_WITH_CPU
  for (const int bytes : kVectorBytes) {
    if (runtime::cpu::host_target().vector_bytes < bytes) continue;
    runtime::cpu::BackendOptions options;
    options.vector_bytes = bytes;
    options.l3_bytes = std::int64_t{32} << 20;  // the same wherever both commits ran
    const auto backend = runtime::cpu::make_backend(options, std::make_shared<runtime::KernelCache>(nullptr));
    for (const fs::path& file : files)
      write_text(place(fmt::format("cpu_{}", 8 * bytes), file), cpu_text(ir::read_file(file), *backend));
  }
#endif
  fmt::print("{} graphs\n", files.size());
}

}  // namespace
}  // namespace tenon::test

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: tenon_generated_text FOLDER\n");
    return 2;
  }
  try {
    tenon::test::write_all(arguments[1]);
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
