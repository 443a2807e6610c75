#!/usr/bin/env python3
"""deaths.py PROGRAM MPIRUN OPTION…: kills the process of one of three ranks in the middle of a step, in an exchange of each kind, each in a launch of its own,
since no rank of a launch can open another transport after that. Open MPI lets the survivors live. They must name rank 1 in time and end. CINCH_LONG=1: all
kinds, else one that Cinch makes of messages, and one that is MPI's."""

import os
import signal
import subprocess
import sys

KINDS = ["all_to_all", "broadcast", "send", "receive", "all_reduce", "reduce_scatter", "all_gather"]
SURVIVORS = [0, 2]
MOST_SECONDS = 90


def run(program: str, launch: list[str], kind: str) -> tuple[bool, str]:
    """Did it end in time, and what was printed."""
    whole = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}  # no shard of the one test
    words = [*launch, "--enable-recovery", "-n", "3", program, "--gtest_filter=MpiDeath.*", "--gtest_brief=1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                          env={**whole, "CINCH_DEATH_IN": kind}) as ranks:
        try:
            return True, ranks.communicate(timeout=MOST_SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(ranks.pid, signal.SIGKILL)
            return False, ranks.communicate()[0]


def main() -> int:
    program, *launch = sys.argv[1:]
    is_long = os.environ.get("CINCH_LONG", "") not in ("", "0")
    failed = 0
    for kind in KINDS if is_long else KINDS[:2]:
        has_ended, output = run(program, launch, kind)
        found = [rank for rank in range(3) if f"rank {rank} has found it" in output]
        is_right = has_ended and found == SURVIVORS
        print(f"{kind}: ranks {found} have found it{'' if is_right else f', not {SURVIVORS}'}{'' if has_ended else ', too late'}")
        if not is_right:
            print(output)
        failed += not is_right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
