#!/usr/bin/env python3
"""Random products, checked against the interpreter: shapes, layouts, views, batches, prologues and epilogues.

    python3 tools/random_products.py TENON FOLDER [--count 2000] [--seed N] [--target cuda] [--jobs 12] [--each 20] [--seconds S]

TENON is the `tenon` program. The graphs are written into FOLDER as product_SEED.tn, one seed each, and run through
`tenon bench --check`, --each to a process. What failed or differed is printed with its graph's file. Nothing is begun after S
seconds. Exit code 1 when a graph failed or differed.
"""
import sys

import random_checks
from random_checks import extent, shape_text

MOST_FLOPS = 2**25  # multiplications of one product: the interpreter's time


class Product(random_checks.Graph):
    """y = epilogue(prologue(a) @ prologue(b))."""

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

    def write(self):
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
        return self.text(outputs)


if __name__ == "__main__":
    sys.exit(random_checks.main(__doc__, "product", lambda seed: Product("product", seed).write()))
