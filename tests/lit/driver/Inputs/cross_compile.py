"""cross_compile.py CINCH FOLDER: programs of the library for AArch64 (every 20th; all where CINCH_LONG is set), as an object in process,
and from its source by clang++-19 where that is installed. Fails where one does not compile, or where an object needs a symbol that it has not."""
import json
import os
import shutil
import struct
import subprocess
import sys

TARGET = ["--target", "aarch64"]
EM_AARCH64 = 183
NM = "/usr/lib/llvm-19/bin/llvm-nm"
CLANG = shutil.which("clang++-19")


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


def main():
    cinch, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    names = [item["name"] for item in json.loads(output_of(cinch, "list", "--json")) if item["family"] != "wrap"]
    if os.environ.get("CINCH_LONG", "0") in ("", "0"):
        names = names[::20]
    for name in names:
        path = os.path.join(folder, name + ".o")
        output_of(cinch, "build", name, "--emit=object", *TARGET, "--output", path)
        with open(path, "rb") as file:
            machine, = struct.unpack("<18xH", file.read(20))
        assert machine == EM_AARCH64, (name, machine)
        needed = output_of(NM, "--undefined-only", path, text=True)
        assert "__asan" in needed or needed == "", (name, needed)
        if CLANG:
            source = output_of(cinch, "build", name, "--emit=source", *TARGET)
            output_of(CLANG, "--target=aarch64-linux-gnu", "-std=c++20", "-ffreestanding", "-fsyntax-only", "-Werror", "-x", "c++", "-",
                      input=source)
    print(len(names), "objects,", len(names) if CLANG else "no", "sources")


main()
