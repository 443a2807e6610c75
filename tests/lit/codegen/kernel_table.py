#!/usr/bin/env python3
"""kernel_table.py CINCH TABLE [--write]: kernels, sweeps and bytes of every entry of the library and of programs of no name.

A row: program, entry, kernels, sweeps in the best and the worst case, bytes read and written per element in the worst case, of a
million elements. What differs from the table is printed. Fewer is written down with --write; more is a loss that wants a reason."""
import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
NO_NAME = ["changed_before_read", "changed_copies", "changed_while_read", "changed_after_packing", "scatters", "filters", "states", "loops",
           "matrix_rows", "running_sums", "row_transforms", "packed_fields"]
ENTRIES = ("encode", "decode", "decode_add", "finish", "sync")
FIGURES = ("kernels", "sweeps_least", "sweeps_most", "read_per_element", "written_per_element")


def library():
    for folder, _, files in sorted(os.walk(os.path.join(ROOT, "stdlib"))):
        if os.path.basename(folder) not in ("wrap", "parts"):  # these do not stand alone
            yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".cinch"))


def rows(cinch, path):
    name = os.path.splitext(os.path.basename(path))[0]
    command = [cinch, "explain", path, "--elements", "1000000", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for entry in ENTRIES:
        if entry in report:
            yield " ".join([name, entry] + [f"{report[entry][figure]:.6g}" for figure in FIGURES])


def main():
    cinch, table = sys.argv[1:3]
    paths = list(library()) + [os.path.join(ROOT, "tests", "programs", name + ".cinch") for name in NO_NAME]
    found = [row for path in paths for row in rows(cinch, path)]
    if sys.argv[3:] == ["--write"]:
        with open(table, "w") as file:
            file.write("\n".join(found) + "\n")
        return 0
    with open(table) as file:
        wanted = file.read().splitlines()
    for row in sorted(set(wanted) ^ set(found)):
        print("table has" if row in wanted else "found    ", row)
    print(f"{len(found)} entries of {len(paths)} programs")
    return 0 if wanted == found else 1


sys.exit(main())
