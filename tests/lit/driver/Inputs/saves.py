"""Saves a long program right after it was compiled quickly, then once more after a text that it imports has changed; prints what the
saved images do.

    saves.py CINCH FOLDER

CINCH_CACHE_DIR names the cache. FOLDER gets the program and the images.
"""
import os
import subprocess
import sys

import numpy

cinch_command, folder = sys.argv[1:]
os.environ["CINCH_LIBRARY"] = os.path.join(os.path.dirname(cinch_command), "..", "lib", "libcinch.so")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "runtime", "python"))
import cinch  # noqa: E402

PROGRAM = """import "factor.cinch"
compressor mine(ratio: f32 = 0.25 in (0, 1]) {
  size k = clamp(ceil(ratio * n), 1, n)
  wire { value: [f32; k], index: [u32; k] ascending below n }
  encode(g: [f32; n]) {
    let index = top_k(abs(g), k)
    wire { value: scaled(g)[index], index }
  }
  decode(w) { scatter(w.value, at: w.index, size: n) }
}
"""


def write(name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def payload_of(program):
    with program.session(gradient.size, threads=1) as session:
        return bytes(session.encode(0, gradient))


def saved(program, name):
    path = os.path.join(folder, name)
    program.save(path)
    return path


gradient = numpy.random.default_rng(1).standard_normal(5000).astype(numpy.float32)
source = os.path.join(folder, "mine.cinch")
write("mine.cinch", PROGRAM)
write("factor.cinch", "fn scaled(x: [f32; ..]) -> [f32; ..] { x * 2 }\n")
program = cinch.compile(source)
first = saved(program, "first.image")
subprocess.run([cinch_command, "build", source, "--emit=image", "--output", first + ".full"], check=True)
with open(first, "rb") as image, open(first + ".full", "rb") as full:
    print("as built" if image.read() == full.read() else "other than built")

write("mine.cinch", PROGRAM + "// another text\n")
program = cinch.compile(source)
write("factor.cinch", "fn scaled(x: [f32; ..]) -> [f32; ..] { x * 3 }\n")
second = cinch.load(saved(program, "second.image"))
print("the program in hand" if payload_of(second) == payload_of(program) else "another program")
