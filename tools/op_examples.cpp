// Most operators are shown by what their kind and operands say; the rest stand in op_examples.def.
#include "tools/op_examples.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "ir/ops/suggest.h"
#include "ir/text/text.h"

namespace tenon::tools {
namespace {

struct Row {
  std::string_view name, inputs, call;
};

constexpr Row kRows[] = {
#define OP_EXAMPLE(name, inputs, call) {#name, inputs, call},
#include "tools/op_examples.def"
};

const char* dtype_for(ir::Accepts accepts) {
  switch (accepts) {
    case ir::Accepts::Integer:
    case ir::Accepts::Bits: return "i32";
    case ir::Accepts::Bool: return "bool";
    case ir::Accepts::Num:
    case ir::Accepts::Real:
    case ir::Accepts::Any: return "f32";
  }
  return "f32";
}

// Of a map three elements, of a reduction two rows of them.
std::string text_of(const ir::OpInfo& op) {
  std::string inputs, call(op.name);
  for (const Row& row : kRows)
    if (row.name == op.name) inputs = row.inputs, call = row.call;
  if (inputs.empty()) {
    const bool reduces = op.kind == ir::Kind::reduce;
    std::string operands;
    for (int i = 0; i < op.operands; ++i) {
      const char name = "abc"[i % 3];
      inputs += fmt::format("{}{}: {}{}", i ? ", " : "", name, dtype_for(op.accepts), reduces ? "[2, 3]" : "[3]");
      operands += fmt::format("{}{}", i ? ", " : "", name);
    }
    call += fmt::format("({}{})", operands, reduces ? ", axis=1" : "");
  }
  if (call.find('(') == std::string::npos)  // an input is no call
    return fmt::format("graph example({}) {{\n  return {}\n}}\n", inputs, call);
  const std::size_t equals = call.find(" = ");
  const std::string results = equals == std::string::npos ? "y" : call.substr(0, equals);
  if (equals != std::string::npos) call = call.substr(equals + 3);
  return fmt::format("graph example({}) {{\n  {} = {}\n  return {}\n}}\n", inputs, results, call, results);
}

// Numbers on both sides of 0 and around it; a seed is 1, and indices are rows that there are.
void fill(ir::HostArray& array, std::size_t input) {
  constexpr std::array<std::array<double, 5>, 3> kReals{
      {{-0.75, 0.5, 2, -0.25, 1}, {2, 0.5, -1, 3, 1.5}, {1, -1, 0.5, 2, 0}}};
  constexpr std::array<std::array<std::int64_t, 5>, 3> kIntegers{{{6, -3, 5, 0, 7}, {2, 1, 3, 2, 1}, {1, 0, 2, 1, 0}}};
  constexpr std::array<std::int64_t, 4> kIndices{1, 0, 2, 1};
  for (std::int64_t i = 0; i < ir::element_count(array); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_real(array.dtype))
      ir::set_real(array, i, kReals[input % 3][at % 5]);
    else if (array.dtype == DType::bool_)
      ir::set_integer(array, i, (i + static_cast<std::int64_t>(input)) % 2 == 0);
    else
      ir::set_integer(array, i, array.dtype == DType::i64 ? kIndices[at % 4] : kIntegers[input % 3][at % 5]);
  }
}

}  // namespace

OpExample example_of(const ir::OpInfo& op) {
  OpExample example;
  example.graph = ir::parse(text_of(op));
  for (const auto& [symbol, bounds] : example.graph.symbols) example.bindings[symbol] = 4;
  for (const ir::ValueId input : example.graph.inputs) {
    const ir::Type& type = example.graph.type(input);
    std::vector<std::int64_t> shape;
    for (const Dim& extent : type.shape) shape.push_back(extent.evaluate(example.bindings));
    example.inputs.push_back(ir::make_array(type.dtype, shape));
    fill(example.inputs.back(), example.inputs.size() - 1);
  }
  example.outputs = ir::interpret(example.graph, example.inputs, example.bindings);
  return example;
}

}  // namespace tenon::tools
