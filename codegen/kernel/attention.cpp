// What an attend kernel says of its attention, checked against its body. Emitters write the parts apart from each
// other, in loops of their own, and look no further than Kernel::attention.
#include <fmt/format.h>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/uses.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

using ir::Op;

class AttentionCheck {
 public:
  explicit AttentionCheck(const Kernel& kernel) : kernel_(kernel), attention_(kernel.attention) {
    require(kernel.axes.size() >= 4, "it lacks its last axes");
    i_ = static_cast<int>(kernel.axes.size()) - 4;
    row_ = bit(i_ + 1) - 1;
  }

  void run() {
    check_combined();
    find_sources();
    check_operands();
    check_weights();
    check_scaling();
    for (const Store& store : kernel_.stores)
      for (InstrId root : roots_of(store)) check_made(root, maximum | sum | mix, row_ | e(), "what is stored");
  }

 private:
  // What a value is made of that combines axes.
  enum Source : std::uint8_t { scores = 1, maximum = 2, sum = 4, mix = 8 };

  static std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }
  std::uint64_t batch() const { return bit(i_) - 1; }
  std::uint64_t e() const { return bit(i_ + 1); }
  std::uint64_t j() const { return bit(i_ + 2); }
  std::uint64_t d() const { return bit(i_ + 3); }

  void require(bool holds, const std::string& what) const {
    TENON_CHECK(holds, "an attend kernel's attention: " + what + "\n" + print(kernel_));
  }

  void check_combined() const {
    check_combined(attention_.scores, InstrKind::contract, i_ + 3, "scores");
    check_combined(attention_.mix, InstrKind::contract, i_ + 2, "mix");
    check_combined(attention_.sum, InstrKind::reduce, i_ + 2, "sum");
    require(kernel_.instr(attention_.sum).op == Op::sum, "the sum is another reduction");
    require((attention_.maximum < 0) == (attention_.shift < 0), "there is a shift where there is a maximum");
    if (attention_.maximum < 0) return;
    check_combined(attention_.maximum, InstrKind::reduce, i_ + 2, "maximum");
    require(kernel_.instr(attention_.maximum).op == Op::max, "the maximum is another reduction");
  }

  void check_combined(InstrId id, InstrKind kind, int axis, const char* part) const {
    check_id(id, part);
    require(kernel_.instr(id).kind == kind && kernel_.instr(id).axes == std::vector<int>{axis},
            fmt::format("v{} is no {}", id, part));
  }

  void check_id(InstrId id, const char* part) const {
    require(id >= 0 && static_cast<std::size_t>(id) < kernel_.body.size(), fmt::format("there is no {}", part));
  }

  int source_of(InstrId id) const {
    if (id == attention_.scores) return scores;
    if (id == attention_.maximum) return maximum;
    if (id == attention_.sum) return sum;
    return id == attention_.mix ? mix : 0;
  }

  void find_sources() {
    for (std::size_t i = 0; i < kernel_.body.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      int sources = source_of(id);
      require(kernel_.instr(id).axes.empty() || sources != 0,
              fmt::format("v{} combines axes and is no part of it", id));
      if (sources == 0)
        for (InstrId operand : operands_of(kernel_.instr(id))) sources |= sources_[static_cast<std::size_t>(operand)];
      sources_.push_back(sources);
    }
  }

  // `id` is made of these sources at most, and varies along these axes at most.
  void check_made(InstrId id, int of, std::uint64_t along, const char* part) const {
    check_id(id, part);
    require((sources_[static_cast<std::size_t>(id)] & ~of) == 0,
            fmt::format("{}: v{} is made of another part", part, id));
    require((kernel_.instr(id).depends & ~along) == 0,
            fmt::format("{}: v{} varies along an axis that it must not", part, id));
  }

  void check_operands() const {
    check_made(kernel_.instr(attention_.scores).args[0], 0, row_ | d(), "queries");
    check_made(kernel_.instr(attention_.scores).args[1], 0, batch() | j() | d(), "keys");
    check_made(kernel_.instr(attention_.mix).args[1], 0, batch() | e() | j(), "values");
    check_made(attention_.score, scores, row_ | j(), "score");
    if (attention_.shift >= 0) check_made(attention_.shift, maximum, row_, "shift");
  }

  InstrId argument(InstrId id) const { return behind_casts(kernel_, kernel_.instr(id).args[0]); }
  bool is_map(InstrId id, Op op) const {
    return kernel_.instr(id).kind == InstrKind::map && kernel_.instr(id).op == op;
  }

  void check_weights() const {
    check_id(attention_.weight, "weight");
    require(is_map(attention_.weight, Op::exp), "the weight is no exponential");
    require(argument(attention_.sum) == attention_.weight, "the sum is not that of the weights");
    const InstrId score = behind_casts(kernel_, attention_.score), exponent = argument(attention_.weight);
    if (attention_.maximum < 0) {
      require(exponent == score, "the weight is not that of the score");
      return;
    }
    require(argument(attention_.maximum) == score, "the maximum is not that of the score");
    require(is_map(exponent, Op::sub) &&
                kernel_.instr(exponent).args == std::vector<InstrId>{attention_.score, attention_.shift},
            "the exponent is not the score less the shift");
  }

  void check_scaling() const {
    InstrId weight = attention_.weight;
    for (InstrId id : attention_.scaling) {
      check_id(id, "scaling");
      check_step(id, weight);
      weight = id;
    }
    require(kernel_.instr(attention_.mix).args[0] == weight, "the scaled weights are not those that are mixed");
  }

  void check_step(InstrId id, InstrId weight) const {
    const std::vector<InstrId>& args = kernel_.instr(id).args;
    const auto requires_linear = [&](bool linear) {
      require(linear, fmt::format("v{} is not linear in the weights v{}", id, weight));
    };
    if (is_map(id, Op::mul)) {
      requires_linear(args[0] == weight || args[1] == weight);
      check_factor(args[args[0] == weight ? 1 : 0]);
    } else if (is_map(id, Op::div)) {
      requires_linear(args[0] == weight);
      check_factor(args[1]);
    } else if (is_map(id, Op::where)) {
      requires_linear((args[1] == weight && is_zero_behind(args[2])) || (args[2] == weight && is_zero_behind(args[1])));
      check_factor(args[0]);
    } else {
      requires_linear(args.size() == 1 && args[0] == weight &&
                      behind_casts(kernel_, id) == behind_casts(kernel_, weight));
    }
  }

  bool is_zero_behind(InstrId id) const { return is_zero(kernel_.instr(behind_casts(kernel_, id))); }

  // Of a row, or known for a key without the scores.
  void check_factor(InstrId id) const {
    const bool of_key = (kernel_.instr(id).depends & j()) != 0;
    check_made(id, of_key ? 0 : maximum | sum, of_key ? row_ | j() : row_, "factor");
  }

  const Kernel& kernel_;
  const Attention& attention_;
  int i_ = -1;  // the axis of queries; e, j and d follow
  std::uint64_t row_ = 0;
  std::vector<int> sources_;
};

}  // namespace

void verify_attention(const Kernel& kernel) { AttentionCheck(kernel).run(); }

}  // namespace tenon::codegen
