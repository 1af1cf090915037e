// Types and constants that generated code names. Pieces are marked "//@" with what they provide; a kernel's source holds
// the pieces it needs and no other (codegen/emit/cuda/text/parts.cpp).

//@ i8
using i8 = signed char;
//@ i16
using i16 = short;
//@ i64
using i64 = long long;
//@ u8
using u8 = unsigned char;
//@ u16
using u16 = unsigned short;
//@ u32
using u32 = unsigned int;
//@ u64
using u64 = unsigned long long;

//@ f16
struct f16 { u16 bits; };
//@ bf16
struct bf16 { u16 bits; };
//@ f8e4m3
struct f8e4m3 { u8 bits; };
//@ f8e5m2
struct f8e5m2 { u8 bits; };

//@ inf_f32
__device__ __forceinline__ float inf_f32() { return __uint_as_float(0x7f800000u); }
//@ nan_f32
__device__ __forceinline__ float nan_f32() { return __uint_as_float(0x7fc00000u); }
//@ inf_f64
__device__ __forceinline__ double inf_f64() { return __longlong_as_double(0x7ff0000000000000ll); }
//@ nan_f64
__device__ __forceinline__ double nan_f64() { return __longlong_as_double(0x7ff8000000000000ll); }

//@ block_index
// The number of a block among those of one member of a pack.
struct block_index {
  u32 x;
};

//@ join_stream
// Lets the kernel behind this one in the stream start its blocks, and waits until the kernels ahead have ended and their
// stores are seen (PTX ISA: griddepcontrol). Nothing that one of the same run has written is touched before it.
__device__ __forceinline__ void join_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

//@ pack
// N elements that one thread handles together, aligned as a whole where their number is a power of two.
template <class T, int N>
struct __align__((N & (N - 1)) == 0 ? N * sizeof(T) : alignof(T)) pack {
  T element[N];
  __device__ __forceinline__ T& operator[](int j) { return element[j]; }
  __device__ __forceinline__ const T& operator[](int j) const { return element[j]; }
};
