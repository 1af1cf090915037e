// Graphs of attention over a cache of pages that a table names, and data for them.
#pragma once

#include <cstdint>
#include <string>

#include "tests/harness/random_graph.h"

namespace tenon::test {

/// Attention of `queries` a head with the first `keys` (0: all) of `pages` pages of `rows` keys a sequence.
struct PagedCase {
  std::string name;
  DType dtype = DType::f16, index = DType::i64;
  std::int64_t sequences = 2, heads = 2, group = 1, queries = 1, rows = 32, pages = 5, keys = 0, depth = 64;
  bool heads_first = false;  ///< a page has the keys of one head, and then of the next
  bool two_tables = false;   ///< one of keys and one of values
  bool causal = false;
  bool symbols = false;  ///< for all counts but those of heads, rows and d

  std::int64_t cached() const;  ///< pages in the cache
  std::int64_t seen() const;    ///< keys
  Bindings bindings() const;    ///< of the symbols
};

/// The graph, in the text form.
std::string paged_text(const PagedCase& c);

/// With a table in any order, by both ways to count and beyond both ends, but any number where a page has no key. What
/// no key reads of the cache is NaN.
RandomCase paged_case(const PagedCase& c, std::uint64_t seed);

}  // namespace tenon::test
