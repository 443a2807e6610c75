"""Compiles a program for the CPU through the C API and compresses with it until its session runs better code, which must give the same
bytes; prints what is in the cache, and what the sessions of this process and of a later one ran at first and at last.

    replaces.py CINCH PROGRAM

CINCH_CACHE_DIR names the cache. Nothing is waited for where CINCH_BACKGROUND turns that off.
"""
import os
import re
import subprocess
import sys
import time

import numpy

cinch_command, program_name = sys.argv[1:]
os.environ["CINCH_LIBRARY"] = os.path.join(os.path.dirname(cinch_command), "..", "lib", "libcinch.so")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "runtime", "python"))
import cinch  # noqa: E402


def code_in_memory():
    """The loaded objects of kernels, by the number of their file in memory."""
    with open("/proc/self/maps") as maps:
        return {line.split()[4] for line in maps if re.search("memfd:.*kernels", line)}


gradient = numpy.random.default_rng(1).standard_normal(5000).astype(numpy.float32)
session = cinch.compile(program_name).session(gradient.size, threads=1)
first_code = code_in_memory()
wanted = bytes(session.encode(0, gradient))
until = time.monotonic() + (120 if os.environ.get("CINCH_BACKGROUND") != "off" else 1)
while code_in_memory() == first_code and time.monotonic() < until:
    assert bytes(session.encode(0, gradient)) == wanted
    time.sleep(0.05)
assert bytes(session.encode(0, gradient)) == wanted
print("replaced" if code_in_memory() != first_code else "kept")
print(len(code_in_memory()), "in memory")
print(subprocess.run([cinch_command, "cache", "show"], stdout=subprocess.PIPE, text=True, check=True).stdout)
