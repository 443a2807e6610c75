#!/usr/bin/env python3
"""Cinch beside the same algorithms written by hand: as loops, and in PyTorch's tensor operations.

    peers.py BUILD [--elements N] [--seconds S] [--programs NAME…] [--json]
    peers.py BUILD --check [--elements N]        only compares what is decoded

BUILD is a build folder with the targets cinch, cinch_c, cinch_clang and bench_sync. One process calls libcinch.so, the loops
(compiled into build/bench when they changed) and PyTorch, where it is installed; calls take turns. Ratios are median times of a
peer over those of Cinch: above 1, Cinch is faster. All use every core.
"""
import argparse
import functools
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

import agreement
import cinch_abi
import cinch_peer
import loop_peer
import sync_peer
from programs import LIBRARY, LOOP_GOAL, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
# A turn of short calls lasts this long: a first call, which is not timed, refills the caches.
TURN_SECONDS = 0.002
# Threads of the last contestant go on polling for work for some milliseconds.
PAUSE_SECONDS = 0.005
LEAST_ROUNDS, MOST_ROUNDS = 3, 101
PEER_NAMES = {"loop": "the loop", "torch": "PyTorch", "hook": "PyTorch's hook"}


@functools.cache
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
        os.environ["CINCH_CACHE"] = "off"  # the user's cache stays as it is
        self.threads, self.with_torch = threads, with_torch and has_torch()
        self.loops = loop_peer.load(ROOT / "build" / "bench", threads)
        self.build = build
        self.library = cinch_abi.load(build / "lib" / "libcinch.so")
        self.elements = elements
        self.gradient = loop_peer.make_gradient(self.loops, elements)

    def make_peers(self, measured):
        peers = {"cinch": self.make_own(measured)}
        if measured.has_loop:
            peers["loop"] = loop_peer.LoopPeer(self.loops, measured, self.gradient, self.elements)
        if self.with_torch:
            import torch
            import torch_peers
            torch.set_num_threads(self.threads)
            peers["torch"] = torch_peers.TorchPeer(measured, self.gradient, self.elements)
        if self.with_torch and measured.hook:
            import hook_peer
            peers["hook"] = hook_peer.HookPeer(measured, self.gradient, self.elements)
        return peers

    def make_own(self, measured):
        if "sync" in measured.calls:
            return sync_peer.SyncPeer(self.build, measured, self.gradient, self.elements, self.threads)
        return cinch_peer.CinchPeer(self.library, self.loops, measured, self.gradient, self.elements, self.threads)

    def run(self, measured, seconds):
        """The figures of one program, after all of them were seen to agree. Raises agreement.Disagreement."""
        peers = self.make_peers(measured)
        compared = self.check_peers(measured, peers)
        return {**self.time_peers(measured, peers, seconds), "compared": compared}

    def check(self, measured):
        """Names of those who agree. Raises agreement.Disagreement."""
        peers = self.make_peers(measured)
        compared = self.check_peers(measured, peers)
        close(peers)
        return compared

    def time(self, measured, seconds):
        """As run, of peers that were compared elsewhere."""
        return self.time_peers(measured, self.make_peers(measured), seconds)

    def check_peers(self, measured, peers):
        return agreement.check(measured, peers, self.gradient, self.elements, self.loops)

    def time_peers(self, measured, peers, seconds):
        report = {"compressor": measured.name, "settings": measured.settings, "elements": self.elements}
        for call in measured.calls:
            share = {"encode": 2 / 3, "decode": 1 / 3, "sync": 1}[call]
            report[call] = figures(take_turns(offered(peers, call), seconds * share))
            for peer in peers.values():
                peer.receive()
        close(peers)
        return report

    def compare_encodes(self, named, seconds, calls_before):
        """Programs of Cinch beside one another, after so many calls of each: milliseconds by name."""
        peers = {measured.name: self.make_own(measured) for measured in named}
        for peer in peers.values():
            peer.encode(calls_before)
        times = take_turns({name: peer.encode for name, peer in peers.items()}, seconds)
        close(peers)
        return {name: 1e3 * each for name, each in times.items()}


def close(peers):
    for peer in peers.values():
        peer.close()


def offered(peers, call):
    return {name: getattr(peer, call) for name, peer in peers.items() if peer.offers(call)}


def ratio(call, peer, goal):
    if peer not in call:
        return "-"
    return f"{call[peer]:.2f}" + (f" (goal {goal:g})" if call[peer] < goal else "")


def cells(report, measured):
    """Encode and decode, or sync: milliseconds, times faster than the loop and than PyTorch."""
    found = []
    for call in (report[name] for name in measured.calls):
        found += [f"{call['ms']:.3f}", ratio(call, "loop", LOOP_GOAL), ratio(call, "torch", measured.torch)]
        if measured.hook:
            found.append(ratio(call, "hook", measured.hook) + " of the hook")
    return found


def print_agreement(measured, compared):
    others = [PEER_NAMES[name] for name in compared if name != "cinch"]
    print(f"{measured.name}: " + (f"agrees with {' and '.join(others)}" if others else "nobody to compare with"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--seconds", type=float, default=6, help="for each program")
    parser.add_argument("--programs", nargs="*", default=[measured.name for measured in PROGRAMS + LIBRARY])
    parser.add_argument("--threads", type=int, default=cores(), help="of each contestant; default all of the machine")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    comparison = Comparison(options.build, options.elements, options.threads)
    if not (options.json or options.check):
        print(f"{'':15}  {'encode ms':>9}  {'/ loop':>16}  {'/ torch':>16}  {'decode ms':>9}  {'/ loop':>16}  {'/ torch':>16}")
    reports = []
    for measured in PROGRAMS + LIBRARY:
        if measured.name not in options.programs:
            continue
        if options.check:
            print_agreement(measured, comparison.check(measured))
            continue
        reports.append(comparison.run(measured, options.seconds))
        if not options.json:
            found = cells(reports[-1], measured)
            print(f"{measured.name:15}  " + "  ".join(f"{cell:>{9 if i % 3 == 0 else 16}}" for i, cell in enumerate(found)), flush=True)
    if options.json:
        print(json.dumps(reports))


if __name__ == "__main__":
    try:
        main()
    except agreement.Disagreement as error:
        sys.exit(f"peers.py: {error}")
