"""confine.py FOLDER headers|imports CINCH: what `check --confine FOLDER/own` says of files within and outside, of links that lead out, and of the library."""

import os
import subprocess
import sys

folder, kind, cinch = sys.argv[1:]
own = os.path.join(folder, "own")
os.makedirs(os.path.join(own, "deep"), exist_ok=True)


def write(path, text):
    with open(os.path.join(folder, path), "w", encoding="ascii") as file:
        file.write(text)


def link(path, to):
    if not os.path.lexists(os.path.join(folder, path)):
        os.symlink(to, os.path.join(folder, path))


write("outside.h", "inline float f(float x) { return secret; }\n")
write("outside.cinch", "const SECRET = 1 +\n")
link("own/link.h", "../outside.h")
link("own/link.cinch", "../outside.cinch")
write("own/through.h", '#include "../outside.h"\n')
write("own/deep/good.h", "#include <cmath>\ninline float f(float x) { return sqrtf(x); }\n")
write("own/deep/good.cinch", "const GOOD = 1\n")
if kind == "headers":
    names = ("../outside.h", os.path.abspath(os.path.join(folder, "outside.h")), "link.h", "through.h", "deep/good.h")
else:
    names = ("../outside.cinch", os.path.abspath(os.path.join(folder, "outside.cinch")), "link.cinch", "deep/../../outside.cinch", "deep/good.cinch", "std.sparsify.topk")
for name in names:
    quoted = name if name.startswith("std.") else f'"{name}"'
    write("own/import.cinch", f"extern fn f(x: f32) -> f32 from {quoted}\n" if kind == "headers" else f"import {quoted}\n")
    found = subprocess.run([cinch, "check", os.path.join(own, "import.cinch"), "--confine", own], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(found.stdout if found.returncode else f"{name} is read", flush=True)
