#!/usr/bin/env python3
"""Times Tenon on graph files, each in a process of its own: what crashes or hangs costs its own row, not the others'.

    python3 bench/tenon_times.py TENON FILE.tn ... --out FILE.json [--target cuda] [--seconds 0.2] [--budget SECONDS]

TENON is the `tenon` program. The file is what `tenon bench -o` writes, with a row for every graph: its times, or under
"error" why there are none. It is written anew after each graph. Exit code 1 when a graph has no times or left an element
unwritten.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

LIMIT = 180  # seconds of one process
GRACE = 30   # seconds beyond the budget for the graph under way


def bench(tenon, file, options, limit):
    """What `tenon bench` wrote of one graph, or a document with the reason only."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        try:
            run = subprocess.run([tenon, "bench", file, *options, "-o", out], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return failed(file, f"no end after {limit:.0f} s")
        if os.path.exists(out):  # also when a case failed: its row says why
            with open(out) as written:
                return json.load(written)
        return failed(file, f"exit code {run.returncode}: {run.stderr.strip()[-300:]}")


def failed(file, why):
    return {"cases": [{"graph": os.path.splitext(os.path.basename(file))[0], "error": why}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("files", metavar="FILE.tn", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--seconds", default="0.2", help="for each measurement")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no graph is begun")
    asked = parser.parse_args()
    stop = time.monotonic() + asked.budget
    options = ["--target", asked.target, "--seconds", asked.seconds]
    document = {"tenon": "of unknown version", "device": "unknown device", "cases": []}
    for file in asked.files:
        left = stop - time.monotonic()
        if left < 0:
            found = failed(file, "not begun in time")
        else:
            found = bench(asked.tenon, file, options, min(LIMIT, left + GRACE))
        document |= found | {"cases": document["cases"] + found["cases"]}
        for case in found["cases"]:
            print(f"{case['graph']:40s}", case["error"] if "error" in case else f"{case['ms']:.4f} ms", flush=True)
        with open(asked.out, "w") as out:
            json.dump(document, out, indent=1)
    return any("error" in case or case["unwritten"] for case in document["cases"])


if __name__ == "__main__":
    sys.exit(main())
