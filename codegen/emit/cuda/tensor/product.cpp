// See product.h.
#include "codegen/emit/cuda/tensor/product.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

// PTX calls f8e4m3 "e4m3".
std::string_view type_of_product(DType dtype) { return name_of(dtype).substr(is_f8(dtype) ? 2 : 0); }

}  // namespace

void emit_product(Writer& out, const WarpgroupProduct& product) {
  const int sums = product.columns / 2, words = product.a_in_registers ? 4 : 1;
  const char* a = product.a_in_registers ? "const u32 (&a)[4]" : "u64 a";
  out.open(fmt::format("const auto {} = [](float (&d)[{}], {}, u64 b, bool add) {{", product.name, sums, a));
  out.line("asm volatile(");
  out.line(fmt::format("    \"{{ .reg .pred p; setp.ne.b32 p, %{}, 0; \"", sums + words + 1));
  out.line(fmt::format("    \"wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{\"", product.columns,
                       32 / size_of(product.a), type_of_product(product.a), type_of_product(product.b)));
  constexpr int kInLine = 16;
  for (int i = 0; i < sums; i += kInLine) {
    std::string line;
    for (int j = i; j < std::min(i + kInLine, sums); ++j) line += fmt::format("%{}{}", j, j + 1 < sums ? ", " : "");
    out.line("    \"" + line + "\"");
  }
  const std::string first = product.a_in_registers
                                ? fmt::format("{{%{}, %{}, %{}, %{}}}", sums, sums + 1, sums + 2, sums + 3)
                                : fmt::format("%{}", sums);
  std::string ways;  // 8-bit operands have no transposition
  if (size_of(product.a) == 2 && !product.a_in_registers) ways += fmt::format(", {:d}", product.across_a);
  if (size_of(product.a) == 2) ways += fmt::format(", {:d}", product.across_b);
  out.line(fmt::format("    \"}}, {}, %{}, p, 1, 1{}; }}\"", first, sums + words, ways));
  for (int i = 0; i < sums; i += kInLine / 2) {
    std::string line;
    for (int j = i; j < std::min(i + kInLine / 2, sums); ++j)
      line += fmt::format("\"+f\"(d[{}]){}", j, j + 1 < sums ? ", " : "");
    out.line((i == 0 ? "    : " : "      ") + line);
  }
  out.line(fmt::format("    : {}, \"l\"(b), \"r\"((int)add));",
                       product.a_in_registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))" : R"("l"(a))"));
  out.close("};");
}

}  // namespace tenon::codegen::cuda
