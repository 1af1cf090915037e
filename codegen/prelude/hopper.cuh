// What sm_90a has for matrix products, an instruction each: boxes that tensor maps describe and one thread asks for
// (PTX ISA: cp.async.bulk.tensor), products of whole warpgroups (wgmma), registers that move between warpgroups
// (setmaxnreg), barriers that count arrivals (mbarrier), also those of other blocks of the cluster.

//@ tensor_map
// 128 bytes that the driver encodes (codegen/emit/source.h).
struct __align__(64) tensor_map { u64 words[16]; };

//@ begin_barriers
// `count` barriers that complete a phase at `arrivals` arrivals each. Called by one thread.
template <int count>
__device__ __forceinline__ void begin_barriers(arrival* barriers, u32 arrivals) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barriers + i)), "r"(arrivals) : "memory");
}

//@ publish_barriers
// Makes barriers known to the copy engine and to the other blocks of the cluster. Called by the thread that began them.
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

//@ cluster_rank
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

//@ join_cluster
// All threads of all blocks of the cluster.
__device__ __forceinline__ void join_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

//@ arrive
// One arrival at a barrier of this block, or of block `rank` of the cluster.
__device__ __forceinline__ void arrive(arrival* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void arrive(arrival* barrier, u32 rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

//@ prefetch_map
__device__ __forceinline__ void prefetch_map(const tensor_map& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

//@ copy_box
// The box at these coordinates, the contiguous dimension first, from global to shared memory. What lies outside the
// tensor is 0; `place` gets the bytes of a whole box all the same.
__device__ __forceinline__ void copy_box(void* to, const tensor_map& map, arrival* place, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   shared_address(to)),
               "l"(&map), "r"(shared_address(place)), "r"(x), "r"(y)
               : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const tensor_map& map, arrival* place, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(shared_address(place)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void copy_box(void* to, const tensor_map& map, arrival* place, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(shared_address(place)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

//@ copy_box_out
// The box at these coordinates, from shared memory to global; what lies outside the tensor is not stored. The thread
// commits what it asks for (commit_boxes), and waits until the memory that they are read from is free (wait_boxes).
__device__ __forceinline__ void copy_box_out(const tensor_map& map, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(shared_address(from)), "r"(x), "r"(y)
               : "memory");
}
__device__ __forceinline__ void copy_box_out(const tensor_map& map, const void* from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
               : "memory");
}
__device__ __forceinline__ void copy_box_out(const tensor_map& map, const void* from, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

//@ commit_boxes wait_boxes
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All but the `pending` latest groups of boxes have been read.
template <int pending>
__device__ __forceinline__ void wait_boxes() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

//@ copy_box_to_all
// The same to this place in every block of the cluster that `blocks` has a bit for; each one's barrier gets the bytes.
__device__ __forceinline__ void copy_box_to_all(void* to, const tensor_map& map, arrival* place, u16 blocks, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], "
      "[%2], %3;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(place)), "h"(blocks), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void copy_box_to_all(void* to, const tensor_map& map, arrival* place, u16 blocks, int x, int y,
                                                int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, "
      "%6}], [%2], %3;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(place)), "h"(blocks), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void copy_box_to_all(void* to, const tensor_map& map, arrival* place, u16 blocks, int x, int y,
                                                int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, "
      "%6, %7}], [%2], %3;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(place)), "h"(blocks), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

//@ load_of_block
// What lies at this place in the shared memory of another block of the cluster.
__device__ __forceinline__ pack<float, 4> load_of_block(const float* place, int block) {
  pack<float, 4> x;
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there]; }"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(shared_address(place)), "r"(block)
      : "memory");
  return x;
}

//@ meet_in_memory
// A thread of each of `blocks` blocks, which run at once, waits for those of the others; what the threads that it has met
// had stored, the blocks read behind it. Both counters are 0 before and when all have left.
__device__ __forceinline__ void meet_in_memory(u32* counters, u32 blocks) {
  u32 arrived;
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counters) : "memory");
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counters) : "memory");
  while (arrived < blocks);
  if (atomicAdd(counters + 1, 1) == blocks - 1) counters[0] = counters[1] = 0;
}

//@ publish_writes
// What the thread has written to shared memory is seen by the tensor cores and the copy engine.
__device__ __forceinline__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

//@ give_registers
// The warpgroup keeps so many registers a thread; others may take the rest.
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
//@ take_registers
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

//@ begin_products
// Ahead of a group of products: what the threads did with the sums is done.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
//@ commit_products
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
//@ wait_products
// Until at most `pending` groups are under way.
template <int pending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

//@ settle
// Keeps the compiler from moving what is done with sums across this place.
template <int count>
__device__ __forceinline__ void settle(float (&sum)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

//@ forget
// Says that nothing reads these registers before they are written: no copy keeps what is in them.
template <int N>
__device__ __forceinline__ void forget(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "=f"(d[i]));
}

//@ wait_turn
// Until `threads` have come to barrier `number` (1 to 15): these, which wait, and those that gave the turn.
template <int threads>
__device__ __forceinline__ void wait_turn(int number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(threads) : "memory");
}
//@ give_turn
template <int threads>
__device__ __forceinline__ void give_turn(int number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(threads) : "memory");
}

//@ tile_descriptor
// Where a tile lies in shared memory, for wgmma (PTX ISA, "Matrix descriptor"): lines of 128 bytes, whose 16-byte pieces
// change places as tensor maps do it; `leading` bytes between neighbouring tiles of 64 elements when lines lie across the
// depth. Steps along the depth, or to the next 64 rows, are added in units of 16 bytes.
__device__ __forceinline__ u64 tile_descriptor(const void* tile, u32 leading) {
  constexpr u64 swizzled_128 = 1ull << 62, eight_lines = (u64)(1024 >> 4) << 32;
  return swizzled_128 | eight_lines | (u64)(leading >> 4) << 16 | (u64)((shared_address(tile) & 0x3ffff) >> 4);
}

//@ short_tile_descriptor
// The same of lines of 64 bytes along the depth.
__device__ __forceinline__ u64 short_tile_descriptor(const void* tile) {
  constexpr u64 swizzled_64 = 2ull << 62, eight_lines = (u64)(512 >> 4) << 32;
  return swizzled_64 | eight_lines | (u64)((shared_address(tile) & 0x3ffff) >> 4);
}

//@ eight_lines_descriptor
// Of a tile whose lines are all the same eight: 1024 bytes of shared memory, aligned to as many.
__device__ __forceinline__ u64 eight_lines_descriptor(const void* tile) {
  return 1ull << 62 | (u64)((shared_address(tile) & 0x3ffff) >> 4);
}
