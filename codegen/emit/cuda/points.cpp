// See points.h.
#include "codegen/emit/cuda/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "codegen/analysis/exact.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

class PointsEmitter {
 public:
  PointsEmitter(Writer& out, const Kernel& kernel, const Points& points)
      : out_(out), kernel_(kernel), points_(points), vectors_(points.registers.held), computed_(points.instrs) {
    std::erase_if(computed_, [&](InstrId id) { return contains(points.registers.held, id); });
  }

  void emit() {
    vector() > 1 ? emit_vector() : emit_single();
    emit_single_stores();
  }

 private:
  int vector() const { return points_.lanes.vector; }
  bool varies(InstrId id) const { return cuda::varies(points_.lanes, kernel_.instr(id).depends); }
  bool varies(const Store& store) const { return cuda::varies(points_.lanes, axes_of(kernel_, store)); }

  // The width at which a store leaves as a vector, or 0.
  int store_width(int index) const {
    if (vector() == 1) return 0;
    if (contains(points_.shared.stores, index)) return vector();
    const Store& store = store_at(kernel_, index);
    return varies(store) ? width_of(kernel_, store.access, points_.lanes) : 0;
  }

  void emit_single() {
    for (InstrId id : points_.instrs) define_at("0", id, names_);
    accumulate("0");
    save("0");
    declare_packed();
    pack("0");
  }

  void emit_vector() {
    for (InstrId id : points_.instrs) {
      if (!varies(id))
        define_at("0", id, names_);
      else if (!contains(vectors_, id))
        define_vector(id);
    }
    declare_packed();
    emit_loop();
    for (int index : points_.stores)
      if (const int width = store_width(index); width != 0) emit_vector_store(index, width);
  }

  // The value at point j of the vector: taken from its vector where it has one.
  void define_at(const std::string& j, InstrId id, const Names& names) {
    const Instr& instr = kernel_.instr(id);
    if (contains(vectors_, id))
      out_.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, vector_element(id, j)), comment(instr));
    else if (casts_small_vector(instr))
      out_.line(fmt::format("const float v{} = small_to_f32({}, {});", id, vector_name(instr.args[0]), j),
                comment(instr));
    else
      define(out_, kernel_, id, computed_, names);
  }

  // A conversion of loaded bytes to a real that holds them: words of them are taken apart as they are converted.
  bool casts_small_vector(const Instr& instr) const {
    if (instr.kind != InstrKind::map || instr.op != ir::Op::cast || compute_type(instr.dtype) != DType::f32)
      return false;
    const InstrId from = instr.args[0];
    const Instr& loaded = kernel_.instr(from);
    return vector() % 4 == 0 && contains(vectors_, from) && loaded.kind == InstrKind::load &&
           (loaded.dtype == DType::i8 || loaded.dtype == DType::u8) && is_exact_in(kernel_, from, instr.dtype);
  }

  std::string vector_name(InstrId id) const {
    const Registers& registers = points_.registers;
    return contains(registers.held, id) ? fmt::format("{}{}{}", registers.name, id, registers.index)
                                        : fmt::format("x{}", id);
  }

  std::string vector_element(InstrId id, const std::string& j) const {
    const Registers& registers = points_.registers;
    const bool held = contains(registers.held, id);
    const std::string text = fmt::format("{}[{}]", vector_name(id), j);
    const Instr& instr = kernel_.instr(id);
    if (instr.kind == InstrKind::load) return decoded(text, stored_dtype(kernel_, instr.access));
    if (instr.kind == InstrKind::round) return decoded(text, instr.dtype);
    return held ? registers.before + text + registers.behind : text;
  }

  // "const pack<int, 8> x4 = …;" of a value that is had for all points together.
  void define_vector(InstrId id) {
    const Instr& instr = kernel_.instr(id);
    std::string type, value;
    if (instr.kind == InstrKind::load) {
      type = pack_type(stored_dtype(kernel_, instr.access), vector());
      value = contains(points_.shared.loads, id)
                  ? fmt::format("load<{0}, {0}>(s{1} + {2})", vector(), id, points_.shared.place)
                  : vector_load(kernel_, id, points_.lanes, names_, points_.cache);
    } else if (draws_together(instr)) {
      type = fmt::format("pack<int, {}>", vector());
      value = fmt::format("random_elements<{}>({}, {}, {})", vector(), value_name(kernel_, instr.args[0]), instr.stream,
                          index_text(instr.index, names_));
    }
    if (value.empty()) return;
    out_.line(fmt::format("const {} x{} = {};", type, id, value));
    vectors_.push_back(id);
  }

  bool draws_together(const Instr& instr) const {
    const Lanes& lanes = points_.lanes;
    return instr.kind == InstrKind::random && lanes.peeled == nullptr && instr.word < 0 && lanes.vector % 4 == 0 &&
           !varies(instr.args[0]) && counts_up(instr.index, lanes.axis, lanes.flat, lanes.vector, 4, kernel_);
  }

  void emit_loop() {
    for (int index : points_.stores)
      if (store_width(index) != 0)
        out_.line(
            fmt::format("{} y{};", pack_type(stored_dtype(kernel_, store_at(kernel_, index).access), vector()), index));
    out_.unrolled("j", vector());
    const Names names = points_.lanes.flat ? emit_advance() : at_point(names_, points_.lanes.axis, "j");
    for (InstrId id : points_.instrs)
      if (varies(id)) define_at("j", id, names);
    save("j");
    pack("j");
    accumulate("j");
    for (int index : points_.stores) {
      const Store& store = store_at(kernel_, index);
      if (!varies(store)) continue;
      out_.line(store_width(index) == 0 ? conditional_store(kernel_, store, names, points_.condition)
                                        : fmt::format("y{}[j] = {};", index,
                                                      encoded_value(store.value, stored_dtype(kernel_, store.access))));
    }
    out_.close();
  }

  // Point j of a flat vector on the axes: "const int past_i1 = (i1 + j) >= 100;", how many rows it is further, and
  // "const int j_i1 = i1 + j - past_i1 * 100;", which are its coordinates from then on.
  Names emit_advance() {
    Names names = names_;
    const std::string type = index_type(kernel_);
    std::string step = "j";
    std::int64_t furthest = vector() - 1;  // of the steps
    for (std::size_t axis = kernel_.axes.size(); axis-- > 0;) {
      const std::string name = names.axes[axis], sum = fmt::format("({} + {})", name, step);
      names.axes[axis] = "j_" + name;
      if (axis == 0) {
        out_.line(fmt::format("const {} j_{} = {};", type, name, sum));
        break;
      }
      const Dim& extent = kernel_.axes[axis].extent;
      const std::string size = parenthesized(dim_text(extent, names));
      const bool once = extent.bounds(kernel_.symbols).min >= furthest;
      out_.line(fmt::format("const {} past_{} = {} {} {};", type, name, sum, once ? ">=" : "/", size));
      out_.line(fmt::format("const {0} j_{1} = {2} - past_{1} * {3};", type, name, sum, size));
      step = "past_" + name;
      if (once) furthest = 1;
    }
    return names;
  }

  // Values of this run that later ones hold. A rounded one is encoded as its store does it, so that one conversion does
  // for both.
  void save(const std::string& j) {
    for (InstrId id : points_.registers.saved) {
      const Instr& instr = kernel_.instr(id);
      const std::string value =
          instr.kind == InstrKind::round ? encoded_as(instr.args[0], instr.dtype) : value_name(kernel_, id);
      out_.line(fmt::format("{}{}{}[{}] = {};", points_.registers.name, id, points_.registers.index, j, value));
    }
  }

  void declare_packed() {
    if (points_.packed.value >= 0) out_.line(fmt::format("pack<{}, {}> y;", points_.packed.type, vector()));
  }

  void pack(const std::string& j) {
    const Packed& packed = points_.packed;
    if (packed.value < 0) return;
    const std::string element = encoded_as(packed.value, packed.dtype);
    const bool wrapped = packed.type != storage_type(packed.dtype);
    out_.line(fmt::format("y[{}] = {};", j, wrapped ? fmt::format("{}{{{}}}", packed.type, element) : element));
  }

  void accumulate(const std::string& j) {
    const Accumulators& to = points_.accumulators;
    const std::string subscript = fmt::format("[{}]", j);
    for (InstrId reduce : to.reduces)
      out_.line(to.across_rows
                    ? accumulate_statement(kernel_, reduce, to.position, to.in_order, subscript)
                    : accumulate_statement(kernel_, reduce, to.position + (vector() > 1 ? " + j" : ""), to.in_order));
    for (InstrId reduce : to.outer)  // the row is the position among those that it combines
      out_.line(accumulate_statement(kernel_, reduce, "row", true, points_.registers.index + subscript));
  }

  void emit_vector_store(int index, int width) {
    if (contains(points_.shared.stores, index)) {
      out_.line(fmt::format("u{0}.put(row, column, y{0});", index));
      return;
    }
    const Access& access = store_at(kernel_, index).access;
    out_.line(fmt::format("{}{}<{}, {}>({}, y{});",
                          condition_prefix(points_.condition, guard_text(access.guards, names_)),
                          points_.cache.streaming_stores ? "store_streaming" : "store", vector(), width,
                          address(kernel_, access, names_), index));
  }

  // The stores that do not belong to the points of a vector.
  void emit_single_stores() {
    for (int index : points_.stores) {
      const Store& store = store_at(kernel_, index);
      if (vector() > 1 && varies(store)) continue;
      out_.line(contains(points_.shared.stores, index)
                    ? fmt::format("*u{}.at(row, column) = {};", index,
                                  encoded_as(store.value, stored_dtype(kernel_, store.access)))
                    : conditional_store(kernel_, store, names_, points_.condition));
    }
  }

  std::string encoded_as(InstrId value, DType to) const {
    return encoded(value_name(kernel_, value), kernel_.instr(value).dtype, to);
  }

  // `value` as an element of `to` in memory. What was rounded to that before is taken as it was then: the bits are the
  // same.
  std::string encoded_value(InstrId value, DType to) const {
    const auto rounded = [&](const Instr& instr) {
      return instr.dtype == to && compute_type(to) != to &&
             (instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == ir::Op::cast)) &&
             compute_type(kernel_.instr(instr.args[0]).dtype) == compute_type(to);
    };
    while (!contains(points_.registers.held, value) && rounded(kernel_.instr(value)))
      value = kernel_.instr(value).args[0];
    return encoded(value_name(kernel_, value), compute_type(kernel_.instr(value).dtype), to);
  }

  Writer& out_;
  const Kernel& kernel_;
  const Points& points_;
  const Names names_ = names_of(kernel_);
  std::vector<InstrId> vectors_;   // values that are there as vectors
  std::vector<InstrId> computed_;  // what is not held
};

}  // namespace

void emit_points(Writer& out, const Kernel& kernel, const Points& points) { PointsEmitter(out, kernel, points).emit(); }

std::vector<int> all_stores(const Kernel& kernel) {
  std::vector<int> stores(kernel.stores.size());
  std::iota(stores.begin(), stores.end(), 0);
  return stores;
}

Points map_points(const Kernel& kernel, const MapSchedule& schedule) {
  Points points{.lanes = {.axis = static_cast<int>(kernel.axes.size()) - 1,
                          .vector = schedule.vector,
                          .flat = schedule.flat && schedule.vector > 1},
                .stores = all_stores(kernel),
                .cache = {.streaming_stores = schedule.cache.streaming}};
  points.instrs = needed(kernel, roots_of(kernel, points.stores));
  if (schedule.cache.keep_reads) points.cache.kept = points.instrs;
  if (schedule.cache.streaming_loads) points.cache.streamed = loads_read_once(kernel, schedule.spread);
  return points;
}

}  // namespace tenon::codegen::cuda
