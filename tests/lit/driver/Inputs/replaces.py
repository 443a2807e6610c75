"""Compiles a program for the CPU through the C API and compresses with it until its session runs better code, which must give the same
bytes; prints what is in the cache, and what the sessions of this process and of a later one ran at first and at last.

    replaces.py CINCH PROGRAM [STATES]

CINCH_CACHE_DIR names the cache. Nothing is waited for where CINCH_BACKGROUND turns that off.
"""
import os
import re
import subprocess
import sys
import time

import numpy

cinch_command, program_name, *states = sys.argv[1:]
os.environ["CINCH_LIBRARY"] = os.path.join(os.path.dirname(cinch_command), "..", "lib", "libcinch.so")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "runtime", "python"))
import cinch  # noqa: E402


def code_in_memory():
    """The loaded objects of kernels, by the number of their file in memory."""
    with open("/proc/self/maps") as maps:
        return {line.split()[4] for line in maps if re.search("memfd:.*kernels", line)}


gradient = numpy.random.default_rng(1).standard_normal(5000).astype(numpy.float32)
program = cinch.compile(program_name, states=states[0] if states else "second_buffer")
session = program.session(gradient.size, threads=1)
payload = bytes(session.encode(0, gradient))


def result():
    """The same at every call: states make other payloads of the same gradient, but do not change what a payload decodes to."""
    encoded = b"" if program.states else bytes(session.encode(0, gradient))
    return encoded + session.decode(0, payload).tobytes()


first_code, wanted = code_in_memory(), result()
# Better code is made at the lowest priority, so beside other tests it takes its time.
until = time.monotonic() + (600 if os.environ.get("CINCH_BACKGROUND") != "off" else 1)
while code_in_memory() == first_code and time.monotonic() < until:
    assert result() == wanted
    time.sleep(0.05)
assert result() == wanted
print("replaced" if code_in_memory() != first_code else "kept")
print(len(code_in_memory()), "in memory")
print(subprocess.run([cinch_command, "cache", "show"], stdout=subprocess.PIPE, text=True, check=True).stdout)
