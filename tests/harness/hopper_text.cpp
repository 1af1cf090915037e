// See hopper_text.h.
#include "tests/harness/hopper_text.h"

#include <fmt/format.h>

#include <regex>

#include "tests/harness/replace_text.h"

namespace tenon::test {
namespace {

// The products' shapes, types and transpositions stand in their text; of one with a fragment in registers there is one
// transposition.
bool replace_product(std::string& text) {
  static const std::regex pattern(
      R"re(wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(?:16|32)\.f32\.(\w+)\.(\w+)[^;]*"\}, (\{?)%[^;]*, p, 1, 1(?:, ([01]))?(?:, ([01]))?; \})re");
  std::smatch found;
  if (!std::regex_search(text, found, pattern)) return false;
  const auto across = [&](std::size_t i) { return found[i].matched ? found[i].str() : "0"; };
  const bool in_registers = found[4].length() > 0;
  const std::string call = in_registers
                               ? fmt::format("hopper->multiply_fragment(d, a, b, add, {}, \"{}\", \"{}\", {});",
                                             found[1].str(), found[2].str(), found[3].str(), across(5))
                               : fmt::format("hopper->multiply(d, a, b, add, {}, \"{}\", \"{}\", {}, {});",
                                             found[1].str(), found[2].str(), found[3].str(), across(5), across(6));
  replace_asm(text, "{ .reg .pred p; setp.ne.b32 p, ", {call});
  return true;
}

}  // namespace

bool uses_warpgroups(const std::string& text) { return text.find("wgmma.mma_async") != std::string::npos; }

void replace_hopper_instructions(std::string& text) {
  while (replace_product(text)) {
  }
  replace(text, "extern __shared__ __align__(1024) unsigned char shared[];",
          "unsigned char* const shared = hopper->shared();");
  // Stores are told of, wherever they go: f(p, x) with `p` first.
  replace(text, "__device__ __forceinline__ void store(T* __restrict__ p, const pack<T, N>& x) {",
          "__device__ __forceinline__ void store(T* __restrict__ p, const pack<T, N>& x) {\n"
          "  hopper->wrote(p, N * sizeof(T));");
  replace_asm(text, "mbarrier.init.shared::cta.b64", {"hopper->begin_barrier(barriers + i, arrivals);"});
  replace_asm(text, "fence.mbarrier_init", {"hopper->publish_barriers();"});
  replace_asm(text, "mov.u32 %0, %%cluster_ctarank", {"rank = hopper->rank();"});
  replace_asm(text, "barrier.cluster.arrive", {"hopper->join_cluster();"});
  replace_asm(text, "red.release.gpu.global.add.u32", {"hopper->meet_in_memory(counters, blocks);"});
  replace_asm(text, "ld.acquire.gpu.global.u32", {"arrived = blocks;"});
  replace_asm(text, "mbarrier.arrive.shared::cta.b64", {"hopper->arrive(barrier, hopper->rank());"});
  replace_asm(text, "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive",
              {"hopper->arrive(barrier, rank);"});
  replace_asm(text, "{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; ld.shared::cluster",
              {"hopper->load_of_block(&x[0], place, block);"});
  replace_asm(text, "mbarrier.arrive.expect_tx", {"hopper->expect_bytes(place, bytes);"});
  replace_asm(text, "{ .reg .pred p; mbarrier.try_wait", {"hopper->wait_arrival(place, parity), there = 1;"});
  replace_asm(text, "prefetch.tensormap", {";"});
  replace_asm(text, "prefetch.global.L2 [", {";"});
  const char* const coordinates[] = {"x, y, 0, 0", "x, y, z, 0", "x, y, z, w"};
  for (int i = 0; i < 3; ++i) {
    const std::string opcode = fmt::format("cp.async.bulk.tensor.{}d.", i + 2);
    replace_asm(text, opcode + "shared::cluster.global.mbarrier::complete_tx::bytes [",
                {fmt::format("hopper->copy_box(to, &map, place, 0, hopper->rank(), {});", coordinates[i])});
    replace_asm(text, opcode + "shared::cluster.global.mbarrier::complete_tx::bytes.multicast",
                {fmt::format("hopper->copy_box(to, &map, place, blocks, -1, {});", coordinates[i])});
  }
  for (int i = 0; i < 3; ++i)
    replace_asm(text, fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta", i + 2),
                {fmt::format("hopper->copy_box_out(&map, from, {});", coordinates[i])});
  replace_asm(text, "cp.async.bulk.commit_group", {"hopper->commit_boxes();"});
  replace_asm(text, "cp.async.bulk.wait_group.read", {"hopper->wait_boxes(pending);"});
  replace(text, "#if __CUDA_ARCH__ >= 800\n  const int available", "#if 1\n  const int available");
  replace(text, "#if __CUDA_ARCH__ >= 800\n  asm volatile(\"cp.async.commit",
          "#if 1\n  asm volatile(\"cp.async.commit");
  replace(text, "#if __CUDA_ARCH__ >= 800\n  asm volatile(\"cp.async.wait", "#if 1\n  asm volatile(\"cp.async.wait");
  replace_asm(text, "cp.async.cg.shared", {"hopper->copy_async(to, from, bytes, available);"});
  replace_asm(text, "cp.async.ca.shared", {"hopper->copy_async(to, from, bytes, available);"});
  replace_asm(text, "cp.async.commit_group", {"hopper->commit_copies();"});
  replace_asm(text, "cp.async.wait_group", {"hopper->wait_copies(pending);"});
  replace_asm(text, "fence.proxy.async", {"hopper->publish_writes();"});
  replace_asm(text, "setmaxnreg.dec", {"hopper->give_registers(registers);"});
  replace_asm(text, "setmaxnreg.inc", {"hopper->take_registers(registers);"});
  replace_asm(text, "wgmma.fence", {"hopper->begin_products();"});
  replace_asm(text, "wgmma.commit_group", {"hopper->commit_products();"});
  replace_asm(text, "wgmma.wait_group", {"hopper->wait_products(pending);"});
  replace(text, R"(asm volatile("" : "+f"(sum[i])::"memory");)", ";");
  replace(text, R"(asm volatile("" : "=f"(d[i]));)", "d[i] = __builtin_nanf(\"\");");
  replace(text, R"(asm volatile("" : "+r"(p[i][0]), "+r"(p[i][1]), "+r"(p[i][2]), "+r"(p[i][3])::"memory");)", ";");
  replace_asm(text, "bar.sync", {"hopper->wait_turn(number, threads);"});
  replace_asm(text, "bar.arrive", {"hopper->give_turn(number, threads);"});
}

}  // namespace tenon::test
