#!/usr/bin/env python3
"""Cinch beside the same algorithms written by hand: as loops, and in PyTorch's tensor operations.

    peers.py BUILD [--elements N] [--seconds S] [--programs NAME…] [--json]
    peers.py BUILD --check [--elements N]        only compares what is decoded

BUILD is a build folder with the targets cinch_c and cinch_clang. One process calls libcinch.so, the loops (compiled into
build/bench when they changed) and PyTorch, where it is installed; calls take turns. Ratios are median times of a peer over
those of Cinch: above 1, Cinch is faster. All use every core.
"""
import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

import agreement
import cinch_peer
import loop_peer
from programs import LOOP_GOAL, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
# A turn of short calls lasts so long: a first call, which is not timed, brings back what others drove out of the caches.
TURN_SECONDS = 0.002
# Threads of the last contestant go on looking for work for some milliseconds.
PAUSE_SECONDS = 0.005
LEAST_ROUNDS, MOST_ROUNDS = 3, 101


def has_torch():
    return importlib.util.find_spec("torch") is not None


def torch_version():
    """None where PyTorch is absent."""
    if not has_torch():
        return None
    import torch
    return torch.__version__


def cores():
    return len(os.sched_getaffinity(0))


def take_turn(call, repeats):
    """Seconds of one call."""
    time.sleep(PAUSE_SECONDS)
    if repeats > 1:
        call()
    return call(repeats) / repeats


def take_turns(calls, seconds):
    """Median seconds of each call."""
    repeats = {name: max(1, int(TURN_SECONDS / max(take_turn(call, 1), 1e-6))) for name, call in calls.items()}
    times = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    for done in range(MOST_ROUNDS):
        if done >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for name, call in calls.items():
            times[name].append(take_turn(call, repeats[name]))
    return {name: statistics.median(each) for name, each in times.items()}


def figures(times):
    """Milliseconds of Cinch, and how many times longer the others take."""
    own = times["cinch"]
    return {"ms": 1e3 * own, **{name: each / own for name, each in times.items() if name != "cinch"}}


class Comparison:
    def __init__(self, build, elements, threads, with_torch=True):
        os.environ["CINCH_CACHE"] = "off"  # what is kept for work stays as it is
        self.threads, self.with_torch = threads, with_torch and has_torch()
        self.loops = loop_peer.load(ROOT / "build" / "bench", threads)
        self.library = cinch_peer.load(build / "lib" / "libcinch.so")
        self.elements = elements
        self.gradient = loop_peer.make_gradient(self.loops, elements)

    def make_peers(self, measured):
        peers = {"cinch": cinch_peer.CinchPeer(self.library, self.loops, measured, self.gradient, self.elements, self.threads),
                 "loop": loop_peer.LoopPeer(self.loops, measured, self.gradient, self.elements)}
        if self.with_torch:
            import torch
            import torch_peers
            torch.set_num_threads(self.threads)
            peers["torch"] = torch_peers.TorchPeer(measured, self.gradient, self.elements)
        return peers

    def run(self, measured, seconds, only_check=False):
        """The figures of one program, after all of them were seen to agree. Raises agreement.Disagreement."""
        peers = self.make_peers(measured)
        agreement.check(measured.name, peers, self.elements, self.loops)
        report = {"compressor": measured.name, "settings": measured.settings, "elements": self.elements}
        if not only_check:
            report["encode"] = figures(take_turns({name: peer.encode for name, peer in peers.items()}, seconds * 2 / 3))
            for peer in peers.values():
                peer.receive()
            report["decode"] = figures(take_turns({name: peer.decode for name, peer in peers.items()}, seconds / 3))
        for peer in peers.values():
            peer.close()
        return report


def ratio(call, peer, goal):
    if peer not in call:
        return "-"
    return f"{call[peer]:.2f}" + (f" (goal {goal:g})" if call[peer] < goal else "")


def cells(report, measured):
    """Encode and decode: milliseconds, times faster than the loop and than PyTorch."""
    found = []
    for call in (report["encode"], report["decode"]):
        found += [f"{call['ms']:.3f}", ratio(call, "loop", LOOP_GOAL), ratio(call, "torch", measured.torch)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--seconds", type=float, default=6, help="for each program")
    parser.add_argument("--programs", nargs="*", default=[measured.name for measured in PROGRAMS])
    parser.add_argument("--threads", type=int, default=cores(), help="of each contestant; default all of the machine")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    comparison = Comparison(options.build, options.elements, options.threads)
    if not (options.json or options.check):
        print(f"{'':10}  {'encode ms':>9}  {'/ loop':>16}  {'/ torch':>16}  {'decode ms':>9}  {'/ loop':>16}  {'/ torch':>16}")
    reports = []
    for measured in PROGRAMS:
        if measured.name not in options.programs:
            continue
        reports.append(comparison.run(measured, options.seconds, options.check))
        if options.check:
            print(f"{measured.name}: agrees with the loop" + (" and PyTorch" if has_torch() else "; PyTorch is absent"))
        elif not options.json:
            found = cells(reports[-1], measured)
            print(f"{measured.name:10}  " + "  ".join(f"{cell:>{9 if i % 3 == 0 else 16}}" for i, cell in enumerate(found)), flush=True)
    if options.json:
        print(json.dumps(reports))


if __name__ == "__main__":
    try:
        main()
    except agreement.Disagreement as error:
        sys.exit(f"peers.py: {error}")
