#!/usr/bin/env python3
"""Compares Tenon's results at the benchmarked sizes with PyTorch's in f64 on the same data.

    python3 bench/check.py TENON [--cases REGEX] [--target cuda]

TENON is the `tenon` program. It runs each case and saves inputs and outputs; the functions of peer_cases.py then
compute the same from the inputs widened to f64 (a function that casts inside computes in f32), and what Tenon draws
from a seed is drawn here again. Two errors are bounded for each output: |result - reference| / |reference| in the
2-norm, of which bf16 rounding alone makes about 1e-3, and the worst element's, relative to its magnitude plus the
reference's root mean square (attention: that of its row, since the more keys a row sees the smaller it is). A sum to
one number is relative to the sum of magnitudes. The indices of argmax are judged by the values they point at. Where
results follow the roundings of a product on the way, the case has wider bounds or none. Exit code 1 when
an error is above its bound, or a case fails.
"""
import argparse
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import torch

from peer_cases import ATTENTION, CASES, Scores, uniform

# Of the norm, of the worst element.
BOUNDS = {torch.bfloat16: (4e-3, 2e-2), torch.float16: (1e-3, 5e-3), torch.float32: (1e-5, 1e-4),
          torch.uint8: (1e-9, 1e-9)}
BOUNDS_OF = {
    "matmul_nn_tf32_4096": (1e-3, 1e-2),                       # operands of 11 bits
    "matmul_mlp16_bf16_1024x4096": (3e-2, 3e-1),               # every layer rounds its results
    "matmul_gelu_softmax_f32_1024x8192x8192": (1e-3, 1e-2),    # exponents of magnitude 300
    "attention_full_f8e4m3_2x16x8192x128": (5e-2, 5e-1),        # weights of 4 bits
    "matmul_gelu_softmax_bf16_1024x8192x8192": (math.inf, math.inf),  # which bf16 rounds by 1
}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f8e4m3": torch.float8_e4m3fn,
          "i8": torch.int8, "u8": torch.uint8, "i64": torch.int64}
SCORES = 1 << 26  # of attention, held at once
HERE = os.path.dirname(os.path.abspath(__file__))


def path_of(name, target):
    """The case's file, or None where the target has no such case."""
    folders = ["cpu"] if target == "cpu" else ["", "attention", "matmul", "shapes"]
    paths = [os.path.join(HERE, "cases", folder, name + ".tn") for folder in folders]
    return next(filter(os.path.exists, paths), None)


def dropout_add_layer_norm(x, residual, weight, bias, seed):
    kept = uniform(seed.item(), x.numel(), x.device).reshape(x.shape) >= torch.tensor(0.1, device=x.device)
    h = torch.where(kept, x / 0.9, 0) + residual
    return h, torch.nn.functional.layer_norm(h, h.shape[-1:], weight, bias)


def attention(q, k, v, scores, seed=None):
    """By the formula, a head at a time and of that as many queries as have SCORES scores together."""
    result = torch.empty(*q.shape[:3], v.shape[-1], dtype=q.dtype, device=q.device)
    queries, keys, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    step = max(1, SCORES // keys)
    j = torch.arange(keys, device=q.device)
    for b, h, first in itertools.product(range(q.shape[0]), range(q.shape[1]), range(0, queries, step)):
        i = torch.arange(first, min(first + step, queries), device=q.device).unsqueeze(-1)
        weights = q[b, h, i.flatten()] @ k[b, h // group].T / q.shape[-1] ** 0.5
        if scores.change is not None:
            weights = scores.change(weights, b, h, i, j)
        if scores.seen is not None:
            weights = weights.masked_fill(~scores.seen(b, h, i, j), -math.inf)
        weights = weights.softmax(-1)
        if scores.dropped:
            drawn = uniform(seed.item(), weights.numel(), q.device, ((b * q.shape[1] + h) * queries + first) * keys)
            kept = drawn.reshape(weights.shape) >= torch.tensor(scores.dropped, device=q.device)
            weights = torch.where(kept, weights / (1 - scores.dropped), 0)
        result[b, h, i.flatten()] = weights @ v[b, h // group]
    return result


def reference_of(name, device):
    """From the case's inputs, widened, to what its outputs should be."""
    if of := ATTENTION.get(name):
        return lambda *inputs: attention(*of.operands(*inputs), of.scores(*inputs[3:]), seed=inputs[-1])
    return REFERENCES.get(name) or CASES[name](device)[0]


# Cases for which PyTorch draws other numbers, or whose function takes no f64.
REFERENCES = {
    "dropout_add_layernorm_bf16_16384x4096": dropout_add_layer_norm,
    "matmul_nt_f8e4m3_8192": lambda x, w: x @ w.t(),
    "attention_full_f8e4m3_2x16x8192x128": lambda q, k, v: attention(q, k, v, Scores()),
}


def signature(tenon, case):
    """[(dtype, shape)] of the graph's inputs and of its outputs; `tenon bench` binds a symbol to its upper bound."""
    graph = json.loads(subprocess.run([tenon, "dump", case, "--emit", "json"], check=True, capture_output=True).stdout)
    types = {value["name"]: value for value in graph["inputs"]}
    for node in graph["nodes"]:
        types |= {result["name"]: result for result in node["results"]}

    def shape(part):
        return [graph["symbols"][extent]["max"] if isinstance(extent, str) else extent for extent in part["shape"]]

    parts = graph["inputs"], [types[output["value"]] for output in graph["outputs"]]
    return [[(DTYPES[part["dtype"]], shape(part)) for part in parts_of] for parts_of in parts]


def load(path, dtype, shape, device):
    count = 1
    for extent in shape:
        count *= extent
    return torch.from_file(path, size=count * dtype.itemsize, dtype=torch.uint8).view(dtype).to(device).reshape(shape)


def errors(result, reference, name, inputs):
    """The relative error of one output in the norm, and that of its worst element, as shares of their bounds."""
    if name.startswith("argmax"):
        x, kept = inputs[0], list(reference.shape)  # the elements that were found along `axis`
        axis = next(i for i in reversed(range(x.dim())) if [*x.shape[:i], *x.shape[i + 1:]] == kept)
        result, reference = (x.gather(axis, index.unsqueeze(axis)) for index in (result, reference))
    bounds = BOUNDS_OF.get(name, BOUNDS[result.dtype])
    result, reference = result.double(), reference.double()
    if result.shape != reference.shape:
        raise ValueError(f"shape {list(result.shape)} instead of {list(reference.shape)}")
    distance, size = result - reference, reference.norm()
    if size == 0:  # every result is 0, or wrong
        return (0.0, 0.0) if result.norm() == 0 else (math.inf, math.inf)
    if reference.dim() == 0 and name.startswith("sum"):
        size, bounds = inputs[0].double().abs().sum(), (1e-7, 1e-7)  # the roundings of a balanced sum are below that
    typical = reference.square().mean(-1, keepdim=True).sqrt() if name in ATTENTION else size / reference.numel() ** 0.5
    worst = (distance.abs() / (reference.abs() + typical)).max()
    return (distance.norm() / size).item() / bounds[0], worst.item() / bounds[1]


def check(tenon, name, target, folder):
    """For each output the shares of both bounds."""
    device = "cuda" if target == "cuda" else "cpu"
    path = path_of(name, target)
    inputs, outputs = signature(tenon, path)
    subprocess.run([tenon, "bench", path, "--target", target, "--seconds", "0.001", "--save", folder, "--json"],
                   check=True, stdout=subprocess.DEVNULL)
    inputs = [load(f"{folder}/{name}.in{i}.bin", *type_, device) for i, type_ in enumerate(inputs)]
    results = [load(f"{folder}/{name}.out{i}.bin", *type_, device) for i, type_ in enumerate(outputs)]
    references = reference_of(name, device)(*[x.double() if x.is_floating_point() else x for x in inputs])
    references = references if isinstance(references, (tuple, list)) else [references]
    for file in os.listdir(folder):
        os.remove(os.path.join(folder, file))
    return [errors(*pair, name, inputs) for pair in zip(results, references, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("--cases", default=".", help="regular expression; all names that contain a match")
    parser.add_argument("--target", default="cuda")
    asked = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for name in CASES:
            if not path_of(name, asked.target) or not re.search(asked.cases, name):
                continue
            try:
                shares = check(asked.tenon, name, asked.target, folder)
                right = all(share <= 1 for pair in shares for share in pair)  # not so for NaN
                verdict = "ok" if right else "WRONG"
                print(f"{name:40s} {verdict}, of the bounds:",
                      ", ".join(f"{norm:.1e} {worst:.1e}" for norm, worst in shares), flush=True)
            except Exception as problem:  # noqa: BLE001: the other cases go on
                verdict = "failed"
                print(f"{name:40s} failed: {problem!r}"[:300], flush=True)
            failed += verdict != "ok"
            if asked.target == "cuda":
                torch.cuda.empty_cache()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
