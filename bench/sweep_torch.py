"""A graph in the JSON form (docs/text-form.md) as a PyTorch function: Python text, for which no PyTorch is needed.

One statement for each operator, by the function that PyTorch has for it. What is written out in the graph is written out
for PyTorch: a batch norm is means and maps, a pool is slices. Numbers behind `dropout` are not Tenon's.
"""
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "i8": "int8", "i16": "int16",
          "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "floor_div": "//", "pow": "**", "equal": "==",
         "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "bitwise_and": "&",
         "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>", "logical_and": "&", "logical_or": "|"}
FUNCTIONS = ("neg", "abs", "sign", "reciprocal", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "cosh",
             "tanh", "erf", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "bitwise_not", "logical_not",
             "clamp", "relu", "sigmoid")
IN_F = ("silu", "softplus", "mish")


def literal(value):
    if isinstance(value, str):
        return repr(float.fromhex(value)) if "x" in value else f"float('{value}')"
    return repr(value)


class Call:
    """One node: its operands as Python text, its attributes, and the types of both."""

    def __init__(self, node, types):
        self.op, self.attrs, operands = node["op"], node.get("attrs", {}), node["operands"]
        self.is_number = [not isinstance(x, str) for x in operands]
        self.names = [literal(x["value"]) if number else x for x, number in zip(operands, self.is_number)]
        self.operand_shape = [] if not operands or self.is_number[0] else types[operands[0]][1]
        self.rank = len(self.operand_shape)
        self.dtype, self.shape = "torch." + DTYPES[node["results"][0]["dtype"]], node["results"][0]["shape"]

    def axes(self, absent=None):
        """From 0 on; `absent`, or all, where the node names none."""
        axes = self.attrs.get("axis", list(range(self.rank)) if absent is None else absent)
        return [axis % self.rank for axis in ([axes] if isinstance(axes, int) else axes)]

    def behind(self, axes):
        """x with `axes` as one last axis, and the order that they had."""
        order = [axis for axis in range(self.rank) if axis not in axes] + axes
        return f"{self.names[0]}.permute({order}).flatten({self.rank - len(axes)})", order


def where(c):
    names = list(c.names)
    if c.is_number[1] and c.is_number[2]:  # two numbers have torch's default dtype
        names[1] = f"torch.full([], {names[1]}, dtype={c.dtype}, device=device)"
    return f"torch.where({', '.join(names)})"


def extreme(c):
    if not any(c.is_number):
        return f"torch.{c.op}({', '.join(c.names)})"
    at = c.is_number.index(True)
    return f"torch.clamp({c.names[1 - at]}, {'max' if c.op == 'minimum' else 'min'}={c.names[at]})"


def reduction(c):
    x, axes, keep = c.names[0], c.axes(), c.attrs.get("keepdims", False)
    if c.op in ("argmax", "argmin", "prod"):  # torch has them of one axis
        if len(axes) == 1:
            return f"{x}.{c.op}({axes[0]}, keepdim={keep})"
        return f"{c.behind(axes)[0]}.{c.op}(-1).reshape({c.shape})"
    if c.op == "var":
        return f"{x}.var({axes}, correction={c.attrs.get('ddof', 0)}, keepdim={keep})"
    name = {"max": "amax", "min": "amin"}.get(c.op, c.op)
    dtype = f", dtype={c.dtype}" if c.op in ("sum", "mean") else ""
    return f"{x}.{name}({axes}, keepdim={keep}{dtype})"


def sliced(c):
    index, given = [":"] * c.rank, [c.attrs.get(key) for key in ("start", "stop", "step")]
    for i, axis in enumerate(c.axes(list(range(len(next(x for x in given if x is not None)))))):
        index[axis] = ":".join("" if x is None else str(x[i]) for x in given)
    return f"{c.names[0]}[{', '.join(index)}]"


def padded(c):
    sides = [side for sides in reversed(list(zip(c.attrs["low"], c.attrs["high"]))) for side in sides]
    return f"F.pad({c.names[0]}, {sides}, value={literal(c.attrs.get('value', 0))})"


def softmax(c):
    axes = c.axes([-1])
    if len(axes) == 1:
        return f"torch.{c.op}({c.names[0]}, {axes[0]})"
    text, order = c.behind(axes)
    turned = [c.operand_shape[axis] for axis in order]
    return f"torch.{c.op}({text}, -1).reshape({turned}).permute({[order.index(axis) for axis in range(c.rank)]})"


def norm(c):
    row = [c.operand_shape[axis] for axis in c.axes([-1])]
    eps = c.attrs.get("eps", 1e-5 if c.op == "layer_norm" else 1e-6)
    return f"F.{c.op}({c.names[0]}, {row}, {''.join(name + ', ' for name in c.names[1:])}eps={eps})"


def cross_entropy(c):
    fold = c.attrs.get("reduction", "none")
    text = (f"F.cross_entropy({c.names[0]}.reshape(-1, {c.operand_shape[-1]}), {c.names[1]}.reshape(-1).long(), "
            f"reduction='{fold}')")
    return text + (f".reshape({c.shape})" if fold == "none" else "")


def iota(c):
    axis = c.attrs.get("axis", 0)
    beside = [extent if i == axis else 1 for i, extent in enumerate(c.shape)]
    return f"torch.arange({c.shape[axis]}, dtype={c.dtype}, device=device).reshape({beside}).expand({c.shape})"


def signed(c):
    return f" {SIGNS[c.op]} ".join(c.names)


SPELLED = {
    **{op: signed for op in SIGNS},
    **{op: lambda c: f"torch.{c.op}({', '.join(c.names)})" for op in FUNCTIONS},
    **{op: lambda c: f"F.{c.op}({c.names[0]})" for op in IN_F},
    **{op: reduction for op in ("sum", "mean", "max", "min", "prod", "var", "any", "all", "argmax", "argmin", "logsumexp")},
    "minimum": extreme, "maximum": extreme, "where": where, "slice": sliced, "pad": padded, "iota": iota,
    "softmax": softmax, "log_softmax": softmax, "layer_norm": norm, "rms_norm": norm, "cross_entropy": cross_entropy,
    "fma": lambda c: f"{c.names[0]} * {c.names[1]} + {c.names[2]}",
    "cast": lambda c: f"{c.names[0]}.to({c.dtype})",
    "full": lambda c: f"torch.full({c.shape}, {literal(c.attrs['value'])}, dtype={c.dtype}, device=device)",
    "take": lambda c: f"{c.names[0]}[{':, ' * (c.attrs.get('axis', 0) % c.rank)}{c.names[1]}]",
    "reshape": lambda c: f"{c.names[0]}.reshape({c.shape})",
    "expand_dims": lambda c: f"{c.names[0]}.reshape({c.shape})",
    "broadcast_to": lambda c: f"{c.names[0]}.expand({c.shape})",
    "transpose": lambda c: f"{c.names[0]}.permute({c.attrs.get('perm', list(range(c.rank))[::-1])})",
    "flip": lambda c: f"torch.flip({c.names[0]}, {c.axes()})",
    "concat": lambda c: f"torch.cat([{', '.join(c.names)}], {c.attrs.get('axis', 0)})",
    "stack": lambda c: f"torch.stack([{', '.join(c.names)}], {c.attrs.get('axis', 0)})",
    "split": lambda c: f"torch.split({c.names[0]}, {c.attrs['sections']}, {c.attrs.get('axis', 0)})",
    "gelu": lambda c: f"F.gelu({c.names[0]}, approximate='{c.attrs.get('approximate', 'none')}')",
    "leaky_relu": lambda c: f"F.leaky_relu({c.names[0]}, {c.attrs.get('negative_slope', 0.01)})",
    "elu": lambda c: f"F.elu({c.names[0]}, {c.attrs.get('alpha', 1.0)})",
    "swiglu": lambda c: f"F.silu({c.names[0]}) * {c.names[1]}",
    "dropout": lambda c: f"F.dropout({c.names[0]}, {c.attrs.get('p', 0.5)}, True)",
}


def source_of(graph):
    """A function of the graph's name and inputs. ValueError for an operator that has no spelling here."""
    types = {entry["name"]: (entry["dtype"], entry["shape"]) for entry in graph["inputs"]}
    lines = [f"def {graph['name']}({', '.join(types)}):", f"    device = {graph['inputs'][0]['name']}.device"]
    for node in graph["nodes"]:
        if node["op"] not in SPELLED:
            raise ValueError(f"{node['op']} has no spelling in PyTorch here")
        text = SPELLED[node["op"]](Call(node, types))
        types |= {result["name"]: (result["dtype"], result["shape"]) for result in node["results"]}
        lines.append(f"    {', '.join(result['name'] for result in node['results'])} = {text}")
    if not any("device=device" in line for line in lines):
        del lines[1]
    limits = index_limits(graph)
    inputs = [f"{entry['name']}: {entry['dtype']}{entry['shape']}" +
              (f" below {limits[entry['name']]}" if entry["name"] in limits else "") for entry in graph["inputs"]]
    lines.insert(1, f'    """{", ".join(inputs)}"""')
    return "\n".join(lines + [f"    return {', '.join(output['value'] for output in graph['outputs'])}", ""])


def index_limits(graph):
    """Where the integers of an input stop, by its name: those that index an axis, as `tenon bench` draws them."""
    limits, types = {}, {entry["name"]: entry["shape"] for entry in graph["inputs"]}
    for node in graph["nodes"]:
        if node["op"] in ("take", "cross_entropy") and isinstance(node["operands"][0], str):
            shape = types[node["operands"][0]]
            limits[node["operands"][1]] = shape[node.get("attrs", {}).get("axis", 0)] if node["op"] == "take" else shape[-1]
        types |= {result["name"]: result["shape"] for result in node["results"]}
    return limits
