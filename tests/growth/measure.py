#!/usr/bin/env python3
"""Measures how the cost of compiling grows: `measure.py CINCH [--emit ir] [--only REGEX] [--lengths 100,1000,3000]`.

For each chain: seconds and MiB at each length, and the exponent of growth between the last two. For each shape: what it ends in. Both are
stopped at 10 s and 1 GiB of address space, where a program must have ended in a result or in a located diagnostic.
"""
import argparse
import math
import os
import re
import resource
import subprocess
import sys
import tempfile

import shapes

SECONDS = 10  # of CPU time: others may run beside this
BYTES = 1 << 30


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command):
    """(status, CPU seconds, MiB, standard error)."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read(4000).decode(errors="replace")
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def commands(cinch, path, emit):
    yield "check", [cinch, "check", path]
    yield emit, [cinch, "build", f"{path}:grown", f"--emit={emit}", "--output", "/dev/null"]


def outcome(status, errors):
    if status == 0:
        return "ok"
    first = next((line for line in errors.splitlines() if "error" in line or "fault" in line), errors.strip()[:150])
    return {1: "refused", 2: "usage", 3: "unavailable", 4: "INTERNAL"}.get(status, f"SIGNAL {-status}") + ": " + first[:150]


def measure(args, folder, name, text):
    path = os.path.join(folder, f"{name}.cinch")
    with open(path, "w") as file:
        file.write(text)
    found = {}
    for stage, command in commands(args.cinch, path, args.emit):
        status, seconds, mib, errors = run(command)
        found[stage] = (seconds, mib, outcome(status, errors).replace(folder + "/", ""))
    return found


def exponent(args, times):
    """Of the growth from the last length but one to the last, less what a run takes at all."""
    base = 0.006
    first, last = (max(t - base, 0.001) for t in times[-2:])
    return math.log(last / first) / math.log(args.lengths[-1] / args.lengths[-2])


def measure_chain(args, folder, name, make):
    runs = [measure(args, folder, f"{name}_{length}", make(length)) for length in args.lengths]
    for stage in runs[0]:
        cells = " ".join(f"{r[stage][0]:7.3f}s {r[stage][1]:5.0f}M" for r in runs)
        ends = [r[stage][2] for r in runs]
        bad = next((f"{length}: {end}" for length, end in zip(args.lengths, ends) if end != "ok"), "")
        print(f"{name:18} {stage:6} {cells}  ^{exponent(args, [r[stage][0] for r in runs]):4.2f}  {bad}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cinch")
    parser.add_argument("--emit", default="ir")
    parser.add_argument("--only", default="")
    parser.add_argument("--lengths", default="100,1000,3000", type=lambda text: [int(word) for word in text.split(",")])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, make in shapes.CHAINS.items():
            if re.search(args.only, name):
                measure_chain(args, folder, name, make)
        for name, make in shapes.SHAPES.items():
            if not re.search(args.only, name):
                continue
            for stage, (seconds, mib, end) in measure(args, folder, name, make()).items():
                print(f"{name:22} {stage:6} {seconds:7.3f}s {mib:5.0f}M  {end}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
