// Element types. The table below is the one place that lists them: name, size, class.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// X(enumerator, spelling in the text form, bytes per element, class)
#define TENON_DTYPES(X)        \
  X(bool_, "bool", 1, boolean) \
  X(i8, "i8", 1, integer)      \
  X(i16, "i16", 2, integer)    \
  X(i32, "i32", 4, integer)    \
  X(i64, "i64", 8, integer)    \
  X(u8, "u8", 1, integer)      \
  X(f16, "f16", 2, real)       \
  X(bf16, "bf16", 2, real)     \
  X(f32, "f32", 4, real)       \
  X(f64, "f64", 8, real)       \
  X(f8e4m3, "f8e4m3", 1, real) \
  X(f8e5m2, "f8e5m2", 1, real)

namespace tenon {

/// The type of one element. `f8e4m3` is the "fn" variant (no infinities, one NaN pattern per sign);
/// see P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
enum class DType : std::uint8_t {
#define X(name, text, bytes, kind) name,
  TENON_DTYPES(X)
#undef X
};

enum class DTypeClass : std::uint8_t { boolean, integer, real };

inline constexpr DType kAllDTypes[] = {
#define X(name, text, bytes, kind) DType::name,
    TENON_DTYPES(X)
#undef X
};

/// Bytes of one element in memory.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
#define X(name, text, bytes, kind) \
  case DType::name: return bytes;
    TENON_DTYPES(X)
#undef X
  }
  return 0;
}

constexpr DTypeClass class_of(DType dtype) {
  switch (dtype) {
#define X(name, text, bytes, kind) \
  case DType::name: return DTypeClass::kind;
    TENON_DTYPES(X)
#undef X
  }
  return DTypeClass::real;
}

/// The spelling in text and JSON files: "f32", "bool", "f8e4m3", …
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
#define X(name, text, bytes, kind) \
  case DType::name: return text;
    TENON_DTYPES(X)
#undef X
  }
  return {};
}

/// The dtype spelled `name`, or nothing.
constexpr std::optional<DType> parse_dtype(std::string_view name) {
  for (DType dtype : kAllDTypes)
    if (name_of(dtype) == name) return dtype;
  return std::nullopt;
}

constexpr bool is_real(DType dtype) { return class_of(dtype) == DTypeClass::real; }
constexpr bool is_integer(DType dtype) { return class_of(dtype) == DTypeClass::integer; }
constexpr bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

/// The type in which a kernel computes on elements of `dtype`: f32 for every real type narrower than f32
/// (values are rounded when stored or cast, see docs/numerics.md), the type itself otherwise.
constexpr DType compute_type(DType dtype) { return is_real(dtype) && dtype != DType::f64 ? DType::f32 : dtype; }

}  // namespace tenon
