"""A graph in the JSON form (docs/text-form.md), evaluated node by node."""

import numpy as np

from arithmetic import Value
from composites import COMPOSITES, UNSUPPORTED
from formats import is_real, round_to
from operators import PRIMITIVES


def dimension(text, symbols):
    """An extent: an integer, or an expression such as "2*rows + floordiv(n, 4)"."""
    if isinstance(text, int):
        return text
    return int(eval(text, {"__builtins__": {}}, {**symbols, "floordiv": lambda a, b: a // b}))


def number(text):
    """A JSON real, or one of the strings that JSON has no number for."""
    if not isinstance(text, str):
        return text
    return float.fromhex(text) if "x" in text else float(text)


_DIMENSIONS = ("shape", "start", "stop", "low", "high", "value")
_NUMBERS = ("value", "eps", "scale", "softcap", "alpha", "negative_slope", "p")


def attributes(node, symbols):
    result = {}
    for key, value in node.get("attrs", {}).items():
        if isinstance(value, list) and key in _DIMENSIONS:
            value = [dimension(item, symbols) for item in value]
        elif key in _NUMBERS:
            value = number(value)
        result[key] = value
    return result


def literal(operand):
    value = number(operand["value"])
    dtype = operand["dtype"]
    return Value(dtype, round_to(dtype, np.float64(value)) if is_real(dtype) else value)


def evaluate(graph, inputs, symbols, arithmetic):
    """The outputs by name; those that rest on an operator of UNSUPPORTED are left out."""
    values = {entry["name"]: Value(entry["dtype"], inputs[entry["name"]]) for entry in graph["inputs"]}
    with np.errstate(all="ignore"):
        for node in graph["nodes"]:
            operands = [values.get(x) if isinstance(x, str) else literal(x) for x in node["operands"]]
            if node["op"] in UNSUPPORTED or any(operand is None for operand in operands):
                continue
            types = [(result["dtype"], tuple(dimension(x, symbols) for x in result["shape"]))
                     for result in node["results"]]
            results = apply(node["op"], arithmetic, operands, attributes(node, symbols), types)
            for result, value, type in zip(node["results"], results, types):
                if value.shape != type[1] or value.dtype != type[0]:
                    raise AssertionError(f"{node['op']} gave {value.dtype}{value.shape}, the graph says {type}")
                values[result["name"]] = value
    results = {output["name"]: values.get(output["value"]) for output in graph["outputs"]}
    return {name: stored(value) for name, value in results.items() if value is not None}


def apply(op, arithmetic, operands, attrs, types):
    if op in COMPOSITES:
        return COMPOSITES[op](arithmetic, operands, attrs, types)
    return [PRIMITIVES[op](arithmetic, operands, attrs, types[0])]


def stored(value):
    """Graph results are rounded to their dtype (rule 4)."""
    return Value(value.dtype, round_to(value.dtype, value.data)) if is_real(value.dtype) else value


def covered():
    """The operators that this program evaluates."""
    return set(PRIMITIVES) | set(COMPOSITES)
