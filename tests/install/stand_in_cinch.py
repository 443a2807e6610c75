#!/usr/bin/env python3
"""In place of `cinch build FILE… --target T,… --name LIB --output DIR`: writes a library of one function, which says how many bytes the
first program has, and adds its arguments to the file that STAND_IN_LOG names."""
import argparse
import os
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["build"])
parser.add_argument("programs", nargs="+")
parser.add_argument("--target", required=True)
parser.add_argument("--name", required=True)
parser.add_argument("--output", required=True)
given = parser.parse_args()
with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as log:
    log.write(" ".join([*map(os.path.basename, given.programs), given.target]) + "\n")

os.chdir(given.output)
function = "int %s_num_bytes(void)" % given.name
source = function + " { return %d; }\n" % os.path.getsize(given.programs[0])
for name, text in [(".h", function + ";\n"), (".hpp", ""), (".json", "{}\n"), (".c", source)]:
    with open(given.name + name, "w", encoding="utf-8") as file:
        file.write(text)
with open(given.name + ".d", "w", encoding="utf-8") as file:
    file.write("%s/lib%s.a: %s\n" % (given.output, given.name, given.programs[0]))
library, compiler = "lib" + given.name, os.environ.get("CC", "cc")
subprocess.run([compiler, "-c", "-fPIC", given.name + ".c"], check=True)
subprocess.run(["ar", "rcs", library + ".a", given.name + ".o"], check=True)
subprocess.run([compiler, "-shared", "-o", library + ".so", given.name + ".o", "-Wl,-soname," + library + ".so"], check=True)
