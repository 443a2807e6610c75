#!/usr/bin/env python3
"""Speed on this machine's CPU, beside the floor of the same run: writes docs/benchmarks/cpu.md.

    cpu.py CINCH [--elements N] [--seconds S] [--output FILE]

Every row is one `cinch bench`: median times of calls and floors that take turns. Nothing fails on time; the goals stand beside the figures.
"""
import argparse
import datetime
import json
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Program, settings, goals for the shares of the floor: encode, decode. 0.0329 keeps a thousandth of the made-up gradient.
PROGRAMS = [
    ("fp16", [], 0.8, 0.8), ("bf16", [], 0.8, 0.8), ("onebit", [], 0.8, 0.8), ("tbq", [], 0.8, 0.8),
    ("minmax", [], 0.8, 0.8), ("ef_sign", [], 0.8, 0.8), ("qsgd", [], 0.6, 0.8), ("terngrad", [], 0.6, 0.8),
    ("natural", [], 0.6, 0.8), ("threshold", ["tau=0.0329"], 0.5, 0.8), ("topk", ["ratio=0.001"], 0.5, 0.8),
    ("graddrop", ["ratio=0.001"], 0.5, 0.8), ("dgc", ["ratio=0.001"], 0.5, 0.8),
]
IN_CACHE = 1 << 16


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def bench(cinch, name, settings, elements, seconds):
    command = [cinch, "bench", name, "--elements", str(elements), "--seconds", str(seconds), "--json"]
    for setting in settings:
        command += ["--set", setting]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]


def share(figure, goal):
    return f"{figure:.2f}" + (f" (goal {goal})" if figure < goal else "")


def row(name, settings, goals, report):
    encode, decode = report["encode"], report["decode"]
    floor = (encode["floor_bytes_read"] + encode["floor_bytes_written"]) / report["elements"]
    return (f"| `{name}` {' '.join(settings)} | {encode['ms']:.2f} | {encode['gb_per_s']:.1f} | {share(encode['floor_share'], goals[0])} "
            f"| {encode['floor_sweeps']} sweeps, {floor:.2f} B | {decode['ms']:.2f} | {decode['gb_per_s']:.1f} "
            f"| {share(decode['floor_share'], goals[1])} | {report['compile_cold_ms']:.0f} | {report['compile_cached_ms']:.2f} |")


HEAD = ["| program | encode ms | GB/s | of the floor | floor | decode ms | GB/s | of the floor | compiled, ms | from the cache, ms |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]


def table(cinch, elements, seconds):
    lines, bandwidths = [], []
    for name, settings, *goals in PROGRAMS:
        report = bench(cinch, name, settings, elements, seconds)
        bandwidths.append(report["bandwidth_gb_per_s"])
        lines.append(row(name, settings, goals, report))
        print(lines[-1], file=sys.stderr)
    return HEAD + lines, bandwidths, report["target"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch")
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "cpu.md")
    options = parser.parse_args()
    large, bandwidths, target = table(options.cinch, options.elements, options.seconds)
    small, _, _ = table(options.cinch, IN_CACHE, options.seconds / 4)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    threads = len(__import__("os").sched_getaffinity(0))
    text = ["# Speed on a CPU", "",
            f"{processor()}, {threads} threads, {target}; {datetime.date.today()}; at or after commit {commit}. Plain reading "
            f"{min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s over these runs: where that spreads, others used the machine.", "",
            f"    ./dev bench          (tests/bench/cpu.py, {options.seconds} s for each call)", "",
            "The floor of a program is the time that plain vector loops take over the same streams, sweep by sweep, on the same threads, in the same "
            "run, and a bare generator for its random words (`docs/architecture.md`, The floor). Shares are medians over medians of calls that take "
            "turns; a goal is named where it is not reached. GB/s count the gradient's bytes. Compiling is cold (the first row opens the compiler's "
            "libraries) and from a warm cache, from source to callable.", "",
            f"## {options.elements} elements", "", *large, "", f"## {IN_CACHE} elements: in the caches", "",
            "Arrays stay in the second-level cache, so that instructions set the pace, not memory, and starting threads costs a few microseconds of "
            "each call.", "", *small, ""]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(text))


if __name__ == "__main__":
    main()
