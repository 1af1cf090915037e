#!/usr/bin/env python3
"""Products and attention drawn at random, beside PyTorch: how Tenon stands on shapes that nobody chose.

    python3 bench/random_peers.py TENON FOLDER [--kinds products,products_f32,attention] [--count 60] [--seed N]
                                  [--seconds 0.03] [--budget SECONDS] [--write]

TENON is the `tenon` program. FOLDER gets the graphs (KIND_SEED.tn, one seed each) and times.json. The peer is what PyTorch
calls for the same operands as they lie: cuBLAS for products, of f32 without tf32; for attention the fastest of the libraries behind
scaled_dot_product_attention. Both are timed as bench/peers.py does it, a few graphs of the one after the same of the other.
The tables have the ratio, peer's median over Tenon's, by class and for the slowest. --write only writes the graphs, and
needs neither a GPU nor PyTorch. Nothing is begun after the budget.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

EACH = 6  # graphs of one process


def extent(draw, least, most, step=64):
    """Log-uniform; a third of them are any number, the others divide by a step."""
    size = math.exp(draw.uniform(math.log(least), math.log(most)))
    if draw.random() < 1 / 3:
        return max(least, round(size))
    return max(least, round(size / step) * step) if size >= step else max(least, round(size / 8) * 8)


def until(drawn, allowed):
    while not allowed(shape := drawn()):
        pass
    return shape


def product_shape(draw, kind):
    """batch, m, n, k. Each operand and the result have at least 1 and at most 2^29 elements."""
    if kind == "general":
        return until(lambda: (1, extent(draw, 33, 16384), extent(draw, 33, 16384), extent(draw, 64, 16384)),
                     lambda s: 2**28 <= s[1] * s[2] * s[3] <= 2**38)
    if kind == "few rows":
        return until(lambda: (1, draw.choice((1, 2, 4, 8, 16, 32, draw.randint(1, 64))), extent(draw, 512, 32768),
                              extent(draw, 512, 32768)), lambda s: 2**22 <= s[2] * s[3] <= 2**28)
    if kind == "few columns":
        _, n, m, k = product_shape(draw, "few rows")
        return 1, m, n, k
    if kind == "deep":
        return until(lambda: (1, extent(draw, 16, 768), extent(draw, 16, 768), extent(draw, 8192, 524288)),
                     lambda s: 2**28 <= s[1] * s[2] * s[3] <= 2**37)
    if kind == "batched":
        return until(lambda: (extent(draw, 2, 512, 8), *(extent(draw, 16, 2048) for _ in range(3))),
                     lambda s: 2**27 <= math.prod(s) <= 2**37 and s[0] * s[1] * s[2] <= 2**28)
    assert kind == "shallow"
    return until(lambda: (1, extent(draw, 512, 32768), extent(draw, 512, 32768), extent(draw, 8, 512, 8)),
                 lambda s: 2**22 <= s[1] * s[2] <= 2**28)


DTYPES = {"bf16": 2, "f16": 2, "f32": 4}  # bytes


def product(seed, name="product", dtypes=("bf16", "bf16", "bf16", "f16")):
    draw = random.Random(seed)
    kind = draw.choice(("general", "general", "general", "few rows", "few columns", "deep", "batched", "shallow"))
    batch, m, n, k = product_shape(draw, kind)
    dtype = draw.choice(dtypes)
    ahead = f"{batch}, " if batch > 1 else ""
    perm = ", perm=[0, 2, 1]" if batch > 1 else ""

    def matrix(name, rows, columns):
        turned = draw.random() < 0.5
        shape = (columns, rows) if turned else (rows, columns)
        stored = ([batch] if batch > 1 else []) + list(shape)
        return stored, turned, f"transpose({name}{perm})" if turned else name

    (x, x_turned, a), (w, w_turned, b) = matrix("x", m, k), matrix("w", k, n)
    biased = batch == 1 and draw.random() < 0.25
    bias = f", bias: {dtype}[{n}]" if biased else ""
    y = f"matmul({a}, {b})"
    text = (f"graph {name}_{seed}(x: {dtype}{x}, w: {dtype}{w}{bias}) {{\n"
            f"  y = {f'add({y}, bias)' if biased else y}\n  return y\n}}\n")
    layout = ("T" if x_turned else "N") + ("T" if w_turned else "N")

    def made(torch):
        of = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
        operands = [torch.randn(shape, device="cuda", dtype=of) for shape in (x, w, *([[n]] if biased else []))]

        def call(x, w, bias=None):
            x, w = x.mT if x_turned else x, w.mT if w_turned else w
            return torch.addmm(bias, x, w) if biased else torch.matmul(x, w)
        return [call], operands

    what = f"{dtype} {ahead}{m} x {n} x {k} {layout}{' + bias' if biased else ''}"
    return {"class": kind, "what": what, "text": f"# {what}\n{text}", "made": made,
            "work": 2 * batch * m * n * k, "bytes": DTYPES[dtype] * batch * (m * k + k * n + m * n)}


def product_f32(seed):
    return product(seed, "f32product", ("f32",))


def attention(seed):
    draw = random.Random(seed)
    kind = draw.choice(("full", "causal", "causal", "across", "decode"))
    d = draw.choice((64, 128, 64, 128, 32, 40, 72, 80, 96, 112, 160, 192, 256))
    group = draw.choice((1, 1, 2, 4, 8))
    dtype = draw.choice(("bf16", "bf16", "bf16", "f16"))

    def drawn():
        keys = extent(draw, 64, 32768) if kind == "decode" else extent(draw, 64, 16384)
        queries = {"decode": 1, "across": extent(draw, 64, 8192)}.get(kind, keys)
        return draw.choice((1, 2, 3, 4, 8, 16, 32, 64)), group * draw.choice((1, 2, 4, 8, 12, 16)), queries, keys

    def allowed(shape):
        b, h, queries, keys = shape
        if kind == "decode":
            return 2**22 <= b * h // group * keys * d <= 2**28
        return 2**31 <= b * h * queries * keys * d <= 2**38 and b * h * max(queries, keys) * d <= 2**28

    b, h, queries, keys = until(drawn, allowed)
    q, kv = [b, h, queries, d], [b, h // group, keys, d]
    causal = kind == "causal"
    text = (f"graph attention_{seed}(q: {dtype}{q}, k: {dtype}{kv}, v: {dtype}{kv}) {{\n"
            f"  y = attention(q, k, v{', causal=true' if causal else ''})\n  return y\n}}\n")

    def made(torch):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        of = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
        operands = [torch.randn(shape, device="cuda", dtype=of) for shape in (q, kv, kv)]

        def by(backends):
            def call(q, k, v):
                with sdpa_kernel(backends):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                            enable_gqa=group > 1)
            return call
        return [by([SDPBackend.CUDNN_ATTENTION]), by([SDPBackend.FLASH_ATTENTION])], operands

    what = f"{dtype} {b} x {h}{f':{h // group}' if group > 1 else ''} x {queries} x {keys} x {d} {kind}"
    work = 4 * b * h * queries * keys * d // (2 if causal else 1)
    return {"class": kind, "what": what, "text": f"# {what}\n{text}", "made": made,
            "work": work, "bytes": 2 * (2 * b * h * queries * d + 2 * b * h // group * keys * d)}


KINDS = {"products": ("product", product), "products_f32": ("f32product", product_f32),
         "attention": ("attention", attention)}


MOST_SEEDS = 10000  # for the graphs of one kind


def tenon_times(tenon, files, folder, seconds):
    """{graph: ms, or why there is none}."""
    out = os.path.join(folder, "part.json")
    run = subprocess.run([tenon, "bench", *files, "--target", "cuda", "--seconds", str(seconds), "-o", out],
                         capture_output=True, text=True)
    if not os.path.exists(out):
        return {os.path.basename(file)[:-3]: run.stderr.strip()[-300:] for file in files}
    with open(out) as file:
        cases = json.load(file)["cases"]
    os.remove(out)
    return {case["graph"]: case.get("ms", case.get("error")) for case in cases}


def peer_time(graph, seconds):
    """Of the fastest library, in ms; None where none takes the operands."""
    import torch
    from peers import time_on_gpu
    calls, operands = graph["made"](torch)
    best = None
    for call in calls:
        try:
            call(*operands)
        except RuntimeError:
            continue
        median = time_on_gpu(lambda call=call: call(*operands), seconds)[0]
        best = median if best is None else min(best, median)
    del operands
    torch.cuda.empty_cache()
    return best


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def show(rows):
    timed = [row for row in rows if isinstance(row["tenon_ms"], float) and row["peer_ms"]]
    print("| class | graphs | ratio, geometric mean | median | worst | >= 0.95 |\n|---|---|---|---|---|---|")
    for name in ["all", *sorted({row["class"] for row in timed})]:
        ratios = sorted(row["ratio"] for row in timed if name in ("all", row["class"]))
        if ratios:
            print(f"| {name} | {len(ratios)} | {geometric(ratios):.3f} | {statistics.median(ratios):.2f} | {ratios[0]:.2f} | "
                  f"{100 * sum(ratio >= 0.95 for ratio in ratios) / len(ratios):.0f} % |")
    print("\n| graph | what | Tenon, ms | peer, ms | ratio | TFLOP/s | GB/s |\n|---|---|---|---|---|---|---|")
    for row in sorted(timed, key=lambda row: row["ratio"]):
        print(f"| {row['graph']} | {row['class']}: {row['what']} | {row['tenon_ms']:.4f} | {row['peer_ms']:.4f} | "
              f"{row['ratio']:.2f} | {row['work'] / row['tenon_ms'] / 1e9:.0f} | {row['bytes'] / row['tenon_ms'] / 1e6:.0f} |")
    for row in rows:
        if row not in timed:
            print(f"{row['graph']} ({row['what']}): Tenon {row['tenon_ms']}, peer {row['peer_ms']}")


def drawn_of(kind, seed, classes):
    """Graphs of seeds from `seed` on, those of other classes left out."""
    name, draw = KINDS[kind]
    for at in range(seed, seed + MOST_SEEDS):
        graph = draw(at) | {"graph": f"{name}_{at}"}
        if not classes or graph["class"] in classes:
            yield graph
    sys.exit(f"--classes: no {kind} is drawn of {', '.join(classes)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--kinds", default="products,attention")
    parser.add_argument("--count", type=int, default=60, help="of each kind")
    parser.add_argument("--classes", help="only of these, as 'decode,deep': the seeds of others are passed over")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=0.03, help="for each measurement")
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--write", action="store_true", help="only write the graphs")
    asked = parser.parse_args()
    if unknown := set(asked.kinds.split(",")) - set(KINDS):
        sys.exit(f"--kinds: no such kind: {', '.join(sorted(unknown))}")
    stop = time.monotonic() + asked.budget
    os.makedirs(asked.folder, exist_ok=True)
    graphs = []
    classes = asked.classes and asked.classes.split(",")
    drawn = {kind: drawn_of(kind, asked.seed, classes) for kind in asked.kinds.split(",")}
    for _ in range(asked.count):  # one of each kind after another, so that a budget cuts none off
        for kind in drawn:
            graph = next(drawn[kind])
            graph["file"] = os.path.join(asked.folder, graph["graph"] + ".tn")
            with open(graph["file"], "w") as file:
                file.write(graph["text"])
            graphs.append(graph)
    if asked.write:
        return
    rows = []
    for at in range(0, len(graphs), EACH):
        if time.monotonic() > stop:
            print(f"{len(graphs) - at} graphs were not begun in time")
            break
        some = graphs[at:at + EACH]
        times = tenon_times(asked.tenon, [graph["file"] for graph in some], asked.folder, asked.seconds)
        for graph in some:
            row = {key: graph[key] for key in ("graph", "class", "what", "work", "bytes")}
            row |= {"tenon_ms": times.get(graph["graph"], "no time"), "peer_ms": peer_time(graph, asked.seconds)}
            if isinstance(row["tenon_ms"], float) and row["peer_ms"]:
                row["ratio"] = row["peer_ms"] / row["tenon_ms"]
            rows.append(row)
        with open(os.path.join(asked.folder, "times.json"), "w") as file:
            json.dump(rows, file, indent=1)
    print(f"seed {asked.seed}, {len(rows)} graphs")
    for kind in asked.kinds.split(","):
        some = [row for row in rows if row["graph"].startswith(KINDS[kind][0])]
        print(f"\n{kind}\n")
        show(some)


if __name__ == "__main__":
    main()
