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
FILLING = "in decode, filling with zeros (two thirds) and the constant cost of a call"
LIMITED_BY = {
    "fp16": "instructions: 1.3 an element in encode, 0.8 in decode, where stores may limit",
    "bf16": "instructions: 2.1 an element in encode, a third of them for NaN; 1.1 in decode, where stores may limit",
    "onebit": "instructions: 2.5 an element in encode, 1.1 in decode",
    "tbq": "instructions: 2.7 an element in encode, 0.8 in decode",
    "minmax": "instructions: 7.2 an element in the two sweeps of encode, 3.4 of them draws; 1.1 in decode",
    "ef_sign": "instructions: 3.6 an element in the two sweeps of encode, 1.1 in decode",
    "qsgd": "instructions: 8.2 an element in encode, 3.4 of them draws; 1.8 in decode",
    "terngrad": "instructions: 5.8 an element in the second sweep of encode, 3.4 of them draws, and the moments of the first; 1.2 in decode",
    "natural": "instructions: 8.0 an element in encode, 3.4 of them draws; 1.9 in decode",
    "threshold": f"instructions in encode, 1.3 an element; {FILLING}",
    "topk": f"kernels (seven eighths of encode), those of constant size among them: histograms and a sample; {FILLING}",
    "graddrop": f"kernels (seven eighths of encode): scattered reads of the sample, sweeps; {FILLING}",
    "dgc": f"kernels (seven eighths of encode), those of constant size among them: histograms and a sample; {FILLING}",
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
    torch = (f"PyTorch {version}, eager, makes new tensors as such code does and neither looks for non-finite values nor sorts what it selects, "
             "which Cinch's programs do" if version else "PyTorch was not installed, so its columns are empty")
    return [f"## Beside other implementations: {elements} elements", "",
            "Ratios are a peer's time over Cinch's: above 1, Cinch is faster. Before anything is timed, decoded gradients of three steps are compared. "
            f"Loops are written by hand ([`tests/bench/loops`](../../tests/bench/loops)): the same algorithm, draws, states and check for non-finite "
            f"values, compiled by the same Clang with `-O3 -march=native`; the goal is {LOOP_GOAL}. {torch} "
            "([`tests/bench/torch_peers.py`](../../tests/bench/torch_peers.py)).", "",
            *peers_table(large), "",
            "## In the caches: what limits", "",
            f"One thread; in brackets the hand-written loop. Of {TINY} elements a call costs little more than what it costs at all.", "",
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
            "All tensors of the list in one call, in ms, beside one tensor of the same total, and a call for each tensor beside the list: a ratio "
            "above 1 is what calls one by one cost more. Medians of calls that take turns (`bench_list`, "
            "[`tests/bench/list_bench.cpp`](../../tests/bench/list_bench.cpp)).", "",
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
            f"{processor()}, {peers.cores()} threads, {target}; {datetime.date.today()}; at or after commit {commit}. Plain reading "
            f"{min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s over these runs: where that spreads, others used the machine.", "",
            f"    ./dev bench          (tests/bench/cpu.py, {options.seconds} s for each call)", "",
            "The floor of a program is the time that plain vector loops take over the same streams, sweep by sweep, on the same threads, in the same "
            "run, and a bare generator for its random words (`docs/notes/fusion.md`, The floor). Shares are medians over medians of calls that take "
            "turns; a goal is named where it is not reached. GB/s count the gradient's bytes. Compiling is cold (the first row opens the compiler's "
            "libraries) and from a warm cache, from source to callable.", "",
            f"## {options.elements} elements", "", *large, "", f"## {IN_CACHE} elements: in the caches", "",
            "Arrays stay in the second-level cache, so that instructions set the pace, not memory, and starting threads costs a few microseconds of "
            "each call.", "", *small, "", *lists, *others, ""]


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
