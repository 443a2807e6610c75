#!/usr/bin/env python3
"""launches.py PROGRAM ranks|deaths: starts ranks over UCX, over TCP and over shared memory, as processes that find each other at a port of this machine.
`ranks` runs their tests with several numbers of ranks. `deaths` kills or stops one of three ranks in an exchange of each kind; the survivors must name rank
1 in time and end. CINCH_LONG=1: all numbers and kinds, else a part of them."""

import os
import random
import signal
import subprocess
import sys
import time

KINDS = ["all_to_all", "send", "receive", "broadcast", "all_reduce", "reduce_scatter", "all_gather"]
PATHS = ["tcp", "posix,self"]
SURVIVORS = [0, 2]
MOST_SECONDS = 90
IS_LONG = os.environ.get("CINCH_LONG", "") not in ("", "0")


def start(program: str, world: int, path: str, test_filter: str, more: dict[str, str]) -> list[subprocess.Popen]:
    whole = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}
    # Below the ports that the system gives by itself; tests use one after the other from there on.
    common = {**whole, **more, "WORLD_SIZE": str(world), "CINCH_PORT": str(random.randrange(10000, 30000, 20)), "CINCH_SECRET": "open sesame",
              "CINCH_UCX_PATHS": path}
    return [subprocess.Popen([program, f"--gtest_filter={test_filter}", "--gtest_brief=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**common, "RANK": str(rank)}) for rank in range(world)]


def end(ranks: list[subprocess.Popen], doomed: list[int], most_seconds: float) -> tuple[bool, list[str]]:
    """Did those that are not doomed end in time, and what each rank printed. Nobody is left."""
    deadline = time.monotonic() + most_seconds
    outputs = ["" for _ in ranks]
    in_time = True
    for number, rank in enumerate(ranks):
        if number in doomed:
            continue
        try:
            outputs[number] = rank.communicate(timeout=max(0.1, deadline - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            in_time = False
    for number, rank in enumerate(ranks):
        if rank.poll() is None:
            rank.send_signal(signal.SIGKILL)
        if not outputs[number]:
            outputs[number] = rank.communicate()[0]
    return in_time, outputs


def run_ranks(program: str) -> int:
    failed = 0
    worlds = [(world, path) for world in (1, 2, 3, 4, 5, 8) for path in PATHS] if IS_LONG else [(3, PATHS[0]), (4, PATHS[1])]
    for world, path in worlds:
        ranks = start(program, world, path, "UcxRanks.*", {})
        in_time, outputs = end(ranks, [], 14000 if IS_LONG else 120)
        is_right = in_time and all(rank.returncode == 0 for rank in ranks)
        print(f"{world} ranks over {path}: {'as they should be' if is_right else 'FAILED'}")
        if not is_right:
            print("\n".join(outputs))
        failed += not is_right
    return failed


def run_deaths(program: str) -> int:
    failed = 0
    everyday = [(KINDS[0], "kill"), (KINDS[3], "stop")]
    for path in PATHS:
        for kind, by in [(kind, by) for kind in KINDS for by in ("kill", "stop")] if IS_LONG else everyday:
            ranks = start(program, 3, path, "UcxDeath.*", {"CINCH_DEATH_IN": kind, "CINCH_DEATH_BY": by})
            in_time, outputs = end(ranks, [1], MOST_SECONDS)
            found = [rank for rank in range(3) if f"rank {rank} has found it" in outputs[rank]]
            is_right = in_time and found == SURVIVORS
            print(f"{by} in {kind} over {path}: ranks {found} have found it{'' if is_right else f', not {SURVIVORS}'}{'' if in_time else ', too late'}")
            if not is_right:
                print("\n".join(outputs))
            failed += not is_right
    return failed


def main() -> int:
    program, what = sys.argv[1:]
    return 1 if (run_ranks if what == "ranks" else run_deaths)(program) else 0


if __name__ == "__main__":
    sys.exit(main())
