"""Compiles a program for the CPU through the C API and prints a digest of the code that it has loaded: quick code has another one.

    code_digest.py CINCH PROGRAM
"""
import hashlib
import os
import re
import sys

cinch_command, program_name = sys.argv[1:]
os.environ["CINCH_LIBRARY"] = os.path.join(os.path.dirname(cinch_command), "..", "lib", "libcinch.so")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "runtime", "python"))
import cinch  # noqa: E402

program = cinch.compile(program_name)
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
    for line in maps:
        if re.search("r-xp .*memfd:.*kernels", line):
            begin, end = (int(place, 16) for place in line.split()[0].split("-"))
            memory.seek(begin)
            print("code", hashlib.sha256(memory.read(end - begin)).hexdigest())
