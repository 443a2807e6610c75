"""many_names.py FOLDER: a program whose functions have so many variables and helpers that the text's own names
reach 32 and 64, and what it must decode to."""
import os
import sys

import numpy

folder = sys.argv[1]
counts = list(range(26, 34)) + list(range(56, 67))
header = "inline unsigned h(unsigned x) { return x + 1000; }\n"
for count in counts:
    body = " ".join(f"unsigned v{i} = {'x' if i == 0 else f'v{i - 1}'};" for i in range(count))
    header += f"inline unsigned g{count}(unsigned x) {{ {body} return h(v{count - 1}) + ((double)x * 2.0 > 5.0 ? 7u : 0u); }}\n"
program = "".join(f'extern fn g{c}(x: u32) -> u32 from "many.h"\n' for c in counts)
total = " + ".join(f"g{c}(u)" for c in counts)
program += "compressor many {\n  wire { v: [u32; n] }\n  encode(g: [f32; n]) {\n    let u = g as u32\n    wire { v: " + total + " }\n  }\n  decode(w) { w.v as f32 }\n}\n"
for name, text in [("many.h", header), ("many.cinch", program)]:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
x = numpy.arange(8)
numpy.save(os.path.join(folder, "g.npy"), x.astype("f4"))
numpy.save(os.path.join(folder, "wanted.npy"), (len(counts) * (x + 1000 + numpy.where(2 * x > 5, 7, 0))).astype("f4"))
