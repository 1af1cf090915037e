#include "tests/codegen/tensor_kernels.h"

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

using codegen::Axis;
using ir::KernelClass;
using ir::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Dims in the order of names, then the schedule: what lowering does last.
Kernel finished(Kernel kernel, const Symbols& symbols, const codegen::Target& target) {
  kernel.symbols = symbols;
  for (const auto& [name, bounds] : symbols) kernel.dims.push_back(name);
  verify(kernel);
  kernel.schedule = choose_schedule(kernel, target);
  return kernel;
}

Index at(const Dim& extent, int outer, int inner) { return Index::axis(outer) * extent + Index::axis(inner); }

}  // namespace

Kernel matmul_kernel(const MatmulCase& c, const codegen::Target& target) {
  constexpr int b0 = 0, m = 1, n = 2, k = 3;
  KernelBuilder build(KernelClass::contract,
                      {{"b0", c.batch, false}, {"m", c.m, false}, {"n", c.n, false}, {"k", c.k, true}});
  const int a = build.input(c.a, {c.batch, c.m, c.k}), b = build.input(c.b, {c.batch, c.k, c.n});
  const Index batch = Index::axis(b0);
  const Index rows = c.a_flipped ? Index(c.m - Dim(1)) - Index::axis(m) : Index::axis(m);
  InstrId x = build.load(a, batch * (c.m * c.k) + (c.a_transposed ? at(c.m, k, m) : rows * c.k + Index::axis(k)));
  const InstrId y = build.load(b, batch * (c.k * c.n) + (c.b_transposed ? at(c.k, n, k) : at(c.n, k, n)));
  if (c.prologue) x = build.map(Op::maximum, {x, build.literal(0.0, c.a)});
  InstrId z = build.contract(k, x, y, c.out, c.tf32);
  const Index result = batch * (c.m * c.n) + at(c.n, m, n);
  if (c.epilogue) {
    const int bias = build.input(c.out, {c.n}), residual = build.input(c.out, {c.batch, c.m, c.n});
    z = build.map(Op::add, {z, build.load(bias, Index::axis(n))});
    z = build.map(Op::mul, {z, build.map(Op::tanh, {z})});
    z = build.map(Op::add, {z, build.load(residual, result)});
  }
  build.store(build.output(c.out, {c.batch, c.m, c.n}), result, z);
  return finished(build.kernel, c.symbols, target);
}

std::vector<MatmulCase> matmul_cases() {
  const Symbols rows{{"rows", {0, 1 << 20, 1}}};
  const Symbols all{{"b", {0, 64, 1}}, {"k", {0, 4096, 1}}, {"n", {0, 4096, 1}}, {"rows", {0, 1 << 20, 1}}};
  const DType f8 = DType::f8e4m3, bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;
  return {
      {.name = "f16"},
      {.name = "bf16_epilogue", .a = bf16, .b = bf16, .out = bf16, .m = 4096, .n = 4096, .epilogue = true},
      {.name = "bf16_tn", .a = bf16, .b = bf16, .out = bf16, .m = 2048, .n = 2048, .a_transposed = true},
      {.name = "f16_nt_odd", .m = 511, .n = 333, .k = 77, .b_transposed = true},
      {.name = "f16_tn_odd", .batch = 3, .m = 67, .n = 45, .k = 130, .a_transposed = true, .epilogue = true},
      {.name = "f16_prologue", .prologue = true},
      {.name = "f16_tiny", .batch = 3, .m = 1, .n = 1, .k = 1},
      {.name = "f16_empty", .k = 0},
      {.name = "f16_decode", .m = 8, .n = 4096, .k = 4096},
      {.name = "f16_column", .m = 4096, .n = 8, .k = 1024},
      {.name = "f16_rows",
       .m = Dim::symbol("rows"),
       .n = 768,
       .k = 768,
       .epilogue = true,
       .symbols = rows,
       .bindings = {{{"rows", 1}}, {{"rows", 7}}, {{"rows", 64}}, {{"rows", 1000}}, {{"rows", 0}}}},
      {.name = "f16_all_symbolic",
       .batch = Dim::symbol("b"),
       .m = Dim::symbol("rows"),
       .n = Dim::symbol("n"),
       .k = Dim::symbol("k"),
       .symbols = all,
       .bindings = {{{"b", 2}, {"rows", 130}, {"n", 129}, {"k", 70}}, {{"b", 1}, {"rows", 5}, {"n", 300}, {"k", 0}}}},
      {.name = "f32", .a = f32, .b = f32, .out = f32, .m = 1024, .n = 1024},
      {.name = "f32_epilogue", .a = f32, .b = f32, .out = f32, .k = 300, .b_transposed = true, .epilogue = true},
      {.name = "f32_odd", .a = f32, .b = f32, .out = f32, .batch = 2, .m = 129, .n = 65, .k = 33},
      {.name = "tf32", .a = f32, .b = f32, .out = f32, .m = 2048, .n = 2048, .b_transposed = true, .tf32 = true},
      {.name = "tf32_nn", .a = f32, .b = f32, .out = f32, .tf32 = true},
      {.name = "tf32_tn_odd",
       .a = f32,
       .b = f32,
       .out = f32,
       .m = 77,
       .n = 99,
       .k = 35,
       .a_transposed = true,
       .tf32 = true},
      {.name = "f64", .a = f64, .b = f64, .out = f64, .epilogue = true},
      {.name = "f8", .a = f8, .b = DType::f8e5m2, .out = bf16, .m = 2048, .n = 2048, .b_transposed = true},
      {.name = "f8_out", .a = f8, .b = f8, .out = f8},
      {.name = "f8_bf16", .a = f8, .b = bf16, .out = f32},
      {.name = "f16_f8", .b = f8, .out = f32, .m = 65, .n = 72, .k = 40},
      {.name = "bf16_small",
       .a = bf16,
       .b = bf16,
       .out = bf16,
       .batch = 5,
       .m = 48,
       .n = 80,
       .k = 96,
       .epilogue = true},
  };
}

// The condition under which a query sees a key; -1 where there is none.
InstrId condition_of(KernelBuilder& build, const AttentionCase& c, const Index& head, const Index& i, const Index& j) {
  const codegen::IndexContext context = build.kernel.context();
  const auto number = [&](std::int64_t value) { return build.literal(value, DType::i32); };
  const auto plus = [&](InstrId a, InstrId b) { return build.map(Op::add, {a, b}); };
  const auto times = [&](InstrId a, std::int64_t factor) { return build.map(Op::mul, {a, number(factor)}); };
  const auto compare = [&](Op op, InstrId a, InstrId b) { return build.map(op, {a, b}, DType::bool_); };
  const InstrId row = build.index(i, DType::i32), column = build.index(j, DType::i32);
  const InstrId last = plus(row, build.index(Index(c.keys - c.queries), DType::i32));
  switch (c.mask) {
    case Mask::none: return -1;
    case Mask::causal: return compare(Op::less_equal, column, last);
    case Mask::window: {
      const InstrId first = build.map(Op::sub, {last, number(128)});
      return build.map(Op::logical_and,
                       {compare(Op::less_equal, column, last), compare(Op::greater_equal, column, first)});
    }
    case Mask::loaded: return build.load(build.input(DType::bool_, {c.queries, c.keys}), i * c.keys + j);
    case Mask::lengths: {
      const InstrId longer = build.load(build.input(DType::i32, {c.heads}), head);
      return compare(Op::less_equal, column, plus(times(longer, 60), number(30)));
    }
    case Mask::documents: {
      const int bits = build.input(DType::i32, {c.queries});
      const auto document = [&](const Index& position) {
        const Index number_of = codegen::floor_div(position, Dim(150), context);
        const InstrId odd = build.index(codegen::mod(number_of, Dim(2), context), DType::i32);
        const InstrId bit = build.map(Op::mul, {odd, build.load(bits, position)});
        return plus(times(build.index(number_of, DType::i32), 2), bit);
      };
      const InstrId same = compare(Op::equal, document(i), document(j));
      return build.map(Op::logical_and, {same, compare(Op::less_equal, column, row)});
    }
    case Mask::prefixes: {
      const InstrId longer = build.load(build.input(DType::i32, {c.queries}), i);
      const InstrId hundreds = build.index(codegen::floor_div(i, Dim(100), context), DType::i32);
      return compare(Op::less_equal, column, plus(times(longer, 80), times(hundreds, 50)));
    }
  }
  return -1;
}

Kernel attention_kernel(const AttentionCase& c, const codegen::Target& target) {
  constexpr int h = 0, i = 1, e = 2, j = 3, d = 4;
  const DType wide = compute_type(c.dtype);
  KernelBuilder build(KernelClass::attend, {{"b0", c.heads, false},
                                            {"i", c.queries, false},
                                            {"e", c.width, false},
                                            {"j", c.keys, true},
                                            {"d", c.depth, true}});
  const int q = build.input(c.dtype, {c.heads, c.queries, c.depth}),
            k = build.input(c.dtype, {c.heads, c.keys, c.depth});
  const int v = build.input(c.dtype, {c.heads, c.keys, c.width});
  const codegen::IndexContext context = build.kernel.context();
  const Index head = Index::axis(h), kv_head = codegen::floor_div(head, c.group, context);
  const InstrId query = build.load(q, head * (c.queries * c.depth) + at(c.depth, i, d));
  const InstrId key =
      build.load(k, kv_head * (c.keys * c.depth) + (c.keys_transposed ? at(c.keys, d, j) : at(c.depth, j, d)));
  codegen::Attention& parts = build.kernel.attention;
  InstrId s = parts.scores = build.contract(d, query, key, wide);
  s = build.map(Op::mul, {s, build.literal(0.125, wide)});
  if (c.softcap) {
    const InstrId cap = build.literal(30.0, wide);
    s = build.map(Op::mul, {build.map(Op::tanh, {build.map(Op::div, {s, cap})}), cap});
  }
  // Random numbers of a seed, which is 0 or 1 in memory, and of element (h, i, j).
  InstrId seed = -1;
  if (c.draws_from) {
    seed = build.map(
        Op::add, {build.load(build.input(DType::i64, {}), Index(0)), build.literal(AttentionCase::kSeed, DType::i64)});
    build.kernel.wide_random = *c.draws_from > INT32_MAX;
  }
  const auto draw = [&](std::int64_t stream) {
    return build.random(seed, head * (c.queries * c.keys) + at(c.keys, i, j) + Index(Dim(*c.draws_from)), stream, -1);
  };
  if (c.draws_from) {
    const InstrId noise = build.map(Op::cast, {draw(AttentionCase::kStreamOfScores)}, wide);
    s = build.map(Op::add, {s, build.map(Op::mul, {noise, build.literal(0x1p-32, wide)})});
  }
  if (c.bias) {
    const int bias = build.input(c.bias_dtype.value_or(c.dtype), {c.heads, c.queries, c.keys});
    const InstrId read = build.load(bias, head * (c.queries * c.keys) + at(c.keys, i, j));
    s = build.map(Op::add, {s, build.map(Op::cast, {read}, wide)});
  }
  if (c.alibi) {
    const InstrId row = build.index(Index::axis(i), DType::i32), column = build.index(Index::axis(j), DType::i32);
    const InstrId distance = build.map(Op::cast, {build.map(Op::sub, {column, row})}, wide);
    s = build.map(Op::add, {s, build.map(Op::mul, {distance, build.literal(0.0625, wide)})});
  }
  const InstrId seen = condition_of(build, c, head, Index::axis(i), Index::axis(j));
  if (seen >= 0) s = build.map(Op::where, {seen, s, build.literal(-kInfinity, wide)});
  parts.score = s;
  const InstrId top = parts.maximum = build.reduce_along(j, Op::max, s);
  InstrId shift = top;
  const InstrId zero = build.literal(0.0, wide), one = build.literal(1.0, wide);
  if (!c.by_hand) {
    const InstrId empty = build.map(Op::equal, {top, build.literal(-kInfinity, wide)}, DType::bool_);
    shift = build.map(Op::where, {empty, zero, top});
  }
  parts.shift = shift;
  const InstrId weight = parts.weight = build.map(Op::exp, {build.map(Op::sub, {s, shift})});
  const InstrId sum = parts.sum = build.reduce_along(j, Op::sum, weight);
  const InstrId value = build.load(v, kv_head * (c.keys * c.width) + at(c.width, j, e));
  InstrId out;
  if (c.by_hand) {
    const InstrId share = build.map(Op::div, {weight, sum}), p = build.map(Op::cast, {share}, c.dtype);
    parts.scaling = {share, p};
    out = parts.mix = build.contract(j, p, value, c.dtype);
  } else {
    InstrId p = build.map(Op::cast, {weight}, c.dtype);
    parts.scaling = {p};
    if (c.dropout) {
      const InstrId keep =
          c.draws_from
              ? build.map(Op::greater_equal,
                          {draw(AttentionCase::kStreamOfWeights), build.literal(AttentionCase::kLeastKept, DType::i32)},
                          DType::bool_)
              : build.load(build.input(DType::bool_, {c.queries, c.keys}), at(c.keys, i, j));
      const InstrId scaled = build.map(Op::mul, {p, build.literal(1.25, c.dtype)});
      p = build.map(Op::where, {keep, scaled, build.literal(0.0, c.dtype)});
      parts.scaling.insert(parts.scaling.end(), {scaled, p});
    }
    const InstrId product = parts.mix = build.contract(j, p, value, wide);
    const InstrId empty = build.map(Op::equal, {sum, zero}, DType::bool_);
    out = build.map(Op::cast, {build.map(Op::div, {product, build.map(Op::where, {empty, one, sum})})}, c.dtype);
  }
  build.store(build.output(c.dtype, {c.heads, c.queries, c.width}), head * (c.queries * c.width) + at(c.width, i, e),
              out);
  if (c.lse) {
    const InstrId total = build.map(Op::add, {top, build.map(Op::log, {sum})});
    build.store(build.output(DType::f32, {c.heads, c.queries}), at(c.queries, h, i), total, {{Index::axis(e), Dim(1)}});
  }
  return finished(build.kernel, c.symbols, target);
}

std::vector<AttentionCase> attention_cases() {
  const Symbols lengths{{"sk", {0, 1 << 20, 1}}, {"sq", {0, 1 << 20, 1}}};
  const Symbols depths{{"d", {0, 128, 1}}, {"e", {0, 4096, 1}}};
  const DType bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;
  return {
      {.name = "f16_causal", .mask = Mask::causal, .lse = true},
      {.name = "bf16_128",
       .dtype = bf16,
       .heads = 32,
       .queries = 2048,
       .keys = 2048,
       .depth = 128,
       .width = 128,
       .group = 4},
      {.name = "bf16_256_causal",
       .dtype = bf16,
       .queries = 300,
       .keys = 520,
       .depth = 256,
       .width = 256,
       .mask = Mask::causal},
      {.name = "f16_odd", .queries = 113, .keys = 203, .depth = 33, .width = 35, .mask = Mask::window, .lse = true},
      {.name = "f16_80", .queries = 130, .keys = 1, .depth = 80, .width = 96},
      {.name = "f16_by_hand", .mask = Mask::causal, .by_hand = true, .alibi = true},
      {.name = "f16_of_lengths", .mask = Mask::lengths, .lse = true},
      {.name = "bf16_bias", .dtype = bf16, .depth = 128, .width = 128, .bias = true},
      {.name = "f16_bias_causal", .queries = 300, .keys = 300, .mask = Mask::causal, .bias = true},
      {.name = "f16_documents", .queries = 700, .keys = 700, .mask = Mask::documents},
      {.name = "bf16_prefixes", .dtype = bf16, .depth = 128, .width = 128, .mask = Mask::prefixes, .lse = true},
      {.name = "f16_empty_rows", .queries = 200, .keys = 100, .mask = Mask::causal, .lse = true},
      {.name = "f16_by_hand_nan", .queries = 200, .keys = 100, .mask = Mask::causal, .by_hand = true},
      {.name = "f16_loaded", .queries = 100, .keys = 90, .mask = Mask::loaded, .keys_transposed = true},
      {.name = "f16_softcap", .softcap = true},
      {.name = "f16_dropout", .queries = 100, .keys = 90, .dropout = true},
      {.name = "f16_draws", .queries = 100, .keys = 92, .dropout = true, .draws_from = 0},
      {.name = "f16_odd_draws", .queries = 100, .keys = 91, .mask = Mask::causal, .dropout = true, .draws_from = 0},
      {.name = "f16_many_draws",
       .queries = 100,
       .keys = 92,
       .dropout = true,
       .draws_from = (std::int64_t{1} << 36) + 4},
      {.name = "f16_lengths",
       .queries = Dim::symbol("sq"),
       .keys = Dim::symbol("sk"),
       .mask = Mask::causal,
       .lse = true,
       .symbols = lengths,
       .bindings = {{{"sq", 1}, {"sk", 1}},
                    {{"sq", 1}, {"sk", 777}},
                    {{"sq", 113}, {"sk", 203}},
                    {{"sq", 640}, {"sk", 128}},
                    {{"sq", 10}, {"sk", 0}},
                    {{"sq", 0}, {"sk", 10}}}},
      {.name = "f16_depths",
       .queries = 77,
       .keys = 99,
       .depth = Dim::symbol("d"),
       .width = Dim::symbol("e"),
       .symbols = depths,
       .bindings = {{{"d", 24}, {"e", 200}}, {{"d", 0}, {"e", 1}}}},
      {.name = "f16_no_keys", .queries = 20, .keys = 0, .lse = true},
      {.name = "f32", .dtype = f32, .queries = 130, .keys = 200, .mask = Mask::causal, .lse = true},
      {.name = "f32_by_hand", .dtype = f32, .queries = 130, .keys = 65, .depth = 40, .width = 200, .by_hand = true},
      {.name = "f64", .dtype = f64, .queries = 70, .keys = 90, .depth = 20, .width = 72, .mask = Mask::window},
  };
}

}  // namespace tenon::test
