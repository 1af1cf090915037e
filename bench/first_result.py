#!/usr/bin/env python3
"""Times the first result of one kernel in fresh processes, with an empty and with a filled cache: Tenon, and
torch.compile where PyTorch is installed.

    python3 bench/first_result.py TENON [--case NAME] [--target cuda] [--runs 5] [--peers=]

TENON is the `tenon` program. The clock starts when the device is open and the inputs lie in its memory, for PyTorch
also when its compiler is imported; what comes before is printed beside it. Medians, in milliseconds, a row as soon as
it is known; each process's own figure goes to the error stream.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def first_of_torch(name, device):
    """Printed by a process of its own: seconds to open the device, and to the first result."""
    begin = time.perf_counter()
    import torch
    import torch._inductor.compile_fx  # noqa: F401: what torch.compile imports at its first call

    from peer_cases import CASES
    function, inputs = CASES[name](device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    opened = time.perf_counter()
    torch.compile(function, dynamic=False)(*inputs)
    wait()
    print(json.dumps({"device_ms": 1e3 * (opened - begin), "first_ms": 1e3 * (time.perf_counter() - opened)}))


def run(command, environment):
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    return json.loads(done.stdout[done.stdout.index("{"):])


def measure(name, command, variables, runs):
    """(empty cache, filled cache), each the median of device_ms and first_ms; a fresh folder for each pair. Each process
    is told of as it ends: PyTorch's take many seconds."""
    pairs = []
    for number in range(1, runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            environment = {variable: os.path.join(folder, variable) for variable in variables}
            pairs.append([])
            for cache in ("empty", "filled"):
                pairs[-1].append(run(command, environment))
                print(f"{name}, pair {number} of {runs}, {cache} cache: {pairs[-1][-1]['first_ms']:.1f} ms",
                      file=sys.stderr, flush=True)
    return [{key: statistics.median(pair[which][key] for pair in pairs) for key in ("device_ms", "first_ms")}
            for which in range(2)]


def print_row(name, empty, filled):
    print(f"| {name} | {empty['first_ms']:.1f} | {filled['first_ms']:.1f} | {filled['device_ms']:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("--case", default="gelu_bf16_small_256", help="a name of bench/cases")
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--runs", type=int, default=5, help="pairs of processes")
    parser.add_argument("--peers", default="torch.compile", help="empty: Tenon alone")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.torch:
        return first_of_torch(asked.case, asked.target)
    graph = os.path.join(HERE, "cases", asked.case + ".tn")
    print(f"{asked.case} on {asked.target}\n\n| | empty cache, ms | filled cache, ms | before the clock starts, ms |")
    print("|---|---|---|---|", flush=True)
    print_row("Tenon", *measure("Tenon", [asked.tenon, "bench", graph, "--first", "--json", "--target", asked.target],
                                ["TENON_CACHE_DIR"], asked.runs))
    if not asked.peers:
        return
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
        print("no PyTorch here: no peer", file=sys.stderr)
        return
    print_row("torch.compile", *measure("torch.compile",
                                        [sys.executable, os.path.abspath(__file__), asked.tenon, "--torch", "--case",
                                         asked.case, "--target", asked.target],
                                        ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"], asked.runs))


if __name__ == "__main__":
    sys.exit(main())
