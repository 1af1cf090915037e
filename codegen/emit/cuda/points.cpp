// See points.h.
#include "codegen/emit/cuda/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/bytes.h"
#include "codegen/emit/cuda/run_values.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

class PointsEmitter {
 public:
  PointsEmitter(Writer& out, const Kernel& kernel, const Points& points)
      : out_(out), kernel_(kernel), points_(points), vectors_(points.registers.held), bytes_(kernel, points) {
    const Packed& packed = points.packed;
    if (packed.value >= 0 && vector() > 1 && packed.type == storage_type(packed.dtype))
      pairs_ = bytes_.pairs(packed.value, packed.dtype);
    find_folds();
    find_wanted();
    computed_ = instrs_;
    std::erase_if(computed_, [&](InstrId id) { return contains(points.registers.held, id); });
  }

  void emit() {
    vector() > 1 ? emit_vector() : emit_single();
    emit_single_stores();
  }

  // As define_vector writes them, less those that values decide.
  std::vector<VectorLoad> loads() {
    std::vector<VectorLoad> result;
    for (InstrId id : computed_)
      if (varies(id) && kernel_.instr(id).kind == InstrKind::load && is_placed(id))
        if (const VectorLoad load = load_of(id); !load.value.empty() && known_.emplace(load.value, load.name).second)
          result.push_back(load);
    return result;
  }

 private:
  // The values that others than instructions of the run ask for.
  std::vector<InstrId> roots() const {
    std::vector<InstrId> roots = points_.registers.saved;
    for (const InstrId id : roots_of(kernel_, points_.stores)) roots.push_back(id);
    for (const auto* reduces : {&by_points_, &points_.accumulators.outer})
      for (const InstrId id : *reduces) roots.push_back(kernel_.instr(id).args[0]);
    if (points_.packed.value >= 0 && !pairs_) roots.push_back(points_.packed.value);
    return roots;
  }

  // Reductions of whole vectors of bytes, and the others.
  void find_folds() {
    for (const InstrId id : points_.accumulators.reduces) {
      const bool whole = vector() > 1 && !points_.accumulators.across_rows;
      if (const auto fold = whole ? bytes_.fold(id) : std::nullopt)
        folds_.emplace_back(id, *fold);
      else
        by_points_.push_back(id);
    }
  }

  // What the run has to define. Bytes in words leave nobody who asks for single ones, or for the steps by which they
  // become reals.
  void find_wanted() {
    instrs_ = points_.instrs;
    elements_ = roots();
    if (vector() == 1) return;
    std::vector<InstrId> asked = elements_, passed;  // by what is defined; by what would have been
    if (pairs_) {
      asked.insert(asked.end(), pairs_->vectors.begin(), pairs_->vectors.end());
      passed.push_back(points_.packed.value);
    }
    for (const auto& [reduce, fold] : folds_) {
      asked.push_back(fold.bytes);
      passed.push_back(kernel_.instr(reduce).args[0]);
    }
    for (std::size_t i = instrs_.size(); i-- > 0;) {
      const InstrId id = instrs_[i];
      const std::vector<InstrId> all = operands_of(kernel_.instr(id));
      if (contains(passed, id) && !contains(asked, id)) {
        instrs_.erase(instrs_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        const std::vector<InstrId> operands = bytes_.operands(id);
        asked.insert(asked.end(), operands.begin(), operands.end());
        const bool of_elements = bytes_.form(id) == nullptr && !bytes_.exact(id);
        if (of_elements) elements_.insert(elements_.end(), operands.begin(), operands.end());
      }
      passed.insert(passed.end(), all.begin(), all.end());
    }
  }

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
    for (InstrId id : instrs_) define_at("0", id, names_);
    accumulate("0");
    save("0");
    declare_packed();
    pack("0");
  }

  void emit_vector() {
    for (InstrId id : instrs_) {
      if (!varies(id))
        define_at("0", id, names_);
      else if (!contains(vectors_, id))
        define_vector(id);
    }
    declare_packed();
    if (has_loop()) emit_loop();
    for (const auto& [reduce, fold] : folds_) {
      const std::string value = fmt::format("{}({})", fold.function, bytes_.name(fold.bytes));
      const Instr& instr = kernel_.instr(reduce);
      out_.line(
          combine_statement(kernel_, reduce, fmt::format("a{}", reduce),
                            instr.op == ir::Op::sum ? fmt::format("({}){}", value_type(instr.dtype), value) : value));
    }
    for (int index : points_.stores)
      if (const int width = store_width(index); width != 0) emit_vector_store(index, width);
  }

  // The value at point j of the vector: taken from its vector where it has one.
  void define_at(const std::string& j, InstrId id, const Names& names) {
    const Instr& instr = kernel_.instr(id);
    if (const std::string element = stretch_element(id, j); !element.empty()) {
      const DType stored = stored_dtype(kernel_, instr.access);
      const std::string guard = guard_text(instr.access.guards, names), value = decoded(element, stored);
      const std::string zero = literal(std::int64_t{0}, stored);
      out_.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id,
                            guard.empty() ? value : fmt::format("{} ? {} : {}", guard, value, zero)),
                comment(instr));
      return;
    }
    if (bytes_.form(id) != nullptr && !contains(elements_, id)) return;
    if (runs_.has(id)) {
      if (runs_.is_taken(id))
        out_.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, runs_.at(id, j)), comment(instr));
      return;
    }
    if (contains(vectors_, id))
      out_.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, vector_element(id, j)), comment(instr));
    else if (const auto sum = bytes_.exact(id))
      out_.line(fmt::format("const float v{} = byte_to_f32({}, {}, {});", id, bytes_.name(sum->bytes), j, sum->plus),
                comment(instr));
    else
      define(out_, kernel_, id, computed_, names);
  }

  // "w0[2 * j + 3]"; empty where the load has its own.
  std::string stretch_element(InstrId id, const std::string& j) const {
    for (std::size_t i = 0; i < points_.overlaps.size(); ++i) {
      const Overlap& overlap = points_.overlaps[i];
      for (const Overlap::Load& load : overlap.loads) {
        if (load.id != id) continue;
        const std::int64_t first = load.first + std::max(0, overlap.before);
        const std::string name = stretch_name(i);
        if (vector() == 1) return fmt::format("{}[{}]", name, first);
        return fmt::format("{}[{}{}{}]", name, overlap.step == 1 ? "" : fmt::format("{} * ", overlap.step), j,
                           first == 0 ? "" : fmt::format(" + {}", first));
      }
    }
    return {};
  }

  // "w2", or "w0[u + 2]".
  std::string stretch_name(std::size_t number) const {
    if (points_.row.empty()) return fmt::format("w{}", number);
    const StretchOfRow& rows = points_.stretch_rows[number];
    return rows.row == 0 ? fmt::format("w{}[{}]", rows.of, points_.row)
                         : fmt::format("w{}[{} + {}]", rows.of, points_.row, rows.row);
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

  // Whether no value decides where it is read.
  bool is_placed(InstrId id) const {
    const Access& access = kernel_.instr(id).access;
    return !contains(points_.shared.loads, id) && access.offset.values().empty() &&
           std::all_of(access.guards.begin(), access.guards.end(),
                       [](const Guard& guard) { return guard.index.values().empty(); });
  }

  // `load` in words, where it is a value that is had so.
  VectorLoad in_words(InstrId id, int elements, VectorLoad load) const {
    if (bytes_.form(id) == nullptr || elements % 4 != 0) return load;
    if (contains(points_.cache.ahead, id))
      return {bytes_type(kernel_.instr(id).dtype, elements), load.name, load.value, load.words};
    return {bytes_type(kernel_.instr(id).dtype, elements), load.name, fmt::format("to_bytes({})", load.value),
            load.words};
  }

  // The vector that a load is made of: s<id> where points share its elements. Empty where they lie apart.
  VectorLoad load_of(InstrId id) const {
    const DType dtype = stored_dtype(kernel_, kernel_.instr(id).access);
    const std::string type = pack_type(dtype, vector()), name = fmt::format("x{}", id);
    if (contains(points_.shared.loads, id))
      return in_words(id, vector(),
                      {type, name, fmt::format("load<{0}, {0}>(s{1} + {2})", vector(), id, points_.shared.place)});
    if (const auto shared = shared_load(kernel_, id, points_.lanes, names_, points_.cache))
      return in_words(id, shared->elements,
                      {pack_type(dtype, shared->elements), fmt::format("s{}", id), shared->value,
                       words_type(dtype, shared->elements, shared->width)});
    const std::string value = vector_load(kernel_, id, points_.lanes, names_, points_.cache);
    if (value.empty()) return {};
    const int width = width_of(kernel_, kernel_.instr(id).access, points_.lanes);
    return in_words(id, vector(), {type, name, value, words_type(dtype, vector(), width)});
  }

  // Each point's element of what points share.
  std::string spread(InstrId id, const SharedLoad& shared) const {
    const DType dtype = kernel_.instr(id).dtype;
    if (bytes_.form(id) == nullptr) return fmt::format("spread<{}, {:#x}u>(s{})", shared.points, shared.visible, id);
    if (shared.elements % 4 != 0)
      return fmt::format("to_bytes(spread<{}, {:#x}u>(s{}))", shared.points, shared.visible, id);
    return fmt::format("bytes_choose<{}, {}, {:#x}u>(s{}, 0u)", bytes_type(dtype, vector()), shared.points,
                       shared.visible, id);
  }

  // What several loads read is read once.
  void define_load(InstrId id) {
    if (!stretch_element(id, "j").empty()) return;
    const VectorLoad load = load_of(id);
    if (load.value.empty()) return;
    const auto [first, is_first] = known_.emplace(load.value, load.name);
    if (!is_first || !points_.loaded || !is_placed(id))
      out_.line(fmt::format("const {} {} = {};", load.type, load.name, is_first ? load.value : first->second));
    const ByteForm* form = bytes_.form(id);
    if (form != nullptr && form->points > 1) return;
    if (const auto shared = shared_load(kernel_, id, points_.lanes, names_))
      out_.line(fmt::format(
          "const {} x{} = {};",
          form != nullptr ? bytes_.type(id) : pack_type(stored_dtype(kernel_, kernel_.instr(id).access), vector()), id,
          spread(id, *shared)));
    vectors_.push_back(id);
  }

  // "const pack<int, 8> x4 = …;" of a value that is had for all points together.
  void define_vector(InstrId id) {
    const Instr& instr = kernel_.instr(id);
    if (instr.kind == InstrKind::load) return define_load(id);
    std::string type, value;
    if (bytes_.form(id) != nullptr) {
      type = bytes_.type(id);
      value = bytes_.expression(id);
    } else if (draws_together(instr)) {
      type = fmt::format("pack<int, {}>", vector());
      value = fmt::format("{}<{}, {}>({}, {}, {})", draws_blocks(instr) ? "random_elements" : "random_elements_from",
                          vector(), block_type(kernel_, instr), value_name(kernel_, instr.args[0]), instr.stream,
                          random_index(kernel_, instr.index, names_));
    }
    if (value.empty()) return;
    const bool is_bytes = bytes_.form(id) != nullptr;
    out_.line(fmt::format("const {} {} = {};", type, is_bytes ? bytes_.name(id) : fmt::format("x{}", id), value),
              is_bytes ? comment(instr) : std::string());
    vectors_.push_back(id);
  }

  // Whether all points draw words that follow each other.
  bool draws_together(const Instr& instr) const {
    const Lanes& lanes = points_.lanes;
    if (instr.kind != InstrKind::random || instr.word >= 0 || lanes.vector % 4 != 0 || varies(instr.args[0]))
      return false;
    if (lanes.peeled == nullptr) return counts_up(instr.index, lanes.axis, lanes.flat, lanes.vector, 1, kernel_);
    const std::optional<Dim> step = instr.index.coefficient(lanes.axis);  // vectors begin anywhere
    return step && step->is(1);
  }

  // Whether these begin with the first word of a block.
  bool draws_blocks(const Instr& instr) const {
    const Lanes& lanes = points_.lanes;
    return lanes.peeled == nullptr && counts_up(instr.index, lanes.axis, lanes.flat, lanes.vector, 4, kernel_);
  }

  // Whether anything is done point by point.
  bool has_loop() const {
    return !points_.stores.empty() || !points_.registers.saved.empty() || !by_points_.empty() ||
           !points_.accumulators.outer.empty() || (points_.packed.value >= 0 && !pairs_);
  }

  void emit_loop() {
    for (int index : points_.stores)
      if (store_width(index) != 0)
        out_.line(
            fmt::format("{} y{};", pack_type(stored_dtype(kernel_, store_at(kernel_, index).access), vector()), index));
    find_runs();
    runs_.define(out_);
    out_.unrolled("j", vector());
    const bool crosses_rows = points_.lanes.flat && !points_.lanes.in_row;
    // Point j on the axes: "const int past_i1 = (i1 + j) >= 100;", how many rows it is further, and "const int j_i1 =
    // i1 + j - past_i1 * 100;", which are its coordinates from then on.
    const Names names = crosses_rows ? advance(out_, kernel_, kernel_.axes.size() - 1, "j", vector() - 1, "j_")
                                     : at_point(names_, points_.lanes.axis, "j");
    for (InstrId id : instrs_)
      if (varies(id)) define_at("j", id, names);
    save("j");
    pack("j");
    accumulate("j");
    for (int index : points_.stores) {
      const Store& store = store_at(kernel_, index);
      if (!varies(store)) continue;
      out_.line(store_width(index) == 0
                    ? conditional_store(kernel_, store, names, points_.condition)
                    : fmt::format("y{}[j] = {};", index, element_of(store.value, stored_dtype(kernel_, store.access))));
    }
    out_.close();
  }

  // What is computed at each point, of which the runs of a flat vector have some.
  void find_runs() {
    std::vector<InstrId> at_points;
    for (const InstrId id : instrs_)
      if (varies(id) && !contains(vectors_, id) && bytes_.form(id) == nullptr && !bytes_.exact(id) &&
          stretch_element(id, "j").empty())
        at_points.push_back(id);
    runs_ = RunValues(kernel_, points_.lanes, at_points, roots());
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
    if (points_.packed.value < 0) return;
    const std::string y = fmt::format("pack<{}, {}> y", points_.packed.type, vector());
    out_.line(pairs_ ? fmt::format("const {} = {};", y, pairs_->value) : y + ";");
  }

  void pack(const std::string& j) {
    const Packed& packed = points_.packed;
    if (packed.value < 0 || pairs_) return;
    const std::string element = encoded_as(packed.value, packed.dtype);
    const bool wrapped = packed.type != storage_type(packed.dtype);
    out_.line(fmt::format("y[{}] = {};", j, wrapped ? fmt::format("{}{{{}}}", packed.type, element) : element));
  }

  void accumulate(const std::string& j) {
    const Accumulators& to = points_.accumulators;
    const std::string subscript = fmt::format("[{}]", j);
    for (InstrId reduce : by_points_)
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
    const CacheHints& cache = points_.cache;
    // NVVM 13.0 stores some vectors of small elements one by one (products of 704 columns in bf16 on an H100: 490 us,
    // 120 in words). It was not seen to do so with rows, whose registers words would take.
    const bool of_rows = kernel_.kernel_class == ir::KernelClass::reduce;
    const bool whole = cache.whole_stores || (!of_rows && size_of(stored_dtype(kernel_, access)) < 4);
    const char* function = cache.streaming_stores ? "store_streaming" : whole ? "store_whole" : "store";
    out_.line(fmt::format("{}{}<{}, {}>({}, y{});",
                          condition_prefix(points_.condition, guard_text(access.guards, names_)), function, vector(),
                          width, address(kernel_, access, names_), index));
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

  // Point j of `value` as an element of `to`: as it was loaded, where it is moved only.
  std::string element_of(InstrId value, DType to) const {
    const Instr& instr = kernel_.instr(value);
    const bool moved = instr.kind == InstrKind::load && contains(vectors_, value) && bytes_.form(value) == nullptr &&
                       stored_dtype(kernel_, instr.access) == to && instr.dtype == to && compute_type(to) != to;
    return moved ? vector_name(value) + "[j]" : encoded_value(value, to);
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
  std::vector<InstrId> vectors_;  // values that are there as vectors
  ByteVectors bytes_;
  std::vector<std::pair<InstrId, ByteVectors::Fold>> folds_;  // of accumulators
  std::vector<InstrId> by_points_;                            // the other accumulators
  RunValues runs_;
  std::optional<ByteVectors::Pairs> pairs_;   // the value that is gathered, where it is made of bytes
  std::vector<InstrId> instrs_;               // what is wanted of the run
  std::vector<InstrId> elements_;             // what is asked for point by point
  std::vector<InstrId> computed_;             // what is not held
  std::map<std::string, std::string> known_;  // the name of what is loaded
};

}  // namespace

void emit_points(Writer& out, const Kernel& kernel, const Points& points) { PointsEmitter(out, kernel, points).emit(); }

std::vector<VectorLoad> placed_loads(const Kernel& kernel, const Points& points) {
  Writer none(0);
  return PointsEmitter(none, kernel, points).loads();
}

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
