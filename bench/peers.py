#!/usr/bin/env python3
"""Times PyTorch on the benchmark cases: the peers of `tenon bench`, measured as it measures.

Peers: eager (a kernel for each operator, or a library's), compile (torch.compile: Inductor and Triton) and max
(torch.compile in max-autotune mode, without CUDA graphs). Times are medians of device events with the L2 cache
written over before each run, as `tenon bench` does it; on the CPU, of the host's clock.

    python3 bench/peers.py [--cases REGEX] [--peers eager,compile,max] [--out FILE.json] [--budget SECONDS]
"""
import argparse
import json
import re
import sys
import time

import torch

from peer_cases import CASES

PEERS = {
    "eager": lambda function: function,
    "compile": lambda function: torch.compile(function, dynamic=False),
    "max": lambda function: torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False),
}
FLUSH_BYTES = 256 << 20


def time_on_cpu(call, seconds):
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8)
    times, begin = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        flush.zero_()
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    return [times[round(share * (len(times) - 1))] for share in (0.5, 0.1, 0.9)]


def time_on_gpu(call, seconds):
    """Medians of device events. What a kernel had the L2 keep is forgotten before the L2 is written over, and the device
    is held up until the host has queued the call."""
    import ctypes
    reset = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def sample():
        torch.cuda.synchronize()
        if reset() != 0:
            raise RuntimeError("cuCtxResetPersistingL2Cache failed")
        flush.zero_()
        torch.cuda._sleep(500_000)  # cycles
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        return begin, end

    def run(seconds, least):
        events, stop = [], time.perf_counter() + seconds
        while len(events) < least or time.perf_counter() < stop:
            events.append(sample())
        torch.cuda.synchronize()
        return sorted(begin.elapsed_time(end) for begin, end in events)

    run(0.25 * seconds, 3)
    times = run(seconds, 5)
    return [times[min(len(times) - 1, round(share * (len(times) - 1)))] for share in (0.5, 0.1, 0.9)]


def measure(peer, function, arguments, device, seconds):
    """The row of one peer; the first call, which compiles, is timed apart."""
    torch._dynamo.reset()
    function = PEERS[peer](function)
    start = time.perf_counter()
    function(*arguments)
    if device == "cuda":
        torch.cuda.synchronize()
    first = time.perf_counter() - start
    timer = time_on_gpu if device == "cuda" else time_on_cpu
    median, p10, p90 = timer(lambda: function(*arguments), seconds)
    return {"ms": median, "p10_ms": p10, "p90_ms": p90, "first_s": round(first, 3)}


def versions(device):
    found = {"torch": torch.__version__}
    if device == "cuda":
        import triton
        found |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "triton": triton.__version__}
    else:
        found["threads"] = torch.get_num_threads()
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=".", help="regular expression; all names that contain a match")
    parser.add_argument("--peers", default="eager,compile", help="of " + ", ".join(PEERS))
    parser.add_argument("--out", help="JSON file, written after each case")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no case is begun")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each measurement")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    return parser.parse_args()


def main():
    asked, begin = arguments(), time.monotonic()
    peers = asked.peers.split(",")
    if unknown := set(peers) - set(PEERS):
        sys.exit(f"--peers: no such peer: {', '.join(sorted(unknown))}")
    document = versions(asked.device) | {"cases": {}}
    print({key: value for key, value in document.items() if key != "cases"}, flush=True)
    for name, make in CASES.items():
        if not re.search(asked.cases, name):
            continue
        if time.monotonic() - begin > asked.budget:
            print("budget spent before", name, file=sys.stderr)
            break
        torch.manual_seed(0)
        row = document["cases"][name] = {}
        try:
            function, inputs = make(asked.device)
            for peer in peers:
                row[peer] = measure(peer, function, inputs, asked.device, asked.seconds)
        except Exception as error:  # noqa: BLE001: a peer's failure is a result, and the other cases go on
            row["error"] = repr(error)[:300]
        function = inputs = None
        if asked.device == "cuda":
            torch.cuda.empty_cache()
        print(f"{name:40s}", "  ".join(f"{peer} {row[peer]['ms']:.4f} ms (first {row[peer]['first_s']:.1f} s)"
                                       for peer in peers if peer in row), row.get("error", ""), flush=True)
        if asked.out:
            with open(asked.out, "w") as file:
                json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
