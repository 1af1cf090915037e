// Text to graph: one pass over the tokens, appending nodes as calls are read. The grammar is docs/text-form.md.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph/build.h"
#include "ir/graph/limits.h"
#include "ir/ops/signature.h"
#include "ir/ops/suggest.h"
#include "ir/text/cursor.h"
#include "ir/text/literal.h"
#include "ir/text/naming.h"
#include "ir/text/parse_values.h"
#include "ir/text/read_checks.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

// A positional argument: a value, or a literal that waits for its dtype.
struct Argument {
  Place place;
  std::optional<ValueId> value;
  Scalar literal = 0.0;
};

// A name left of '=', with the type that it was said to have.
struct Target {
  Token name;
  std::optional<Type> type;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : cursor_(text, file) {}

  Graph run() {
    header();
    body();
    cursor_.skip_newlines();
    if (!cursor_.at(TokenKind::end)) cursor_.fail_expected("the end of the file after '}'", "write one graph a file");
    return std::move(graph_);
  }

 private:
  // graph NAME(inputs) where constraints {
  void header() {
    cursor_.skip_newlines();
    if (!cursor_.accept_word("graph"))
      cursor_.fail_expected("'graph'", "a file starts as in: graph main(x: f32[rows, 4]) {");
    graph_.name = cursor_.expect(TokenKind::identifier, "the graph's name", "write graph main(x: f32[rows, 4]) {").text;
    cursor_.expect(TokenKind::left_paren, "'(' and the inputs", "write graph main(x: f32[rows, 4]) {");
    std::vector<std::pair<Token, Type>> inputs;
    while (!cursor_.at(TokenKind::right_paren)) {
      const Token name =
          cursor_.expect(TokenKind::identifier, "an input's name", "inputs are written name: f32[rows, 4]");
      check_new_name(name);
      check_border_count(inputs.size(), cursor_.place(name));
      cursor_.expect(TokenKind::colon, "':' and the input's type", fmt::format("write {}: f32[rows, 4]", name.text));
      inputs.emplace_back(name, parse_type(cursor_, graph_.symbols, SymbolUse::declare));
      values_.emplace(name.text, static_cast<ValueId>(inputs.size() - 1));
      if (!cursor_.accept(TokenKind::comma)) break;
    }
    cursor_.expect(TokenKind::right_paren, "',' or ')'", "inputs are separated by commas");
    cursor_.skip_newlines();
    std::set<std::string> bound_by_caller;
    if (cursor_.accept_word("where")) constraints(bound_by_caller);
    add_inputs(inputs);
    check_symbols_decided(graph_, bound_by_caller,
                          cursor_.place(inputs.empty() ? cursor_.token() : inputs.front().first));
  }

  void add_inputs(const std::vector<std::pair<Token, Type>>& inputs) {
    for (const auto& [name, type] : inputs) {
      check_node_count(graph_, cursor_.place(name));
      values_[name.text] =
          append_input(graph_, std::string(name.text), type.dtype, type.shape, named_place(name, name.text));
    }
  }

  // rows in [1, 65536], rows % 16 == 0, rows >= 1, rows <= 512
  void constraints(std::set<std::string>& named) {
    do {
      cursor_.skip_newlines();
      const Token name =
          cursor_.expect(TokenKind::identifier, "a dimension's name", "write where rows in [1, 65536], rows % 16 == 0");
      const std::string symbol(name.text);
      declare_symbol(graph_.symbols, symbol, cursor_.place(name));
      named.insert(symbol);
      constraint(name, graph_.symbols[symbol]);
      check_bounds(symbol, graph_.symbols[symbol], cursor_.place(name));
      if (cursor_.at(TokenKind::newline)) cursor_.skip_newlines();
    } while (cursor_.accept(TokenKind::comma));
  }

  void constraint(const Token& name, SymbolBounds& bounds) {
    if (cursor_.accept_word("in")) {
      cursor_.expect(TokenKind::left_bracket, "'['", fmt::format("write {} in [1, 65536]", name.text));
      bounds.min = std::max(bounds.min, bound(name));
      cursor_.expect(TokenKind::comma, "','", fmt::format("write {} in [1, 65536]", name.text));
      bounds.max = std::min(bounds.max, bound(name));
      cursor_.expect(TokenKind::right_bracket, "']'", fmt::format("write {} in [1, 65536]", name.text));
    } else if (cursor_.accept(TokenKind::greater_equal)) {
      bounds.min = std::max(bounds.min, bound(name));
    } else if (cursor_.accept(TokenKind::less_equal)) {
      bounds.max = std::min(bounds.max, bound(name));
    } else if (cursor_.accept(TokenKind::percent)) {
      const Token at = cursor_.token();
      const std::int64_t divisor = parse_integer(cursor_);
      cursor_.expect(TokenKind::equal_equal, "'=='", fmt::format("write {} % 16 == 0", name.text));
      const Token zero = cursor_.token();
      if (parse_integer(cursor_) != 0)
        cursor_.fail(zero, "a remainder other than 0",
                     fmt::format("only divisors are known: write {} % {} == 0", name.text, divisor));
      if (bounds.divisor != 1)
        cursor_.fail(at, fmt::format("a second divisor of '{}'", name.text), "write their least common multiple");
      bounds.divisor = divisor;
    } else {
      cursor_.fail_expected(fmt::format("a constraint on '{}'", name.text),
                            fmt::format("write {0} in [1, 65536], {0} >= 1, {0} <= 512 or {0} % 16 == 0", name.text));
    }
  }

  std::int64_t bound(const Token& name) {
    const Token at = cursor_.token();
    const std::int64_t value = parse_integer(cursor_, fmt::format("write {} in [1, 65536]", name.text));
    if (value < 0) cursor_.fail(at, fmt::format("a negative bound of '{}'", name.text), "extents are 0 or more");
    return value;
  }

  void body() {
    cursor_.expect(TokenKind::left_brace, "'{'", "the body stands in braces: { y = exp(x); return y }");
    cursor_.skip_newlines();
    while (!cursor_.at_word("return")) {
      if (cursor_.at(TokenKind::right_brace) || cursor_.at(TokenKind::end))
        cursor_.fail(cursor_.token(), "the graph returns nothing", "end it with a line such as: return y");
      statement();
      end_of_statement();
    }
    returns();
    cursor_.skip_newlines();
    if (!cursor_.at(TokenKind::right_brace) && !cursor_.at(TokenKind::end))
      cursor_.fail(cursor_.token(), "a statement after 'return'", "'return' is the last statement; then comes '}'");
    cursor_.expect(TokenKind::right_brace, "'}'", "close the graph's body with '}'");
  }

  void end_of_statement() {
    if (!cursor_.at(TokenKind::newline) && !cursor_.at(TokenKind::right_brace))
      cursor_.fail_expected("the end of the statement", "write one statement a line, or ';' between them");
    cursor_.skip_newlines();
  }

  // a, b: f32[rows] = op(…)
  void statement() {
    const std::vector<Target> targets = parse_targets();
    cursor_.skip_newlines();
    const Token op = cursor_.token();
    const std::vector<ValueId> results = right_hand_side(targets.front().name);
    if (results.size() != targets.size())
      cursor_.fail(
          targets.front().name,
          fmt::format("{} gives {} result{}, but {} name{} left of '='", op.text, results.size(),
                      results.size() == 1 ? "" : "s", targets.size(), targets.size() == 1 ? " stands" : "s stand"),
          "write one name for each result: a, b = split(x, sections=[1, 2])");
    for (std::size_t i = 0; i < targets.size(); ++i) define(targets[i], results[i]);
  }

  std::vector<Target> parse_targets() {
    std::vector<Target> targets;
    do {
      if (!targets.empty()) cursor_.skip_newlines();
      const Token name =
          cursor_.expect(TokenKind::identifier, "a statement", "statements are written y = add(a, b), or return y");
      if (cursor_.at(TokenKind::left_paren))
        cursor_.fail(name, fmt::format("the result of {} has no name", name.text),
                     fmt::format("write y = {}(…)", name.text));
      check_new_name(name);
      for (const Target& earlier : targets)
        if (earlier.name.text == name.text)
          cursor_.fail(name, fmt::format("'{}' stands twice left of '='", name.text),
                       "give each result a name of its own");
      targets.push_back({name, std::nullopt});
      if (cursor_.accept(TokenKind::colon)) targets.back().type = parse_type(cursor_, graph_.symbols, SymbolUse::known);
      if (targets.size() > kMaxOperands)
        cursor_.fail(name, "too many results", fmt::format("use at most {}", kMaxOperands));
    } while (cursor_.accept(TokenKind::comma));
    cursor_.expect(TokenKind::equals, "'='", "statements are written y = add(a, b), or return y");
    return targets;
  }

  std::vector<ValueId> right_hand_side(const Token& target) {
    const Token first = cursor_.token();
    if (const auto literal = accept_scalar(cursor_))
      cursor_.fail(first, "a literal alone has no dtype",
                   fmt::format("write {} = full(shape=[], value={}, dtype=f32)", target.text, format_scalar(*literal)));
    const Token name =
        cursor_.expect(TokenKind::identifier, "an operator", fmt::format("write {} = add(a, b)", target.text));
    refuse_infix();
    if (!cursor_.at(TokenKind::left_paren))
      cursor_.fail(name, fmt::format("expected a call, found the value '{}'", name.text),
                   fmt::format("write an operator, as in {0} = neg({1}), or use {1} where {0} would stand", target.text,
                               name.text));
    return call(name, target.text, 0);
  }

  // Arithmetic between values is written as calls.
  void refuse_infix() const {
    const Token& sign = cursor_.token();
    const std::string_view op = sign.kind == TokenKind::plus      ? "add"
                                : sign.kind == TokenKind::minus   ? "sub"
                                : sign.kind == TokenKind::star    ? "mul"
                                : sign.kind == TokenKind::percent ? "mod"
                                                                  : "";
    if (!op.empty())
      cursor_.fail(sign, fmt::format("'{}' between values", sign.text), fmt::format("write {}(a, b)", op));
  }

  void define(const Target& target, ValueId value) {
    const Type& type = graph_.type(value);
    if (target.type && *target.type != type)
      throw Error(
          ErrorKind::type, fmt::format("{} is {}, not {} as written", target.name.text, str(type), str(*target.type)),
          cursor_.place(target.name), fmt::format("write {}: {}, or leave the type out", target.name.text, str(type)));
    graph_.values[static_cast<std::size_t>(value)].name = target.name.text;
    values_.emplace(target.name.text, value);
  }

  // op(arguments, key=value), with the cursor at '('. `target` names the place in errors.
  std::vector<ValueId> call(const Token& name, std::string_view target, int depth) {
    if (depth >= kMaxNesting)
      throw Error(ErrorKind::resource, fmt::format("calls nested more than {} deep", kMaxNesting), cursor_.place(name),
                  "give inner results names, on lines of their own");
    const OpInfo& op = op_named(name.text, cursor_.place(name));
    if (op.op == Op::input)
      cursor_.fail(name, "inputs stand in the graph's signature", "write graph main(x: f32[rows, 4]) { … }");
    cursor_.take();
    std::vector<Argument> arguments;
    std::vector<std::pair<std::string, AttrValue>> attributes;
    while (!cursor_.at(TokenKind::right_paren)) {
      argument(op, arguments, attributes, depth);
      refuse_infix();
      if (!cursor_.accept(TokenKind::comma)) break;
    }
    cursor_.expect(TokenKind::right_paren, "',' or ')'", fmt::format("close the arguments of {} with ')'", op.name));
    const Place place = named_place(name, target);
    check_operand_count(op, arguments.size(), place);
    Attrs attrs = in_signature_order(op, std::move(attributes), place);
    check_node_count(graph_, place);
    return append(graph_, op.op, resolve(op, arguments), std::move(attrs), place);
  }

  void argument(const OpInfo& op, std::vector<Argument>& arguments,
                std::vector<std::pair<std::string, AttrValue>>& attributes, int depth) {
    const Token first = cursor_.token();
    if (cursor_.at(TokenKind::left_bracket))
      cursor_.fail(first, "a list stands where a value is expected",
                   fmt::format("write lists as key=[…]: it is {}", signature(op)));
    if (cursor_.at(TokenKind::string))
      cursor_.fail(first, "a string stands where a value is expected",
                   fmt::format("write strings as key=\"…\": it is {}", signature(op)));
    if (auto literal = accept_scalar(cursor_)) {
      check_positional(op, first, attributes.empty());
      arguments.push_back({cursor_.place(first), std::nullopt, *literal});
    } else {
      const Token name = cursor_.expect(TokenKind::identifier, "an argument", fmt::format("it is {}", signature(op)));
      if (cursor_.accept(TokenKind::equals)) return attribute(op, name, attributes);
      check_positional(op, first, attributes.empty());
      const ValueId value = cursor_.at(TokenKind::left_paren) ? nested(name, depth) : value_named(name);
      arguments.push_back({cursor_.place(name), value});
    }
    if (arguments.size() > kMaxOperands)
      throw Error(ErrorKind::resource, fmt::format("{} has more than {} operands", op.name, kMaxOperands),
                  cursor_.place(first), "split it into several");
  }

  void check_positional(const OpInfo& op, const Token& token, bool allowed) const {
    if (!allowed)
      cursor_.fail(token, "an operand after attributes", fmt::format("write operands first: it is {}", signature(op)));
  }

  void attribute(const OpInfo& op, const Token& name, std::vector<std::pair<std::string, AttrValue>>& attributes) {
    const AttrSpec& spec = attr_named(op, name.text, cursor_.place(name));
    for (const auto& [earlier, value] : attributes)
      if (earlier == name.text)
        cursor_.fail(name, fmt::format("attribute '{}' is given twice", name.text), "keep one of them");
    attributes.emplace_back(name.text, parse_attr_value(cursor_, op, spec, graph_.symbols));
  }

  ValueId nested(const Token& name, int depth) {
    const std::vector<ValueId> results = call(name, {}, depth + 1);
    if (results.size() != 1)
      cursor_.fail(name, fmt::format("{} gives {} results where one value is expected", name.text, results.size()),
                   fmt::format("name them on a line of their own: a, b = {}(…)", name.text));
    return results.front();
  }

  std::vector<ValueId> resolve(const OpInfo& op, const std::vector<Argument>& arguments) {
    std::vector<std::optional<DType>> dtypes;
    for (const Argument& argument : arguments)
      dtypes.push_back(argument.value ? std::optional(graph_.type(*argument.value).dtype) : std::nullopt);
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& given = arguments[i];
      operands.push_back(given.value ? *given.value : literal(op, given, literal_dtype(op.op, i, dtypes)));
    }
    return operands;
  }

  ValueId literal(const OpInfo& op, const Argument& argument, std::optional<DType> dtype) {
    const std::string text = format_scalar(argument.literal);
    if (!dtype)
      throw Error(ErrorKind::type, fmt::format("{}: no operand gives the literal {} a dtype", op.name, text),
                  argument.place, fmt::format("write full(shape=[], value={}, dtype=f32) in its place", text));
    check_node_count(graph_, argument.place);
    return append_literal(graph_, argument.literal, *dtype, argument.place);
  }

  // return y, z as name, exp(y) into state
  void returns() {
    cursor_.take();
    do {
      cursor_.skip_newlines();
      const Token first = cursor_.token();
      check_border_count(graph_.outputs.size(), cursor_.place(first));
      if (accept_scalar(cursor_))
        cursor_.fail(first, "a literal alone has no dtype", "return full(shape=[], value=…, dtype=f32)");
      const Token name = cursor_.expect(TokenKind::identifier, "a value to return", "write return y");
      const bool is_call = cursor_.at(TokenKind::left_paren);
      const ValueId value = is_call ? nested(name, 0) : value_named(name);
      Token label = name;
      std::string output = is_call ? output_name(graph_.outputs.size(), graph_.outputs_names) : std::string(name.text);
      if (cursor_.accept_word("as")) {
        label = cursor_.expect(TokenKind::identifier, "the output's name", "write return y as name");
        output = label.text;
      }
      if (!outputs_.insert(output).second)
        cursor_.fail(label, fmt::format("two outputs are named '{}'", output),
                     fmt::format("rename one: return {0}, {0} as {0}_2", output));
      if (cursor_.accept_word("into")) {
        const Token input = cursor_.expect(TokenKind::identifier, "the input to update", "write return y into state");
        append_update(graph_, value, output, value_named(input), cursor_.place(input));
      } else {
        append_output(graph_, value, output);
      }
    } while (cursor_.accept(TokenKind::comma));
    if (!cursor_.at(TokenKind::newline) && !cursor_.at(TokenKind::right_brace) && !cursor_.at(TokenKind::end))
      cursor_.fail_expected("the end of 'return'", "write return a, b as name, c into input");
  }

  ValueId value_named(const Token& name) const {
    const auto found = values_.find(name.text);
    if (found != values_.end()) return found->second;
    if (parse_dtype(name.text))
      cursor_.fail(name, fmt::format("the dtype {} stands where a value is expected", name.text),
                   fmt::format("write dtype={}", name.text));
    if (graph_.symbols.contains(std::string(name.text)))
      cursor_.fail(name, fmt::format("'{}' is a dimension, not a value", name.text), "dimensions stand in shapes only");
    std::vector<std::string_view> known;
    for (const Value& value : graph_.values)
      if (!value.name.empty()) known.push_back(value.name);
    const std::string_view meant = nearest(name.text, known);
    cursor_.fail(
        name, fmt::format("unknown value '{}'", name.text),
        meant.empty() ? "define it on a line above, or make it an input" : fmt::format("did you mean '{}'?", meant));
  }

  void check_new_name(const Token& name) const {
    if (is_reserved(name.text))
      cursor_.fail(name, fmt::format("'{}' cannot name a value", name.text),
                   "it is a word of the language; choose another name");
    const auto found = values_.find(name.text);
    if (found == values_.end()) return;
    const bool in_body = !graph_.inputs.empty() || !graph_.nodes.empty();
    const int line = in_body ? graph_.producer(found->second).place.line : 0;
    cursor_.fail(name, fmt::format("'{}' is defined twice", name.text),
                 line == 0
                     ? "values are defined once; choose another name"
                     : fmt::format("it was defined on line {}; values are defined once, choose another name", line));
  }

  Place named_place(const Token& token, std::string_view value) const {
    Place place = cursor_.place(token);
    place.value = value;
    return place;
  }

  Cursor cursor_;
  Graph graph_;
  std::unordered_map<std::string_view, ValueId> values_;  // keys lie in the text
  std::set<std::string> outputs_;
};

}  // namespace

Graph parse(std::string_view text, const std::string& file) {
  check_file_size(text.size(), file);
  return Parser(text, file).run();
}

}  // namespace tenon::ir
