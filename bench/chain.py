#!/usr/bin/env python3
"""Times 100 dependent runs of one small kernel, replayed as one CUDA graph: Tenon and PyTorch.

    python3 bench/chain.py TENON_GPU_TEST [--kernels 100] [--samples 50]

Each kernel is tanh-GELU of bf16 256 x 256 on the result of the one before. Tenon's figure is that of its test
(TENON_GPU_TEST: tests/gpu/replay_test.cpp, always 100 kernels), in a process of its own; PyTorch's are of the eager
operator and of torch.compile's kernel, called once for each and recorded with torch.cuda.graph. All are the wall clock
from the launch of the recording to the end on the device, median of the samples; Python's own share of that, a launch
and a wait around nothing, is printed beside it.
"""
import argparse
import re
import statistics
import subprocess
import sys
import time

FILTER = "--gtest_filter=Replay.CostsLessThanLaunching"


def tenon(program):
    """Microseconds that the test prints for the chain with dependent launch."""
    printed = subprocess.run([program, FILTER], check=True, capture_output=True, text=True).stdout
    found = re.search(r"kernels, dependent launch: .*replayed ([0-9.]+) us", printed)
    if not found:
        raise RuntimeError(f"{program} {FILTER} printed no chain:\n{printed}")
    return float(found[1])


def wall_clock(launch, samples):
    import torch
    times = []
    for _ in range(samples):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        launch()
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def recorded(function, kernels):
    """A launch of `kernels` calls, each on the result of the one before."""
    import torch
    x = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)

    def chain():
        y = x
        for _ in range(kernels):
            y = function(y)
        return y

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            chain()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        chain()
    return graph.replay


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", metavar="TENON_GPU_TEST")
    parser.add_argument("--kernels", type=int, default=100, help="of the peers' chains")
    parser.add_argument("--samples", type=int, default=50)
    asked = parser.parse_args()
    rows = [("Tenon", tenon(asked.test))]
    try:
        import torch
        has_peers = torch.cuda.is_available()
    except ImportError:
        has_peers = False
    if not has_peers:
        print("no PyTorch with a GPU here: no peers", file=sys.stderr)
    else:
        def gelu(x):
            return torch.nn.functional.gelu(x, approximate="tanh")
        for name, function in (("eager", gelu), ("torch.compile", torch.compile(gelu, dynamic=False))):
            rows.append((name, wall_clock(recorded(function, asked.kernels), asked.samples)))
        rows.append(("nothing, from Python", wall_clock(lambda: None, asked.samples)))
    print("| as one CUDA graph | us |\n|---|---|")
    for name, microseconds in rows:
        print(f"| {name} | {microseconds:.1f} |")


if __name__ == "__main__":
    sys.exit(main())
