// Rows that come whole (PTX ISA: cp.async.bulk, sm_90 on): one thread asks for them, and a place in shared memory knows
// when all their bytes are there.

//@ arrival
// An mbarrier of one thread. Its phases take turns, 0 and 1: one ends when the bytes expected of it are there.
using arrival = u64;

//@ begin_arrivals
// Called by all threads of a block, before the first is used.
template <int count>
__device__ __forceinline__ void begin_arrivals(arrival* places) {
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(places + i)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
}

//@ expect_bytes
// The phase that begins is that of so many bytes, asked for by the calling thread next.
__device__ __forceinline__ void expect_bytes(arrival* place, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(place)), "r"(bytes)
               : "memory");
}

//@ copy_bulk
// `bytes` from global to shared memory; all three are multiples of 16.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, u32 bytes, arrival* place) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(place))
               : "memory");
}

//@ copy_bulk_kept
// The same, of lines that the second-level cache is to keep (load_kept).
__device__ __forceinline__ void copy_bulk_kept(void* to, const void* from, u32 bytes, arrival* place) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(place)), "l"(keep_policy())
      : "memory");
}

//@ wait_arrival
// Until the bytes of phase `parity` are there.
__device__ __forceinline__ void wait_arrival(arrival* place, u32 parity) {
  u32 there = 0;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(there)
        : "r"(shared_address(place)), "r"(parity)
        : "memory");
  } while (there == 0);
}
