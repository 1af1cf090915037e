"""Random graphs through the `tenon` command, against NumPy: an oracle that shares no code with the interpreter.

    check.py TENON CASES [--count N] [--seed S] [--target cpu] [--keep FOLDER]
    check.py TENON CASES --operators

TENON is the command, CASES the program tenon_random_cases, which writes graphs and inputs to files. Every other graph
runs without fusion. A graph that differs is printed with its seed. --operators checks that each operator of the table
(`tenon ops`) is evaluated, or listed with a reason in composites.py. Exit code 77 without NumPy.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

try:
    import numpy as np
except ImportError:
    print("SKIPPED: no NumPy")
    sys.exit(77)

from composites import UNSUPPORTED
from evaluate import covered
from formats import from_npy
from judge import judge

MOST_UNDECIDED = 0.06  # of a graph's elements, in the mean


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexited with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check_operators(tenon):
    names = {row["name"] for row in json.loads(output_of(tenon, "ops", "--json"))}
    known = covered() | set(UNSUPPORTED) | {"input"}
    for name in sorted(names - known):
        print(f"operator {name} is neither evaluated nor listed in UNSUPPORTED")
    for name in sorted(known - names):
        print(f"operator {name} is not one of the table's")
    for name in sorted(set(UNSUPPORTED) & covered()):
        print(f"operator {name} is evaluated and listed in UNSUPPORTED")
    print(f"{len(names & covered())} operators evaluated, {len(UNSUPPORTED)} not:",
          "; ".join(f"{name} ({reason})" for name, reason in UNSUPPORTED.items()))
    return names == known and not set(UNSUPPORTED) & covered()


def check_case(tenon, folder, target, fuse):
    """What is wrong with the results of the graph in `folder`; elements, and undecided ones."""
    graph = json.loads(output_of(tenon, "dump", folder / "graph.tn", "--emit", "json"))
    symbols = json.loads((folder / "bindings.json").read_text())
    inputs = {entry["name"]: from_npy(np.load(folder / f"{entry['name']}.npy"), entry["dtype"])
              for entry in graph["inputs"]}
    command = [tenon, "run", folder / "graph.tn", "--target", target] + ([] if fuse else ["--no-fuse"])
    for name in inputs:
        command += ["--input", f"{name}={folder / name}.npy"]
    for name, value in symbols.items():
        command += ["--dim", f"{name}={value}"]
    for output in graph["outputs"]:
        command += ["--output", f"{output['name']}={folder}/out_{output['name']}.npy"]
    output_of(*command)
    dtypes = types_of(graph)
    actual = {output["name"]: from_npy(np.load(folder / f"out_{output['name']}.npy"), dtypes[output["value"]])
              for output in graph["outputs"]}
    return judge(graph, inputs, symbols, actual)


def types_of(graph):
    entries = graph["inputs"] + [result for node in graph["nodes"] for result in node["results"]]
    return {entry["name"]: entry["dtype"] for entry in entries}


def check_graphs(arguments, folder):
    output_of(arguments.cases, "write", folder, str(arguments.seed), str(arguments.count))
    findings, total, undecided = 0, 0, 0.0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        case = folder / str(seed)
        try:
            wrong, elements, left_open = check_case(arguments.tenon, case, arguments.target, seed % 2 == 0)
        except Exception:  # of the command, or of this program: a finding with its graph
            wrong, elements, left_open = [traceback.format_exc(limit=-3)], 0, 0
        total += elements
        undecided += left_open / elements if elements else 0.0
        if wrong:
            findings += 1
            print(f"seed {seed}{'' if seed % 2 == 0 else ', --no-fuse'}:", *wrong, sep="\n  ")
            print((case / "graph.tn").read_text())
    share = undecided / max(arguments.count, 1)
    print(f"{arguments.count} graphs from seed {arguments.seed} with {total} elements against NumPy {np.__version__}: "
          f"{findings} findings, {100 * share:.2f} % of a graph's elements undecided")
    return findings == 0 and share <= MOST_UNDECIDED + 2 / max(arguments.count, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=pathlib.Path)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TENON_RANDOM_SEED", time.time_ns() // 1000 % 10**9)))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--keep", type=pathlib.Path, help="the folder of the cases, which stay there")
    parser.add_argument("--operators", action="store_true")
    arguments = parser.parse_args()
    if arguments.operators:
        return check_operators(arguments.tenon)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        return check_graphs(arguments, arguments.keep)
    with tempfile.TemporaryDirectory() as folder:
        return check_graphs(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
