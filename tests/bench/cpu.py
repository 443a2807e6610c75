#!/usr/bin/env python3
"""Speed on this machine's CPU, beside the floor of the same run and beside other implementations: writes docs/benchmarks/cpu.md.

    cpu.py CINCH [--elements N] [--seconds S] [--output FILE]
    cpu.py CINCH --library [--seconds S] [--output FILE]       only the last part of a page that is there: library.py

CINCH is bin/cinch of a build folder with the targets cinch_c, cinch_compiler, bench_list and bench_sync. Floors come from `cinch bench`, lists from
bench_list, the others from peers.py: median times of calls that take turns. Nothing fails on time; the goals stand beside the figures.
"""
import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

import library
import peers
from floors import bench, label, processor, share
from programs import LOOP_GOAL, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
IN_CACHE = 1 << 16
TINY = 1 << 10
# What sets the pace in the caches. Instructions are those of the inner loops that `cinch build --emit=asm --target cpu:x86-64-v3` prints, packing of
# codes not counted; shares of time are from profiles (perf record). The machine offered no counters of cycles or cache misses, so how many
# instructions end in a cycle, and whether stores or instructions limit where both are few, is not known.
FILLING = "Decode: filling with zeros (two thirds), and the constant cost of a call."
LIMITED_BY = {
    "fp16": "Instructions: 1.3 per element in encode, 0.8 in decode, where stores may limit too.",
    "bf16": "Instructions: 2.1 per element in encode, a third of them for NaN; 1.1 in decode, where stores may limit too.",
    "onebit": "Instructions: 2.5 per element in encode, 1.1 in decode.",
    "tbq": "Instructions: 2.7 per element in encode, 0.8 in decode.",
    "minmax": "Instructions: 7.2 per element in the two sweeps of encode, 3.4 of them for draws; 1.1 in decode.",
    "ef_sign": "Instructions: 3.6 per element in the two sweeps of encode, 1.1 in decode.",
    "qsgd": "Instructions: 8.2 per element in encode, 3.4 of them for draws; 1.8 in decode.",
    "terngrad": "Instructions: 5.8 per element in the second sweep of encode, 3.4 of them for draws, and the moments of the first sweep; 1.2 in decode.",
    "natural": "Instructions: 8.0 per element in encode, 3.4 of them for draws; 1.9 in decode.",
    "threshold": f"Encode: instructions, 1.3 per element. {FILLING}",
    "topk": f"Encode: kernels (seven eighths), also those of constant size: histograms and a sample. {FILLING}",
    "graddrop": f"Encode: kernels (seven eighths), scattered reads of the sample, sweeps. {FILLING}",
    "dgc": f"Encode: kernels (seven eighths), also those of constant size: histograms and a sample. {FILLING}",
}


def row(measured, report):
    encode, decode = report["encode"], report["decode"]
    floor = (encode["floor_bytes_read"] + encode["floor_bytes_written"]) / report["elements"]
    return (f"| {label(measured)} | {encode['ms']:.2f} | {encode['gb_per_s']:.1f} | {share(encode['floor_share'], measured.encode_floor)} "
            f"| {encode['floor_sweeps']} sweeps, {floor:.2f} B | {decode['ms']:.2f} | {decode['gb_per_s']:.1f} "
            f"| {share(decode['floor_share'], measured.decode_floor)} | {report['compile_cold_ms']:.0f} | {report['compile_cached_ms']:.2f} |")


HEAD = ["| program | encode ms | GB/s | of the floor | floor | decode ms | GB/s | of the floor | compiled, ms | from the cache, ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]


def table(cinch, elements, seconds):
    lines, bandwidths = [], []
    for measured in PROGRAMS:
        report = bench(cinch, measured, elements, seconds)
        bandwidths.append(report["bandwidth_gb_per_s"])
        lines.append(row(measured, report))
        print(lines[-1], file=sys.stderr)
    return HEAD + lines, bandwidths, report["target"]


PEERS_HEAD = ["| program | encode ms | loop / Cinch | PyTorch / Cinch | decode ms | loop / Cinch | PyTorch / Cinch |",
              "| --- | --- | --- | --- | --- | --- | --- |"]


def compare(comparison, seconds):
    """One report of peers.py for each program."""
    reports = []
    for measured in PROGRAMS:
        reports.append(comparison.run(measured, seconds))
        print(measured.name, *peers.cells(reports[-1], measured), sep="  ", file=sys.stderr)
    return reports


def peers_table(reports):
    return PEERS_HEAD + ["| " + " | ".join([label(measured), *peers.cells(report, measured)]) + " |"
                         for measured, report in zip(PROGRAMS, reports)]


def microseconds(report, call):
    """Cinch's and the loop's."""
    ms = report[call]["ms"]
    return f"{1e3 * ms:.1f} ({1e3 * ms * report[call]['loop']:.1f})"


def limits_table(tiny, small):
    lines = ["| program | encode of 1024, µs | of 65536 | decode of 1024 | of 65536 | what limits |", "| --- | --- | --- | --- | --- | --- |"]
    for measured, few, many in zip(PROGRAMS, tiny, small):
        figures = [microseconds(report, call) for call in ("encode", "decode") for report in (few, many)]
        lines.append("| " + " | ".join([label(measured), *figures, LIMITED_BY[measured.name]]) + " |")
    return lines


def peers_text(build, elements, seconds):
    """The part of the page that peers.py fills."""
    large = compare(peers.Comparison(build, elements, peers.cores()), seconds)
    tiny, small = (compare(peers.Comparison(build, size, threads=1, with_torch=False), seconds / 4) for size in (TINY, IN_CACHE))
    version = peers.torch_version()
    torch = (f"**PyTorch** {version}, eager, makes new tensors as such code does. It neither looks for non-finite values nor sorts what it selects; "
             "Cinch's programs do both" if version else "**PyTorch** was not installed, so its columns are empty")
    return [f"## Beside other implementations: {elements} elements", "",
            "Ratios are a peer's time over Cinch's. Above 1, Cinch is faster. Before anything is timed, the decoded gradients of three steps are compared.", "",
            "- **Loops** are written by hand ([`tests/bench/loops`](../../tests/bench/loops)). They have the same algorithm, draws, states and check for "
            f"non-finite values, and are compiled by the same Clang with `-O3 -march=native`. The goal is {LOOP_GOAL}.",
            f"- {torch} ([`tests/bench/torch_peers.py`](../../tests/bench/torch_peers.py)).", "",
            *peers_table(large), "",
            "## In the caches: what limits", "",
            f"Times of one thread. The hand-written loop's time is in brackets. A call on {TINY} elements is little more than the constant cost of a call.", "",
            *limits_table(tiny, small), ""]


TENSORS = ROOT / "tests" / "gpu" / "data" / "bert_large.csv"
LIST_PROGRAMS = ["onebit", "fp16"]


def list_figures(build, seconds):
    command = [build / "bin" / "bench_list", TENSORS, "--seconds", str(seconds), *LIST_PROGRAMS]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def list_row(report):
    cells = []
    for call in ("encode", "decode"):
        figures = report[call]
        cells += [f"{figures['list_ms']:.1f}", f"{figures['list_ms'] / figures['one_ms']:.2f}", f"{figures['one_by_one_ms'] / figures['list_ms']:.2f}"]
    return "| " + " | ".join([f"`{report['program']}`", *cells]) + " |"


def list_text(reports):
    """The part of the page that bench_list fills."""
    return [f"## A list of tensors: BERT-large's {reports[0]['tensors']}, {reports[0]['elements']} elements", "",
            "How long one call for a whole list of tensors takes. Medians of calls that take turns (`bench_list`, "
            "[`tests/bench/list_bench.cpp`](../../tests/bench/list_bench.cpp)).", "",
            "- **List / one tensor:** the time over that of one tensor with the same number of elements.",
            "- **One by one / list:** the time of a call for each tensor, over that of one call for the list. Above 1, the list is faster.", "",
            "| program | encode ms | list / one tensor | one by one / list | decode ms | list / one tensor | one by one / list |",
            "| --- | --- | --- | --- | --- | --- | --- |", *map(list_row, reports), ""]


def main_text(options):
    """The page down to the rest of the library."""
    large, bandwidths, target = table(options.cinch, options.elements, options.seconds)
    small, _, _ = table(options.cinch, IN_CACHE, options.seconds / 4)
    build = options.cinch.resolve().parents[1]
    lists = list_text(list_figures(build, 10 * options.seconds))
    others = peers_text(build, options.elements, 3 * options.seconds)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return ["# Speed on a CPU", "",
            "How fast compiled programs run on a CPU, beside the floor that memory sets, and beside other implementations.", "",
            f"Measured {datetime.date.today()} at or after commit {commit}, on an {processor()} with {peers.cores()} threads, for {target}. Plain reading ran "
            f"at {min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s during these runs. A wide spread means that others used the machine.", "",
            f"    ./dev bench          (tests/bench/cpu.py, {options.seconds} s for each call)", "",
            "- **Floor.** The time that plain vector loops take over the same streams, sweep by sweep, on the same threads, in the same run, plus a bare "
            "generator for the program's random words ([the floor](../notes/fusion.md#the-floor)).",
            "- **Of the floor.** The floor's time over the program's: medians of calls that take turns. If a goal is not reached, it is named.",
            "- **GB/s** count the gradient's bytes.",
            "- **Compiled** is the time from source to callable, cold. The first row also opens the compiler's libraries. **From the cache** is the same "
            "from a warm cache.", "",
            f"## {options.elements} elements", "", *large, "", f"## {IN_CACHE} elements: in the caches", "",
            "Arrays stay in the second-level cache. So instructions set the pace, not memory. Starting threads costs a few microseconds of each call.", "", *small, "", *lists, *others, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch", type=Path)
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "cpu.md")
    parser.add_argument("--library", action="store_true")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    if options.library:
        before = options.output.read_text().split(library.HEADING)[0].rstrip() + "\n\n"
    else:
        before = "\n".join(main_text(options))
    options.output.write_text(before + "\n".join(library.text(options.cinch, options.seconds)))


if __name__ == "__main__":
    main()
