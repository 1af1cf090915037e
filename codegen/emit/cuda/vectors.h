// Vectors: neighbouring points that one thread works on together, and how their elements are loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// Where the points of a vector lie.
struct Lanes {
  int axis = -1;                   ///< they follow each other along it; -1: there is one point
  int vector = 1;                  ///< how many there are
  bool flat = false;               ///< they follow the row-major order of the whole domain instead
  bool in_row = false;             ///< and all of them lie in one row
  const Access* peeled = nullptr;  ///< a vector begins where this access is aligned; null: at a multiple of `vector`
};

/// What vectors ask of memory. A load that is in no list is a plain one.
struct CacheHints {
  bool streaming_stores = false;       ///< stores bypass the caches
  bool whole_stores = false;           ///< others are instructions that compilers do not take apart
  std::vector<InstrId> streamed = {};  ///< these loads bypass the caches
  std::vector<InstrId> kept = {};      ///< the L2 keeps the lines of these
  std::vector<InstrId> prompt = {};    ///< a compiler must not put these off
  std::vector<InstrId> ahead = {};     ///< nor wait for these: they stay in words (under_way) until others ask for them
};

/// Whether something that depends on `axes` differs between the points.
bool varies(const Lanes& lanes, std::uint64_t axes);
/// The width at which the points' elements of `access` are moved together, or 0.
int width_of(const Kernel& kernel, const Access& access, const Lanes& lanes);

/// The type of an element of x<id>, which is held (codegen/analysis/held.h): "bf16", "float".
std::string held_type(const Kernel& kernel, InstrId value);
/// "pack<bf16, 8>".
std::string pack_type(DType dtype, int vector);
/// "under_way<bf16, 8, 8>": the same in words of `width` elements.
std::string words_type(DType dtype, int vector, int width);
/// `names` with `axis` at point j of the vector.
Names at_point(Names names, int axis, const std::string& j);

/// "load<8, 8>(in0 + i0)", an expression of type pack, with zeros where a guard does not hold; "spread<2, 0xff>(…)"
/// where neighbours share elements. It is empty where the elements lie apart.
std::string vector_load(const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                        const CacheHints& cache = {});
/// What neighbouring points share, as one vector: "load<4, 4>(in1 + i1 / 2)".
struct SharedLoad {
  std::string value;
  int elements = 0, width = 0;  ///< of the vector, and of its pieces
  int points = 0;               ///< that share an element
  std::uint32_t visible = 0;    ///< bit j: point j has its element, else zero
};
/// Nothing where vector_load takes no elements for several points.
std::optional<SharedLoad> shared_load(const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                                      const CacheHints& cache = {});
/// The element at `names` as it is in memory, zero where a guard does not hold.
std::string guarded_element(const Kernel& kernel, InstrId load, const Names& names);
/// Loads the points' elements of `load` into `vector`, "x3[c]": together, or one by one where they lie apart.
void emit_load_into(Writer& out, const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                    const CacheHints& cache, const std::string& vector);

}  // namespace tenon::codegen::cuda
