#!/usr/bin/env python3
"""report.py RESULTS: what tests/gpu/run measured, as the tables of docs/benchmarks/gpu.md; goals stand beside figures that miss them.

Reads bench-all.jsonl or else bench.jsonl, and torch.jsonl, torch-*.jsonl and cub.jsonl where they are. Ratios are a peer's time over Cinch's: above 1, Cinch is faster.
Goals are for an H200 and for 2^27 elements, but for those of calls at 2^16 and of lists.
"""
import json
import sys
from pathlib import Path

LARGE, SMALL = 1 << 27, 1 << 16
DENSE, RANDOM_SWEEP, SELECTING = 0.85, 0.65, 0.5  # shares of the floor
ENCODE_FLOOR = {"qsgd": RANDOM_SWEEP, "natural": RANDOM_SWEEP, **dict.fromkeys(("topk", "dgc", "graddrop", "threshold"), SELECTING)}
NEITHER_PACKS_NOR_REDUCES = {"fp16", "bf16", "natural"}
SMALL_ENCODE_MS, LIST_OF_ONE = 0.010, 2
MINMAX_MS = {"encode": 0.32, "decode": 0.17}
CALLS = ["encode", "decode"]


def read(results):
    lines = []
    own = results / "bench-all.jsonl"
    for path in [own if own.exists() else results / "bench.jsonl", *sorted(results.glob("torch*.jsonl")), results / "cub.jsonl"]:
        if path.exists():
            # An interrupted run may have left half a line.
            whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
            lines += [json.loads(line) for line in whole.splitlines()]
    return lines


def of_kind(lines, what):
    return [line for line in lines if line["what"] == what]


def at_least(figure, goal):
    return f"{figure:.2f}" + (f" (goal {goal})" if figure < goal else "")


def at_most(figure, goal, text):
    return text + (f" (goal {goal})" if figure > goal else "")


def label(line):
    return " ".join([f"`{line['program']}`", *(f"{name}={value:g}" for name, value in line["settings"])])


def is_large(line):
    return line["elements"] == LARGE


def floor_share(line):
    goal = ENCODE_FLOOR.get(line["program"], DENSE) if line["call"] == "encode" else DENSE
    return at_least(line["of_floor"], goal if is_large(line) else 0)


def milliseconds(line):
    text = f"{line['ms']:.4f}"
    if line["elements"] == SMALL and line["call"] == "encode":
        return at_most(line["ms"], SMALL_ENCODE_MS, text)
    if is_large(line) and line["program"] == "minmax":
        goal = MINMAX_MS[line["call"]]
        return at_most(line["ms"], goal, text)
    return text


def peer_ratio(line, peers, name):
    found = peers.get((name, line["program"], line["call"], line["elements"]))
    if found is None:
        return "-"
    goal = 0
    if name == "torch.compile" and is_large(line):
        goal = 0.95 if line["program"] in NEITHER_PACKS_NOR_REDUCES else 2
    return at_least(found["ms"] / line["ms"], goal) + ("" if found["graph"] else " (no graph)")


def calls_table(calls, peers):
    own = {name for name, program, call, _ in peers if any((program, call) == (line["program"], line["call"]) for line in calls)}
    names = sorted(own, key=lambda name: (not name.startswith("torch"), name))
    heads = ["program", "call", "ms", "of the floor", "floor, sweeps and MB", "MB moved", "GB/s", "kernels", *(f"{name} / Cinch" for name in names)]
    rows = ["| " + " | ".join(heads) + " |", "| " + " | ".join(["---"] * len(heads)) + " |"]
    for line in calls:
        cells = [label(line), line["call"], milliseconds(line), floor_share(line), f"{line['floor_sweeps']}, {line['floor_bytes'] / 1e6:.2f}",
                 f"{line['moved_bytes'] / 1e6:.2f}", f"{line['moved_gb_per_s']:.0f}", str(line["launches"]),
                 *(peer_ratio(line, peers, name) for name in names)]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def size_section(lines, peers, elements):
    calls = [line for line in of_kind(lines, "call") if line["elements"] == elements]
    order = {line["program"]: i for i, line in reversed(list(enumerate(calls)))}
    calls.sort(key=lambda line: (order[line["program"]], CALLS.index(line["call"])))
    plain = [f"{line['loop']} {line['gb_per_s']:.0f} GB/s" for line in of_kind(lines, "plain") if line["elements"] == elements]
    text = [f"## {elements} elements", "", "Plain loops: " + ", ".join(plain) + "." if plain else "", ""]
    alone = [f"{name} {line['ms']:.4f} ms" for (name, program, _, n), line in sorted(peers.items()) if program == "-" and n == elements]
    if alone:
        text += ["Beside no program: " + ", ".join(alone) + ".", ""]
    return text + calls_table(calls, peers) + [""]


def list_section(lines):
    text = []
    for line in of_kind(lines, "list"):
        share = at_most(line["of_one"], LIST_OF_ONE, f"{line['of_one']:.2f}")
        text.append(f"- `{line['program']}` {line['call']} of {line['tensors']} tensors, {line['elements']} elements: {line['ms']:.4f} ms, "
                    f"{share} of the time of one tensor of that size ({line['one_ms']:.4f} ms)")
    return ["## The tensors of BERT-large", "", *text, ""] if text else []


def training_section(lines):
    training = of_kind(lines, "training")
    rows = [f"| {line['contender']} | {line['transport']} | {line['ms']:.2f} | {line['ratio']:.2f} |" for line in training if "contender" in line]
    same = [f"{line['program']} ({line['check']}, {line['transport']})" for line in training if "check" in line]
    heads = ["| what | over | ms a step | DDP / it |", "| --- | --- | --- | --- |"]
    return ["## Training with PyTorch", "", f"The same bits: {', '.join(same) or 'none'}.", "", *heads, *rows, ""] if training else []


def main():
    results = Path(sys.argv[1])
    lines = read(results)
    peers = {(line["peer"], line["program"], line["call"], line["elements"]): line for line in of_kind(lines, "peer")}
    text = ["- " + ", ".join(f"{name} {value}" for name, value in line.items() if name != "what") for line in of_kind(lines, "machine")]
    text.append("")
    for elements in sorted({line["elements"] for line in of_kind(lines, "call")}, reverse=True):
        text += size_section(lines, peers, elements)
    text += list_section(lines) + training_section(lines)
    for what in ("skipped", "failed"):
        text += [f"- {what}: {line['program']} of {line['elements']} elements: {line['why']}" for line in of_kind(lines, what)]
    print("\n".join(text))


main()
