// See paged_attention.h.
#include "tests/codegen/paged_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "ir/text/text.h"

namespace tenon::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSpare = 3;  // pages of the cache that no sequence has

class Data {
 public:
  Data(const PagedCase& c, const ir::Graph& graph, std::uint64_t seed) : c_(c), random_(seed) {
    const auto array = [&](std::size_t input) {
      std::vector<std::int64_t> shape;
      for (const Dim& extent : graph.type(graph.inputs[input]).shape) shape.push_back(extent.evaluate(c.bindings()));
      return ir::make_array(graph.type(graph.inputs[input]).dtype, shape);
    };
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) inputs_.push_back(array(i));
    for (std::size_t i : {0U, 1U, 2U})
      for (std::int64_t at = 0; at < ir::element_count(inputs_[i]); ++at)
        ir::set_real(inputs_[i], at, std::uniform_real_distribution(-1.0, 1.0)(random_));
    for (std::size_t i = 3; i < inputs_.size(); ++i) fill_table(inputs_[i]);
    hide_unread(inputs_[1], inputs_[3]);
    hide_unread(inputs_[2], inputs_.back());
  }

  const std::vector<ir::HostArray>& inputs() const { return inputs_; }

 private:
  void fill_table(ir::HostArray& table) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(c_.cached()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (std::int64_t at = 0; at < ir::element_count(table); ++at) {
      const std::int64_t page = order[static_cast<std::size_t>(at)];
      const bool is_read = at % c_.pages * c_.rows < c_.seen();
      ir::set_integer(table, at,
                      !is_read      ? 1'000'000 - at
                      : at % 7 == 3 ? c_.cached() + at
                      : at % 7 == 5 ? -c_.cached() - 1 - at
                      : at % 3 == 1 ? page - c_.cached()
                                    : page);
    }
  }

  void hide_unread(ir::HostArray& cache, const ir::HostArray& table) const {
    std::vector<bool> is_read(static_cast<std::size_t>(c_.cached() * c_.rows));
    for (std::int64_t sequence = 0; sequence < c_.sequences; ++sequence)
      for (std::int64_t key = 0; key < c_.seen(); ++key) {
        std::int64_t page = ir::get_integer(table, sequence * c_.pages + key / c_.rows);
        page = std::clamp<std::int64_t>(page < 0 ? page + c_.cached() : page, 0, c_.cached() - 1);
        is_read[static_cast<std::size_t>(page * c_.rows + key % c_.rows)] = true;
      }
    for (std::int64_t at = 0; at < ir::element_count(cache); ++at) {
      const std::int64_t page = at / (c_.rows * c_.heads * c_.depth);
      const std::int64_t row = c_.heads_first ? at / c_.depth % c_.rows : at / (c_.heads * c_.depth) % c_.rows;
      if (!is_read[static_cast<std::size_t>(page * c_.rows + row)]) ir::set_real(cache, at, kNaN);
    }
  }

  const PagedCase& c_;
  std::mt19937_64 random_;
  std::vector<ir::HostArray> inputs_;
};

}  // namespace

std::int64_t PagedCase::cached() const { return sequences * pages + kSpare; }

std::int64_t PagedCase::seen() const { return keys == 0 ? rows * pages : keys; }

Bindings PagedCase::bindings() const {
  if (!symbols) return {};
  Bindings sizes{{"b", sequences}, {"p", pages}, {"n", cached()}, {"t", queries}};
  if (keys != 0) sizes["s"] = keys;
  return sizes;
}

std::string paged_text(const PagedCase& c) {
  const auto size = [&](const char* symbol, std::int64_t value) {
    return c.symbols ? std::string(symbol) : fmt::format("{}", value);
  };
  const std::string sequences = size("b", c.sequences), pages = size("p", c.pages), queries = size("t", c.queries);
  const std::string cache =
      c.heads_first
          ? fmt::format("{}[{}, {}, {}, {}]", name_of(c.dtype), size("n", c.cached()), c.heads, c.rows, c.depth)
          : fmt::format("{}[{}, {}, {}, {}]", name_of(c.dtype), size("n", c.cached()), c.rows, c.heads, c.depth);
  const std::string table = fmt::format("{}[{}, {}]", name_of(c.index), sequences, pages);
  const std::string q =
      fmt::format("{}[{}, {}, {}, {}]", name_of(c.dtype), sequences, c.heads * c.group, queries, c.depth);
  const std::string all = fmt::format("{}*{}", c.rows, pages);
  const auto read = [&](const char* of, const char* by) {
    std::string text =
        c.heads_first ? fmt::format("reshape(transpose(take({}, {}), perm=[0, 2, 1, 3, 4]), shape=[{}, {}, {}, {}])",
                                    of, by, sequences, c.heads, all, c.depth)
                      : fmt::format("transpose(reshape(take({}, {}), shape=[{}, {}, {}, {}]), perm=[0, 2, 1, 3])", of,
                                    by, sequences, all, c.heads, c.depth);
    return c.keys == 0 ? text : fmt::format("slice({}, axis=[2], start=[0], stop=[{}])", text, size("s", c.keys));
  };
  return fmt::format(
      R"(graph {}(q: {}, k_pages: {}, v_pages: {}, table: {}{}){} {{
    k = {}
    v = {}
    y = attention(q, k, v{})
    return y
  }})",
      c.name, q, cache, cache, table, c.two_tables ? ", other: " + table : "",
      c.symbols && c.keys != 0 ? fmt::format(" where s in [1, {}], p >= {}", c.rows * c.pages, c.pages) : "",
      read("k_pages", "table"), read("v_pages", c.two_tables ? "other" : "table"), c.causal ? ", causal=true" : "");
}

RandomCase paged_case(const PagedCase& c, std::uint64_t seed) {
  const ir::Graph graph = ir::parse(paged_text(c));
  return {graph, c.bindings(), Data(c, graph, seed).inputs(), {}};
}

}  // namespace tenon::test
