// Every row of the op table on every dtype it takes: at the edges of the number formats, between guard bands, with and
// without fusion, against the interpreter. A new row is tested without a line here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/graph/build.h"
#include "ir/ops/op.h"
#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/sample_calls.h"
#include "tests/harness/targets.h"
#include "tests/numerics/edge_values.h"

namespace tenon::test {
namespace {

using ir::ValueId;

/// A graph under construction together with its data.
struct Table {
  ir::Graph graph;
  std::vector<ir::HostArray> data;

  ValueId input(const std::string& name, const ir::HostArray& array) {
    Shape shape;
    for (std::int64_t extent : array.shape) shape.push_back(Dim(extent));
    data.push_back(array);
    return ir::append_input(graph, name, array.dtype, shape);
  }
  void output(const std::string& name, ValueId value) { ir::append_output(graph, value, name); }
};

class OpTable : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { require(target()); }
  const std::string& target() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
};

bool is_plain_map(const ir::OpInfo& op) { return op.kind == ir::Kind::map && op.yields != ir::Yields::Special; }

TEST_P(OpTable, MapsOfEdgeValues) {
  Table table;
  std::vector<ValueId> operands[4];  // [arity]
  for (int arity = 1; arity <= 3; ++arity)
    for (int i = 0; i < arity; ++i)
      operands[arity].push_back(
          table.input(fmt::format("x{}{}", arity, i),
                      combination(arity == 3 ? few_edge_values(dtype()) : edge_values(dtype()), i, arity)));
  for (const ir::OpInfo& op : ir::all_ops())
    if (is_plain_map(op) && ir::accepts(op.accepts, dtype()))
      table.output(std::string(op.name), ir::append_one(table.graph, op.op, operands[op.operands]));
  expect_right_on(table.graph, target(), table.data);
}

TEST_P(OpTable, UnaryMapsOfBitPatterns) {
  Table table;
  const ValueId x = table.input("x", bit_patterns(dtype()));
  for (const ir::OpInfo& op : ir::all_ops())
    if (is_plain_map(op) && op.operands == 1 && ir::accepts(op.accepts, dtype()))
      table.output(std::string(op.name), ir::append_one(table.graph, op.op, {x}));
  if (!table.graph.outputs.empty()) expect_right_on(table.graph, target(), table.data);
}

TEST_P(OpTable, CastsBitcastsAndWhere) {
  Table table;
  const ValueId edges = table.input("edges", edge_values(dtype()));
  const ValueId patterns = table.input("patterns", bit_patterns(dtype()));
  for (DType to : kAllDTypes)
    for (const auto& [name, x] : {std::pair("edges", edges), std::pair("patterns", patterns)}) {
      table.output(fmt::format("cast_{}_{}", name, name_of(to)),
                   ir::append_one(table.graph, ir::Op::cast, {x}, {{"dtype", to}}));
      if (size_of(to) == size_of(dtype()) && to != DType::bool_ && dtype() != DType::bool_)
        table.output(fmt::format("bitcast_{}_{}", name, name_of(to)),
                     ir::append_one(table.graph, ir::Op::bitcast, {x}, {{"dtype", to}}));
    }
  const ir::HostArray values = few_edge_values(dtype());
  ir::HostArray flags = ir::make_array(DType::bool_, {ir::element_count(values) * ir::element_count(values)});
  for (std::int64_t i = 0; i < ir::element_count(flags); ++i) ir::set_integer(flags, i, i % 3 == 0);
  table.output("where", ir::append_one(table.graph, ir::Op::where,
                                       {table.input("flags", flags), table.input("b", combination(values, 0, 2)),
                                        table.input("c", combination(values, 1, 2))}));
  expect_right_on(table.graph, target(), table.data);
}

// Rows that are finite, that hold an infinity, both, a NaN first, last and amid, and that are one number all along.
ir::HostArray rows_of_edges(DType dtype, std::int64_t columns) {
  const ir::HostArray edges = few_edge_values(dtype), finite = bit_patterns(dtype);
  const std::int64_t n = ir::element_count(edges), rows = n + 6;
  ir::HostArray array = ir::make_array(dtype, {rows, columns});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t i = r * columns + c;
      const bool constant = r >= 6 && c % 2 == 0;
      if (!is_real(dtype)) {
        const std::int64_t value = ir::get_integer(constant ? edges : finite, constant ? r - 6 : (i * 37) % 256);
        ir::set_integer(array, i, value);
      } else if (constant || (r < 3 && c == (r == 0 ? 0 : r == 1 ? columns - 1 : columns / 2))) {
        ir::set_real(array, i, constant ? ir::get_real(edges, r - 6) : std::nan(""));
      } else {
        ir::set_real(array, i, std::sin(static_cast<double>(i)) * (r == 5 ? 0 : 2));
      }
    }
  return array;
}

TEST_P(OpTable, ReductionsOfEdgeValues) {
  Table table;
  const ValueId x = table.input("x", rows_of_edges(dtype(), 37));
  ir::HostArray nothing = ir::make_array(dtype(), {3, 0});
  const ValueId empty = table.input("empty", nothing);
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (op.kind != ir::Kind::reduce || !ir::accepts(op.accepts, dtype())) continue;
    const std::vector<std::pair<std::string, ir::Attrs>> ways = {
        {"rows", {{"axis", std::vector<std::int64_t>{1}}}},
        {"columns", {{"axis", std::vector<std::int64_t>{0}}, {"keepdims", true}}},
        {"all", {}}};
    for (const auto& [name, attrs] : ways)
      table.output(fmt::format("{}_{}", op.name, name), ir::append_one(table.graph, op.op, {x}, attrs));
    table.output(fmt::format("{}_empty", op.name),
                 ir::append_one(table.graph, op.op, {empty}, {{"axis", std::vector<std::int64_t>{1}}}));
  }
  if (!table.graph.outputs.empty()) expect_right_on(table.graph, target(), table.data);
}

INSTANTIATE_TEST_SUITE_P(On, OpTable,
                         ::testing::Combine(::testing::ValuesIn(all_targets()), ::testing::ValuesIn(kAllDTypes)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::string(name_of(std::get<1>(each.param)));
                         });

// ---- the sample calls: literals, attributes, broadcasting, symbols -------------------------------------------------

// Appends `from` to `to`, its inputs and outputs renamed with `suffix`.
void append_graph(ir::Graph& to, const ir::Graph& from, const std::string& suffix) {
  std::map<ValueId, ValueId> map;
  for (const ir::Node& node : from.nodes) {
    if (node.op == ir::Op::input) {
      const ir::Value& value = from.value(node.results[0]);
      map[node.results[0]] = ir::append_input(to, value.name + suffix, value.type.dtype, value.type.shape);
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(map.at(operand));
    const auto results = ir::append(to, node.op, operands, node.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) map[node.results[i]] = results[i];
  }
  for (std::size_t i = 0; i < from.outputs.size(); ++i)
    ir::append_output(to, map.at(from.outputs[i]), from.outputs_names[i] + suffix);
}

constexpr int kShares = 8;  // tests that may run side by side

class SampleCalls : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override { require(std::get<0>(GetParam())); }
};

// Graphs of about a dozen calls: enough to fill kernels, few enough to read when one fails.
TEST_P(SampleCalls, OfEveryRow) {
  constexpr std::size_t kTogether = 12;
  const auto& [target, share] = GetParam();
  std::vector<ir::Graph> samples;
  for (const ir::OpInfo& op : ir::all_ops())
    for (const std::string& text : ir::sample_calls(op)) samples.push_back(ir::parse(text));
  for (std::size_t first = static_cast<std::size_t>(share) * kTogether; first < samples.size();
       first += kShares * kTogether) {
    ir::Graph together;
    together.name = "samples";
    for (std::size_t i = first; i < std::min(first + kTogether, samples.size()); ++i) {
      for (const auto& [symbol, bounds] : samples[i].symbols) together.symbols[symbol] = bounds;
      append_graph(together, samples[i], fmt::format("_{}", i));
    }
    const auto bindings = [&](std::int64_t size) {
      Bindings all;
      for (const auto& [symbol, bounds] : together.symbols) all[symbol] = size;
      return all;
    };
    expect_right(together, target, {bindings(5), bindings(16)});
  }
}
INSTANTIATE_TEST_SUITE_P(On, SampleCalls,
                         ::testing::Combine(::testing::ValuesIn(all_targets()), ::testing::Range(0, kShares)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", std::get<0>(each.param), std::get<1>(each.param));
                         });

}  // namespace
}  // namespace tenon::test
