#!/usr/bin/env python3
"""How near the first choice of a schedule is to the tuner's best, on products drawn at random.

    python3 bench/first_choice.py TENON FOLDER [--count 24] [--seed N] [--seconds 0.02] [--budget SECONDS]

TENON is the `tenon` program. FOLDER gets the graphs (product_SEED.tn, one seed each) and tune.json: each schedule that was
tried, with its time. Rows and columns are drawn log-uniformly from 33 to 16384, the depth from 64 to 16384, of 2^28 to 2^39
multiplications; a third of them are odd. Both layouts of each operand, bf16 and f16, and four epilogues are drawn.
Nothing is begun after the budget.
"""
import argparse
import json
import math
import os
import random
import subprocess
import time

EACH = 6  # graphs of one process


def extent(draw, least, most):
    size = math.exp(draw.uniform(math.log(least), math.log(most)))
    if draw.random() < 1 / 3:
        return max(least, round(size))
    return max(least, round(size / 64) * 64) if size >= 64 else max(least, round(size / 8) * 8)


def product(seed):
    """The text of one graph."""
    draw = random.Random(seed)
    while True:
        m, n, k = extent(draw, 33, 16384), extent(draw, 33, 16384), extent(draw, 64, 16384)
        if 2**28 <= m * n * k <= 2**39:
            break
    dtype = draw.choice(("bf16", "bf16", "f16"))

    def matrix(name, rows, columns):
        if draw.random() < 0.5:
            return f"{name}: {dtype}[{rows}, {columns}]", name
        return f"{name}: {dtype}[{columns}, {rows}]", f"transpose({name})"

    (x, a), (w, b) = matrix("x", m, k), matrix("w", k, n)
    inputs, result = [x, w], f"matmul({a}, {b})"
    epilogue = draw.choice(("none", "none", "bias_gelu", "residual", "pair"))
    if epilogue == "bias_gelu":
        inputs.append(f"bias: {dtype}[{n}]")
        result = f'gelu(add({result}, bias), approximate="tanh")'
    elif epilogue == "residual":
        inputs.append(f"r: {dtype}[{m}, {n}]")
        result = f"add({result}, r)"
    elif epilogue == "pair":
        inputs.append(w.replace("w:", "u:"))
        result = f"swiglu({result}, matmul({a}, {b.replace('w', 'u')}))"
    return f"# {epilogue}, {m} x {n} x {k}\ngraph product_{seed}({', '.join(inputs)}) {{\n  y = {result}\n  return y\n}}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", default="0.02")
    parser.add_argument("--budget", type=float, default=float("inf"))
    asked = parser.parse_args()
    stop = time.monotonic() + asked.budget
    os.makedirs(asked.folder, exist_ok=True)
    files = []
    for seed in range(asked.seed, asked.seed + asked.count):
        files.append(os.path.join(asked.folder, f"product_{seed}.tn"))
        with open(files[-1], "w") as file:
            file.write(product(seed))
    kernels = []
    for at in range(0, len(files), EACH):
        if time.monotonic() > stop:
            print(f"{len(files) - at} graphs were not begun in time")
            break
        out = os.path.join(asked.folder, "part.json")
        run = subprocess.run([asked.tenon, "tune", *files[at:at + EACH], "--again", "--seconds", asked.seconds, "-o", out],
                             capture_output=True, text=True)
        print(run.stdout, end="")
        if run.returncode != 0:
            print(run.stderr, end="")
        if os.path.exists(out):
            with open(out) as file:
                kernels += json.load(file)["kernels"]
            os.remove(out)
    with open(os.path.join(asked.folder, "tune.json"), "w") as file:
        json.dump(kernels, file, indent=1)
    shares = sorted(kernel["best_us"] / kernel["heuristic_us"] for kernel in kernels)
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        print(f"seeds {asked.seed} to {asked.seed + asked.count - 1}: the first choice reaches {mean:.3f} of the best in "
              f"geometric mean, {shares[0]:.3f} at worst, of {len(shares)} kernels")


if __name__ == "__main__":
    main()
