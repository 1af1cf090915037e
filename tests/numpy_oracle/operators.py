"""The primitive operators, each as docs/numerics.md and `tenon ops` describe it, in NumPy. An operator is a function of
(arithmetic, operands, attributes, result type)."""

import math

import numpy as np

from arithmetic import CORRECT, ROUTINE, Value, decided, sum_error, unit
from formats import INTEGERS, compute_type, decode, encode, is_real, limits, round_to, wrap

PRIMITIVES = {}


def primitive(*names):
    def register(function):
        for name in names:
            PRIMITIVES[name] = function
        return function
    return register


# ---- maps ----


def _floor_mod(a, b):
    rest = np.fmod(a, b)
    moved = np.where((rest < 0) != (b < 0), rest + b, rest)
    return np.where(rest == 0, np.copysign(rest, b), moved)


def _floor_div(a, b):
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    quotient = np.where(quotient == 0, np.copysign(0.0, a / b), np.rint(quotient))
    return np.where(b == 0, a / b, quotient)


def _smaller(a, b):
    picked = np.where(a == b, np.where(np.signbit(a), a, b), np.where(a < b, a, b))
    return np.where(np.isnan(a) | np.isnan(b), np.nan, picked)


def _larger(a, b):
    return -_smaller(-a, -b)


def _halves(x):
    """x as a sum of two numbers of 26 bits (Veltkamp, 1968)."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


def _fma(a, b, c):
    """a b + c with the product's rounding error (Dekker, 1971) and the sum's (Knuth) put back."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    back = total - product
    lost = lost + ((product - (total - back)) + (c - back))
    return np.where(np.isfinite(total + lost), total + lost, total)


# name: (on f64 arrays, units of error; None: chosen or moved, without an error of its own)
REAL_MAPS = {
    "add": (np.add, CORRECT), "sub": (np.subtract, CORRECT), "mul": (np.multiply, CORRECT),
    "div": (np.divide, CORRECT), "floor_div": (_floor_div, CORRECT), "mod": (_floor_mod, CORRECT),
    "pow": (np.power, ROUTINE), "neg": (np.negative, None), "abs": (np.abs, None),
    "sign": (lambda a: np.where(a > 0, 1.0, np.where(a < 0, -1.0, a)), None),
    "reciprocal": (lambda a: 1 / a, CORRECT), "exp": (np.exp, ROUTINE), "exp2": (np.exp2, ROUTINE),
    "expm1": (np.expm1, ROUTINE), "log": (np.log, ROUTINE), "log2": (np.log2, ROUTINE), "log1p": (np.log1p, ROUTINE),
    "sqrt": (np.sqrt, CORRECT), "rsqrt": (lambda a: 1 / np.sqrt(a), ROUTINE), "sin": (np.sin, ROUTINE),
    "cos": (np.cos, ROUTINE), "tan": (np.tan, ROUTINE), "asin": (np.arcsin, ROUTINE), "acos": (np.arccos, ROUTINE),
    "atan": (np.arctan, ROUTINE), "sinh": (np.sinh, ROUTINE), "cosh": (np.cosh, ROUTINE), "tanh": (np.tanh, ROUTINE),
    "erf": (np.vectorize(math.erf, otypes=[float]), ROUTINE), "floor": (np.floor, None), "ceil": (np.ceil, None),
    "round": (np.rint, None), "trunc": (np.trunc, None), "minimum": (_smaller, None), "maximum": (_larger, None),
    "fma": (_fma, CORRECT), "clamp": (lambda a, b, c: _smaller(_larger(a, b), c), None),
}


def _shift_left(a, b, bits):
    return np.where((b < 0) | (b >= bits), 0, a << np.clip(b, 0, 63))


def _integer_power(a, b):
    result = np.ones_like(a + b)
    base, exponent = np.broadcast_to(a, result.shape).copy(), np.maximum(np.broadcast_to(b, result.shape), 0)
    while np.any(exponent > 0):
        result = np.where(exponent & 1, result * base, result)
        base = base * base
        exponent = exponent >> 1
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, result)


def _nonzero(b):
    return np.where(b == 0, 1, b)


INTEGER_MAPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "sign": np.sign,
    "floor_div": lambda a, b: np.where(b == 0, 0, np.where(b == -1, -a, a // np.where(b == -1, 1, _nonzero(b)))),
    "mod": lambda a, b: np.where((b == 0) | (b == -1), 0, a % np.where(b == -1, 1, _nonzero(b))),
    "pow": _integer_power, "minimum": np.minimum, "maximum": np.maximum,
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c),
    "floor": np.array, "ceil": np.array, "round": np.array, "trunc": np.array,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
}
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}


def apply_map(arithmetic, name, operands, dtype):
    """A map that is a row of the tables above."""
    if name in COMPARISONS:
        return Value("bool", COMPARISONS[name](*map(decided, operands)))
    if not is_real(dtype):
        result = INTEGER_MAPS[name](*(operand.data for operand in operands))
        return Value(dtype, result if dtype == "bool" else wrap(dtype, result))
    function, units = REAL_MAPS[name]
    result = function(*(operand.data for operand in operands))
    return arithmetic.exact(dtype, result) if units is None else arithmetic.real(dtype, result, units)


def _register_maps():
    for name in set(REAL_MAPS) | set(INTEGER_MAPS) | set(COMPARISONS):
        PRIMITIVES[name] = lambda arithmetic, operands, attrs, type, name=name: apply_map(
            arithmetic, name, operands, type[0])


_register_maps()


@primitive("left_shift")
def left_shift(arithmetic, operands, attrs, type):
    a, b = (operand.data for operand in operands)
    return Value(type[0], wrap(type[0], _shift_left(a, b, INTEGERS[type[0]][0])))


@primitive("right_shift")
def right_shift(arithmetic, operands, attrs, type):
    a, b = (operand.data for operand in operands)
    bits = INTEGERS[type[0]][0]
    return Value(type[0], a >> np.where((b < 0) | (b >= bits), 63, b))


@primitive("where")
def where(arithmetic, operands, attrs, type):
    condition, a, b = operands
    return arithmetic.exact(type[0], np.where(condition.data, a.data, b.data))


def cast_to(arithmetic, value, dtype):
    """As the operator: a written cast is never left out."""
    data = decided(value)
    if dtype == "bool":
        return Value(dtype, data != 0)
    if is_real(dtype):
        return Value(dtype, round_to(dtype, value.data.astype(np.float64)))
    if is_real(value.dtype):
        low, high = limits(dtype)
        truncated = np.trunc(np.where(np.isnan(data), 0.0, data))
        inside = np.clip(truncated, -2.0**62, 2.0**62).astype(np.int64)
        if INTEGERS[dtype][0] == 64:  # beyond 2^62, exactly: f64 has no 2^63 - 1
            return Value(dtype, [limit(x, low, high) for x in truncated.ravel()]
                         if truncated.ndim == 1 else np.vectorize(lambda x: limit(x, low, high), otypes=[np.int64])(truncated))
        return Value(dtype, np.clip(inside, low, high))
    return Value(dtype, wrap(dtype, data.astype(np.int64)))


def limit(x, low, high):
    """A whole f64 as the nearest integer in [low, high]."""
    return low if x == -np.inf else high if x == np.inf else max(low, min(high, int(x)))


@primitive("cast")
def cast(arithmetic, operands, attrs, type):
    value = operands[0]
    if value.dtype == type[0]:
        return Value(type[0], decided(value))
    # What is cast to a wider real may still be as registers hold it.
    if is_real(value.dtype) and is_real(type[0]):
        return Value(type[0], arithmetic.keep(type[0], value.data) if type[0] in ("f32", "f64")
                     else round_to(type[0], value.data))
    return cast_to(arithmetic, value, type[0])


@primitive("bitcast")
def bitcast(arithmetic, operands, attrs, type):
    value, dtype = operands[0], type[0]
    if is_real(value.dtype):
        bits = encode(value.dtype, value.data)
        if arithmetic.random is not None:  # the bits of a NaN are not specified
            size = 8 * bits.dtype.itemsize
            flip = np.where(np.isnan(value.data) & (arithmetic.random.integers(0, 2, bits.shape) == 1), 1, 0)
            bits = bits ^ (flip.astype(bits.dtype) << np.array(size - 1, bits.dtype))
            flip = np.where(np.isnan(value.data) & (arithmetic.random.integers(0, 2, bits.shape) == 1), 1, 0)
            bits = bits | flip.astype(bits.dtype)
    else:
        bits = value.data.astype(np.int64).astype(f"u{INTEGERS.get(value.dtype, (8,))[0] // 8}")
    if is_real(dtype):
        return Value(dtype, decode(dtype, bits))
    return Value(dtype, wrap(dtype, bits.astype(np.int64)))


# ---- reductions ----


def axes_of(attrs, rank):
    axes = attrs.get("axis")
    if axes is None:
        return tuple(range(rank))
    return tuple(sorted({axis % rank for axis in (axes if isinstance(axes, list) else [axes])}))


def reduce_value(arithmetic, name, x, axes, keepdims, dtype=None):
    """A reduction over `axes` (normalized)."""
    dtype = dtype or x.dtype
    data = x.data
    terms = int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64))
    if name in ("any", "all"):
        return Value("bool", (np.any if name == "any" else np.all)(data, axis=axes, keepdims=keepdims))
    if name in ("argmax", "argmin"):
        return _index_of(name, decided(x), axes, keepdims)
    if name in ("max", "min"):
        if not is_real(dtype):
            initial = limits(dtype)[0 if name == "max" else 1]
            return Value(dtype, (np.max if name == "max" else np.min)(data, axis=axes, keepdims=keepdims, initial=initial))
        initial = -np.inf if name == "max" else np.inf
        result = (np.max if name == "max" else np.min)(data, axis=axes, keepdims=keepdims, initial=initial)
        return arithmetic.exact(dtype, result)
    if not is_real(dtype):
        whole = (np.sum if name == "sum" else np.prod)(data, axis=axes, keepdims=keepdims, dtype=np.int64)
        return Value(dtype, wrap(dtype, whole))
    data = data.astype(np.float64)
    if name == "sum":
        result = np.sum(data, axis=axes, keepdims=keepdims)
        magnitudes = np.sum(np.abs(data), axis=axes, keepdims=keepdims)
        whole = np.all(data == np.rint(data), axis=axes, keepdims=keepdims)
        return arithmetic.within(dtype, result, sum_error(dtype, terms, magnitudes, whole))
    return _product(arithmetic, dtype, data, axes, keepdims, terms)


def _index_of(name, data, axes, keepdims):
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    terms = int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64))
    rows = np.transpose(data, kept + list(axes)).reshape([data.shape[axis] for axis in kept] + [terms])
    shape = [1 if axis in axes else data.shape[axis] for axis in range(data.ndim)]
    if rows.shape[-1] == 0:
        index = np.zeros(rows.shape[:-1], np.int64)
    else:
        index = (np.argmax if name == "argmax" else np.argmin)(rows, axis=-1)
        if rows.dtype.kind == "f":
            index = np.where(np.any(np.isnan(rows), axis=-1), np.argmax(np.isnan(rows), axis=-1), index)
    return Value("i64", index.reshape(shape if keepdims else [shape[axis] for axis in kept]))


def _product(arithmetic, dtype, data, axes, keepdims, terms):
    wide = compute_type(dtype)
    result = np.prod(data, axis=axes, keepdims=keepdims)
    with np.errstate(divide="ignore"):
        exponents = np.log2(np.abs(data))
    growth = np.sum(np.where(exponents > 0, exponents, 0), axis=axes, keepdims=keepdims)
    shrinkage = np.sum(np.where(exponents < 0, -exponents, 0), axis=axes, keepdims=keepdims)
    most = 127 if wide == "f32" else 1023
    leaves = ((growth >= most) & (shrinkage > 0)) | ((shrinkage >= most - 2) & (growth > 0))
    tiny = np.ldexp(1.0, -149 if wide == "f32" else -1074) * terms
    error = unit(wide) * (2 + np.sqrt(terms)) * np.abs(result) + np.where(shrinkage >= most - 2, tiny, 0.0)
    return arithmetic.within(dtype, result, np.where(leaves, np.inf, error))


def _register_reductions():
    for name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"):
        PRIMITIVES[name] = lambda arithmetic, operands, attrs, type, name=name: reduce_value(
            arithmetic, name, operands[0], axes_of(attrs, operands[0].data.ndim), attrs.get("keepdims", False), type[0])


_register_reductions()

# ---- views ----

_WHOLE = 2**63 - 1  # a start or stop that is left out


def moved(function):
    """An operator that only moves elements."""
    return lambda arithmetic, operands, attrs, type: arithmetic.exact(type[0], function(operands, attrs, type[1]))


PRIMITIVES["reshape"] = moved(lambda operands, attrs, shape: operands[0].data.reshape(shape))
PRIMITIVES["transpose"] = moved(lambda operands, attrs, shape: np.transpose(operands[0].data, attrs.get("perm")))
PRIMITIVES["broadcast_to"] = moved(lambda operands, attrs, shape: np.broadcast_to(operands[0].data, shape))
PRIMITIVES["flip"] = moved(lambda operands, attrs, shape: np.flip(
    operands[0].data, None if attrs.get("axis") is None else axes_of(attrs, operands[0].data.ndim)))
PRIMITIVES["concat"] = moved(
    lambda operands, attrs, shape: np.concatenate([operand.data for operand in operands], axis=attrs.get("axis", 0)))


@primitive("slice")
def slice_of(arithmetic, operands, attrs, type):
    x = operands[0].data
    count = max(len(attrs.get(key) or []) for key in ("axis", "start", "stop", "step"))
    axes = attrs.get("axis") or list(range(count))
    index = [slice(None)] * x.ndim
    for i, axis in enumerate(axes):
        bounds = [(attrs.get(key) or [None] * count)[i] for key in ("start", "stop", "step")]
        index[axis] = slice(*(None if bound == _WHOLE else bound for bound in bounds))
    return arithmetic.exact(type[0], x[tuple(index)])


@primitive("pad")
def pad(arithmetic, operands, attrs, type):
    x = operands[0]
    value = attrs.get("value", 0)
    if is_real(x.dtype):
        value = round_to(x.dtype, np.float64(value))
    widths = list(zip(attrs["low"], attrs["high"]))
    return arithmetic.exact(type[0], np.pad(x.data, widths, constant_values=value) if widths else x.data)


@primitive("take")
def take(arithmetic, operands, attrs, type):
    x, index = operands[0].data, operands[1].data
    axis = attrs.get("axis", 0)
    extent = x.shape[axis]
    if extent == 0:
        return Value(type[0], np.zeros(type[1]))
    index = np.clip(np.where(index < 0, index + extent, index), 0, extent - 1)
    return arithmetic.exact(type[0], np.take(x, index, axis=axis))


# ---- sources ----


def number(dtype, x):
    """Whole numbers as elements of `dtype`, by the rules of cast."""
    return Value(dtype, round_to(dtype, np.asarray(x, np.float64)) if is_real(dtype) else wrap(dtype, np.asarray(x)))


@primitive("full")
def full(arithmetic, operands, attrs, type):
    value = attrs["value"]
    if is_real(type[0]):
        value = float(round_to(type[0], np.float64(value)))
    return Value(type[0], np.full(type[1], value))


@primitive("iota")
def iota(arithmetic, operands, attrs, type):
    axis = attrs.get("axis", 0) % len(type[1])
    line = np.arange(type[1][axis], dtype=np.int64)
    shape = [-1 if i == axis else 1 for i in range(len(type[1]))]
    return number(type[0], np.broadcast_to(line.reshape(shape), type[1]))


@primitive("dim_value")
def dim_value(arithmetic, operands, attrs, type):
    return number(type[0], np.int64(attrs["value"][0]))


@primitive("random_bits")
def random_bits(arithmetic, operands, attrs, type):
    """Philox 4x32-10 (Salmon et al., SC'11), counter = (block, stream), key = seed, low halves first."""
    seed, stream, word = int(operands[0].data) % 2**64, attrs.get("stream", 0), attrs.get("word", -1)
    i = np.arange(int(np.prod(type[1], dtype=np.int64)), dtype=np.uint64)
    block = i // np.uint64(4) if word < 0 else i
    low = np.uint64(0xFFFFFFFF)
    counter = [block & low, block >> np.uint64(32), np.full_like(i, stream & 0xFFFFFFFF), np.full_like(i, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [(second >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), second & low,
                   (first >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    words = np.stack(counter)
    chosen = words[word] if word >= 0 else np.choose((i % np.uint64(4)).astype(np.int64), words)
    return Value("i32", wrap("i32", chosen.astype(np.int64)).reshape(type[1]))


# ---- products ----


def multiply(arithmetic, a, b, dtype, tf32=False):
    """NumPy's matmul. 0 times infinity or NaN is undecided: what a mask makes 0 may never be multiplied."""
    wide = compute_type(a.dtype)
    terms = a.shape[-1]
    result, magnitudes = np.matmul(a.data, b.data), np.matmul(np.abs(a.data), np.abs(b.data))
    zeros = np.any(a.data == 0) or np.any(b.data == 0)
    if arithmetic.coin() and zeros and not (np.all(np.isfinite(a.data)) and np.all(np.isfinite(b.data))):
        result = _without_zeros(a.data, b.data)
    whole = np.matmul((a.data != np.rint(a.data)).astype(float), np.ones_like(b.data)) == 0
    whole &= np.matmul(np.ones_like(a.data), (b.data != np.rint(b.data)).astype(float)) == 0
    error = sum_error(wide, terms, magnitudes, whole)
    if tf32:
        error = error + 2.0**-10 * magnitudes
    if wide == "f32" and dtype == "f64":
        result = arithmetic.keep("f32", result)
    return arithmetic.within(dtype, result, error)


def _without_zeros(a, b):
    vector_a, vector_b = a.ndim == 1, b.ndim == 1
    a = a[None, :] if vector_a else a
    b = b[:, None] if vector_b else b
    left, right = a[..., :, :, None], b[..., None, :, :]
    result = np.sum(np.where((left == 0) | (right == 0), 0.0, left * right), axis=-2)
    result = result[..., 0] if vector_b else result
    return result[..., 0, :] if vector_a and not vector_b else result[..., 0] if vector_a else result


@primitive("matmul")
def matmul(arithmetic, operands, attrs, type):
    return multiply(arithmetic, operands[0], operands[1], type[0], attrs.get("tf32", False))
