#!/usr/bin/env python3
"""Times PyTorch on the graphs that `tenon sweep -o SWEEP.json` drew, each as the function that its operators spell.

    python3 bench/sweep_peers.py SWEEP.json [--peers eager,compile] [--out FILE.json] [--count N] [--budget SECONDS]
    python3 bench/sweep_peers.py SWEEP.json --source [--only INDEX]
    python3 bench/sweep_peers.py SWEEP.json --compare FILE.json

A peer is measured as bench/peers.py does it. The file has under the graph's name an entry for each peer: its times, or
under "error" why there are none. Graphs are taken in turns from all classes, so that a budget cuts none off. --source
prints the functions (bench/sweep_torch.py), and --compare joins both files: neither needs PyTorch.
"""
import argparse
import json
import math
import sys
import time

from sweep_torch import DTYPES, index_limits, source_of


def in_turns(rows):
    """One row of each class after another."""
    classes = {}
    for row in rows:
        classes.setdefault(row["class"], []).append(row)
    longest = max(map(len, classes.values()), default=0)
    return [some[i] for i in range(longest) for some in classes.values() if i < len(some)]


def made(torch, graph, device):
    """The function and its arguments: data of the kind that `tenon bench` makes."""
    scope = {"torch": torch, "F": torch.nn.functional}
    exec(source_of(graph), scope)
    limits, arguments = index_limits(graph), []
    for entry in graph["inputs"]:
        dtype, shape = getattr(torch, DTYPES[entry["dtype"]]), entry["shape"]
        if entry["dtype"] == "bool":
            arguments.append(torch.rand(shape, device=device) < 0.5)
        elif dtype.is_floating_point:
            wide = torch.float32 if dtype.itemsize == 1 else dtype
            arguments.append(torch.randn(shape, device=device, dtype=wide).to(dtype))
        else:
            arguments.append(torch.randint(limits.get(entry["name"], 10), shape, device=device, dtype=dtype))
    return scope[graph["name"]], arguments


def measured(peer, graph, asked):
    import torch
    from peers import measure
    function, arguments = made(torch, graph, asked.device)
    try:
        return measure(peer, function, arguments, asked.device, asked.seconds)
    finally:
        del arguments
        if asked.device == "cuda":
            torch.cuda.empty_cache()


def run(rows, asked):
    from peers import attempt, versions, written
    stop = time.monotonic() + asked.budget
    document = versions(asked.device) | {"cases": {}}
    for row in in_turns(rows)[:asked.count]:
        graph, entries = row["graph"], {}
        for peer in asked.peers.split(","):
            if time.monotonic() > stop:
                break
            entries[peer] = attempt(lambda peer=peer: measured(peer, graph, asked))
        if not entries:
            break
        document["cases"][graph["name"]] = entries
        print(f"{graph['name']:24s} {row['class']:14s} {row['ms']:.4f} ms", "  ".join(
            f"{peer} {entry['ms']:.4f} ms" if "ms" in entry else f"{peer}: {entry['error']}"
            for peer, entry in entries.items()), flush=True)
        if asked.out:
            written(document, asked.out)


def compare(rows, document):
    """For each peer how its times relate to Tenon's, in all and by class, and the graphs where Tenon is slowest."""
    ratios = {}
    for row in rows:
        for peer, entry in document["cases"].get(row["graph"]["name"], {}).items():
            if "ms" in entry:
                ratios.setdefault(peer, []).append((entry["ms"] / row["ms"], row["class"], row["graph"]["name"]))
    print(f"{'time of a peer over Tenon':28s} {'graphs':>6s} {'mean':>6s} {'median':>6s} {'worst':>6s} {'below 1':>7s}")
    for peer, found in ratios.items():
        for name in ["all", *dict.fromkeys(row["class"] for row in rows)]:
            some = sorted(ratio for ratio, of_class, _ in found if name in ("all", of_class))
            if some:
                mean = math.exp(sum(map(math.log, some)) / len(some))
                print(f"{peer + ', ' + name:28s} {len(some):6d} {mean:6.2f} {some[len(some) // 2]:6.2f} {some[0]:6.2f} "
                      f"{sum(ratio < 1 for ratio in some):7d}")
        for ratio, of_class, name in sorted(found)[:10]:
            print(f"  {ratio:6.2f}  {of_class:14s} {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", metavar="SWEEP.json")
    parser.add_argument("--peers", default="eager,compile", help="of those of bench/peers.py")
    parser.add_argument("--out", help="JSON file")
    parser.add_argument("--count", type=int, help="graphs (default: all)")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no measurement begins")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each measurement")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--source", action="store_true", help="print the functions")
    parser.add_argument("--only", type=int, help="the graph of this index alone")
    parser.add_argument("--compare", metavar="FILE.json", help="what --out wrote, beside the sweep")
    asked = parser.parse_args()
    with open(asked.sweep) as file:
        rows = [row for row in json.load(file)["graphs"] if asked.only in (None, row["index"])]
    if asked.source:
        for row in rows:
            text = source_of(row["graph"])
            compile(text, row["graph"]["name"], "exec")
            print(text)
        return
    rows = [row for row in rows if "ms" in row]
    if asked.compare:
        with open(asked.compare) as file:
            return compare(rows, json.load(file))
    return run(rows, asked)


if __name__ == "__main__":
    sys.exit(main())
