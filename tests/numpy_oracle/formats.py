"""Number formats in NumPy, after docs/numerics.md: reals are f64 arrays whose elements a format may round."""

import numpy as np

# stored mantissa bits, exponent of the least normal number, greatest number, what lies beyond it
REALS = {
    "f64": (52, -1022, np.finfo(np.float64).max, np.inf),
    "f32": (23, -126, float(np.finfo(np.float32).max), np.inf),
    "f16": (10, -14, 65504.0, np.inf),
    "bf16": (7, -126, float.fromhex("0x1.fep127"), np.inf),
    "f8e5m2": (2, -14, 57344.0, np.inf),
    "f8e4m3": (3, -6, 448.0, np.nan),
}
INTEGERS = {"i8": (8, True), "i16": (16, True), "i32": (32, True), "i64": (64, True), "u8": (8, False)}


def is_real(dtype):
    return dtype in REALS


def compute_type(dtype):
    """What registers hold: f32, or f64 for f64."""
    return "f64" if dtype == "f64" else "f32"


def ulp(dtype, x):
    """The distance between neighbours of the format about x."""
    bits, least, _, _ = REALS[dtype]
    finite = np.where(np.isfinite(x), x, 0.0)
    _, exponent = np.frexp(finite)
    exponent = np.where(finite == 0, least, exponent - 1)
    return np.ldexp(1.0, np.maximum(exponent, least) - bits)


def round_to(dtype, x):
    """Nearest, ties to even; beyond the range infinity, or NaN where the format has none."""
    if dtype == "f64":
        return x
    step = ulp(dtype, x)
    rounded = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    rounded = np.copysign(rounded, x)
    _, _, largest, beyond = REALS[dtype]
    return np.where(np.abs(rounded) > largest, np.copysign(beyond, rounded), rounded)


def wrap(dtype, x):
    """int64 modulo 2^bits."""
    bits, signed = INTEGERS[dtype]
    if bits == 64:
        return x
    low = x & ((1 << bits) - 1)
    return np.where(low >= 1 << (bits - 1), low - (1 << bits), low) if signed else low


def limits(dtype):
    bits, signed = INTEGERS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


# The formats with an interchange layout of sign, exponent, mantissa: (bytes, exponent bits).
_LAYOUT = {"f16": (2, 5), "bf16": (2, 8), "f8e4m3": (1, 4), "f8e5m2": (1, 5)}


def decode(dtype, bits):
    """Storage bits (unsigned) as numbers."""
    if dtype in ("f32", "f64"):
        return bits.view(np.float32 if dtype == "f32" else np.float64).astype(np.float64)
    size, exponent_bits = _LAYOUT[dtype]
    mantissa_bits, least, _, beyond = REALS[dtype]
    bits = bits.astype(np.int64)
    sign = np.where(bits >> (8 * size - 1), -1.0, 1.0)
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    value = np.where(exponent == 0, np.ldexp(mantissa.astype(float), least - mantissa_bits),
                     np.ldexp(1.0 + np.ldexp(mantissa.astype(float), -mantissa_bits), exponent - 1 + least))
    top = exponent == (1 << exponent_bits) - 1
    if np.isinf(beyond):
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where(top & (mantissa == (1 << mantissa_bits) - 1), np.nan, value)
    return sign * value


def encode(dtype, x):
    """Numbers as storage bits, unsigned of the format's size. Those of a NaN are not specified."""
    x = round_to(dtype, x)
    if dtype in ("f32", "f64"):
        return x.astype(np.float32).view(np.uint32) if dtype == "f32" else x.view(np.uint64)
    size, exponent_bits = _LAYOUT[dtype]
    mantissa_bits, least, _, beyond = REALS[dtype]
    magnitude = np.where(np.isfinite(x), np.abs(x), 0.0)
    _, exponent = np.frexp(magnitude)
    biased = np.where(magnitude < np.ldexp(1.0, least), 0, exponent - 1 - least + 1)
    step = np.ldexp(1.0, np.maximum(biased, 1) - 1 + least - mantissa_bits)
    units = (magnitude / step).astype(np.int64)
    bits = np.where(biased > 0, (biased.astype(np.int64) << mantissa_bits) + units - (1 << mantissa_bits), units)
    top = ((1 << exponent_bits) - 1) << mantissa_bits
    bits = np.where(np.isinf(x), top, bits)
    quiet = top | (1 << (mantissa_bits - 1)) if np.isinf(beyond) else top | ((1 << mantissa_bits) - 1)
    bits = np.where(np.isnan(x), quiet, bits)
    bits |= np.signbit(x).astype(np.int64) << (8 * size - 1)
    return bits.astype(np.uint8 if size == 1 else np.uint16)


def from_npy(array, dtype):
    """What np.load gave for a value of `dtype`, as f64, int64 or bool."""
    if dtype == "bool":
        return array.astype(bool)
    if dtype in INTEGERS:
        return array.astype(np.int64)
    if array.dtype.kind == "V":
        return decode(dtype, array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16))
    return array.astype(np.float64)
