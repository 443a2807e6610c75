#!/usr/bin/env python3
"""Ranks over UCX beside the same over MPI: a gather of 8 bytes from each of four ranks, and an all-to-all of 64 MiB a rank, over TCP and over shared memory.

    ranks.py BUILD [--ranks N] [--turns N] [--repeats N]

BUILD is a build folder with tests/bench_ranks. The two take turns; figures are medians over turns, ratios are within this run: UCX's bandwidth over MPI's, and
UCX's time of a gather. Goals: 0.3 ms, 0.8. Nothing fails on time. Nothing else should run.
"""
import argparse
import os
import random
import statistics
import subprocess
from pathlib import Path

MPI_PATHS = {"tcp": "self,tcp", "memory": "self,vader"}
UCX_PATHS = {"tcp": "tcp", "memory": "self,posix"}
GOAL_GATHER_MS, GOAL_BANDWIDTH = 0.3, 0.8
BYTES = 64 << 20


def program(options):
    return next(path for path in (Path(options.build) / "bin" / "bench_ranks", Path(options.build) / "tests" / "bench_ranks") if path.exists())


def read(text):
    return {name: float(value) for name, value in (line.split() for line in text.splitlines() if line.split()[0] in ("gather", "all_to_all"))}


def run_mpi(options, path):
    words = ["mpirun", "--oversubscribe", "--mca", "btl", MPI_PATHS[path], "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo",
             "-n", str(options.ranks), program(options), "mpi", str(options.repeats)]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return read(subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout)


def run_ucx(options, path):
    environment = {**os.environ, "WORLD_SIZE": str(options.ranks), "CINCH_RENDEZVOUS": f"127.0.0.1:{random.randrange(10000, 30000)}",
                   "CINCH_SECRET": "bench", "CINCH_INTERFACE": "lo", "UCX_TLS": UCX_PATHS[path]}
    ranks = [subprocess.Popen([program(options), "ucx", str(options.repeats)], stdout=subprocess.PIPE, text=True, env={**environment, "RANK": str(rank)})
             for rank in range(options.ranks)]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit("a rank failed")
    return read(outputs[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    print(f"{options.ranks} ranks, {os.cpu_count()} cores; medians of {options.turns} turns\n")
    for path in MPI_PATHS:
        turns = [(run_mpi(options, path), run_ucx(options, path)) for _ in range(options.turns)]
        mpi, ucx = ({name: statistics.median(turn[i][name] for turn in turns) for name in ("gather", "all_to_all")} for i in range(2))
        sent = BYTES * (options.ranks - 1) / options.ranks / 1e9
        print(f"{path}: gather of 8 bytes: UCX {1e3 * ucx['gather']:.3f} ms, MPI {1e3 * mpi['gather']:.3f} ms (goal {GOAL_GATHER_MS} ms)")
        print(f"{path}: all-to-all of 64 MiB: UCX {sent / ucx['all_to_all']:.3f} GB/s, MPI {sent / mpi['all_to_all']:.3f} GB/s, "
              f"ratio {mpi['all_to_all'] / ucx['all_to_all']:.2f} (goal {GOAL_BANDWIDTH})")


if __name__ == "__main__":
    main()
