// See plan_bytes.h. Each structure is listed once, for both directions; a binding names all of its members, so that a
// new one does not compile until it is listed here.
#include "ir/fusion/plan_bytes.h"

#include <concepts>
#include <cstring>
#include <type_traits>
#include <variant>

#include "ir/graph/check.h"
#include "ir/text/parse_values.h"
#include "tenon/error.h"

namespace tenon::ir {
namespace {

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void fields(auto& each, Is<SymbolBounds> auto& all) {
  auto& [min, max, divisor] = all;
  each(min, max, divisor);
}

void fields(auto& each, Is<Place> auto& all) {
  auto& [file, line, column, value, argument] = all;
  each(file, line, column, value, argument);
}

void fields(auto& each, Is<Type> auto& all) {
  auto& [dtype, shape] = all;
  each(dtype, shape);
}

void fields(auto& each, Is<Value> auto& all) {
  auto& [type, producer, result, name] = all;
  each(type, producer, result, name);
}

void fields(auto& each, Is<Node> auto& all) {
  auto& [op, operands, attrs, results, place] = all;
  each(op, operands, attrs, results, place);
}

void fields(auto& each, Is<Graph> auto& all) {
  auto& [name, symbols, values, nodes, inputs, outputs, outputs_names, updates] = all;
  each(name, symbols, values, nodes, inputs, outputs, outputs_names, updates);
}

// The digits of finished groups are plain: none is a piece of a cut.
void fields(auto& each, Is<Digit> auto& all) {
  auto& [axis, divisor, extent, depends, terms, cut, piece] = all;
  TENON_CHECK(cut == nullptr, "a layout of a plan has pieces of digits");
  each(axis, divisor, extent, depends, terms, piece);
}

void fields(auto& each, Is<Scaling> auto& all) {
  auto& [node, weights] = all;
  each(node, weights);
}

void fields(auto& each, Is<Attention> auto& all) {
  auto& [scores, mix, score, shift, maximum, weight, sum, scaling] = all;
  each(scores, mix, score, shift, maximum, weight, sum, scaling);
}

void fields(auto& each, Is<Estimate> auto& all) {
  auto& [us, memory_us, compute_us, bytes, slots, flops, tensor_flops, lane_flops] = all;
  each(us, memory_us, compute_us, bytes, slots, flops, tensor_flops, lane_flops);
}

void fields(auto& each, Is<Group> auto& all) {
  auto& [kernel_class, nodes, inputs, outputs, kept, reduced, layouts, outer, attention, estimate] = all;
  each(kernel_class, nodes, inputs, outputs, kept, reduced, layouts, outer, attention, estimate);
}

void fields(auto& each, Is<Refusal> auto& all) {
  auto& [value, producer, consumer, launch, rule, reason, bytes] = all;
  each(value, producer, consumer, launch, rule, reason, bytes);
}

void fields(auto& each, Is<TensorCores> auto& all) {
  auto& [f16, bf16, tf32, f8] = all;
  each(f16, bf16, tf32, f8);
}

void fields(auto& each, Is<CostModel> auto& all) {
  auto& [device, launch_us, bandwidth_gb_s, l2_bandwidth_gb_s, l2_bytes, sector_bytes, gigaslots_s, tensor_tflops,
         depth_parts, fed_elements_ns, paired_products, tile_tests, product_bounds, online, moments, lane_tflops,
         f32_tflops, attend_extent, attend_columns, attend_rows, moved_load_slots, guarded_load_slots,
         neighbour_load_slots, overlap, threads, block_gb_s, row_blocks, row_block_bytes, grid_row_bytes, meeting_us,
         outer_elements, outer_blocks, tensor_cores] = all;
  each(device, launch_us, bandwidth_gb_s, l2_bandwidth_gb_s, l2_bytes, sector_bytes, gigaslots_s, tensor_tflops,
       depth_parts, fed_elements_ns, paired_products, tile_tests, product_bounds, online, moments, lane_tflops,
       f32_tflops, attend_extent, attend_columns, attend_rows, moved_load_slots, guarded_load_slots,
       neighbour_load_slots, overlap, threads, block_gb_s, row_blocks, row_block_bytes, grid_row_bytes, meeting_us,
       outer_elements, outer_blocks, tensor_cores);
}

void fields(auto& each, Is<Plan> auto& all) {
  auto& [graph, groups, packs, refusals, cost, live_bytes] = all;
  each(graph, groups, packs, refusals, cost, live_bytes);
}

void fields(auto& each, Is<PlanOptions> auto& all) {
  auto& [fuse, find_attention, siblings, duplicate, mixed_order, pad_rows, turn_f8, turn_few, split_depth, split_f32,
         pair_products, split_pieces, rows_apart, turned_apart, max_operands, max_pointers, max_nodes, max_places,
         max_readers, max_siblings, window, max_packed, max_live_bytes, typical, cost] = all;
  each(fuse, find_attention, siblings, duplicate, mixed_order, pad_rows, turn_f8, turn_few, split_depth, split_f32,
       pair_products, split_pieces, rows_apart, turned_apart, max_operands, max_pointers, max_nodes, max_places,
       max_readers, max_siblings, window, max_packed, max_live_bytes, typical, cost);
}

template <typename T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  void operator()(const auto&... all) { (write(all), ...); }
  std::string bytes;

 private:
  void write(const Plain auto& number) {
    const std::size_t end = bytes.size();
    bytes.resize(end + sizeof number);
    std::memcpy(bytes.data() + end, &number, sizeof number);
  }
  void write(const std::string& text) {
    write(text.size());
    bytes += text;
  }
  void write(const Dim& extent) {
    write(extent.is_constant());
    extent.is_constant() ? write(extent.constant()) : write(extent.str());
  }
  void write(const Attrs& attrs) { write(attrs.items()); }
  template <typename T, typename U>
  void write(const std::pair<T, U>& both) {
    (*this)(both.first, both.second);
  }
  template <typename T>
  void write(const std::vector<T>& list) {
    write(list.size());
    for (const T& item : list) write(item);
  }
  template <typename T, typename U>
  void write(const std::map<T, U>& map) {
    write(map.size());
    for (const auto& [key, item] : map) (*this)(key, item);
  }
  template <typename... T>
  void write(const std::variant<T...>& one) {
    write(one.index());
    std::visit([this](const auto& held) { write(held); }, one);
  }
  void write(const auto& structure) { fields(*this, structure); }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  void operator()(auto&... all) { (read(all), ...); }
  /// Whether there was all that was read, and no more.
  bool is_whole() const { return whole_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    whole_ = whole_ && count <= rest_.size();
    const std::string_view taken = rest_.substr(0, whole_ ? count : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // Each item takes a byte at least, so that no wrong number takes all memory.
  std::size_t count() {
    std::size_t number = 0;
    read(number);
    whole_ = whole_ && number <= rest_.size();
    return whole_ ? number : 0;
  }

  template <Plain T>
  void read(T& number) {
    if (const std::string_view taken = take(sizeof number); !taken.empty())
      std::memcpy(&number, taken.data(), sizeof number);
    else
      number = T{};
  }
  void read(std::string& text) { text = take(count()); }
  void read(Dim& extent) {
    bool constant = false;
    read(constant);
    if (constant) {
      std::int64_t number = 0;
      read(number);
      extent = number;
    } else {
      std::string text;
      Symbols symbols;
      read(text);
      extent = parse_dim_text(text, symbols, SymbolUse::declare, {});
    }
  }
  void read(Attrs& attrs) {
    std::vector<std::pair<std::string, AttrValue>> items;
    read(items);
    for (auto& [name, value] : items) attrs.set(std::move(name), std::move(value));
  }
  template <typename T, typename U>
  void read(std::pair<T, U>& both) {
    (*this)(both.first, both.second);
  }
  template <typename T>
  void read(std::vector<T>& list) {
    list.resize(count());
    for (T& item : list) read(item);
  }
  template <typename T, typename U>
  void read(std::map<T, U>& map) {
    for (std::size_t left = count(); left > 0; --left) {
      T key{};
      read(key);
      read(map[key]);
    }
  }
  template <typename... T>
  void read(std::variant<T...>& one) {
    std::size_t index = 0;
    read(index);
    whole_ = whole_ && index < sizeof...(T);
    std::size_t at = 0;
    (
        [&] {
          if (at++ == index) read(one.template emplace<T>());
        }(),
        ...);
  }
  void read(auto& structure) { fields(*this, structure); }

  std::string_view rest_;
  bool whole_ = true;
};

}  // namespace

std::string to_bytes(const Plan& plan) {
  Writer writer;
  writer(plan);
  return std::move(writer.bytes);
}

std::optional<Plan> plan_from_bytes(std::string_view bytes) try {
  Plan plan;
  Reader reader(bytes);
  reader(plan);
  return reader.is_whole() ? std::optional(std::move(plan)) : std::nullopt;
} catch (const Error&) {  // of a dimension
  return std::nullopt;
}

std::string to_bytes(const Graph& graph, const PlanOptions& options) {
  Writer writer;
  writer(graph, options);
  return std::move(writer.bytes);
}

}  // namespace tenon::ir
