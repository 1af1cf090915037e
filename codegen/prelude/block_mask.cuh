// Which tiles of keys a tile of queries sees, and which of them it sees wholly, from the least and the greatest of what a
// mask compares. A warp looks at 32 tiles at once, each lane at one.

//@ span span_of span_of_warp span_between
// The least and the greatest of some integers.
struct span {
  i64 low, high;
};
// Of value(x) at first, first + step, …, below `end`, of which there is one at least. Several are under way at once: a warp
// that waited for each would be slower than the products.
template <class Index, class Value>
__device__ __forceinline__ span span_of(Index first, Index end, const Value& value, Index step = 1) {
  auto low = value(first), high = low;
  constexpr int ahead = 64 / sizeof(low);
#pragma unroll 1
  for (Index x = first; x < end; x += step * ahead) {
    decltype(low) its[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) its[i] = value(x + step * i < end ? x + step * i : first);
#pragma unroll
    for (int i = 0; i < ahead; ++i) low = its[i] < low ? its[i] : low, high = its[i] > high ? its[i] : high;
  }
  return {low, high};
}
// The same of all from `first` on, by all lanes of a warp.
template <class Index, class Value>
__device__ __forceinline__ span span_of_warp(Index first, Index end, const Value& value) {
  const Index mine = first + (Index)(threadIdx.x % 32);
  span all = span_of(mine < end ? mine : first, end, value, (Index)32);
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const i64 low = __shfl_xor_sync(~0u, all.low, lanes), high = __shfl_xor_sync(~0u, all.high, lanes);
    all.low = low < all.low ? low : all.low, all.high = high > all.high ? high : all.high;
  }
  return all;
}
// Of what rises or falls steadily between its first and its last.
__device__ __forceinline__ span span_between(i64 first, i64 last) {
  return first < last ? span{first, last} : span{last, first};
}

//@ verdict
// Whether a condition holds for some pair of a query and a key of a tile, and whether for all. "Some" may be wrong, "all"
// is not.
struct verdict {
  bool some, all;
};
__device__ __forceinline__ verdict unknown_verdict() { return {true, false}; }
__device__ __forceinline__ verdict truth(const span& x) { return {x.high != 0, x.low != 0}; }
__device__ __forceinline__ verdict both(verdict a, verdict b) { return {a.some && b.some, a.all && b.all}; }
__device__ __forceinline__ verdict either(verdict a, verdict b) { return {a.some || b.some, a.all || b.all}; }
__device__ __forceinline__ verdict inverted(verdict a) { return {!a.all, !a.some}; }
__device__ __forceinline__ verdict less(const span& a, const span& b) { return {a.low < b.high, a.high < b.low}; }
__device__ __forceinline__ verdict less_equal(const span& a, const span& b) { return {a.low <= b.high, a.high <= b.low}; }
__device__ __forceinline__ verdict greater(const span& a, const span& b) { return less(b, a); }
__device__ __forceinline__ verdict greater_equal(const span& a, const span& b) { return less_equal(b, a); }
__device__ __forceinline__ verdict equal(const span& a, const span& b) {
  return {a.low <= b.high && b.low <= a.high, a.low == b.high && b.low == a.high};
}
__device__ __forceinline__ verdict not_equal(const span& a, const span& b) { return inverted(equal(a, b)); }

//@ seen_tiles test_tiles
// Of 32 tiles of keys, from tile `first` on: bit i says that some key in that tile is visible, or that all are. A warp calls
// it; `test` is of one tile, and `tiles` there are.
struct seen_tiles {
  u32 some, all;
};
template <class Index, class Test>
__device__ __forceinline__ seen_tiles test_tiles(Index tiles, Index first, const Test& test) {
  const Index mine = first + (Index)(threadIdx.x % 32);
  verdict seen = {false, false};
  if (mine < tiles) seen = test(mine);
  return {__ballot_sync(~0u, seen.some), __ballot_sync(~0u, seen.all)};
}
