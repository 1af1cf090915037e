// See cuda_on_host.h. One shared library for each kernel, in a temporary folder, opened with dlopen.
#include "tests/harness/cuda_on_host.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace tenon::test {
namespace {

// As in cuda_shim.h.
struct HostThread {
  unsigned block, thread;
  void (*meet)();
  unsigned long long* slots;
};
using ThreadBody = void (*)(const HostThread& self, void* const* pointers, const long long* dims);

// The threads of the block that is running.
std::unique_ptr<std::barrier<>> block_barrier;

void run_block(ThreadBody body, unsigned block, unsigned threads, const std::vector<void*>& pointers,
               const std::vector<long long>& dims) {
  block_barrier = std::make_unique<std::barrier<>>(threads);
  std::vector<unsigned long long> slots(threads);
  std::vector<std::thread> team;
  for (unsigned thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      const auto meet = [] { block_barrier->arrive_and_wait(); };
      body({block, thread, meet, slots.data()}, pointers.data(), dims.data());
      block_barrier->arrive_and_drop();
    });
  for (std::thread& thread : team) thread.join();
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
}

std::string host_text(const codegen::Source& source) {
  std::string text = source.text;
  replace(text, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));)", "y = host_f16_to_f32(x.bits);");
  replace(text, R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));)", "y.bits = host_f32_to_f16(x);");
  return "#include \"" TENON_SOURCE_DIR "/tests/harness/cuda_shim.h\"\n" + text +
         "\nextern \"C\" void host_thread(const HostThread& self, void* const* pointers, const long long* dims) {\n"
         "  run_thread(" +
         source.entry + ", self, pointers, dims);\n}\n";
}

}  // namespace

void run_cuda_on_host(const codegen::Source& source, const std::vector<void*>& pointers, const Bindings& bindings) {
  std::string folder = (std::filesystem::temp_directory_path() / "tenon-cuda-on-host-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  std::ofstream(folder + "/kernel.cpp") << host_text(source);
  const std::string command =
      "c++ -std=c++17 -O0 -w -shared -fPIC -o " + folder + "/kernel.so " + folder + "/kernel.cpp 2> " + folder + "/log";
  if (system(command.c_str()) != 0) {
    std::ifstream log(folder + "/log");
    throw std::runtime_error(std::string(std::istreambuf_iterator<char>(log), {}) + source.text);
  }
  void* library = dlopen((folder + "/kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove_all(folder);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto body = reinterpret_cast<ThreadBody>(dlsym(library, "host_thread"));
  std::vector<long long> dims;
  for (const std::string& dim : source.dims) dims.push_back(bindings.at(dim));
  const auto grid = static_cast<unsigned>(source.launch.grid_x.evaluate(bindings));
  for (unsigned block = 0; block < grid; ++block)
    run_block(body, block, static_cast<unsigned>(source.launch.block), pointers, dims);
  dlclose(library);
}

}  // namespace tenon::test
