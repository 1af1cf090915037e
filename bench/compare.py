#!/usr/bin/env python3
"""Joins the times of `tenon bench -o` and of peers.py into one table (markdown), a bar chart and a roofline plot (SVG).

    python3 bench/compare.py TENON.json [PEERS.json ...] [-o TABLE.md] [--svg CHART.svg] [--roofline ROOFLINE.svg]

The ratio is the best peer's time over Tenon's: above 1 Tenon is faster. A share of copy is the time of a device copy
that moves as many bytes, measured in the same run, over the time of the case.
"""
import argparse
import json
import math
import sys


def load(tenon_path, peers_paths):
    """Rows of (Tenon's case, {peer: case}) in the order of Tenon's file; peers of several files are joined."""
    with open(tenon_path) as file:
        tenon = json.load(file)
    measured, versions = {}, {}
    for path in peers_paths:
        with open(path) as file:
            peers = json.load(file)
        for name, row in peers.pop("cases").items():
            measured.setdefault(name, {}).update(row)
        versions |= peers
    rows = []
    for case in tenon["cases"]:
        row = measured.get(case["graph"], {})
        if "error" in row:
            case["peer_error"] = row["error"]
        rows.append((case, {name: times for name, times in row.items() if isinstance(times, dict)}))
    return tenon, versions, rows


def best_peer(peers):
    return min(peers, key=lambda name: peers[name]["ms"]) if peers else None


def ratio(case, peers):
    return peers[best_peer(peers)]["ms"] / case["ms"] if peers and "ms" in case else None


def milliseconds(value):
    return f"{value:.4f}" if value < 1 else f"{value:.3f}"


def note(case):
    if "error" in case:
        return "failed: " + case["error"]
    if case["unwritten"]:
        return f"{case['unwritten']} elements unwritten"
    if case.get("check") == "differs":
        return "differs from the interpreter"
    return "peer: " + case["peer_error"][:80] if "peer_error" in case else ""


def table(rows):
    names = sorted({name for _, peers in rows for name in peers}, key=["eager", "compile", "max"].index)
    contracts = any("tflop_s" in case for case, _ in rows)
    heads = ["case", "kernels", "ms", "±%", "GB/s"] + ["TFLOP/s"] * contracts + ["of copy"]
    heads += [f"{name} ms" for name in names] + ["best peer", "ratio", ""]
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
        faster = ratio(case, peers)
        cells += [best_peer(peers) or "-", f"{faster:.2f}" if faster else "-", note(case)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def summary(rows):
    ratios = [r for r in (ratio(case, peers) for case, peers in rows) if r]
    shares = [case["copy_share"] for case, _ in rows if case.get("copy_share")]
    lines = []
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"Ratio to the best peer over {len(ratios)} cases: geometric mean {mean:.2f}, "
                     f"at least 1.0 in {sum(r >= 1 for r in ratios)}, worst {min(ratios):.2f}.")
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        lines.append(f"Share of a copy over {len(shares)} cases: geometric mean {mean:.2f}, worst {min(shares):.2f}.")
    return "\n".join(lines) + "\n"


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
    tenon, peers, rows = load(asked.tenon, asked.peers)
    head = f"{tenon['device']}, Tenon {tenon['tenon']}"
    for key in ("torch", "triton"):
        head += f", {key} {peers[key]}" if key in peers else ""
    text = f"{head}\n\n{summary(rows)}\n{table(rows)}"
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
