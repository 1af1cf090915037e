#!/usr/bin/env python3
"""Times PyTorch on the benchmark cases: the peers of `tenon bench`, measured as it measures.

Peers: eager (a kernel for each operator, or a library's), compile (torch.compile: Inductor and Triton) and max
(torch.compile in max-autotune mode, without CUDA graphs). For attention also cudnn and flash (the backend that
scaled_dot_product_attention must take: cuDNN's, or FlashAttention-2) and flex (FlexAttention, compiled to Triton). Times
are medians of device events with the L2 cache written over before each run, as `tenon bench` does it; on the CPU, of the
host's clock.

    python3 bench/peers.py [--cases REGEX] [--peers eager,compile,max,cudnn,flash,flex] [--out FILE.json] [--budget SECONDS]

The file names the device and the libraries, and has a row for every case asked for and in it an entry for every peer:
its times, under "error" why there are none, or under "not_applicable" why the peer does not apply. It is written anew
around each measurement, so that a process that is stopped leaves what it measured.
"""
import argparse
import ctypes
import json
import os
import re
import sys
import time

import torch

from peer_cases import CASES, LIBRARIES


def with_backend(name):
    """Makes scaled_dot_product_attention take this backend, or fail."""
    def pin(function):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def pinned(*arguments):
            with sdpa_kernel(getattr(SDPBackend, name)):
                return function(*arguments)
        return pinned
    return pin


PEERS = {
    "eager": lambda function: function,
    "compile": lambda function: torch.compile(function, dynamic=False),
    "max": lambda function: torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False),
    "cudnn": with_backend("CUDNN_ATTENTION"),
    "flash": with_backend("FLASH_ATTENTION"),
    "flex": lambda function: torch.compile(function, dynamic=False),
}
FOR_SOME = {  # peers that time the cases which LIBRARIES names, and why they time no others
    "cudnn": "no attention, or scores that scaled_dot_product_attention does not change so",
    "flash": "no attention, or scores that FlashAttention does not change so",
    "flex": "no attention, or one whose scores no function of FlexAttention changes",
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


def dotted(number):
    """130200 is 13.2.0: how cuBLAS and, from 9 on, cuDNN count their versions."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def cublas_version():
    """Of the library that this process has loaded, whatever packages are installed."""
    try:
        library = ctypes.CDLL(f"libcublasLt.so.{torch.version.cuda.split('.')[0]}")
    except OSError:
        return "unknown"
    library.cublasLtGetVersion.restype = ctypes.c_size_t
    return dotted(library.cublasLtGetVersion())


def versions(device):
    found = {"torch": torch.__version__}
    if device == "cuda":
        import triton
        found |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cublas": cublas_version(),
                  "cudnn": dotted(torch.backends.cudnn.version()), "triton": triton.__version__}
    else:
        found["threads"] = torch.get_num_threads()
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=".", help="regular expression; all names that contain a match")
    parser.add_argument("--peers", default="eager,compile,cudnn,flash,flex", help="of " + ", ".join(PEERS))
    parser.add_argument("--out", help="JSON file")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no measurement begins")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each measurement")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    return parser.parse_args()


def attempt(function):
    """What the function returns, or why it did not: a peer's failure is a result, and the others go on."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def new_row(name, peers):
    """An entry for each peer: what stands there as long as it has no times."""
    return {peer: {"not_applicable": FOR_SOME[peer]} if peer in FOR_SOME and peer not in LIBRARIES.get(name, {})
            else {"error": "not begun in time"} for peer in peers}


def measure_case(name, peer, made, asked):
    function, arguments = made
    if peer in FOR_SOME:
        function = LIBRARIES[name][peer](*arguments)
    return measure(peer, function, arguments, asked.device, asked.seconds)


def time_case(name, row, asked, stop, write):
    """Fills the case's row, an entry for each peer. What is not begun in time keeps the reason that stands there."""
    peers = [peer for peer in row if "not_applicable" not in row[peer]]
    if time.monotonic() > stop or not peers:
        return
    torch.manual_seed(0)
    made = attempt(lambda: CASES[name](asked.device))
    for peer in peers:
        if isinstance(made, dict):
            row[peer] = made
        elif time.monotonic() <= stop:
            row[peer] = {"error": "the process ended meanwhile"}
            write()
            row[peer] = attempt(lambda peer=peer: measure_case(name, peer, made, asked))
        write()


def written(document, path):
    """Writes the document as one file that is whole at any time."""
    with open(path + ".part", "w") as file:
        json.dump(document, file, indent=1)
    os.replace(path + ".part", path)


def main():
    asked = arguments()
    stop = time.monotonic() + asked.budget
    peers = asked.peers.split(",")
    if unknown := set(peers) - set(PEERS):
        sys.exit(f"--peers: no such peer: {', '.join(sorted(unknown))}")
    document = versions(asked.device)
    print(document, flush=True)
    rows = {name: new_row(name, peers) for name in CASES if re.search(asked.cases, name)}
    document["cases"] = rows

    def write():
        if asked.out:
            written(document, asked.out)

    write()
    for name, row in rows.items():
        time_case(name, row, asked, stop, write)
        if asked.device == "cuda":
            torch.cuda.empty_cache()
        print(f"{name:40s}", "  ".join(f"{peer} {each['ms']:.4f} ms (first {each['first_s']:.1f} s)" if "ms" in each
                                       else f"{peer}: {each['error']}" for peer, each in row.items()
                                       if "not_applicable" not in each), flush=True)


if __name__ == "__main__":
    main()
