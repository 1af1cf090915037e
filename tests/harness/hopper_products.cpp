// See hopper_products.h.
#include "tests/harness/hopper_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ir/ops/formats.h"

namespace tenon::test {
namespace {

constexpr int kRows = 64;
constexpr unsigned kStep = 32;  // bytes of a product's step of the depth

// An operand in shared memory (PTX ISA, "Matrix descriptor" and "Strides"), of elements of 1 or 2 bytes.
class Operand {
 public:
  Operand(std::uint64_t descriptor, DType type, bool across)
      : size_(static_cast<unsigned>(size_of(type))), type_(type), across_(across) {
    const auto field = [&](int first) { return static_cast<unsigned>(descriptor >> first & 0x3fff) << 4; };
    start_ = field(0), leading_ = field(16), stride_ = field(32);
    swizzle_ = static_cast<int>(descriptor >> 62);
    line_ = swizzle_ == 1 ? 128 : 64;
    base_offset_ = static_cast<int>(descriptor >> 49 & 7);
  }
  std::string why_not() const {
    if (swizzle_ != 1 && (swizzle_ != 2 || across_))
      return fmt::format("swizzle mode {}: only lines of 128 bytes, and of 64 along the depth, are known here",
                         swizzle_);
    if (base_offset_ != 0) return "patterns begin at multiples of 1024 bytes";
    if (size_ != 2 && across_) return "8-bit elements lie along the depth";
    return {};
  }
  // Of an element: row of a or column of b, and depth.
  unsigned address(int outer, int depth) const {
    const auto at = [](int x, unsigned unit) { return static_cast<unsigned>(x) * unit; };
    const unsigned straight = across_ ? start_ + at(outer / 64, leading_) + at(depth / 8, stride_) +
                                            at(depth % 8, line_) + at(outer % 64, size_)
                                      : start_ + at(outer / 8, stride_) + at(outer % 8, line_) + at(depth, size_);
    return straight ^ (straight >> 7 & (line_ / 16 - 1)) << 4;
  }
  int depth() const { return static_cast<int>(kStep / size_); }
  unsigned size() const { return size_; }
  DType type() const { return type_; }

 private:
  unsigned start_, leading_, stride_, size_, line_;
  int swizzle_, base_offset_;
  DType type_;
  bool across_;
};

// Where thread `thread` has element `i` of its sums (PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16", D).
std::size_t place_of(int thread, int i, int columns) {
  const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
  return static_cast<std::size_t>(row * columns + i / 4 * 8 + lane % 4 * 2 + i % 2);
}

// All numbers of a dtype of 1 or 2 bytes, as f32.
const std::vector<float>& numbers(DType dtype) {
  static std::map<DType, std::vector<float>> known;
  std::vector<float>& all = known[dtype];
  if (all.empty())
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 8 * size_of(dtype); ++bits)
      all.push_back(static_cast<float>(ir::decode_real(dtype, bits)));
  return all;
}

// A thread's fragment of a (PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16" and "m64nNk32", A): a word has
// two elements of 16 bits, or four of 8.
void read_fragment(std::vector<float>& a, int thread, const std::array<unsigned, 4>& words, DType type) {
  const std::vector<float>& value = numbers(type);
  const int lane = thread % 32, row = thread / 32 * 16 + lane / 4;
  const int bits = 8 * static_cast<int>(size_of(type)), count = 32 / bits;
  for (int word = 0; word < 4; ++word)
    for (int part = 0; part < count; ++part) {
      const int k = (word / 2 * 4 + lane % 4) * count + part;
      a[static_cast<std::size_t>(k * kRows + row + word % 2 * 8)] =
          value[words[static_cast<std::size_t>(word)] >> bits * part & ((1U << bits) - 1)];
    }
}

std::vector<float> read(SharedMemory& memory, const Operand& operand, int outer) {
  const std::vector<float>& value = numbers(operand.type());
  std::vector<float> elements(static_cast<std::size_t>(outer * operand.depth()));
  for (int i = 0; i < outer; ++i)
    for (int k = 0; k < operand.depth(); ++k) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, memory.at(operand.address(i, k)), operand.size());
      elements[static_cast<std::size_t>(k * outer + i)] = value[bits];
    }
  return elements;
}

}  // namespace

std::string Products::begin(int thread) {
  threads_[static_cast<std::size_t>(thread)].begun = true;
  return {};
}

std::string Products::multiply(int thread, float* registers, const ProductCall& call, const unsigned* fragment) {
  Thread& self = threads_[static_cast<std::size_t>(thread)];
  if (!self.begun) return "a product is issued where no wgmma.fence follows what was done with the sums";
  const std::uint64_t number = self.issued++;
  if (number == first_ + products_.size()) products_.push_back({.call = call, .sums = nullptr});
  Product& product = products_[number - first_];
  if (product.call != call) return "the threads of a warpgroup issue different products";
  auto held = std::find_if(self.held.begin(), self.held.end(), [&](const Held& h) { return h.registers == registers; });
  if (held == self.held.end()) {
    if (!product.sums)
      product.sums = std::make_shared<Sums>(
          Sums{call.columns, std::vector<float>(static_cast<std::size_t>(kRows * call.columns))});
    for (int i = 0; i < call.columns / 2; ++i) product.sums->values[place_of(thread, i, call.columns)] = registers[i];
    std::fill_n(registers, call.columns / 2, std::numeric_limits<float>::quiet_NaN());
    held = self.held.insert(held, {registers, product.sums, number});
  }
  if (!product.sums) product.sums = held->sums;
  if (product.sums != held->sums) return "the threads of a warpgroup add to different sums";
  held->last = number;
  if (call.a_in_registers) {
    product.words.resize(kThreads);
    product.fragments[static_cast<std::size_t>(thread)] = fragment;
    std::copy_n(fragment, 4, product.words[static_cast<std::size_t>(thread)].begin());
  }
  if (++product.threads < kThreads) return {};
  product.issued = memory_.clock();
  return check_operands(product, false);
}

void Products::commit(int thread) {
  Thread& self = threads_[static_cast<std::size_t>(thread)];
  self.groups.push_back(self.issued);
}

bool Products::arrived(int thread, int pending) {
  Thread& self = threads_[static_cast<std::size_t>(thread)];
  if (self.groups.size() <= static_cast<std::size_t>(pending)) return true;
  const std::uint64_t needed = self.groups[self.groups.size() - 1 - static_cast<std::size_t>(pending)];
  if (done_ < needed) return false;
  std::erase_if(self.held, [&](const Held& held) {
    if (held.last >= needed) return false;
    for (int i = 0; i < held.sums->columns / 2; ++i)
      held.registers[i] = held.sums->values[place_of(thread, i, held.sums->columns)];
    self.begun = false;
    return true;
  });
  self.groups.erase(self.groups.begin(), self.groups.end() - pending);
  return true;
}

std::string Products::end(int thread) const {
  return threads_[static_cast<std::size_t>(thread)].held.empty() ? ""
                                                                 : "a thread ends while its products are under way";
}

// Ahead of running, that nothing was written since.
std::string Products::check_operands(const Product& product, bool running) const {
  const ProductCall& call = product.call;
  const auto check = [&](const char* name, const Operand& operand, int outer) -> std::string {
    if (std::string why = operand.why_not(); !why.empty()) return fmt::format("operand {}: {}", name, why);
    for (int i = 0; i < outer; ++i)
      for (int k = 0; k < operand.depth(); ++k) {
        const unsigned address = operand.address(i, k);
        const auto where = [&] { return fmt::format("element ({}, {}) of operand {}, at {}", i, k, name, address); };
        if (!memory_.contains(address, operand.size())) return where() + ": outside of the block's memory";
        if (!memory_.readable(address))
          return where() + (running ? ", changes before the product has run: " : " is not there: ") +
                 memory_.why_unreadable(address);
        if (running && memory_.written_after(address, product.issued))
          return where() + " was written before the product has run";
      }
    return {};
  };
  for (int thread = 0; call.a_in_registers && thread < kThreads; ++thread) {
    const auto at = static_cast<std::size_t>(thread);
    if (!std::equal(product.words[at].begin(), product.words[at].end(), product.fragments[at]))
      return fmt::format("thread {}: the fragment of operand a changes before the product has run", thread);
  }
  if (call.a_in_registers) return check("b", Operand(call.b, call.type_b, call.across_b), call.columns);
  if (std::string why = check("a", Operand(call.a, call.type_a, call.across_a), kRows); !why.empty()) return why;
  return check("b", Operand(call.b, call.type_b, call.across_b), call.columns);
}

std::vector<float> Products::first_operand(const Product& product) const {
  const ProductCall& call = product.call;
  if (!call.a_in_registers) return read(memory_, Operand(call.a, call.type_a, call.across_a), kRows);
  std::vector<float> a(static_cast<std::size_t>(kRows) * kStep / size_of(call.type_a));
  for (int thread = 0; thread < kThreads; ++thread)
    read_fragment(a, thread, product.words[static_cast<std::size_t>(thread)], call.type_a);
  return a;
}

std::string Products::run_next() {
  Product& product = products_[done_ - first_];
  if (std::string why = check_operands(product, true); !why.empty()) return why;
  const ProductCall& call = product.call;
  const std::vector<float> a = first_operand(product);
  const std::vector<float> b = read(memory_, Operand(call.b, call.type_b, call.across_b), call.columns);
  const auto depth = std::size_t{kStep} / size_of(call.type_a);
  const auto columns = static_cast<std::size_t>(call.columns);
  if (!call.add) std::fill(product.sums->values.begin(), product.sums->values.end(), 0.0f);
  for (std::size_t row = 0; row < kRows; ++row) {
    float* const sums = product.sums->values.data() + row * columns;
    for (std::size_t k = 0; k < depth; ++k) {
      const float x = a[k * kRows + row];
      const float* const line = b.data() + k * columns;
      for (std::size_t column = 0; column < columns; ++column) sums[column] += x * line[column];
    }
  }
  product.sums.reset();
  ++done_;
  while (products_.size() > 64 && first_ < done_) products_.pop_front(), ++first_;
  return {};
}

}  // namespace tenon::test
