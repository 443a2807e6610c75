"""gradient_folder.py FOLDER NAME:SHAPE…: an .npy file of made-up numbers for each ("a:64x32"); NAME:SHAPE:i4 and NAME:SHAPE:nan for files
that no program takes."""
import os
import random
import struct
import sys


def write(path, shape, kind):
    count = 1
    for size in shape:
        count *= size
    draws = random.Random(path.rsplit("/", 1)[-1])
    if kind == "i4":
        body = struct.pack(f"<{count}i", *range(count))
    else:
        values = [draws.gauss(0, 0.01) for _ in range(count)]
        if kind == "nan":
            values[count // 2] = float("nan")
        body = struct.pack(f"<{count}f", *values)
    sizes = "".join(f"{size}, " for size in shape)
    head = f"{{'descr': '{'<i4' if kind == 'i4' else '<f4'}', 'fortran_order': False, 'shape': ({sizes}), }}"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + head.encode().ljust(117) + b"\n" + body)


os.makedirs(sys.argv[1], exist_ok=True)
for word in sys.argv[2:]:
    name, shape, *kind = word.split(":")
    write(os.path.join(sys.argv[1], name + ".npy"), [int(size) for size in shape.split("x") if size], kind[0] if kind else "f4")
