"""first_use.py PREFIX [--cpu LEVEL] [--rounds N]: what the first use of each program of the library takes in an installed tree, as an installed
Cinch knows it: compiled, with a cache of its own that is empty and without a compiler. A process for each time, from `cinch.compile` to a
program, with the compiler library opened in it; and the same again in a process that has used another program before. Prints milliseconds:
medians and least over rounds, in turns, and the least of the processor's time, which other work on the machine disturbs less. Needs the Python package's dependencies and `./dev build` before `cmake --install`."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = """
import json, sys, time
import cinch
def seconds(name):
    wall, processor = time.perf_counter(), time.process_time()
    cinch.compile(name, **json.loads(sys.argv[2]))
    return time.perf_counter() - wall, time.process_time() - processor
if len(sys.argv) > 3:
    seconds(sys.argv[3])
print(*seconds(sys.argv[1]))
"""


def names(prefix):
    listed = subprocess.run([prefix / "bin/cinch", "list", "--json"], check=True, capture_output=True, text=True).stdout
    return [entry["name"] for entry in json.loads(listed) if entry["family"] != "wrap"]


def measure(prefix, home, program, options, before):
    """Milliseconds: by the clock, and of the processor."""
    environment = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(ROOT / "runtime/python"), "CINCH_LIBRARY": str(prefix / "lib/libcinch.so.1"),
                   "CINCH_CLANG_LIBRARY": "/none", "CINCH_NVRTC": "/none", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", CODE, program, json.dumps(options), *before]
    seconds = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd="/").stdout.split()
    return [1e3 * float(value) for value in seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    programs = names(given.prefix)
    first, later = ({name: [] for name in programs} for _ in range(2))
    with tempfile.TemporaryDirectory() as home:
        for _ in range(given.rounds):
            for name in programs:
                first[name].append(measure(given.prefix, home, name, {"cpu": given.cpu}, []))
                later[name].append(measure(given.prefix, home, name, {"cpu": given.cpu}, ["fp16" if name != "fp16" else "bf16"]))
    columns = {}
    for kind, measured in (("first", first), ("later", later)):
        by_clock, of_processor = ([[value[i] for value in measured[name]] for name in programs] for i in (0, 1))
        columns |= {kind: list(map(statistics.median, by_clock)), f"{kind} least": list(map(min, by_clock)), f"{kind} cpu": list(map(min, of_processor))}
    print(f"{'ms':<16}" + "".join(f"{column:>12}" for column in columns))
    rows = [*zip(programs, *columns.values()), ("median", *map(statistics.median, columns.values())), ("most", *map(max, columns.values()))]
    for name, *values in rows:
        print(f"{name:<16}" + "".join(f"{value:12.2f}" for value in values))


if __name__ == "__main__":
    main()
