// Pages of an operand that is gathered: rows that lie together where a value says, those of a cache that a table leads
// to (Kwon et al., "PagedAttention", 2023).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

struct Page {
  InstrId value = -1;  ///< which one: 0 <= value < count
  Dim count, stride;   ///< all that there are; elements from one to the next
  int rows = 0;        ///< neighbours along the axis of rows, from a multiple of these on; 0: however many there are
};

/// An offset as strides of the loops, beside a page.
struct PagedOffset {
  Index within;  ///< axes alone; the axis of rows counts in its page
  std::optional<Page> page;
};

/// `offset` where it is no more than that: rows lie along `axis`, and which page it is, `axis` and `batch` decide.
std::optional<PagedOffset> paged_offset(const Kernel& kernel, const Index& offset, int axis,
                                        const std::vector<int>& batch);

/// Rows of a tile of `tile` that one box brings: a page of them, or all.
int box_rows(const std::optional<Page>& page, int tile);

/// Why boxes of pages are no tile of `tile` rows; empty: they are.
std::string why_not_tiled(const std::optional<Page>& page, int tile);

}  // namespace tenon::codegen
