#!/usr/bin/env python3
"""Joins the times of `tenon bench -o` and of peers.py into tables (markdown), a bar chart and a roofline plot (SVG).

    python3 bench/compare.py TENON.json [PEERS.json ...] [-o TABLE.md] [--svg CHART.svg] [--roofline ROOFLINE.svg]

A peer that several files time has several runs. Its time is the fastest run's, its drift the slowest over the fastest.
The ratio is the best peer's time over Tenon's: above 1 Tenon is faster. Where that peer drifted by more than 3 % the case
is flagged: the device changed meanwhile, and the ratio says no more than that. A share of copy is the time of a device
copy that moves as many bytes, measured in the same run, over the time of the case.
"""
import argparse
import json
import math
import os
import re
import sys

DRIFT_LIMIT = 3  # per cent
FACTS = ("torch", "cuda", "cublas", "cudnn", "triton")
PEERS = ("eager", "compile", "max", "cudnn", "flash", "flex")
# Where the share of a copy says something.
BY_BYTES = {"Memory-bound", "Products whose time is that of reading", "Attention: decoding"}
CLASSES = (  # a case is of the first class whose expression its name begins with
    ("Models", r"(gpt2|llama)_"),
    ("Attention: forward", r"attention_(full|causal|gqa|by_hand)_"),
    ("Attention: changed scores", r"attention_(alibi|softcap|relative_bias|bias|window\d+|document|dropout)_"),
    ("Attention: decoding", r"attention_decode_"),
    ("Memory-bound", r"(?!matmul_)"),
    ("Products", r"matmul_(nn|nt|tn|tt|batched|vocabulary)_"),
    ("Products with epilogues", r"matmul_(bias_gelu|residual|swiglu|mlp16|gpt2)_"),
    ("Products whose time is that of reading", r"matmul_(decode|int8|int4|vector)_"),
    ("Chains that reduce behind a product",
     r"matmul_(clamp_logsumexp_mish|sigmoid_sum|groupnorm_hardtanh|gelu_softmax|max_subtract_gelu|batchnorm)_"),
    ("Other products", ""),
)


def load(tenon_path, peers_paths):
    """Tenon's document; {fact: values} of the peers; rows of (Tenon's case, {peer: times}) in the order of Tenon's file;
    and [(case, who, why)] of the times that are missing."""
    with open(tenon_path) as file:
        tenon = json.load(file)
    runs, facts, missing, asked = {}, {}, [], set()
    for path in peers_paths:
        with open(path) as file:
            document = json.load(file)
        for fact in ("device", *FACTS):
            if fact in document:
                facts.setdefault(fact, set()).add(document[fact])
        asked |= set(document["cases"])
        for name, row in document["cases"].items():
            for peer, times in row.items():
                if "ms" in times:
                    runs.setdefault(name, {}).setdefault(peer, []).append(times["ms"])
                elif "not_applicable" not in times:
                    missing.append((name, f"{peer} in {os.path.basename(path)}", times["error"]))
    rows = []
    for case in tenon["cases"]:
        name = case["graph"]
        if "error" in case:
            missing.append((name, "Tenon", case["error"]))
        if peers_paths and name not in asked:
            missing.append((name, "every peer", "not in the files of the peers"))
        rows.append((case, {peer: {"ms": min(times), "drift": 100 * (max(times) / min(times) - 1) if times[1:] else None}
                            for peer, times in runs.get(name, {}).items()}))
    timed = {case["graph"] for case in tenon["cases"]}
    missing += [(name, "Tenon", "not in its file") for name in sorted(asked - timed)]
    return tenon, facts, rows, missing


def best_peer(peers):
    return min(peers, key=lambda name: peers[name]["ms"]) if peers else None


def ratio(case, peers):
    return peers[best_peer(peers)]["ms"] / case["ms"] if peers and "ms" in case else None


def drift(peers):
    """Of the best peer, in per cent; None where it ran once, or no peer did."""
    return peers[best_peer(peers)]["drift"] if peers else None


def flagged(peers):
    return (drift(peers) or 0) > DRIFT_LIMIT


def milliseconds(value):
    return f"{value:.4f}" if value < 1 else f"{value:.3f}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def one_line(text):
    """As it may stand in a cell or an item of a list."""
    return " ".join(text.split()).replace("|", "\\|")


def notes(case, peers):
    if "error" in case:
        return "failed: " + one_line(case["error"])
    found = [f"{case['unwritten']} elements unwritten"] * (case["unwritten"] > 0)
    found += ["differs from the interpreter"] * (case.get("check") == "differs")
    found += [f"drift above {DRIFT_LIMIT} %"] * flagged(peers)
    return ", ".join(found)


def table(rows):
    names = sorted({name for _, peers in rows for name in peers}, key=PEERS.index)
    contracts = any("tflop_s" in case for case, _ in rows)
    heads = ["case", "kernels", "ms", "±%", "GB/s"] + ["TFLOP/s"] * contracts + ["of copy"]
    heads += [f"{name} ms" for name in names] + ["best peer", "ratio", "drift %", ""]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for case, peers in rows:
        cells = [case["graph"]]
        if "error" in case:
            cells += ["-"] * (5 + contracts)
        else:
            spread = 50 * (case["p90_ms"] - case["p10_ms"]) / case["ms"]
            cells += [str(case["kernels"]), milliseconds(case["ms"]), f"{spread:.1f}", f"{case['gb_s']:.0f}"]
            if contracts:
                cells.append(f"{case['tflop_s']:.0f}" if "tflop_s" in case else "-")
            cells.append(f"{case['copy_share']:.3f}")
        cells += [milliseconds(peers[name]["ms"]) if name in peers else "-" for name in names]
        faster, moved = ratio(case, peers), drift(peers)
        cells += [best_peer(peers) or "-", f"{faster:.2f}" if faster else "-", "-" if moved is None else f"{moved:.1f}",
                  notes(case, peers)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def summary(rows, by_bytes):
    compared = [(case, peers) for case, peers in rows if ratio(case, peers)]
    ratios = [ratio(case, peers) for case, peers in compared]
    shares = [case["copy_share"] for case, _ in rows if case.get("copy_share") and by_bytes]
    lines = []
    if ratios:
        lines.append(f"Ratio to the best peer over {len(ratios)} of {len(rows)} cases: geometric mean "
                     f"{geometric_mean(ratios):.2f}, at least 1.0 in {sum(r >= 1 for r in ratios)}, "
                     f"worst {min(ratios):.2f}; "
                     f"drift above {DRIFT_LIMIT} % in {sum(flagged(peers) for _, peers in compared)}.\n")
    if shares:
        lines.append(f"Share of a copy over {len(shares)} cases: geometric mean {geometric_mean(shares):.2f}, "
                     f"worst {min(shares):.2f}.\n")
    return "".join(lines)


def by_class(rows):
    """[(title, rows)] of the classes that have cases."""
    classes = {title: [] for title, _ in CLASSES}
    for row in rows:
        classes[next(title for title, begin in CLASSES if re.match(begin, row[0]["graph"]))].append(row)
    return [(title, of_class) for title, of_class in classes.items() if of_class]


def head(tenon, facts):
    """Device and versions, those of the peers as they reported them."""
    def values(fact):
        return " and ".join(sorted(facts[fact]))
    named = [f"{fact} {values(fact)}" for fact in FACTS if fact in facts]
    text = ", ".join([tenon["device"], f"Tenon {tenon['tenon']}"] + named)
    if facts.get("device", {tenon["device"]}) != {tenon["device"]}:
        text += f". The peers ran on another device: {values('device')}"
    return text + "\n"


def missing_times(missing):
    """A list of them, the cases of one reason together."""
    cases = {}
    for name, who, why in missing:
        cases.setdefault((who, one_line(why)), []).append(name)
    return "Not measured:\n\n" + "".join(f"- {who}, {why}: {', '.join(names)}\n"
                                          for (who, why), names in cases.items())


def report(tenon, facts, rows, missing):
    classes = by_class(rows)
    parts = [head(tenon, facts)]
    if len(classes) > 1:
        parts.append(summary(rows, False))
    for title, of_class in classes:
        parts += [f"## {title}\n"] * (len(classes) > 1) + [summary(of_class, title in BY_BYTES), table(of_class)]
    if missing:
        parts.append(missing_times(missing))
    return "\n".join(part for part in parts if part)


def chart(rows):
    """Share of copy bandwidth, a bar for Tenon and one for the best peer, for each case."""
    rows = [(case, peers) for case, peers in rows if case.get("copy_share")]
    label, width, bar, row_height, top = 300, 440, 8, 24, 40
    longest = max([case["copy_share"] * max(1, ratio_inverse(case, peers)) for case, peers in rows] + [1.05])
    scale = width / longest
    height = top + row_height * len(rows) + 24
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{label + width + 60}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{label + width + 60}" height="{height}" fill="white"/>',
             f'<text x="{label}" y="16">share of the bandwidth of a device copy</text>',
             f'<rect x="{label}" y="22" width="10" height="{bar}" fill="#1f6feb"/><text x="{label + 14}" y="30">Tenon</text>',
             f'<rect x="{label + 70}" y="22" width="10" height="{bar}" fill="#b0b7c0"/>'
             f'<text x="{label + 84}" y="30">best peer</text>']
    for i, (case, peers) in enumerate(rows):
        y = top + row_height * i
        parts.append(f'<text x="{label - 6}" y="{y + 12}" text-anchor="end">{case["graph"]}</text>')
        bars = [(case["copy_share"], "#1f6feb")]
        if peers:
            bars.append((case["copy_share"] * ratio_inverse(case, peers), "#b0b7c0"))
        for k, (share, colour) in enumerate(bars):
            parts.append(f'<rect x="{label}" y="{y + k * (bar + 1)}" width="{share * scale:.1f}" height="{bar}" '
                         f'fill="{colour}"/>')
        parts.append(f'<text x="{label + max(share for share, _ in bars) * scale + 4:.1f}" y="{y + 12}">'
                     f'{case["copy_share"]:.2f}</text>')
    x = label + scale
    parts.append(f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{height - 20}" stroke="black" '
                 f'stroke-dasharray="3 3"/><text x="{x:.1f}" y="{height - 6}" text-anchor="middle">copy</text>')
    return "\n".join(parts) + "\n</svg>\n"


def roofline(rows):
    """Instructions per second over instructions per unavoidable byte, both logarithmic, with the roofs of a copy's
    bandwidth and of the multiprocessors. The instructions are those that Tenon's planner counts; a peer's point has the
    same, so that the two differ in time only."""
    rows = [(case, peers) for case, peers in rows if case.get("copy_share") and case.get("instructions")]
    left, top, width, height = 70, 30, 560, 360
    if not rows:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    peak = max(case["gigaslots_s"] for case, _ in rows)
    bandwidth = sorted(case["bytes"] / case["copy_ms"] / 1e6 for case, _ in rows)[len(rows) // 2]  # GB/s
    x_range = (0.1, 64)
    y_range = (0.05 * bandwidth, 2 * peak)

    def place(x, y):
        across = math.log(x / x_range[0]) / math.log(x_range[1] / x_range[0])
        up = math.log(y / y_range[0]) / math.log(y_range[1] / y_range[0])
        return f"{left + width * min(max(across, 0), 1):.1f}", f"{top + height * (1 - min(max(up, 0), 1)):.1f}"

    def line(points, style):
        return f'<polyline points="{" ".join(",".join(place(*p)) for p in points)}" fill="none" {style}/>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{top + height + 50}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{left + width + 30}" height="{top + height + 50}" fill="white"/>',
             f'<text x="{left}" y="18">10⁹ instructions a second; roofs: a copy at {bandwidth:.0f} GB/s, {peak:.0f} '
             'G instructions/s</text>',
             f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#b0b7c0"/>']
    for exponent in range(-3, 7):
        x = 2.0 ** exponent
        at, floor = place(x, y_range[0])
        parts.append(f'<text x="{at}" y="{float(floor) + 14:.1f}" text-anchor="middle">{x:g}</text>')
    for exponent in range(2, 6):
        y = 10.0 ** exponent
        if y_range[0] <= y <= y_range[1]:
            at, height_of = place(x_range[0], y)
            parts.append(f'<text x="{float(at) - 6:.1f}" y="{float(height_of) + 4:.1f}" text-anchor="end">{y:.0f}</text>')
    ridge = peak / bandwidth
    roof = [(x_range[0], x_range[0] * bandwidth), (ridge, peak), (x_range[1], peak)]
    parts.append(line(roof, 'stroke="black" stroke-dasharray="4 3"'))
    for case, peers in rows:
        per_byte = case["instructions"] / case["bytes"]
        points = [(case["ms"], "#1f6feb", 3.5)]
        if peers:
            points.insert(0, (peers[best_peer(peers)]["ms"], "#b0b7c0", 3))
        for ms, colour, radius in points:
            x, y = place(per_byte, case["instructions"] / ms / 1e6)
            parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"><title>{case["graph"]}</title></circle>')
    x = left + width - 130
    for k, (name, colour) in enumerate((("Tenon", "#1f6feb"), ("best peer", "#b0b7c0"))):
        y = top + height - 34 + 16 * k
        parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/><text x="{x + 10}" y="{y + 4}">{name}</text>')
    parts.append(f'<text x="{left + width // 2}" y="{top + height + 36}" text-anchor="middle">instructions per byte that '
                 'cannot be avoided</text>')
    return "\n".join(parts) + "\n</svg>\n"


def ratio_inverse(case, peers):
    """Tenon's time over the best peer's: by how much the peer's bar is longer."""
    faster = ratio(case, peers)
    return 1 / faster if faster else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", metavar="TENON.json")
    parser.add_argument("peers", metavar="PEERS.json", nargs="*")
    parser.add_argument("-o", "--output", help="file of the table; standard output when absent")
    parser.add_argument("--svg", help="file of the bar chart")
    parser.add_argument("--roofline", help="file of the roofline plot")
    asked = parser.parse_args()
    tenon, facts, rows, missing = load(asked.tenon, asked.peers)
    text = report(tenon, facts, rows, missing)
    if asked.output:
        with open(asked.output, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    if asked.svg:
        with open(asked.svg, "w") as file:
            file.write(chart(rows))
    if asked.roofline:
        with open(asked.roofline, "w") as file:
            file.write(roofline(rows))


if __name__ == "__main__":
    main()
