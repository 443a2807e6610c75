#!/usr/bin/env python3
"""Compiles programs that grow, as far as the IR: run.py CINCH. What a program costs is to grow with the program.

A chain of each operator, 8 and 80 links long: ten times the program may become at most so many times the text of IR. Chains of 3000 links (every fourth;
all where CINCH_LONG is set), and each shape whose text is short and whose meaning is not, end in IR or in located diagnostics, in `cinch check` as in
`cinch build`, with 1 GiB of addresses. Nothing here is timed, but what never ends is stopped.
Every second of all; all where CINCH_LONG is set, every eighth where CINCH_SAMPLE is."""
import os
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import shapes

MOST_GROWTH = 12  # for ten times the links
BYTES = 1 << 30
LOCATED = re.compile(r"^\S+\.cinch:\d+:\d+: error\[\w+\]: ")
# All other chains must have room at full length. One link of these is ten operations and more; constants get too deep.
LARGE_OPERATORS = {"argmax", "consts", "if", "if_reduction", "kth_largest", "lambda_table", "orthonormalize", "row_top_k", "thin_matmul", "top_k"}


def limit():
    # A sanitizer's shadow takes addresses by the terabyte.
    if "CINCH_SANITIZE" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, preexec_fn=limit, check=False,
                          env=dict(os.environ, CINCH_CACHE="off", NO_COLOR="1"))


def fault_of(result, may_refuse):
    """What is wrong with how a command ended, or nothing."""
    if result.returncode == 0:
        return None
    errors = [line for line in result.stderr.splitlines() if ": error[" in line]
    if result.returncode == 1 and may_refuse and errors and all(LOCATED.match(line) for line in errors):
        return None
    return f"ended with {result.returncode}: {result.stderr.strip()[:300]}"


class Programs:
    def __init__(self, cinch, folder):
        self.cinch, self.folder = cinch, folder

    def write(self, name, text):
        path = os.path.join(self.folder, f"{name}.cinch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def faults(self, name, text, may_refuse):
        path = self.write(name, text)
        found = [fault_of(run(command), may_refuse)
                 for command in ([self.cinch, "check", path], [self.cinch, "build", f"{path}:grown", "--emit=ir", "--output", "/dev/null"])]
        return [f"{name}: {fault}" for fault in found if fault]

    def ir_lines(self, name, text):
        path = self.write(name, text)
        output = f"{path}.ir"
        result = run([self.cinch, "build", f"{path}:grown", "--emit=ir", "--output", output])
        if result.returncode != 0:
            raise RuntimeError(fault_of(result, False))
        with open(output, encoding="utf-8") as file:
            return sum(1 for _ in file)

    def check_chain(self, name):
        make = shapes.CHAINS[name]
        try:
            short, long = (self.ir_lines(f"{name}_{length}", make(length)) for length in (8, 80))
        except RuntimeError as error:
            return [f"{name}: {error}"]
        faults = [] if long <= MOST_GROWTH * short else [f"{name}: {short} lines of IR become {long}"]
        is_long = os.environ.get("CINCH_LONG") or sorted(shapes.CHAINS).index(name) % 4 == 0
        return faults + (self.faults(f"{name}_3000", make(3000), name in LARGE_OPERATORS) if is_long else [])

    def check_shape(self, name):
        return self.faults(name, shapes.SHAPES[name](), True)


def main():
    step = 8 if os.environ.get("CINCH_SAMPLE") else 1 if os.environ.get("CINCH_LONG") else 2
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(sys.argv[1], folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(programs.check_chain, sorted(shapes.CHAINS)[::step])) + list(pool.map(programs.check_shape, sorted(shapes.SHAPES)[::step]))
    faults = [fault for found in done for fault in found]
    print("\n".join(faults) or f"{len(done)} programs")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
