#!/usr/bin/env python3
"""Times Jacobi steps by pad and slice: the default plan, and those without recomputation and without fusion.

    python3 bench/stencil.py [--tenon build/default/bin/tenon] [--target cpu] [--sizes 256 1024 4096] [--steps 1 2 4 8]
                             [--dtypes f32 bf16] [--points 5 9] [--seconds 0.1] [--no-flush]

Each figure is the median time of whole runs (`tenon bench --json`); the plans are timed in turns, three times, and the
least is kept. The last column is the default plan's time by the best of the others: 1.1 is the bar. Exit code 1 where
it is not met.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

PLANS = {"default": [], "no duplicate": ["--disable", "duplicate"], "no fuse": ["--no-fuse"]}
BAR = 1.1
ROUNDS = 3


def graph(steps, size, dtype, points):
    """x' = (x + mean of its neighbours) / 2, zero outside."""
    offsets = [(i, j) for i in range(3) for j in range(3)
               if (i, j) != (1, 1) and (points == 9 or 1 in (i, j))]
    lines = [f"graph jacobi(x0: {dtype}[{size}, {size}]) {{"]
    for step in range(steps):
        lines.append(f"  p{step} = pad(x{step}, low=[1, 1], high=[1, 1])")
        total = ""
        for i, j in offsets:
            at = f"slice(p{step}, axis=[0, 1], start=[{i}, {j}], stop=[{i + size}, {j + size}])"
            total = f"add({total}, {at})" if total else at
        lines.append(f"  x{step + 1} = mul(add(x{step}, mul({total}, {1 / len(offsets)})), 0.5)")
    return "\n".join(lines + [f"  return x{steps}", "}", ""])


def time_of(arguments, file, options):
    """Milliseconds of one run, and how many kernels it takes."""
    command = [arguments.tenon, "bench", file, "--json", "--target", arguments.target, "--seconds",
               str(arguments.seconds), *options, *(["--no-flush"] if arguments.no_flush else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    case = json.loads(done.stdout)["cases"][0]
    return case["ms"], case["kernels"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default="build/default/bin/tenon")
    parser.add_argument("--target", default="auto")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 512, 1024, 2048, 4096])
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--dtypes", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--points", type=int, nargs="+", default=[5, 9])
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--no-flush", action="store_true")
    arguments = parser.parse_args()
    worst = 0.0
    print("| graph | " + " | ".join(f"{plan}, us (kernels)" for plan in PLANS) + " | default / best |")
    print("|---" * (len(PLANS) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for points, dtype, size, steps in [(p, d, n, k) for p in arguments.points for d in arguments.dtypes
                                           for n in arguments.sizes for k in arguments.steps]:
            file = pathlib.Path(folder) / "jacobi.tn"
            file.write_text(graph(steps, size, dtype, points))
            best = {plan: (math.inf, 0) for plan in PLANS}
            for _ in range(ROUNDS):
                for plan, options in PLANS.items():
                    best[plan] = min(best[plan], time_of(arguments, str(file), options))
            ratio = best["default"][0] / min(best[plan][0] for plan in PLANS if plan != "default")
            worst = max(worst, ratio)
            print(f"| {points} points, {dtype}, {size}², {steps} steps | " +
                  " | ".join(f"{1e3 * ms:.1f} ({kernels})" for ms, kernels in best.values()) + f" | {ratio:.2f} |",
                  flush=True)
    print(f"\nworst {worst:.2f}, bar {BAR}")
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
