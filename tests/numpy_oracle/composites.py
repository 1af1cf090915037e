"""The composite operators, from their descriptions in `tenon ops`. 16-bit and 8-bit reals are computed in f32 where the
description says "in f32 or wider"; the others stay in the operand's dtype, whose intermediate results a plan may store."""

import numpy as np

from arithmetic import CORRECT, ROUTINE, Value
from formats import compute_type, is_real, round_to
from operators import apply_map, axes_of, multiply, reduce_value

COMPOSITES = {}
UNSUPPORTED = {
    "random_uniform": "which of its bits make the number is not said; random_bits is evaluated",
    "random_normal": "the words that Box-Muller takes are not said; random_bits is evaluated",
    "dropout": "draws as random_uniform does",
}


def composite(function):
    COMPOSITES[function.__name__.rstrip("_")] = function
    return function


class Formula:
    """Operators in one dtype, as methods: each result is kept as a target keeps it."""

    def __init__(self, arithmetic, dtype):
        self.arithmetic, self.dtype = arithmetic, dtype

    def __getattr__(self, name):
        return lambda *operands: apply_map(self.arithmetic, name, [self.value(x) for x in operands], self.dtype)

    def value(self, x):
        return x if isinstance(x, Value) else Value(self.dtype, round_to(self.dtype, np.float64(x)))

    def where(self, condition, a, b):
        return self.arithmetic.exact(self.dtype, np.where(condition, self.value(a).data, self.value(b).data))

    def reduce(self, name, x, axes, keepdims=True):
        return reduce_value(self.arithmetic, name, x, axes, keepdims)


def widened(arithmetic, x):
    """x in f32 or wider, and the operators there."""
    wide = compute_type(x.dtype)
    return Value(wide, x.data), Formula(arithmetic, wide)


def narrowed(arithmetic, x, dtype):
    return arithmetic.exact(dtype, x.data) if dtype == x.dtype else Value(dtype, round_to(dtype, x.data))


def squeezed(x, axes, keepdims):
    return x if keepdims else Value(x.dtype, np.squeeze(x.data, axis=axes))


# ---- shapes ----


@composite
def expand_dims(arithmetic, operands, attrs, types):
    return [arithmetic.exact(types[0][0], operands[0].data.reshape(types[0][1]))]


@composite
def squeeze(arithmetic, operands, attrs, types):
    return [arithmetic.exact(types[0][0], operands[0].data.reshape(types[0][1]))]


@composite
def split(arithmetic, operands, attrs, types):
    ends = np.cumsum(attrs["sections"])[:-1]
    pieces = np.split(operands[0].data, ends, axis=attrs.get("axis", 0))
    return [arithmetic.exact(type[0], piece) for type, piece in zip(types, pieces)]


@composite
def stack(arithmetic, operands, attrs, types):
    return [arithmetic.exact(types[0][0], np.stack([x.data for x in operands], axis=attrs.get("axis", 0)))]


# ---- statistics ----


def mean_of(f, x, axes):
    count = float(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return f.div(f.reduce("sum", x, axes), count)


@composite
def mean(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = axes_of(attrs, x.data.ndim)
    return [narrowed(arithmetic, squeezed(mean_of(f, x, axes), axes, attrs.get("keepdims")), types[0][0])]


@composite
def var(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = axes_of(attrs, x.data.ndim)
    deviation = f.sub(x, mean_of(f, x, axes))
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64) - attrs.get("ddof", 0)
    result = f.div(f.reduce("sum", f.mul(deviation, deviation), axes), max(float(count), 0.0))
    return [narrowed(arithmetic, squeezed(result, axes, attrs.get("keepdims")), types[0][0])]


def shifted(f, x, axes, infinities):
    """x - max and the maximum, 0 where the difference would be NaN for every element."""
    top = f.reduce("max", x, axes)
    bad = np.isinf(top.data) if infinities else top.data == -np.inf
    top = f.where(bad, 0.0, top)
    return f.sub(x, top), top


@composite
def logsumexp(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = axes_of(attrs, x.data.ndim)
    rest, top = shifted(f, x, axes, True)
    result = f.add(f.log(f.reduce("sum", f.exp(rest), axes)), top)
    return [narrowed(arithmetic, squeezed(result, axes, attrs.get("keepdims")), types[0][0])]


@composite
def softmax(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = axes_of(attrs or {}, x.data.ndim) if "axis" in attrs else (x.data.ndim - 1,)
    rest, _ = shifted(f, x, axes, False)
    weight = f.exp(rest)
    total = f.reduce("sum", weight, axes)
    return [narrowed(arithmetic, f.div(weight, f.where(total.data == 0, 1.0, total)), types[0][0])]


@composite
def log_softmax(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = axes_of(attrs, x.data.ndim) if "axis" in attrs else (x.data.ndim - 1,)
    rest, _ = shifted(f, x, axes, False)
    return [narrowed(arithmetic, f.sub(rest, f.log(f.reduce("sum", f.exp(rest), axes))), types[0][0])]


def _norm_axes(attrs, rank):
    return axes_of(attrs, rank) if "axis" in attrs else (rank - 1,)


def _scaled(f, x, axes, eps, parameters):
    y = f.mul(x, f.rsqrt(f.add(mean_of(f, f.mul(x, x), axes), eps)))
    shape = [x.shape[axis] if axis in axes else 1 for axis in range(x.data.ndim)]
    for name, parameter in zip(("mul", "add"), parameters):
        y = getattr(f, name)(y, Value(f.dtype, parameter.data.reshape(shape)))
    return y


@composite
def layer_norm(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = _norm_axes(attrs, x.data.ndim)
    centred = f.sub(x, mean_of(f, x, axes))
    return [narrowed(arithmetic, _scaled(f, centred, axes, attrs.get("eps", 1e-5), operands[1:]), types[0][0])]


@composite
def rms_norm(arithmetic, operands, attrs, types):
    x, f = widened(arithmetic, operands[0])
    axes = _norm_axes(attrs, x.data.ndim)
    return [narrowed(arithmetic, _scaled(f, x, axes, attrs.get("eps", 1e-6), operands[1:]), types[0][0])]


@composite
def cross_entropy(arithmetic, operands, attrs, types):
    """A target that is no class is not described: in every other evaluation it makes a NaN, so that it is undecided."""
    x, f = widened(arithmetic, operands[0])
    target = operands[1].data
    classes = x.shape[-1]
    rest, _ = shifted(f, x, (x.data.ndim - 1,), False)
    known = (target >= 0) & (target < classes)
    if classes == 0:
        picked = np.zeros(target.shape)
    else:
        picked = np.take_along_axis(rest.data, np.where(known, target, 0)[..., None], axis=-1)[..., 0]
    missing = np.nan if arithmetic.coin() else 0.0
    total = f.log(f.reduce("sum", f.exp(rest), (x.data.ndim - 1,)))
    loss = f.sub(squeezed(total, (x.data.ndim - 1,), False), Value(f.dtype, np.where(known, picked, missing)))
    every = tuple(range(loss.data.ndim))
    reduction = attrs.get("reduction", "none")
    if reduction == "mean":
        loss = squeezed(mean_of(f, loss, every), every, False)
    if reduction == "sum":
        loss = f.reduce("sum", loss, every, keepdims=False)
    return [narrowed(arithmetic, loss, types[0][0])]


# ---- activations ----


@composite
def relu(arithmetic, operands, attrs, types):
    x = operands[0]
    return [apply_map(arithmetic, "maximum", [x, Value(x.dtype, 0)], x.dtype)]


def activation(wide):
    """An activation computed in the operand's dtype, or in f32 or wider."""
    def register(function):
        def evaluate(arithmetic, operands, attrs, types):
            x = operands[0]
            if wide:
                x, f = widened(arithmetic, x)
            else:
                f = Formula(arithmetic, x.dtype)
            return [narrowed(arithmetic, function(f, x, attrs), types[0][0])]
        COMPOSITES[function.__name__] = evaluate
        return function
    return register


@activation(wide=True)
def leaky_relu(f, x, attrs):
    return f.where(x.data >= 0, x, f.mul(x, attrs.get("negative_slope", 0.01)))


@activation(wide=True)
def elu(f, x, attrs):
    return f.where(x.data > 0, x, f.mul(f.expm1(f.minimum(x, 0.0)), attrs.get("alpha", 1.0)))


@activation(wide=True)
def gelu(f, x, attrs):
    if attrs.get("approximate", "none") == "tanh":
        inner = f.add(x, f.mul(f.mul(f.mul(x, x), x), 0.044715))
        bent = f.tanh(f.mul(inner, np.sqrt(2 / np.pi)))
    else:
        bent = f.erf(f.mul(x, np.sqrt(0.5)))
    return f.mul(f.mul(x, 0.5), f.add(bent, 1.0))


@activation(wide=False)
def sigmoid(f, x, attrs):
    return f.reciprocal(f.add(f.exp(f.neg(x)), 1.0))


@activation(wide=False)
def silu(f, x, attrs):
    return f.div(x, f.add(f.exp(f.neg(x)), 1.0))


@activation(wide=False)
def softplus(f, x, attrs):
    return f.add(f.maximum(x, 0.0), f.log1p(f.exp(f.neg(f.abs(x)))))


@activation(wide=False)
def mish(f, x, attrs):
    return f.mul(x, f.tanh(softplus(f, x, attrs)))


@composite
def swiglu(arithmetic, operands, attrs, types):
    f = Formula(arithmetic, operands[0].dtype)
    return [f.mul(silu(f, operands[0], attrs), operands[1])]


# ---- products ----


@composite
def linear(arithmetic, operands, attrs, types):
    x, weight = operands[:2]
    product = multiply(arithmetic, x, Value(weight.dtype, weight.data.T), types[0][0])
    if len(operands) == 2:
        return [product]
    bias = narrowed(arithmetic, operands[2], product.dtype)
    return [apply_map(arithmetic, "add", [product, bias], product.dtype)]


def _group(q, kv):
    """Key heads as often as query heads share them."""
    if q.data.ndim < 3 or kv.shape[-3] == q.shape[-3]:
        return kv
    return Value(kv.dtype, np.repeat(kv.data, q.shape[-3] // max(kv.shape[-3], 1), axis=-3))


@composite
def attention(arithmetic, operands, attrs, types):
    q, dtype = operands[0], operands[0].dtype
    k, v = _group(q, operands[1]), _group(q, operands[2])
    wide = compute_type(dtype)
    f = Formula(arithmetic, wide)
    queries, depth, keys = q.shape[-2], q.shape[-1], k.shape[-2]
    scores = multiply(arithmetic, q, Value(dtype, np.swapaxes(k.data, -1, -2)), wide)
    scale = attrs.get("scale")
    if scale is not None or depth > 0:
        scores = f.mul(scores, 1 / np.sqrt(depth) if scale is None else scale)
    if attrs.get("softcap", 0) != 0:
        scores = f.mul(f.tanh(f.div(scores, attrs["softcap"])), attrs["softcap"])
    if len(operands) > 3:
        scores = f.add(scores, Value(wide, operands[3].data))
    row, column = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]
    seen = np.ones((queries, keys), bool)
    if attrs.get("causal"):
        seen &= column <= row
    if attrs.get("window", -1) >= 0:
        seen &= column >= row - attrs["window"]
    scores = f.where(seen, scores, -np.inf)
    last = (scores.data.ndim - 1,)
    top = f.reduce("max", scores, last)
    weight = f.exp(f.sub(scores, f.where(top.data == -np.inf, 0.0, top)))
    total = f.reduce("sum", weight, last)
    product = multiply(arithmetic, _rounded_somewhere(arithmetic, weight, dtype), v, wide)
    mixed = f.div(product, f.where(total.data == 0, 1.0, total))
    results = [narrowed(arithmetic, mixed, dtype)]
    if attrs.get("lse"):
        lse = squeezed(f.add(top, f.log(total)), last, False)
        results.append(Value("f32", round_to("f32", lse.data)))
    return results


def _rounded_somewhere(arithmetic, weight, dtype):
    """Weights rounded to 16 bits before they are divided by their sum or behind it: the same relative error."""
    if dtype == weight.dtype:
        return weight
    if not arithmetic.noisy:
        return Value(dtype, round_to(dtype, weight.data))
    factor = arithmetic.random.uniform(0.5, 1.0)
    return Value(weight.dtype, round_to(dtype, weight.data * factor) / factor)
