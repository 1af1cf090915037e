#!/usr/bin/env python3
"""Two builds of Tenon on the benchmark cases, in turns on one device.

    bench/ab.py BEFORE AFTER [-o FILE] [--cases REGEX] [--rounds N] [--seconds S] [--target T]

BEFORE and AFTER are `tenon` programs. In each round both time each case, one right behind the other and in changing
order, so that a drifting clock meets both. Of each the fastest round counts. Writes a row of Markdown a case, slowest
first, and the geometric mean of before / after; exit code 1 when a case failed.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile


def time_of(tenon, case, options):
    """The median time of the whole graph in microseconds, or None where the program failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [tenon, "bench", str(case), "--target", options.target, "--seconds", str(options.seconds), "-o", out.name]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            print(f"{case.stem}: {tenon} ended with {run.returncode}: {run.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        return 1e3 * json.load(open(out.name))["cases"][0]["ms"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("-o", "--output")
    parser.add_argument("--cases", default=".")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--target", default="cuda")
    options = parser.parse_args()
    folder = pathlib.Path(__file__).parent / "cases"
    patterns = ["cpu/*.tn"] if options.target == "cpu" else ["*.tn", "attention/*.tn", "matmul/*.tn", "models/*.tn",
                                                              "shapes/*.tn"]
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    cases = [case for case in files if re.search(options.cases, case.stem)]
    best = {case: [math.inf, math.inf] for case in cases}
    failed = set()
    for number in range(options.rounds):
        for case in cases:
            for which in ((0, 1), (1, 0))[number % 2]:
                time = time_of((options.before, options.after)[which], case, options)
                if time is None:
                    failed.add(case)
                else:
                    best[case][which] = min(best[case][which], time)
    rows = [(before / after, case.stem, before, after) for case, (before, after) in best.items() if case not in failed]
    rows.sort()
    lines = ["| case | before, us | after, us | before / after |", "|---|---|---|---|"]
    lines += [f"| {name} | {before:.2f} | {after:.2f} | {ratio:.3f} |" for ratio, name, before, after in rows]
    if rows:
        mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
        lines += ["", f"Geometric mean of {len(rows)} cases: {mean:.4f}; slowest: {rows[0][0]:.3f}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        pathlib.Path(options.output).write_text(text)
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
