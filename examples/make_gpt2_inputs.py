#!/usr/bin/env python3
"""Writes inputs for gpt2_block.tn at real size: make_gpt2_inputs.py FOLDER [BATCH].

Plain Python, no packages. Arrays are f4 .npy files; `tenon run` rounds them to the graph's bf16. Values are uniform with the
variances of a trained block: activations 1, weights 1/fan-in, norms near 1, biases small.
"""
import array, math, os, random, struct, sys

WIDTH = 768
TOKENS = 1024


def write(path, shape, scale, center=0.0):
    """A float32 array of `shape`, uniform with standard deviation `scale` around `center`, as .npy version 1."""
    half_width = scale * math.sqrt(3)
    uniform = random.uniform
    low, high = center - half_width, center + half_width
    data = array.array("f", (uniform(low, high) for _ in range(math.prod(shape))))
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        data.tofile(file)


def main():
    folder = sys.argv[1]
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.makedirs(folder, exist_ok=True)
    random.seed(1)
    arrays = {"x": ([batch, TOKENS, WIDTH], 1.0)}
    for norm in ("ln1", "ln2"):
        arrays[norm + "_weight"] = ([WIDTH], 0.1, 1.0)
        arrays[norm + "_bias"] = ([WIDTH], 0.1)
    for name, fan_in, fan_out in (("qkv", WIDTH, 3 * WIDTH), ("proj", WIDTH, WIDTH), ("fc", WIDTH, 4 * WIDTH), ("out", 4 * WIDTH, WIDTH)):
        arrays["w_" + name] = ([fan_in, fan_out], fan_in ** -0.5)
        arrays["b_" + name] = ([fan_out], 0.02)
    for name, spec in arrays.items():
        write(os.path.join(folder, name + ".npy"), *spec)


main()
