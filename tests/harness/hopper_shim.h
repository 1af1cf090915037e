// What generated CUDA that runs on the host is given, for both sides: the kernel's text (cuda_shim.h) and the harness
// (cuda_on_host.cpp). Stands in front of a kernel's text, so it includes nothing.
#pragma once

/// The instructions of hopper.cuh, each a function (hopper_on_host.h). All but the first three are those of the thread
/// that calls.
struct Hopper {
  virtual unsigned char* shared() = 0;                        ///< the block's memory
  virtual unsigned shared_address(const void* place) = 0;     ///< as descriptors have it
  virtual void wrote(const void* place, unsigned bytes) = 0;  ///< told of by stores to whatever memory

  virtual unsigned rank() = 0;  ///< of the block in its cluster
  virtual void join_cluster() = 0;
  virtual void meet_in_memory(const void* counters, unsigned blocks) = 0;      ///< a thread of each of so many
  virtual void load_of_block(float* x, const void* place, unsigned rank) = 0;  ///< four
  virtual void wait_turn(int number, int threads) = 0;
  virtual void give_turn(int number, int threads) = 0;
  virtual void give_registers(int count) = 0;  ///< all but so many
  virtual void take_registers(int count) = 0;  ///< until it has so many

  virtual void begin_barrier(unsigned long long* barrier, unsigned arrivals) = 0;
  virtual void publish_barriers() = 0;
  virtual void arrive(unsigned long long* barrier, unsigned rank) = 0;
  virtual void expect_bytes(unsigned long long* barrier, unsigned bytes) = 0;
  virtual void wait_arrival(unsigned long long* barrier, unsigned parity) = 0;

  /// To each block that `blocks` has a bit for.
  virtual void copy_box(void* to, const void* map, unsigned long long* barrier, unsigned blocks, int rank, int x, int y,
                        int z, int w) = 0;
  virtual void copy_box_out(const void* map, const void* from, int x, int y, int z, int w) = 0;
  virtual void commit_boxes() = 0;
  virtual void wait_boxes(int pending) = 0;
  virtual void copy_async(void* to, const void* from, int bytes, int available) = 0;
  virtual void commit_copies() = 0;
  virtual void wait_copies(int pending) = 0;
  virtual void publish_writes() = 0;

  virtual void begin_products() = 0;
  /// m64n`columns`, 32 bytes of the depth; types: "bf16", "f16", "e4m3", "e5m2"; `across`: the operand's lines do not
  /// run along the depth.
  virtual void multiply(float* sums, unsigned long long a, unsigned long long b, bool add, int columns,
                        const char* type_a, const char* type_b, bool across_a, bool across_b) = 0;
  /// The same with a fragment of a in registers, of four words.
  virtual void multiply_fragment(float* sums, const unsigned* a, unsigned long long b, bool add, int columns,
                                 const char* type_a, const char* type_b, bool across_b) = 0;
  virtual void commit_products() = 0;
  virtual void wait_products(int pending) = 0;

 protected:
  ~Hopper() = default;
};

struct HostThread {
  unsigned block, thread;
  unsigned blocks;  ///< of the grid
  void (*meet)();   ///< where the threads of a block meet, and those of a warp
  void (*meet_warp)(unsigned thread);
  unsigned long long* slots;  ///< what each thread of a block offers in a shuffle
  const void* const* maps;    ///< the launch's tensor maps
  Hopper* hopper;             ///< null where kernels do without
};
