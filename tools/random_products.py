#!/usr/bin/env python3
"""Random products, checked against the interpreter: shapes, layouts, views, batches, prologues and epilogues.

    python3 tools/random_products.py TENON FOLDER [--count 2000] [--seed N] [--target cuda] [--jobs 12] [--seconds S]

TENON is the `tenon` program. The graphs are written into FOLDER as product_SEED.tn, one seed each, and run through
`tenon bench --check`, 20 to a process. What failed or differed is printed with its graph's file. Nothing is begun after S
seconds. Exit code 1 when a graph failed or differed.
"""
import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import time

EACH = 20           # graphs of one process
LIMIT = 240         # seconds of one process
MOST_FLOPS = 2**25  # multiplications of one product: the interpreter's time


def extent(draw, most):
    """An extent up to `most`: small, of whole vectors, of whole tiles, beside one, or any."""
    kind = draw.randrange(5)
    if kind == 0:
        return draw.randint(1, min(40, most))
    if kind == 1:
        return 8 * draw.randint(1, max(1, most // 8))
    if kind == 2:
        return 64 * draw.randint(1, max(1, most // 64))
    if kind == 3:
        return max(1, 64 * draw.randint(1, max(1, most // 64)) + draw.choice((-1, 1, 3)))
    return draw.randint(1, most)


def shape_text(shape):
    return "[" + ", ".join(map(str, shape)) + "]"


class Product:
    """The text of one graph: y = epilogue(prologue(a) @ prologue(b))."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.inputs, self.lines = [], []
        self.text = self.write(seed)

    def input(self, dtype, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(f"{name}: {dtype}{shape_text(shape)}")
        return name

    def line(self, text):
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def operand(self, dtype, shape):
        """An operand of that shape: as it lies, seen transposed, a part of something larger, backwards, or computed."""
        draw, rank = self.draw, len(shape)
        stored = draw.choice((dtype, dtype, dtype, "f32", "i8")) if dtype != "f32" else dtype
        transposed = draw.random() < 0.4
        lying = shape[:-2] + (shape[-1], shape[-2]) if transposed else shape
        view = draw.randrange(6)
        if view == 0:  # a slice with a step, along a random axis
            axis, start, step = draw.randrange(rank), draw.randint(0, 9), draw.choice((1, 1, 2, 3))
            larger = list(lying)
            larger[axis] = start + lying[axis] * step
            whole = self.input(stored, larger)
            value = self.line(f"slice({whole}, axis=[{axis}], start=[{start}], stop=[{larger[axis]}], step=[{step}])")
        elif view == 1:
            value = self.line(f"flip({self.input(stored, lying)}, axis={draw.randrange(rank)})")
        else:
            value = self.input(stored, lying)
        if stored != dtype:
            value = self.line(f"cast({value}, dtype={dtype})")
        if transposed:
            perm = list(range(rank - 2)) + [rank - 1, rank - 2]
            value = self.line(f"transpose({value}, perm={shape_text(perm)})")
        prologue = draw.randrange(8)
        if prologue == 0:
            value = self.line(f"relu({value})")
        elif prologue == 1:
            value = self.line(f"mul({value}, {self.input(dtype, (shape[-2], 1))})")
        elif prologue == 2:
            value = self.line(f"mul({value}, {self.input(dtype, (shape[-1],))})")
        return value

    def write(self, seed):
        draw = self.draw
        dtype = draw.choice(("bf16", "bf16", "f16", "f32", "f8e4m3", "f8e5m2"))
        of_f8 = dtype.startswith("f8")
        m, n, k = extent(draw, 700), extent(draw, 700), extent(draw, 1500)
        while m * n * k > MOST_FLOPS:
            m, n, k = (max(1, size - size // 3) for size in (m, n, k))
        batch = draw.choice(((), (), (), (draw.randint(1, 5),), (2, draw.randint(1, 3))))
        while batch and batch[0] > 1 and m * n * k * batch[0] * batch[-1] > MOST_FLOPS:
            m, k = max(1, m // 2), max(1, k // 2)
        a = self.operand(dtype, (batch if draw.random() < 0.8 else ()) + (m, k))
        b = self.operand(dtype, (batch if draw.random() < 0.6 else ()) + (k, n))
        result = draw.choice(("bf16", "f16", "f32") if of_f8 else (dtype, "f32"))
        block = f", block={draw.choice((128, 256, k))}" if of_f8 and draw.random() < 0.3 else ""
        y = self.line(f"matmul({a}, {b}, dtype={result}{block})")
        outputs = []
        for _ in range(draw.choice((0, 1, 1, 2, 3))):
            step = draw.randrange(9)
            if step == 0:
                y = self.line(f"add({y}, {self.input(result, (n,))})")
            elif step == 1:
                y = self.line(f"gelu({y})")
            elif step == 2:
                y = self.line(f"mul({y}, {self.input(result, (m, 1))})")
            elif step == 3:
                y = self.line(f"add({y}, {self.input(result, (m, n))})")
            elif step == 4:
                y = self.line(f"sigmoid({y})")
            elif step == 5:
                outputs.append(y)
                y = self.line(f"relu({y})")
            elif step == 6:
                outputs.append(self.line(f"sum({y}, axis={draw.choice((-1, -2))})"))
            elif step == 7:
                y = self.line(f"softmax({y})")
            elif result == dtype and not of_f8:  # a gate, and what it scales: the same rows by another matrix
                scaled = self.line(f"matmul({a}, {self.operand(dtype, (k, n))})")
                y = self.line(f"mul(sigmoid({y}), {scaled})")
        outputs = list(dict.fromkeys([*outputs, y]))
        head = f"graph product_{seed}({', '.join(self.inputs)}) {{\n"
        return head + "\n".join(self.lines) + f"\n  return {', '.join(outputs)}\n}}\n"


def check(asked, files):
    """Names of those that failed, each with the reason."""
    out = files[0] + ".json"
    command = [asked.tenon, "bench", *files, "--check", "--target", asked.target, "--seconds", "0.001", "-o", out]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        code, said = run.returncode, (run.stdout + run.stderr)[-1500:]
    except subprocess.TimeoutExpired:
        code, said = -1, f"no end after {LIMIT} s"
    if code == 0:
        return []
    if len(files) == 1:
        return [(files[0], said)]
    return [found for file in files for found in check(asked, [file])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    os.makedirs(asked.folder, exist_ok=True)
    files = []
    for seed in range(asked.seed, asked.seed + asked.count):
        files.append(os.path.join(asked.folder, f"product_{seed}.tn"))
        with open(files[-1], "w") as out:
            out.write(Product(seed).text)
    stop, ran, failed = time.monotonic() + asked.seconds, 0, []

    def batch(some):
        return (len(some), check(asked, some)) if time.monotonic() < stop else (0, [])

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for done, found in pool.map(batch, [files[i:i + EACH] for i in range(0, len(files), EACH)]):
            ran += done
            failed += found
            for file, said in found:
                print(f"FAILED {file}\n{open(file).read()}{said}", flush=True)
    print(f"products from seed {asked.seed}: {ran} checked, {len(failed)} failed")
    return bool(failed) or ran == 0


if __name__ == "__main__":
    sys.exit(main())
