// See cuda_on_host.h. One shared library for each kernel, in a temporary folder, opened with dlopen.
#include "tests/harness/cuda_on_host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/hopper_boxes.h"
#include "tests/harness/hopper_on_host.h"
#include "tests/harness/hopper_text.h"
#include "tests/harness/replace_text.h"

namespace tenon::test {
namespace {

using ThreadBody = void (*)(const HostThread& self, void* const* pointers, const long long* dims);

// The threads of the block that is running.
std::unique_ptr<std::barrier<>> block_barrier;
std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;

void run_block(ThreadBody body, unsigned block, unsigned blocks, unsigned threads, const std::vector<void*>& pointers,
               const std::vector<long long>& dims) {
  block_barrier = std::make_unique<std::barrier<>>(threads);
  warp_barriers.clear();
  for (unsigned first = 0; first < threads; first += 32)
    warp_barriers.push_back(std::make_unique<std::barrier<>>(std::min(32u, threads - first)));
  std::vector<unsigned long long> slots(threads);
  std::vector<std::thread> team;
  for (unsigned thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      const auto meet = [] { block_barrier->arrive_and_wait(); };
      const auto meet_warp = [](unsigned here) { warp_barriers[here / 32]->arrive_and_wait(); };
      body({block, thread, blocks, meet, meet_warp, slots.data(), nullptr, nullptr}, pointers.data(), dims.data());
      warp_barriers[thread / 32]->arrive_and_drop();
      block_barrier->arrive_and_drop();
    });
  for (std::thread& thread : team) thread.join();
}

// Tensor cores and copies (mma.cuh, tile.cuh, bulk.cuh, widen.cuh) in C++. Below sm_80, which this text is compiled as,
// copies do nothing: here they work, at once.
void replace_tensor_instructions(std::string& text, int shared_bytes) {
  replace_all(  // each member of a pack has its own
      text, "extern __shared__ __align__(16) unsigned char shared[];",
      "static __attribute__((aligned(16))) unsigned char shared[" + std::to_string(std::max(shared_bytes, 1)) + "];");
  replace_asm(text, "ldmatrix.sync.aligned.m8n8.x4.shared", {"host_ldmatrix(r, row, false);"});
  replace_asm(text, "ldmatrix.sync.aligned.m8n8.x4.trans", {"host_ldmatrix(r, row, true);"});
  replace_asm(text, "mma.sync.aligned.m16n8k8.row.col.f32.f16",
              {"host_mma_16bit(d, 8, {nullptr, {a[0], a[1], 0, 0, b0, 0}}, host_f16_to_f32);",
               "host_mma_16bit(d, 8, {nullptr, {a[2], a[3], 0, 0, b1, 0}}, host_f16_to_f32);"});
  replace_asm(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16",
              {"host_mma_16bit(d, 16, {nullptr, {a[0], a[1], a[2], a[3], b0, b1}}, [](unsigned short x) { return "
               "__uint_as_float((unsigned)x << 16); });"});
  replace_asm(text, "mma.sync.aligned.m16n8k8.row.col.f32.tf32",
              {"host_mma_tf32(d, {nullptr, {a[0], a[1], a[2], a[3], b0, b1}});"});
  replace_asm(text, "cvt.rna.tf32.f32", {"r[i] = (r[i] + 0x1000u) & ~0x1fffu;"});
  replace_asm(text, "{ .reg .b16 c; mov.b16 c, 0x5c00;",
              {"scaled = host_f32_to_f16(256 * host_f16_to_f32(magnitude));"});
  replace(text, "#if __CUDA_ARCH__ >= 800\n  const int available", "#if 1\n  const int available");
  replace_asm(text, "cp.async.cg.shared", {"host_copy(to, from, bytes, available);"});
  replace_asm(text, "cp.async.ca.shared", {"host_copy(to, from, bytes, available);"});
  replace_asm(text, "mbarrier.init", {"places[i] = 0;"});
  replace_asm(text, "fence.mbarrier_init", {""});
  replace_asm(text, "mbarrier.arrive.expect_tx", {"host_expect_bytes(place, bytes);"});
  const std::string bulk = "host_copy_bulk(to, from, bytes, place);";
  replace_asm(text, "cp.async.bulk", {bulk, bulk});
  replace_asm(text, "{ .reg .pred p; mbarrier.try_wait", {"there = host_arrived(place, parity);"});
}

// The compiler's checks call this function where an address is no multiple of its type's alignment: a GPU refuses such
// an access. What it leaves is the line of the kernel's text.
constexpr const char* kAlignmentChecks = R"(
extern "C" {
int misaligned_line = 0;
struct CheckedAccess {
  const char* file;
  unsigned line, column;
};
void __ubsan_handle_type_mismatch_v1(const CheckedAccess* access, const void*) { misaligned_line = access->line; }
}
)";

// Blocks that run as one: those of a cluster, or those that meet in memory.
int as_one(const codegen::LaunchRule& launch) { return launch.cluster * launch.together; }

std::string host_text(const codegen::Source& source) {
  std::string text = source.text;
  const bool hopper = uses_warpgroups(text);
  if (hopper) replace_hopper_instructions(text);
  replace_tensor_instructions(text, source.launch.shared_bytes * as_one(source.launch));
  replace(text, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));)", "y = host_f16_to_f32(x.bits);");
  replace(text, R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));)", "y.bits = host_f32_to_f16(x);");
  replace_asm(text, "cvt.s32.s8", {"y = (signed char)x;"});
  replace_asm(text, "ld.global.", {"wide = *p;", "w = *p;", "w = *p;", "w = *p;", "w = *p;"});
  if (const int together = source.launch.together; together > 1) {  // as one block, too
    const std::string meeting = fmt::format("row_meeting<{}, {}> meeting", together, source.launch.block);
    replace(text, meeting, fmt::format("row_meeting<1, {}> meeting", together * source.launch.block));
    replace_asm(text, "ld.relaxed.gpu.global.u32", {"count = *counter;"});
    replace_asm(text, "st.relaxed.gpu.global.u64", {"*(part(blockIdx.x % blocks) + i) = (u64)met << 32 | word[i];"});
    replace_asm(text, "ld.relaxed.gpu.global.u64", {"both = *(part(block) + i);"});
    replace(text, "meeting.begin(team >= half);", "");  // teams run one behind the other
    replace(text, "team + half < teams ?", "false ?");
  }
  if (const int cluster = source.launch.cluster; cluster > 1 && !hopper) {  // as one block
    replace_asm(text, "barrier.cluster.arrive", {"__syncthreads();"});
    replace_asm(text, "barrier.cluster.wait", {""});
    const std::string of = fmt::format("reduce_cluster<{}, {}>(", cluster, source.launch.block);
    while (text.find(of) != std::string::npos)
      replace(text, of, fmt::format("reduce_block<{}>(", cluster * source.launch.block));
    replace_asm(text, "mapa.shared::cluster", {"there = place;"});
    replace_asm(text, "ld.shared::cluster", {";"});
  }
  if (as_one(source.launch) > 1 && !hopper) {  // and each block's memory is a part of one
    const auto [threads, bytes] = std::pair(source.launch.block, source.launch.shared_bytes);
    replace_all(text, "*)(shared", fmt::format("*)(shared + threadIdx.x / {} * {}", threads, bytes));
    replace_all(text, " + threadIdx.x *", fmt::format(" + threadIdx.x % {} *", threads));
  }
  const auto shim = std::filesystem::absolute(TENON_SOURCE_DIR "/tests/harness/cuda_shim.h");  // the folder may be "."
  text = "#include \"" + shim.string() + "\"\n" + text;
  for (const std::string& entry : {source.entry, source.finish_entry})
    if (!entry.empty())
      text += "\nextern \"C\" void host_" + entry +
              "(const HostThread& self, void* const* pointers, const long long* dims) {\n  run_thread(" + entry +
              ", self, pointers, dims);\n}\n";
  text += kAlignmentChecks;
  text += "extern \"C\" void host_resume(const HostThread& self) { become(self); }\n";
  return text;
}

constexpr int kResidentClusters = 2;  // of warpgroups, or teams that meet in memory: so few that each has several tiles

// What a launch gives its functions.
struct Arguments {
  std::vector<void*> pointers;
  std::vector<long long> dims = {};
  std::vector<runtime::EncodedTensorMap> encoded = {};
  std::vector<const void*> maps = {};

  void take(std::span<const runtime::EncodedTensorMap> all) {
    for (const runtime::EncodedTensorMap& map : all)
      encoded.push_back(at_address(map, static_cast<const std::byte*>(pointers[map.pointer]) + map.offset));
    for (const runtime::EncodedTensorMap& map : encoded) maps.push_back(map.bytes.data());
  }
};

// A source as a library of host code.
class HostKernel final : public runtime::LoadedKernel {
 public:
  explicit HostKernel(const codegen::Source& source) : source_(source) {
    if (hopper_ || source.launch.together > 1) resident_blocks = kResidentClusters * as_one(source.launch);
    std::string folder = (std::filesystem::temp_directory_path() / "tenon-cuda-on-host-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
    std::ofstream(folder + "/kernel.cpp") << host_text(source);
    const std::string command = "c++ -std=c++17 -O0 -w -fsanitize=alignment -shared -fPIC -I" TENON_SOURCE_DIR " -o " +
                                folder + "/kernel.so " + folder + "/kernel.cpp 2> " + folder + "/log";
    if (system(command.c_str()) != 0) {
      std::ifstream log(folder + "/log");
      throw std::runtime_error(std::string(std::istreambuf_iterator<char>(log), {}) + source.text);
    }
    library_ = dlopen((folder + "/kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove_all(folder);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~HostKernel() override { dlclose(library_); }
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

  // `blocks` of the first function and `finish_blocks` of the second.
  void run(std::int64_t blocks, std::int64_t finish_blocks, const Arguments& arguments, std::uint64_t seed) const {
    static std::mutex one_at_a_time;  // blocks meet at a global barrier
    const std::lock_guard lock(one_at_a_time);
    const bool all = hopper_ && source_.launch.together > 1;  // meet in memory, wherever they are
    const int together = all ? static_cast<int>(blocks) : as_one(source_.launch);
    run(source_.entry, blocks, source_.launch.block, together, arguments, seed);
    if (!source_.finish_entry.empty())
      run(source_.finish_entry, finish_blocks, source_.finish.block, 1, arguments, seed);
    if (const int line = *symbol<const int*>("misaligned_line"); line != 0)
      throw std::runtime_error(
          fmt::format("line {} reads or writes at a misaligned address\n{}", line, host_text(source_)));
  }

 private:
  void run(const std::string& entry, std::int64_t blocks, int threads, int cluster, const Arguments& arguments,
           std::uint64_t seed) const {
    const auto body = symbol<ThreadBody>("host_" + entry);
    for (std::int64_t block = blocks - cluster; block >= 0 && cluster > 0; block -= cluster)  // a GPU promises no order
      if (hopper_) {
        run_cluster(
            {.first_block = static_cast<unsigned>(block),
             .blocks = static_cast<unsigned>(blocks),
             .cluster = cluster,
             .threads = threads,
             .shared_bytes = source_.launch.shared_bytes,
             .maps = arguments.maps,
             .seed = seed + static_cast<std::uint64_t>(block),
             .body = [&](const HostThread& self) { body(self, arguments.pointers.data(), arguments.dims.data()); },
             .resume = symbol<void (*)(const HostThread&)>("host_resume")});
      } else {
        run_block(body, static_cast<unsigned>(block), static_cast<unsigned>(blocks),
                  static_cast<unsigned>(threads * cluster), arguments.pointers, arguments.dims);
      }
  }
  template <class Pointer>
  Pointer symbol(const std::string& name) const {
    return reinterpret_cast<Pointer>(dlsym(library_, name.c_str()));
  }

  const codegen::Source source_;
  const bool hopper_ = uses_warpgroups(source_.text);
  void* library_ = nullptr;
};

class HostBackend final : public runtime::Backend {
 public:
  explicit HostBackend(bool warpgroups) {
    target_.multiprocessors = 4;  // splits into fewer parts
    target_.may.wgmma = warpgroups;
  }

  const codegen::Target& target() const override { return target_; }
  std::string device_name() const override { return "the host, as a GPU"; }
  codegen::Source emit(const codegen::Launch& launch) const override { return codegen::emit_cuda(launch, target_); }
  runtime::Binary build(const codegen::Source&) const override { return {nullptr, true, {}}; }
  std::shared_ptr<const runtime::LoadedKernel> load(const codegen::Source& source,
                                                    const runtime::Binary&) const override {
    return std::make_shared<const HostKernel>(source);
  }
  std::string disassemble(const codegen::Source&) const override { return {}; }
  void launch(const runtime::LaunchCall& launch, void*) const override {
    Arguments arguments{{launch.pointers.begin(), launch.pointers.end()}, {launch.dims.begin(), launch.dims.end()}};
    arguments.take(launch.function.tensor_maps);
    static_cast<const HostKernel&>(*launch.kernel).run(launch.function.grid, launch.finish.grid, arguments, 1);
  }
  runtime::EncodedTensorMap encode(const codegen::TensorMap& map, const Bindings& bindings) const override {
    return encode_on_host(map, bindings);
  }

  void* allocate(std::size_t bytes) const override { return std::aligned_alloc(256, (bytes + 255) / 256 * 256); }
  void release(void* memory) const noexcept override { std::free(memory); }
  void copy_in(void* to, const void* from, std::size_t bytes, void*) const override { std::memcpy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes, void*) const override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes, void*) const override { std::memcpy(to, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes, void*) const override { std::memset(to, byte, bytes); }
  void synchronize(void*) const override {}
  std::unique_ptr<runtime::Event> make_event() const override { throw std::runtime_error("nothing to measure"); }

 private:
  codegen::Target target_ = codegen::cuda_target("sm_90a");
};

}  // namespace

void run_cuda_on_host(const codegen::Source& source, const std::vector<void*>& pointers, const Bindings& bindings) {
  CudaOnHost(source).run(pointers, bindings);
}

struct CudaOnHost::Kernel {
  HostKernel loaded;
  codegen::Source source;
};

CudaOnHost::CudaOnHost(const codegen::Source& source) : kernel_(new Kernel{HostKernel(source), source}) {}
CudaOnHost::~CudaOnHost() = default;

void CudaOnHost::run(const std::vector<void*>& pointers, const Bindings& bindings, std::uint64_t seed) const {
  const codegen::Source& source = kernel_->source;
  Arguments arguments{pointers};
  for (const std::string& dim : source.dims) arguments.dims.push_back(bindings.at(dim));
  long long blocks_before = 0;  // of a pack's member
  for (std::size_t i = 0; i + 1 < source.launch.members.size(); ++i)
    arguments.dims.push_back(blocks_before += source.launch.members[i].evaluate(bindings));
  std::vector<runtime::EncodedTensorMap> maps;
  for (const codegen::TensorMap& map : source.launch.tensor_maps) maps.push_back(encode_on_host(map, bindings));
  arguments.take(maps);
  std::vector<std::byte> scratch(static_cast<std::size_t>(source.scratch_bytes.evaluate(bindings)), std::byte{0x7f});
  if (!source.scratch_bytes.is(0)) arguments.pointers.push_back(scratch.data());
  std::vector<std::uint64_t> zeroed(static_cast<std::size_t>(source.zeroed_bytes.evaluate(bindings)) / 8);
  if (!zeroed.empty()) arguments.pointers.push_back(zeroed.data());
  std::int64_t blocks = source.launch.grid_x.evaluate(bindings);
  if (const std::int64_t most = kernel_->loaded.resident_blocks; source.launch.resident && most > 0)
    blocks = std::min(blocks, most / source.launch.together * source.launch.together);
  kernel_->loaded.run(blocks, source.finish.grid_x.evaluate(bindings), arguments, seed);
  if (std::any_of(zeroed.begin(), zeroed.end(), [](std::uint64_t word) { return word != 0; }))
    throw std::runtime_error("zeroed memory is not left as it was");
}

std::shared_ptr<const runtime::Backend> cuda_on_host_backend(bool warpgroups) {
  return std::make_shared<const HostBackend>(warpgroups);
}

}  // namespace tenon::test
