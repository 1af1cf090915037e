// See tensor.h.
#include "codegen/emit/cuda/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

bool gathers(const Access& access) {
  return !access.offset.values().empty() ||
         std::any_of(access.guards.begin(), access.guards.end(),
                     [](const Guard& guard) { return !guard.index.values().empty(); });
}

// What the epilogue can read before it has a sum: at addresses that no value decides.
struct ReadAhead {
  Region loads;    // as many as leave registers for the sums
  Region touched;  // each line is read by one tile only
  int reach = 0;   // columns of the shortest line, 0 where none is touched
};

ReadAhead read_ahead(const Kernel& kernel, const ContractParts& parts, const Lanes& lanes) {
  constexpr int kLine = 128, kMostBytes = 32;  // of a cache line; of a vector's loads
  ReadAhead ahead;
  std::int64_t bytes = 0;
  const std::uint64_t row = 1ull << parts.m, column = 1ull << parts.n;
  for (const InstrId id : parts.epilogue) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || (instr.depends & (row | column)) == 0 || gathers(instr.access)) continue;
    const auto size = static_cast<int>(size_of(stored_dtype(kernel, instr.access)));
    if (const int taken = varies(lanes, instr.depends) ? lanes.vector * size : size; bytes + taken <= kMostBytes) {
      bytes += taken;
      ahead.loads.push_back(id);
    }
    const bool of_tile = (instr.depends & row) != 0 && (instr.depends & column) != 0;
    if (!of_tile || !instr.access.guards.empty() || width_of(kernel, instr.access, lanes) == 0) continue;
    ahead.touched.push_back(id);
    ahead.reach = ahead.reach == 0 ? kLine / size : std::min(ahead.reach, kLine / size);
  }
  return ahead;
}

std::vector<InstrId> products_of(const ContractParts& parts) {
  return parts.second ? std::vector{parts.contract, parts.second->contract} : std::vector{parts.contract};
}

// "int m, int n, const pack<float, 8>& x3".
std::string epilogue_parameters(const Kernel& kernel, const ContractParts& parts, TileElement element, int vector) {
  const Names names = names_of(kernel);
  std::string text = fmt::format("{0} {1}, {0} {2}", index_type(kernel), names.axes[static_cast<std::size_t>(parts.m)],
                                 names.axes[static_cast<std::size_t>(parts.n)]);
  for (const InstrId product : products_of(parts))
    text += fmt::format(", const pack<{}, {}>& x{}", element.dtype == DType::f64 ? "double" : "float", vector, product);
  return text;
}

// "struct loads { … };" and "const auto get = [&](int m, int n) { … };": what the epilogue reads ahead of its sums.
void emit_loads(Writer& out, const Kernel& kernel, const Region& read, const Lanes& lanes, const std::string& place) {
  const Names names = names_of(kernel);
  const Lanes one{.axis = lanes.axis, .vector = 1};
  const auto single = [&](InstrId id) { return !varies(lanes, kernel.instr(id).depends); };
  out.open("struct loads {");
  for (const InstrId id : read)
    out.line(fmt::format("{} x{};",
                         pack_type(stored_dtype(kernel, kernel.instr(id).access), single(id) ? 1 : lanes.vector), id));
  out.close("};");
  out.open(fmt::format("const auto get = [&]({}) {{", place));
  out.line("loads loaded;");
  for (const InstrId id : read)
    emit_load_into(out, kernel, id, single(id) ? one : lanes, names, {}, fmt::format("loaded.x{}", id));
  out.line("return loaded;");
  out.close("};");
}

Points epilogue(const Kernel& kernel, const ContractParts& parts, int vector) {
  Points points{.lanes = {.axis = parts.n, .vector = vector},
                .instrs = products_of(parts),
                .stores = all_stores(kernel),
                .registers = {.held = products_of(parts)}};
  points.instrs.insert(points.instrs.end(), parts.epilogue.begin(), parts.epilogue.end());
  return points;
}

}  // namespace

std::string tile_type(TileElement element) {
  return element.tensor_cores && element.dtype == DType::f32 ? "tf32" : storage_type(element.dtype);
}

void emit_result(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element) {
  const int vector = epilogue_vector(kernel, parts.n, 8);
  out.open(fmt::format("const auto out = make_result<{}>([&]({}) {{", vector,
                       epilogue_parameters(kernel, parts, element, vector)));
  emit_points(out, kernel, epilogue(kernel, parts, vector));
  out.close("});");
}

void emit_result_ahead(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element) {
  const Names names = names_of(kernel);
  const int vector = epilogue_vector(kernel, parts.n, 8);
  const Lanes lanes{.axis = parts.n, .vector = vector};
  const ReadAhead ahead = read_ahead(kernel, parts, lanes);
  const std::string type = index_type(kernel);
  const std::string place = fmt::format("{0} {1}, {0} {2}", type, names.axes[static_cast<std::size_t>(parts.m)],
                                        names.axes[static_cast<std::size_t>(parts.n)]);
  emit_loads(out, kernel, ahead.loads, lanes, place);
  out.open(fmt::format("const auto touch = [&]({}) {{", place));
  for (const InstrId id : ahead.touched)
    out.line(fmt::format("touch_line({});", address(kernel, kernel.instr(id).access, names)));
  out.close("};");
  out.open(fmt::format("const auto out = make_result_ahead<{}, {}>(get, touch, [&]({}, const loads& loaded) {{", vector,
                       ahead.reach, epilogue_parameters(kernel, parts, element, vector)));
  for (const InstrId id : ahead.loads) out.line(fmt::format("const auto& x{0} = loaded.x{0};", id));
  Points points = epilogue(kernel, parts, vector);
  points.registers.held.insert(points.registers.held.end(), ahead.loads.begin(), ahead.loads.end());
  emit_points(out, kernel, points);
  out.close("});");
}

void emit_result_boxes(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element,
                       const BoxAccess& box, std::size_t map) {
  constexpr int kVector = 2;  // neighbouring sums of a thread
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel);
  const std::string& m = names.axes[static_cast<std::size_t>(parts.m)];
  const std::string& n = names.axes[static_cast<std::size_t>(parts.n)];
  const std::string stored = storage_type(stored_dtype(kernel, kernel.stores.front().access));
  const Region of_columns = read_ahead(kernel, parts, {.axis = parts.n, .vector = kVector}).loads;
  emit_loads(out, kernel, of_columns, {.axis = parts.n, .vector = kVector}, fmt::format("{} {}", type, n));
  out.open(fmt::format("const auto take = [&]({}, const loads& loaded) {{",
                       epilogue_parameters(kernel, parts, element, kVector)));
  for (const InstrId id : of_columns) out.line(fmt::format("const auto& x{0} = loaded.x{0};", id));
  out.line(fmt::format("kept<pack<{}, {}>> u0;", stored, kVector));
  out.line("constexpr int row = 0, column = 0;");
  Points points = epilogue(kernel, parts, kVector);
  points.registers.held.insert(points.registers.held.end(), of_columns.begin(), of_columns.end());
  points.shared.stores = points.stores;
  emit_points(out, kernel, points);
  out.line("return u0.value;");
  out.close("};");
  out.open(fmt::format("const auto leave = [&](const void* from, {} {}, {} {}) {{", type, m, type, n));
  std::string call = fmt::format("copy_box_out(map{}, from", map);
  for (const std::vector<int>& axes : box.axes) call += ", " + box_coordinate(kernel, axes);
  out.line(call + ");");
  out.close("};");
  out.line(fmt::format("const auto out = make_result_boxes<{}>(get, take, leave);", stored));
}

TensorMap result_map(const Kernel& kernel, const BoxAccess& access) {
  constexpr int kLineBytes = 64, kRows = 16;
  TensorMap map = tensor_map(kernel, access, kRows);
  map.box[0] = kLineBytes / static_cast<int>(size_of(map.dtype));
  map.swizzle_bytes = kLineBytes;
  return map;
}

std::string box_coordinate(const Kernel& kernel, const std::vector<int>& axes) {
  const Names names = names_of(kernel);
  std::string text = names.axes[static_cast<std::size_t>(axes.front())];
  for (std::size_t i = 1; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    text =
        fmt::format("({} * {} + {})", text, parenthesized(dim_text(kernel.axes[axis].extent, names)), names.axes[axis]);
  }
  return "(int)" + text;
}

TensorMap tensor_map(const Kernel& kernel, const BoxAccess& access, int lines) {
  constexpr int kLineBytes = 128;
  TensorMap map{.pointer = access.operand,
                .offset = access.offset,
                .dtype = kernel.operands[static_cast<std::size_t>(access.operand)].dtype,
                .extents = access.extents,
                .strides = access.strides,
                .box = std::vector<int>(access.axes.size(), 1),
                .swizzle_bytes = kLineBytes};
  map.box[0] = kLineBytes / static_cast<int>(size_of(map.dtype));
  map.box[1] = lines;
  return map;
}

Dim extent_of_axes(const Kernel& kernel, const std::vector<int>& axes) {
  Dim product(1);
  for (int axis : axes) product = product * kernel.axes[static_cast<std::size_t>(axis)].extent;
  return product;
}

void decode_batch(Writer& out, const Kernel& kernel, const std::vector<int>& batch, const std::string& number) {
  std::vector<Digit> digits;
  for (const int axis : batch) {
    const Axis& each = kernel.axes[static_cast<std::size_t>(axis)];
    digits.push_back({each.name, each.extent});
  }
  if (!digits.empty()) decode_digits(out, kernel, digits, number);
}

}  // namespace tenon::codegen::cuda
