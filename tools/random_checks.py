#!/usr/bin/env python3
"""What random_products.py and random_attention.py share: graph files of many seeds, run through `tenon bench --check`.

Several graphs run in a process; where one fails, each of these runs alone.
"""
import argparse
import concurrent.futures
import os
import random
import subprocess
import time

LIMIT = 240  # seconds of one process


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


class Graph:
    """The text of a graph, a line at a time: inputs are x0, x1, …, and values v0, v1, …."""

    def __init__(self, name, seed):
        self.draw = random.Random(seed)
        self.name, self.inputs, self.lines = f"{name}_{seed}", [], []

    def input(self, dtype, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(f"{name}: {dtype}{shape_text(shape)}")
        return name

    def line(self, text):
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def text(self, outputs):
        head = f"graph {self.name}({', '.join(self.inputs)}) {{\n"
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


def main(description, name, text_of):
    """text_of(seed) is a graph's text, which is written as NAME_SEED.tn."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--each", type=int, default=20, help="graphs of one process: what is begun is waited for")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    os.makedirs(asked.folder, exist_ok=True)
    files = []
    for seed in range(asked.seed, asked.seed + asked.count):
        files.append(os.path.join(asked.folder, f"{name}_{seed}.tn"))
        with open(files[-1], "w") as out:
            out.write(text_of(seed))
    stop, ran, failed = time.monotonic() + asked.seconds, 0, []

    def batch(some):
        return (len(some), check(asked, some)) if time.monotonic() < stop else (0, [])

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for done, found in pool.map(batch, [files[i:i + asked.each] for i in range(0, len(files), asked.each)]):
            ran += done
            failed += found
            for file, said in found:
                print(f"FAILED {file}\n{open(file).read()}{said}", flush=True)
    print(f"{name}: from seed {asked.seed} {ran} checked, {len(failed)} failed")
    return bool(failed) or ran == 0
