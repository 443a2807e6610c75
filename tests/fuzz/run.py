#!/usr/bin/env python3
"""Fuzzing: builds the libFuzzer targets with AddressSanitizer and UBSan in build/fuzz and runs them.

    run.py [--seconds N | --minutes N] [--jobs J] [TARGET…]    fuzzes each target for N (60 s)
    run.py --keep [TARGET…]                                    also adds new inputs to tests/fuzz/corpus

A target starts from its kept corpus (and from the files of the tree named below); what it finds on the way stays
in build/fuzz/corpus, where the next run goes on. An input that fails is left in build/fuzz/failures: put it into
tests/fuzz/corpus once it is mended, so that the replay tests hold it. Exit status 1 when a target failed.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "fuzz"

# Target: folders of further first inputs, and the longest input in bytes.
TARGETS = {
    "parser": ([ROOT / "stdlib", ROOT / "tests" / "programs"], 8192),
    "ir_text": ([ROOT / "tests" / "lit" / "passes"], 8192),
    "kir_text": ([], 16384),
    "npy": ([], 512),
    "payload": ([], 1024),
    "image": ([], 8192),
    "state_file": ([], 1024),
}


def build(targets):
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / "build.log"
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 "-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19", "-DCINCH_FUZZ=ON",
                 "-DCINCH_TESTS=OFF", "-DCINCH_SANITIZE=address,undefined",
                 "-DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link"]
    with log.open("w") as out:
        for command in (configure, ["cmake", "--build", BUILD, "--target", *[t + "_fuzz" for t in targets]]):
            if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode:
                sys.exit(f"the fuzz targets do not build: {log}")


def limits(target):
    return [f"-max_len={TARGETS[target][1]}", "-timeout=20", "-rss_limit_mb=3000", "-malloc_limit_mb=1000"]


def fuzz(target, seconds):
    """Runs one target. Gives its exit status and the last lines of its log."""
    found, failures = BUILD / "corpus" / target, BUILD / "failures"
    for folder in (found, failures):
        folder.mkdir(parents=True, exist_ok=True)
    inputs = [found, HERE / "corpus" / target, *TARGETS[target][0]]
    log = BUILD / f"{target}.log"
    with log.open("w") as out:
        code = subprocess.run([BUILD / "bin" / f"{target}_fuzz", f"-max_total_time={seconds}", "-print_final_stats=1",
                               f"-artifact_prefix={failures}/{target}-", *limits(target),
                               *[f for f in inputs if f.is_dir()]],
                              stdout=out, stderr=subprocess.STDOUT).returncode
    lines = log.read_text(errors="replace").splitlines()
    executed = [line.split()[-1] for line in lines if line.startswith("stat::number_of_executed_units")]
    return code, executed[0] if executed else "?", lines[-25:]


def keep(target):
    """Adds to the kept corpus the inputs that reach something that no kept one does."""
    kept = HERE / "corpus" / target
    kept.mkdir(parents=True, exist_ok=True)
    inputs = [BUILD / "corpus" / target]
    subprocess.run([BUILD / "bin" / f"{target}_fuzz", "-merge=1", *limits(target), kept, *inputs],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (all)")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--minutes", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    build(targets)
    seconds = 60 * options.minutes if options.minutes else options.seconds
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for target, (code, executed, tail) in zip(targets, pool.map(lambda t: fuzz(t, seconds), targets)):
            print(f"{target}: {'failed' if code else 'passed'}, {executed} inputs in {seconds} s", flush=True)
            if code:
                failed += 1
                print("\n".join(tail))
    if options.keep and not failed:
        for target in targets:
            keep(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
