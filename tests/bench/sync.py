#!/usr/bin/env python3
"""Synchronisation on loopback, beside what it could be at best: prints tables, and a JSON line for each figure.

    sync.py CINCH [--part overlap|choice|copy …] [--sample N] [--steps N] [--lines FILE]

overlap: a step in pieces beside its longest lane and one piece. choice: the plan that `--plan auto` takes beside the best of all that it could have taken, each
measured, over a grid of compressors, sizes, bandwidths and ranks (--sample takes N of its points). copy: ranks without a link's shape beside plain copying by as many
threads as the machine has. CINCH is bin/cinch of a build folder. Nothing fails on time; the goals stand beside the figures. Nothing else should run.
"""
import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import threading
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
GRADIENT = ROOT / "examples" / "data" / "resnet-step40.npy"
MIB = 1 << 20
LATENCY_US = 50
COMPUTES = ("clear", "encode", "decode", "decode_add", "add", "finish", "spread", "join")
# Limits for repeated measurements: at most this many times the best so far, and how often.
ROUNDS = ((1.5, 2), (1.15, 5))
GRID = {"program": ["onebit", "qsgd", "dgc"], "mib": [1, 16], "mbit": [100, 1000, 10000], "ranks": [2, 4, 8]}


def cinch(options, *arguments):
    command = [options.cinch, *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def sync(options, point, *arguments, program=None):
    return cinch(options, "sync", program or point["program"], "--input", GRADIENT, "--repeat-to", point["mib"] * MIB, "--ranks", point["ranks"],
                 "--bandwidth", point["mbit"], "--latency", LATENCY_US, "--timeout", 600, *arguments)


def emit(options, part, figures):
    if options.lines:
        with open(options.lines, "a") as lines:
            lines.write(json.dumps({"part": part, **figures}) + "\n")


def print_table(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()


def overlap_of(report, point):
    """The longest lane, and what one piece takes that nothing overlaps: milliseconds."""
    compute = sum(phase["ms"] for phase in report["phases"] if phase["phase"] in COMPUTES)
    exchanges = [phase for phase in report["phases"] if phase["phase"] not in COMPUTES]
    link = report["bytes_sent"] * 8 / point["mbit"] / 1e3
    pieces = max(phase["tasks"] for phase in exchanges)
    one = (compute + link) / pieces + len(exchanges) * LATENCY_US / 1e3
    return compute, link, pieces, one


def overlap(options):
    rows = []
    for program, mbit, piece in itertools.product(["onebit", "qsgd", "dgc"], [100, 1000], [4 * MIB]):
        point = {"program": program, "mib": 64, "mbit": mbit, "ranks": 4}
        report = sync(options, point, "--plan", "two_shot", "--piece-bytes", piece, "--steps", options.steps)
        compute, link, pieces, one = overlap_of(report, point)
        ratio = report["step_ms"] / (max(compute, link) + one)
        emit(options, "overlap", {**point, "pieces": pieces, "step_ms": report["step_ms"], "compute_ms": compute, "link_ms": link, "piece_ms": one, "ratio": ratio})
        rows.append((program, mbit, pieces, f"{report['step_ms']:.1f}", f"{compute:.1f}", f"{link:.1f}", f"{one:.1f}", f"{ratio:.2f}"))
    print("64 MiB, 4 ranks, two_shot: the step beside its longest lane and one piece (goal: 1.15)")
    print_table(("program", "Mbit/s", "pieces", "step ms", "computes ms", "link ms", "a piece ms", "ratio"), rows)


def run_candidate(options, point, candidate, steps):
    lengths = candidate["lengths"] if candidate["lengths"] != "known" else "auto"
    report = sync(options, point, "--plan", candidate["plan"], "--piece-bytes", candidate["piece_bytes"], "--lengths", lengths, "--steps", steps,
                  program=point["program"] if candidate["compressed"] else "none")
    return report["all_step_ms"]


def name_of(candidate):
    dense = "" if candidate["compressed"] else "dense "
    lengths = "" if candidate["lengths"] == "known" else ", " + candidate["lengths"]
    return f"{dense}{candidate['plan']} {candidate['piece_bytes'] >> 10} KiB{lengths}"


def measure_all(options, point, candidates, chosen):
    """Milliseconds by candidate: one step of each, then more of those that could be the best, in turns; then turns of what is left, since these machines are noisy. The
    median of a candidate's turns, each the median of its steps but the first, which meets memory that was never touched."""
    found = [run_candidate(options, point, each, 1)[0] for each in candidates]
    turns = {}
    for factor, rounds in ROUNDS:
        least = min(found)
        close = [i for i, ms in enumerate(found) if ms < factor * least or candidates[i] == chosen]
        for _ in range(rounds):
            for i in close:
                turns.setdefault(i, []).append(statistics.median(run_candidate(options, point, candidates[i], options.steps + 1)[1:]))
        for i in close:
            found[i] = statistics.median(turns[i])
    return found


def choice_at(options, point):
    auto = sync(options, point, "--plan", "auto", "--explain")["auto"]
    candidates, chosen = auto["candidates"], auto["chosen"]
    measured = measure_all(options, point, candidates, chosen)
    at, best = candidates.index(chosen), min(range(len(measured)), key=measured.__getitem__)
    figures = {**point, "chosen": name_of(chosen), "chosen_ms": measured[at], "predicted_ms": chosen["predicted_ms"], "tried_ms": chosen["tried_ms"], "best": name_of(candidates[best]),
               "best_ms": measured[best], "best_predicted_ms": candidates[best]["predicted_ms"], "ratio": measured[at] / measured[best],
               "plans": [{"plan": name_of(c), "ms": ms, **{k: c[k] for k in ("tried_ms", "predicted_ms", "encode_ms", "network_ms", "decode_ms")}}
                         for c, ms in zip(candidates, measured)]}
    emit(options, "choice", figures)
    return figures


def choice(options):
    points = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    if options.sample:
        points = random.Random(1).sample(points, options.sample)
    rows = []
    for point in points:
        f = choice_at(options, point)
        tried = f"{f['tried_ms']:.2f}" if f["tried_ms"] else ""
        rows.append((f["program"], f["mib"], f["mbit"], f["ranks"], f["chosen"], f"{f['chosen_ms']:.2f}", tried, f"{f['predicted_ms']:.2f}", f["best"],
                     f"{f['best_ms']:.2f}", f"{f['best_predicted_ms']:.2f}", f"{f['ratio']:.2f}"))
    print("the plan that auto takes beside the best one (goal: at most 1.10 in nine of ten)")
    print_table(("program", "MiB", "Mbit/s", "ranks", "auto", "ms", "tried", "predicted", "best", "ms", "predicted", "ratio"), rows)
    within = sum(float(row[-1]) <= 1.1 for row in rows)
    print(f"within 10 %: {within} of {len(rows)}\n")


def copy_bandwidth(total_bytes):
    """Bytes copied a second, by as many threads as there are cores."""
    threads = len(os.sched_getaffinity(0))
    pairs = [(numpy.ones(total_bytes // threads, numpy.uint8), numpy.ones(total_bytes // threads, numpy.uint8)) for _ in range(threads)]
    times = []
    for _ in range(9):
        workers = [threading.Thread(target=numpy.copyto, args=pair) for pair in pairs]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter() - begin)
    return total_bytes / statistics.median(times)


def copy(options):
    ranks, largest = 8, 16 * MIB
    report = cinch(options, "probe", "--ranks", ranks, "--largest", largest, "--seconds", 12)
    rows = []
    for kind in ("send", "all_gather", "all_to_all", "reduce_scatter", "all_reduce"):
        points = [p for p in report["points"] if p["exchange"] == kind]
        point = max(points, key=lambda p: p["bytes"])
        moved = ranks * point["bytes"]
        bandwidth = copy_bandwidth(moved)
        share = moved / point["seconds"] / bandwidth
        emit(options, "copy", {"exchange": kind, "bytes": point["bytes"], "seconds": point["seconds"], "copy_bytes_per_second": bandwidth, "share": share})
        rows.append((kind, point["bytes"], f"{point['seconds'] * 1e3:.2f}", f"{moved / point['seconds'] / 1e9:.2f}", f"{bandwidth / 1e9:.2f}", f"{share:.2f}"))
    print(f"{ranks} ranks without a link's shape beside plain copies of as many bytes (goal for what only moves: 0.5)")
    print_table(("exchange", "bytes of a rank", "ms", "all ranks GB/s", "copy GB/s", "share"), rows)


PARTS = {"overlap": overlap, "choice": choice, "copy": copy}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch", type=Path)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--lines", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} cores, {LATENCY_US} us latency, load before the run {load:.1f}\n")
    for part in options.part:
        PARTS[part](options)


if __name__ == "__main__":
    main()
