// How the operands of a run of points (points.h) are moved: the widths of their accesses, and the text of vector loads.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/points.h"

namespace tenon::codegen::cuda {

/// The type of an element of x<id>, which is held (codegen/analysis/held.h): "bf16", "float".
std::string held_type(const Kernel& kernel, InstrId value);

DType stored_dtype(const Kernel& kernel, const Access& access);
/// The prelude's function that loads vectors of `load`.
const char* load_function(const Points& points, InstrId load);
/// Whether something that depends on `axes` differs between the points.
bool varies(const Points& points, std::uint64_t axes);
/// The width at which the points' elements of `access` are moved together, or 0.
int width_of(const Kernel& kernel, const Access& access, const Points& points);
/// "load<8, 8>(in0 + i0)" with what stands in its place where a guard does not hold. `peeled`: it begins at any
/// element as far as `width` does not say otherwise. `function`: of the prelude, "load" or one like it.
std::string guarded_load(const Kernel& kernel, const Access& access, int vector, int width, const Names& names,
                         bool peeled = false, const char* function = "load");

/// The element at `names` as it is in memory, with what stands in its place where a guard does not hold.
std::string guarded_element(const Kernel& kernel, InstrId load, const Names& names);
/// Loads the points' elements of `load` into `vector`, "x3[c]": together, or one by one where they lie apart.
void emit_load_into(Writer& out, const Kernel& kernel, InstrId load, const Points& points, const Names& names,
                    const std::string& vector);

}  // namespace tenon::codegen::cuda
