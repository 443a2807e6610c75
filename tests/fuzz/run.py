#!/usr/bin/env python3
"""Fuzzing: builds the libFuzzer programs of the preset `asan` (AddressSanitizer, UBSan) and runs them.

    run.py [--seconds N | --minutes N | --in-all N] [--jobs J] [TARGET…]
                             fuzzes each target for N (60 s); --in-all: all of them together take about N seconds
    run.py --keep [TARGET…]  also adds new inputs to tests/fuzz/corpus

Targets are those of targets.py: `parser`, `decoder:qsgd`, …; `decoder` is all decoders. A target starts from its kept
corpus (and from files of the tree); what it finds on the way stays in build/fuzz/corpus, where the next run goes on. An
input that fails is left in build/fuzz/failures, and its path is printed: put it into tests/fuzz/corpus once it is mended,
so that the replay tests hold it. Exit status 1 when a target failed.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys

from targets import CORPUS, ROOT, TARGETS

ASAN = ROOT / "build" / "asan"
BUILD = ROOT / "build" / "fuzz"


def build(targets, jobs):
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / "build.log"
    executables = sorted({TARGETS[t].executable for t in targets})
    with log.open("w") as out:
        for command in (["cmake", "--preset", "asan", "-DCINCH_TESTS=ON"],
                        ["cmake", "--build", "--preset", "asan", "-j", str(jobs), "--target", *executables]):
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT).returncode:
                sys.exit(f"the fuzz targets do not build: {log}")


def command_of(name):
    target = TARGETS[name]
    return [ASAN / "tests" / target.executable, f"-max_len={target.max_bytes}", "-timeout=20", "-rss_limit_mb=3000",
            "-malloc_limit_mb=1000"]


def environment_of(name):
    return {**os.environ, "CINCH_FUZZ_PROGRAM": TARGETS[name].program}


def fuzz(name, seconds):
    """Runs one target. Gives its exit status, how many inputs it executed, and its log."""
    target = TARGETS[name]
    found, failures = BUILD / "corpus" / target.corpus, BUILD / "failures"
    for folder in (found, failures):
        folder.mkdir(parents=True, exist_ok=True)
    inputs = [found, CORPUS / target.corpus, *target.folders]
    log = BUILD / f"{target.corpus}.log"
    with log.open("w") as out:
        code = subprocess.run([*command_of(name), f"-max_total_time={seconds}", "-print_final_stats=1",
                               f"-artifact_prefix={failures}/{target.corpus}-", *[f for f in inputs if f.is_dir()]],
                              env=environment_of(name), stdout=out, stderr=subprocess.STDOUT).returncode
    lines = log.read_text(errors="replace").splitlines()
    executed = [line.split()[-1] for line in lines if line.startswith("stat::number_of_executed_units")]
    return code, executed[0] if executed else "?", lines


def report_failure(lines):
    """What was wrong, and where the input is."""
    print("\n".join(lines[-40:]))
    for line in lines:
        if "Test unit written to " in line:
            print(f"the input: {line.split('Test unit written to ')[1]}", flush=True)


def keep(name):
    """Adds to the kept corpus the inputs that reach something that no kept one does."""
    kept = CORPUS / TARGETS[name].corpus
    kept.mkdir(parents=True, exist_ok=True)
    subprocess.run([*command_of(name), "-merge=1", kept, BUILD / "corpus" / TARGETS[name].corpus],
                   env=environment_of(name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def chosen(parser, names):
    targets = [t for name in names for t in TARGETS if name in (t, t.split(":")[0])] if names else list(TARGETS)
    if unknown := [name for name in names if not any(name in (t, t.split(":")[0]) for t in TARGETS)]:
        parser.error(f"no such target: {', '.join(unknown)}")
    return targets


def seconds_of(name, options, num_targets):
    if options.in_all:
        return max(1, options.in_all * options.jobs // num_targets - TARGETS[name].start_seconds)
    return 60 * options.minutes if options.minutes else options.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (all)")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--minutes", type=int)
    parser.add_argument("--in-all", type=int, help="seconds for all targets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    targets = chosen(parser, options.targets)
    build(targets, options.jobs)
    seconds = [seconds_of(name, options, len(targets)) for name in targets]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, given, (code, executed, lines) in zip(targets, seconds, pool.map(fuzz, targets, seconds)):
            print(f"{name}: {'failed' if code else 'passed'}, {executed} inputs in {given} s", flush=True)
            if code:
                failed += 1
                report_failure(lines)
    if options.keep and not failed:
        for name in targets:
            keep(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
