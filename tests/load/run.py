"""run.py BUILD_FOLDER [--times 50] [--seconds 300] [--only REGEX]: the tests that fork, signal, time or limit processes, again and again beside load.

Such a test may hold on an idle machine and fail on a busy one. Two processes for each core compute meanwhile. A test runs --times times, fewer if
it would take more than --seconds. What a failing run printed is kept in BUILD_FOLDER/load, and the first line of the report names it."""
import argparse
import contextlib
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIT = os.path.join(HERE, "..", "lit")
# In a lit test or a script of its own.
SENSITIVE = re.compile(r"os\.kill|send_signal|\.terminate\(|setrlimit|preexec_fn|signal\.|ulimit|timeout")
# Tests of CTest that start, end or limit processes, or hold ranks to time-outs.
BY_CTEST = ["c_api_memory_test", "c_api_small_hosts_test", "runtime_cache_test", "collective_test", "ucx_deaths", "mpi_deaths", "python", "torch"]


def lit_tests():
    """Names of the lit tests that SENSITIVE fits, in the test itself or in what it runs from Inputs."""
    folder = os.path.join(LIT, "driver")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for script in re.findall(r"%S/Inputs/(\w+\.py)", text):
            with open(os.path.join(folder, "Inputs", script), encoding="utf-8") as file:
                text += file.read()
        if SENSITIVE.search(text):
            yield name


def commands(build):
    """(name, command) of each test."""
    known = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    for name in BY_CTEST:
        if re.search(rf": {name}$", known, re.M):
            yield name, ["ctest", "--test-dir", build, "--output-on-failure", "-R", f"^{name}$"]
    for name in lit_tests():
        yield f"driver/{name}", [sys.executable, os.path.join(LIT, "run.py"), build, "--filter", f"driver/{re.escape(name)}$"]


@contextlib.contextmanager
def load():
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(100000))"]) for _ in range(2 * os.cpu_count())]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


def repeat(name, command, args, kept):
    """Prints how often the test ran and failed. Returns the number of failures."""
    begin, runs, failures = time.monotonic(), 0, 0
    while runs < args.times and (runs == 0 or time.monotonic() - begin < args.seconds):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        runs += 1
        if done.returncode != 0:
            failures += 1
            path = os.path.join(kept, f"{name.replace('/', '_')}-{runs}.txt")
            with open(path, "wb") as file:
                file.write(done.stdout)
            print(f"FAIL: {name}, run {runs}: what it printed: {path}", flush=True)
    print(f"{name}: {failures} of {runs} runs failed, {time.monotonic() - begin:.0f} s", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    kept = os.path.join(os.path.abspath(args.build), "load")
    os.makedirs(kept, exist_ok=True)
    with load():
        failures = [repeat(name, command, args, kept) for name, command in commands(args.build) if re.search(args.only, name)]
    sys.exit(1 if any(failures) or not failures else 0)


if __name__ == "__main__":
    main()
