// Integers of 8 bits at the points of a vector, four in a word (codegen/prelude/bytes.cuh): which values of a run are
// had so, and how they are written. Bytes that neighbouring points share (two values of 4 bits, say) are not handed to
// each point before a `where` by the point's place chooses among what was made of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/cuda/points.h"

namespace tenon::codegen::cuda {

/// Whether it is an integer of 8 bits.
bool is_byte(DType dtype);
/// "byte_vector<u8, 8>"
std::string bytes_type(DType dtype, int count);

/// How a value is had at the points of a vector.
struct ByteForm {
  int points = 1;               ///< that share a byte
  std::uint32_t visible = ~0u;  ///< bit j: point j has the byte, else no point may ask for it
};

/// A real value that is a byte plus an integer, in f32.
struct ExactBytes {
  InstrId bytes = -1;
  std::int64_t plus = 0;
};

class ByteVectors {
 public:
  ByteVectors(const Kernel& kernel, const Points& points);

  /// The form of an integer that is had as a vector of bytes: nothing where it is had point by point, or as other
  /// vectors are.
  const ByteForm* form(InstrId id) const;
  /// Whether it is one: each point has a byte of its own.
  bool has_bytes(InstrId id) const;
  /// Of the vector.
  std::string type(InstrId id) const;
  /// "x4", or "s4" where points share bytes.
  std::string name(InstrId id) const;
  /// "bytes_and<byte_vector<u8, 8>>(s4, 0xf0f0f0fu)": of a map.
  std::string expression(InstrId id) const;

  /// Of a reduction over the points: "sum_of_bytes" of the vector that they add up to, say, or "greatest_byte".
  struct Fold {
    const char* function = nullptr;
    InstrId bytes = -1;
  };
  /// Nothing where the reduction takes its points one by one.
  std::optional<Fold> fold(InstrId reduce) const;

  /// What a real value is made of, where every step to it is exact.
  std::optional<ExactBytes> exact(InstrId id) const;
  /// Of a real value that is made of bytes: its vector in `dtype`, f16 or bf16, as an expression of vectors, and these.
  struct Pairs {
    std::string value;  ///< "multiply_pairs(bytes_to_16<bf16, true, -8>(x9), x4)"
    std::vector<InstrId> vectors = {};
  };
  /// Nothing where the value has no such form. Rounded once, as from f32.
  std::optional<Pairs> pairs(InstrId id, DType dtype) const;

  /// What the value is computed from, in the form that it has.
  std::vector<InstrId> operands(InstrId id) const;

 private:
  std::optional<Pairs> exact_pairs(InstrId id, DType dtype) const;
  std::optional<Pairs> stored_pairs(InstrId id, DType dtype) const;
  static std::optional<Pairs> both(const char* function, const std::optional<Pairs>& a, const std::optional<Pairs>& b);
  std::optional<ByteForm> form_of(InstrId id) const;
  std::optional<ByteForm> form_of_load(InstrId id) const;
  std::optional<ByteForm> form_of_map(const Instr& instr) const;
  std::optional<ByteForm> form_of_choice(const Instr& instr) const;
  std::optional<std::uint32_t> chosen(const Instr& where) const;
  std::optional<std::int64_t> literal(InstrId id) const;
  bool varies(InstrId id) const;
  bool shares(InstrId id) const;
  bool spread_one_that_is_read();
  void spread(InstrId id);
  std::string operand(InstrId id) const;
  std::string in_words(InstrId id) const;

  const Kernel& kernel_;
  const Points& points_;
  std::map<InstrId, ByteForm> forms_;
  std::vector<InstrId> spread_;  // loads of shared bytes that each point gets a copy of
};

}  // namespace tenon::codegen::cuda
