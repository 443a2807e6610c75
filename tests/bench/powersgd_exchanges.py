#!/usr/bin/env python3
"""Exchanges of PowerSGD beside those that PyTorch's hook makes for one bucket: prints exchanges, bytes and milliseconds.

    powersgd_exchanges.py CINCH GRADIENTS [--rank 4] [--ranks 4] [--latency 100] [--bandwidth 0] [--turns 5]

GRADIENTS is a folder of .npy files, one for each tensor. PyTorch's PowerSGD hook makes three all-reduces for each bucket: of all tensors that are not compressed, side by
side, of all P, and of all Q. The same byte counts are sent here over the same links, one all-reduce after the other. Both are the sum of what each exchange takes
from the last rank's coming on.
Goal: at most 1.3 times the hook's. Nothing fails on time. Nothing else should run.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy

GOAL = 1.3
SMALL = 4096


def sync(options, program, inputs, trace):
    command = [options.cinch, "sync", program, "--input", inputs, "--ranks", str(options.ranks), "--plan", "allreduce", "--latency", str(options.latency),
               "--bandwidth", str(options.bandwidth), "--steps", "4", "--trace", trace, "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    events = json.loads(Path(trace).read_text())["traceEvents"]
    # Each exchange as seen by the rank that comes last: the others' wait for it is its computing time.
    by_rank = {}
    for event in sorted((e for e in events if e.get("cat") == "network"), key=lambda e: e["ts"]):
        by_rank.setdefault(event["pid"], []).append(event["dur"])
    spans = [min(durations) for durations in zip(*by_rank.values(), strict=True)]
    busy = sum(spans)
    return busy / 1e3, len(spans), report["bytes_sent"]


def all_ranks(folder, ranks, arrays):
    for rank in range(ranks):
        at = folder / f"r{rank}"
        at.mkdir()
        for name, array in arrays.items():
            numpy.save(at / f"{name}.npy", (array * (1 + 0.01 * rank)).astype(numpy.float32))
    return str(folder / "r%r")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch")
    parser.add_argument("gradients")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--latency", type=float, default=100)
    parser.add_argument("--bandwidth", type=float, default=0)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    arrays = {path.stem: numpy.load(path) for path in sorted(Path(options.gradients).glob("*.npy"))}
    compressed = [a for a in arrays.values() if a.ndim > 1 and a.size >= SMALL]
    sizes = [sum(a.size for a in arrays.values()) - sum(a.size for a in compressed), sum(options.rank * a.shape[0] for a in compressed),
             sum(options.rank * (a.size // a.shape[0]) for a in compressed)]
    with tempfile.TemporaryDirectory() as name:
        folder, trace = Path(name), str(Path(name) / "trace.json")
        (folder / "model").mkdir()
        model = all_ranks(folder / "model", options.ranks, arrays)
        buckets = []
        for i, size in enumerate(sizes):
            (folder / f"bucket{i}").mkdir()
            buckets.append(all_ranks(folder / f"bucket{i}", options.ranks, {"all": numpy.ones(size, numpy.float32)}))
        ours, hook = [], []
        for _ in range(options.turns):
            ours.append(sync(options, f"powersgd(rank: {options.rank})", model, trace))
            hook.append([sync(options, "none", bucket, trace) for bucket in buckets])
    own = statistics.median(busy for busy, _, _ in ours)
    other = statistics.median(sum(busy for busy, _, _ in turn) for turn in hook)
    print("| | exchanges | bytes sent by a rank | ms |\n| --- | --- | --- | --- |")
    print(f"| cinch | {ours[0][1]} | {ours[0][2]} | {own:.3f} |")
    print(f"| PyTorch's hook | {sum(n for _, n, _ in hook[0])} | {sum(b for _, _, b in hook[0])} | {other:.3f} |")
    print(f"\n{own / other:.2f} times; goal: at most {GOAL}.")


if __name__ == "__main__":
    main()
