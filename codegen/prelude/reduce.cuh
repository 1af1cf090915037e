// Reductions over the threads that share a row. Fixed trees and no atomics: the result depends on the data alone, and
// every thread gets it. `combine` must be associative and commutative up to rounding.

//@ arg
// A candidate of argmax or argmin. The first NaN wins, then the best value, then the lower index.
template <class V, class I>
struct arg {
  V value;
  I index;
};
template <class V, class I>
__device__ __forceinline__ arg<V, I> shuffle_xor(arg<V, I> x, int mask) {
  return {shuffle_xor(x.value, mask), shuffle_xor(x.index, mask)};
}

//@ first_max
template <class V, class I>
__device__ __forceinline__ arg<V, I> first_max(arg<V, I> a, arg<V, I> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool tie = a.value == b.value || (a_nan && b_nan);
  return (!(b.value <= a.value) && !a_nan) || (tie && b.index < a.index) ? b : a;
}

//@ then_max
// The same where `index` is beyond that of `a`: a tie changes nothing.
template <class V, class I, class Position>
__device__ __forceinline__ arg<V, I> then_max(arg<V, I> a, V value, Position index) {
  const bool better = !(value <= a.value) && a.value == a.value;  // or the first NaN
  return {better ? value : a.value, better ? (I)index : a.index};
}

//@ first_min
template <class V, class I>
__device__ __forceinline__ arg<V, I> first_min(arg<V, I> a, arg<V, I> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool tie = a.value == b.value || (a_nan && b_nan);
  return (!(b.value >= a.value) && !a_nan) || (tie && b.index < a.index) ? b : a;
}

//@ then_min
// The same where `index` is beyond that of `a`: a tie changes nothing.
template <class V, class I, class Position>
__device__ __forceinline__ arg<V, I> then_min(arg<V, I> a, V value, Position index) {
  const bool better = !(value >= a.value) && a.value == a.value;  // or the first NaN
  return {better ? value : a.value, better ? (I)index : a.index};
}

//@ shuffle_xor
__device__ __forceinline__ float shuffle_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
__device__ __forceinline__ double shuffle_xor(double x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
__device__ __forceinline__ i64 shuffle_xor(i64 x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
template <class T>
__device__ __forceinline__ T shuffle_xor(T x, int mask) {
  return (T)__shfl_xor_sync(~0u, (int)x, mask);
}

//@ reduce_lanes
// Over `lanes` neighbouring lanes of a warp, a power of two. Every lane of the warp must call it.
template <int lanes, class T, class Combine>
__device__ __forceinline__ T reduce_lanes(T x, Combine combine) {
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
  return x;
}

//@ combine_warps
// One part of each warp of a block, all of them by every thread: in order, since few instructions are between one and
// the next, or pairs of candidates (the only struct here) in a tree, since comparing two takes long. A candidate that
// comes twice changes nothing.
template <int warps, class T, class Combine>
__device__ __forceinline__ T combine_warps(const T* parts, Combine combine) {
  if constexpr (__is_class(T)) {
    constexpr int lanes = warps > 16 ? 32 : warps > 8 ? 16 : warps > 4 ? 8 : warps > 2 ? 4 : warps;
    return reduce_lanes<lanes>(parts[threadIdx.x % lanes % warps], combine);
  } else {
    T x = parts[0];
#pragma unroll
    for (int warp = 1; warp < warps; ++warp) x = combine(x, parts[warp]);
    return x;
  }
}

//@ leave_warps
// Over a block in two steps, with the caller's barrier between them, which several reductions can share: one part for
// each warp, then combine_warps.
template <class T, class Combine>
__device__ __forceinline__ void leave_warps(T* parts, T x, Combine combine) {
  x = reduce_lanes<32>(x, combine);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
}

//@ reduce_block
// Over a block of `threads`, a multiple of 32. Each call in a kernel has its own buffer (`combine` is a lambda, so each
// is an instantiation of its own) and is reached once, which is why one barrier is enough.
template <int threads, class T, class Combine>
__device__ __forceinline__ T reduce_block(T x, Combine combine) {
  __shared__ T partial[threads / 32];
  leave_warps(partial, x, combine);
  __syncthreads();
  return combine_warps<threads / 32>(partial, combine);
}

//@ meet_cluster
// A barrier of all threads of a cluster; what they stored before it is seen behind it (PTX ISA: barrier.cluster).
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

//@ reduce_cluster
// Over the `blocks` of a cluster, of `threads` each; in the order of the blocks. Each call in a kernel has its own
// buffer, as in reduce_block. Blocks must meet once more before one may end.
template <int blocks, int threads, class T, class Combine>
__device__ __forceinline__ T reduce_cluster(T x, Combine combine) {
  constexpr int words = (sizeof(T) + 3) / 4;
  __shared__ u32 own[words];
  x = reduce_block<threads>(x, combine);
  u32 word[words] = {};
  memcpy(word, &x, sizeof(T));
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < words; ++i) own[i] = word[i];
  }
  meet_cluster();
  const u32 place = (u32)__cvta_generic_to_shared(own);
#pragma unroll
  for (int block = 0; block < blocks; ++block) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(block));
#pragma unroll
    for (int i = 0; i < words; ++i)
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(word[i]) : "r"(there + 4 * i) : "memory");
    T its;
    memcpy(&its, word, sizeof(T));
    x = block == 0 ? its : combine(x, its);
  }
  return x;
}

//@ row_meeting
// The blocks of a row, of `threads` each, which meet in memory: all blocks of the grid run at once. A block leaves its
// part of a reduction, of up to 16 bytes, in one of two places by turns: who writes to a place again has met everyone in
// between, so that all have read it. Each word lies beside the number of the meeting, 8 bytes that are stored at once:
// who finds the number has the word, and no fence is needed. One thread of a block looks whether all have arrived: more
// would take the L2 from those that still load. The second half of the teams, which are the later blocks of the
// multiprocessors, begins when those of the first have met once, so that one moves elements while another waits. All
// of the state is 0 before the first meeting and when all have left.
struct meeting_state {
  u32 begun;    // the team may begin
  u32 arrived;  // blocks, at all meetings
  u32 left;
};
template <int blocks, int threads>
struct row_meeting {
  static constexpr int kWords = 4;  // of a part
  meeting_state* state;             // of the team; its parts lie behind it
  meeting_state* after;             // of the team that begins later; null where there is none
  u32 met = 0;

  __device__ __forceinline__ u64* part(int block) const {
    return (u64*)state + 16 + (met % 2 * blocks + block) * kWords;
  }
  static __device__ __forceinline__ void wait(const u32* counter, u32 wanted) {
    u32 count;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
    while (count < wanted);
  }
  __device__ __forceinline__ u64 word_of(int block, int i) const {
    u64 both;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(part(block) + i) : "memory");
    return both;
  }
  __device__ __forceinline__ void begin(bool later) {
    if (!later) return;
    if (threadIdx.x == 0) wait(&state->begun, 1);
    __syncthreads();
  }
  // In a fixed order of the blocks; every thread gets the results. Several reductions share the meeting.
  template <class T, int N, class Combine>
  __device__ __forceinline__ pack<T, N> reduce(pack<T, N> x, Combine combine) {
    constexpr int each = (sizeof(T) + 3) / 4, words = N * each;
    constexpr int some = blocks < 2     ? 1
                         : blocks < 4  ? 2
                         : blocks < 8  ? 4
                         : blocks < 16 ? 8
                         : blocks < 32 ? 16
                         : blocks < 64 ? 32
                         : blocks < 128 ? 64
                                        : 128;
    constexpr int most = threads < 64 ? 32 : threads < 128 ? 64 : 128;
    constexpr int readers = some < most ? some : most, lanes = readers < 32 ? readers : 32;
    constexpr int turns = (blocks + readers - 1) / readers, warps = (readers + 31) / 32;
    __shared__ T of_warps[N][threads / 32], of_readers[N][warps];
    ++met;
#pragma unroll
    for (int j = 0; j < N; ++j) leave_warps(of_warps[j], x[j], combine);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = combine_warps<threads / 32>(of_warps[j], combine);
    u32 word[words] = {};
    if (threadIdx.x == 0) {
#pragma unroll
      for (int j = 0; j < N; ++j) memcpy(word + j * each, &x[j], sizeof(T));
#pragma unroll
      for (int i = 0; i < words; ++i)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(part(blockIdx.x % blocks) + i),
                     "l"((u64)met << 32 | word[i])
                     : "memory");
      atomicAdd(&state->arrived, 1);
      wait(&state->arrived, met * blocks);
      if (met == 1 && after != nullptr && blockIdx.x % blocks == 0) atomicExch(&after->begun, 1);
    }
    __syncthreads();
    if (threadIdx.x < 32 * warps) {  // few threads, as above
      const int reader = threadIdx.x % readers;
      u64 both[turns][words];
#pragma unroll
      for (int turn = 0; turn < turns; ++turn)
#pragma unroll
        for (int i = 0; i < words; ++i) both[turn][i] = word_of(min(turn * readers + reader, blocks - 1), i);
#pragma unroll
      for (int turn = 0; turn < turns; ++turn) {
        if (turn * readers + reader >= blocks) continue;
#pragma unroll
        for (int i = 0; i < words; ++i) {
          while (both[turn][i] >> 32 != met) both[turn][i] = word_of(turn * readers + reader, i);
          word[i] = (u32)both[turn][i];
        }
#pragma unroll
        for (int j = 0; j < N; ++j) {
          T its;
          memcpy(&its, word + j * each, sizeof(T));
          x[j] = turn == 0 ? its : combine(x[j], its);
        }
      }
#pragma unroll
      for (int j = 0; j < N; ++j) {
        x[j] = reduce_lanes<lanes>(x[j], combine);
        if (threadIdx.x % 32 == 0) of_readers[j][threadIdx.x / 32] = x[j];
      }
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = combine_warps<warps>(of_readers[j], combine);
    return x;
  }
  template <class T, class Combine>
  __device__ __forceinline__ T reduce(T x, Combine combine) {
    return reduce(pack<T, 1>{{x}}, combine)[0];
  }
  // Behind the last row.
  __device__ __forceinline__ void leave() {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&state->left, 1) == blocks - 1;
    __syncthreads();
    if (!last) return;
    for (int i = threadIdx.x; i < 2 * blocks * kWords; i += threads) ((u64*)state)[16 + i] = 0;
    if (threadIdx.x == 0) *state = {};
  }
};

//@ reduce_columns
// Each of N values over the threads of a block with the same threadIdx.x % columns: those of a warp, then of all warps.
// Buffers as in reduce_block, used once for each value.
template <int columns, int threads, class T, int N, class Combine>
__device__ __forceinline__ pack<T, N> reduce_columns(pack<T, N> x, Combine combine) {
  constexpr int wide = columns < 32 ? 32 : columns;  // threads of a part
  __shared__ T partial[threads / wide * columns];
  const int column = threadIdx.x % columns;
#pragma unroll
  for (int j = 0; j < N; ++j) {
#pragma unroll
    for (int mask = 16; mask >= columns; mask /= 2) x[j] = combine(x[j], shuffle_xor(x[j], mask));
    if (j > 0) __syncthreads();
    if (threadIdx.x % wide < columns) partial[threadIdx.x / wide * columns + column] = x[j];
    __syncthreads();
    x[j] = partial[column];
#pragma unroll
    for (int part = 1; part < threads / wide; ++part) x[j] = combine(x[j], partial[part * columns + column]);
  }
  return x;
}

//@ leave_outer
// Each of N values over the threads of a block with the same threadIdx.x % lanes, to `to`, of which `count` exist: those
// of a warp, then of all warps in order. `shared` holds N values for each of the lanes of every warp.
template <int lanes, int threads, class T, int N, class Combine>
__device__ __forceinline__ void leave_outer(T* to, int count, pack<T, N> x, unsigned char* shared, Combine combine) {
  constexpr int all = lanes * N;
  T* parts = (T*)shared;
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int mask = 16; mask >= lanes; mask /= 2) x[j] = combine(x[j], shuffle_xor(x[j], mask));
  __syncthreads();  // what was there has been read
  if (threadIdx.x % 32 < lanes) {
#pragma unroll
    for (int j = 0; j < N; ++j) parts[threadIdx.x / 32 * all + threadIdx.x % lanes * N + j] = x[j];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < min(all, count); i += threads) {
    T sum = parts[i];
#pragma unroll 8
    for (int warp = 1; warp < threads / 32; ++warp) sum = combine(sum, parts[warp * all + i]);
    to[i] = sum;
  }
}

//@ rescaled
// A sum of exp(x - from) as one of exp(x - to). Of nothing, or of elements at -inf only, it stays 0 whatever the shifts.
__device__ __forceinline__ float rescaled(float sum, float from, float to) {
  const float factor = exp(from - to);
  return sum == 0.0f ? 0.0f : sum * factor;
}
__device__ __forceinline__ double rescaled(double sum, float from, float to) {  // of blocks of the float above
  const float factor = exp(from - to);
  return sum == 0.0 ? 0.0 : sum * factor;
}
__device__ __forceinline__ double rescaled(double sum, double from, double to) {
  const double factor = exp(from - to);
  return sum == 0.0 ? 0.0 : sum * factor;
}

//@ shift_of
// The maximum so far as a shift: of nothing, or of elements at -inf only, exponentials are summed up as they are.
template <class T>
__device__ __forceinline__ T shift_of(T maximum) {
  return maximum < 0 && maximum - maximum != 0 ? T(0) : maximum;
}

//@ around_maximum
// The sum of exp(x - maximum), from one whose shift was shift_of a maximum. That of elements at -inf only is NaN.
template <class T>
__device__ __forceinline__ T around_maximum(T sum, T maximum) {
  return maximum < 0 && maximum - maximum != 0 ? maximum - maximum : sum;
}

//@ squares_around_zero
// The sum of x² of n elements whose sum is `sum`, from that of (x - mean)². Exact for any `mean`, so that its rounding
// does not matter.
__device__ __forceinline__ double squares_around_zero(float squares, float sum, float mean, int n) {
  return (double)squares + (double)mean * (2.0 * (double)sum - (double)n * (double)mean);
}

//@ add_around
// Adds n elements to the sums of x and of x²: `sum` and `squares` are those of x - pivot and (x - pivot)². Exact for any
// pivot but for the roundings of a double.
__device__ __forceinline__ void add_around(double& sums, double& squared, float sum, float squares, float pivot, int n) {
  const double shift = (double)n * (double)pivot;
  sums += (double)sum + shift;
  squared += (double)squares + (double)pivot * (2.0 * (double)sum + shift);
}

//@ moved_pivot
// The mean of n elements whose sum of x - pivot is `sum`, if that is a number.
__device__ __forceinline__ float moved_pivot(float pivot, float sum, int n) {
  const float mean = pivot + sum / n;
  return mean - mean == 0.0f ? mean : pivot;
}

//@ squares_around_mean
// The sum of (x - mean)² of n elements, from those of x² and x. What cancels was added in double: less is lost than
// the mean's rounding to float would cost.
__device__ __forceinline__ float squares_around_mean(double squares, double sum, i64 n) {
  const double rest = fma(-(sum / (double)n), sum, squares);
  return (float)(rest < 0.0 ? 0.0 : rest);
}

//@ combine_parts
// Parts first, first + step, … of `parts`, in this order. They stand `stride` apart.
template <int parts, int step, class T, class Combine>
__device__ __forceinline__ T combine_parts(const T* p, i64 stride, int first, T x, Combine combine) {
#pragma unroll 8
  for (int part = first; part < parts; part += step) x = combine(x, p[part * stride]);
  return x;
}

//@ combine_at_once
// The same parts in the same order, where they are few: all are under way before the first is waited for.
template <int parts, int step, class T, class Combine>
__device__ __forceinline__ T combine_at_once(const T* p, i64 stride, int first, T x, Combine combine) {
  constexpr int most = (parts + step - 1) / step;
  T part[most];
#pragma unroll
  for (int i = 0; i < most; ++i) part[i] = p[min(first + i * step, parts - 1) * stride];
#pragma unroll
  for (int i = 0; i < most; ++i)
    if (first + i * step < parts) x = combine(x, part[i]);
  return x;
}
