#!/usr/bin/env python3
"""Two builds beside each other, in turns: what a change does to the time of compiling, of a short call, of a long one, and of averaging.

    pairs.py BEFORE AFTER [--turns N] [--elements N] [--only TEXT]

BEFORE and AFTER are release builds, or folders with their bin/ and lib/. Both compile the programs of this tree. In each turn both builds do the same, and who begins
changes from turn to turn. The ratio is the median over turns of AFTER's time over that of BEFORE in the same turn; the spread is that of the middle half of these ratios,
and of all. Each turn of a call has a process of its own, since where its memory lies can change a short call's time by a hundredth. Compare a build with a copy of itself
to see what this machine's noise is. Nothing fails on time. Nothing else should run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cinch_abi
import cinch_peer
import loop_peer
import peers
from programs import PROGRAMS

COMPILED = ("onebit", "qsgd", "topk", "dgc")
MEASURED = [measured for measured in PROGRAMS if measured.name in COMPILED]
TINY, TINY_CALLS, TINY_REPEATS, LARGE_CALLS = 1 << 10, 101, 20, 9
MIB, STEPS = 1 << 20, 6


class Build:
    """One build, with folders of its own."""

    def __init__(self, path, folder):
        self._path, self._cinch, self._folder = path.resolve(), path.resolve() / "bin" / "cinch", folder
        # What a shell has set for one build must not lead to the other's libraries.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CINCH_")}
        self._environment = {**kept, "CINCH_STDLIB": str(peers.ROOT / "stdlib"), "CINCH_TUNING": "off", "CINCH_BACKGROUND": "off",
                             "CINCH_CACHE_DIR": str(folder / "cache")}

    def cold_ms(self, program):
        with tempfile.TemporaryDirectory(dir=self._folder) as cache:
            command = [self._cinch, "build", program, "--emit=image", "--output", Path(cache) / "program.image"]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**self._environment, "CINCH_CACHE_DIR": cache})
            return 1e3 * (time.perf_counter() - start)

    def averaging_ms(self):
        """A step's time. The first step meets memory that was never touched, so it does not count."""
        command = [self._cinch, "sync", "onebit", "--input", peers.ROOT / "examples" / "data" / "resnet-step40.npy", "--repeat-to", str(64 * MIB), "--ranks", "4",
                   "--plan", "two_shot", "--steps", str(STEPS), "--timeout", "600", "--json"]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment).stdout)
        return statistics.median(report["all_step_ms"][1:])

    def encode_ms(self, elements, program):
        command = [sys.executable, __file__, "--encode", self._path, str(elements), program]
        return float(subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment).stdout)


def encode(build, elements, program):
    """Calls one build's library from C. Prints the milliseconds of a call."""
    is_tiny = elements == TINY
    threads, calls, repeats = (1, TINY_CALLS, TINY_REPEATS) if is_tiny else (peers.cores(), LARGE_CALLS, 1)
    loops = loop_peer.load(peers.ROOT / "build" / "bench", threads)
    measured = next(each for each in MEASURED if each.name == program)
    gradient = loop_peer.make_gradient(loops, elements)
    session = cinch_peer.CinchPeer(cinch_abi.load(build / "lib" / "libcinch.so"), loops, measured, gradient, elements, threads)
    session.encode(repeats)
    print(1e3 * statistics.median(session.encode(repeats) / repeats for _ in range(calls)))


def tasks(elements):
    """What is timed, by name: functions of a build that give milliseconds."""
    names = [measured.name for measured in MEASURED]
    return {**{f"compile {name}, empty cache": lambda build, name=name: build.cold_ms(name) for name in names},
            **{f"encode 4 KiB, {name}, one thread": lambda build, name=name: build.encode_ms(TINY, name) for name in names},
            **{f"encode {elements} f32, {name}": lambda build, name=name: build.encode_ms(elements, name) for name in names},
            "average 64 MiB, onebit, 4 ranks, loopback": Build.averaging_ms}


def take_turns(builds, task, turns):
    """Milliseconds by build. A first turn, which is not counted, meets cold caches."""
    times = []
    for turn in range(turns + 1):
        order = builds if turn % 2 == 0 else builds[::-1]
        spent = {build: task(build) for build in order}
        times.append([spent[build] for build in builds])
    return list(zip(*times[1:]))


def row(name, before, after):
    ratios = sorted(b / a for a, b in zip(before, after))
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (f"{name:42} {statistics.median(before):10.4f} {statistics.median(after):10.4f} {statistics.median(ratios):7.3f}   "
            f"{low:.3f} to {high:.3f}   {ratios[0]:.3f} to {ratios[-1]:.3f}")


def main():
    if sys.argv[1:2] == ["--encode"]:
        return encode(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--elements", type=int, default=1 << 24, help="of a long call")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as before, tempfile.TemporaryDirectory() as after:
        builds = [Build(path, Path(folder)) for path, folder in ((options.before, before), (options.after, after))]
        print(f"{peers.cores()} cores, load before the run {load:.1f}; milliseconds, medians of {options.turns} turns")
        print(f"{'':42} {'before':>10} {'after':>10} {'ratio':>7}   {'middle half':14}   all")
        for name, task in tasks(options.elements).items():
            if options.only in name:
                print(row(name, *take_turns(builds, task, options.turns)), flush=True)


if __name__ == "__main__":
    main()
