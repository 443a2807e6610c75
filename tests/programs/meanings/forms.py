#!/usr/bin/env python3
"""forms.py CINCH: what forms of the language mean, by numpy.

Each row has statements, an expression of an array of f32, and its value as docs/language.md says, computed here without Cinch. The
interpreter, the CPU and the emulated GPU must give it bit by bit."""
import sys

import numpy as np

from running import run

ROWS, COLS = 5, 8
SIZE = ROWS * COLS
F32 = np.float32
GRADIENT = (np.arange(SIZE, dtype=np.float32) - 11.5) * F32(0.75)
BYTES = GRADIENT.view(np.uint32) >> np.uint32(20) & np.uint32(0xff)
MATRIX = GRADIENT.reshape(ROWS, COLS)
ROW = MATRIX[1]
ODD = ROW.view(np.uint32) >> np.uint32(20) & np.uint32(1) == 1
AS_BYTES = "    let bytes = ((bitcast<u32>(g) >> 20) & 0xff) as u8\n"
AS_MATRIX = ("    let m = reshape(g, 5, 8)\n    let row = m[1]\n"
             "    let odd = ((bitcast<u32>(row) >> 20) & 1) == 1\n")


def padded(values):
    values = np.asarray(values, np.float32).ravel()
    return np.concatenate([values, np.zeros(SIZE - len(values), np.float32)])


def with_row_at(rows, value):
    changed = MATRIX.copy()
    changed[rows] = value
    return changed


# (what, statements, expression, its value)
FORMS = [
    # A fn of scalars that gives several values, element by element.
    ("tuple_sum", "    let (a, b) = both(g, 2.0)\n", "a + b", (GRADIENT + F32(2)) + GRADIENT * F32(2)),
    ("tuple_of_two", "    let (a, b) = both(g, -g)\n", "a - b", (GRADIENT + -GRADIENT) - GRADIENT * -GRADIENT),
    ("tuple_types", "    let (whole, rest) = parts(g)\n", "(whole as f32) + rest",
     np.trunc(GRADIENT) + (GRADIENT - np.trunc(GRADIENT))),
    ("tuple_matrix", AS_MATRIX + "    let (a, b) = both(m, row)\n", "reshape(a + b, n)", ((MATRIX + ROW) + MATRIX * ROW).ravel()),
    ("tuple_of_one_draw", "    let (a, b) = drawn(g)\n", "a - b", np.zeros(SIZE, np.float32)),
    # A vector beside a matrix is its row.
    ("row_mask_count", AS_MATRIX, "fill(count(m > 0, where: odd) as f32, n)", np.full(SIZE, ((MATRIX > 0) & ODD).sum(), np.float32)),
    ("row_mask_max", AS_MATRIX, "scatter(reshape(max(m, where: odd, axis: 1), 5), at: iota(5), size: n)",
     padded(np.where(ODD, MATRIX, -np.inf).max(axis=1))),
    ("row_mask_min_of_columns", AS_MATRIX, "scatter(reshape(select(odd, min(m, where: odd, axis: 0), 0.0), 8), at: iota(8), size: n)",
     padded(np.where(ODD, MATRIX.min(axis=0), 0))),
    ("row_of_all", AS_MATRIX + "    let mut x = m\n    x = row\n", "reshape(x, n)", with_row_at(slice(None), ROW).ravel()),
    ("row_at_some", AS_MATRIX + "    let mut x = m\n    x[iota(2)] = row\n", "reshape(x, n)", with_row_at([0, 1], ROW).ravel()),
    ("row_at_range", AS_MATRIX + "    let mut x = m\n    x[2..4] = row\n", "reshape(x, n)", with_row_at([2, 3], ROW).ravel()),
    ("row_is_added", AS_MATRIX + "    let mut x = m\n    x[2..4] += row\n", "reshape(x, n)",
     with_row_at([2, 3], MATRIX[2:4] + ROW).ravel()),
    # Reductions of nothing, and of elements that a mask excludes.
    ("least_of_nothing", "    let least = min(g as i32, where: g > 1000)\n", "fill(select(least == 2147483647, 1.0, 0.0), n)", np.ones(SIZE)),
    ("most_of_nothing", "    let most = max(g as i64, where: g > 1000)\n", "fill(select(most == -9223372036854775808, 1.0, 0.0), n)",
     np.ones(SIZE)),
    ("most_of_no_u32", "    let most = max(bitcast<u32>(g), where: g > 1000)\n", "fill(most as f32, n)", np.zeros(SIZE)),
    ("least_of_no_bytes", AS_BYTES + "    let least = min(bytes, where: g > 1000)\n", "fill(select(least == 2147483647, 1.0, 0.0), n)",
     np.ones(SIZE)),
    ("kth_of_no_bytes", AS_BYTES, "fill(kth_largest(bytes, 0) as f32, n)", np.full(SIZE, 255)),
    ("kth_of_zeros", "    let zeros = select(iota(n) % 2 == 0, -0.0, 0.0)\n",
     "fill(select(bitcast<u32>(kth_largest(-abs(zeros), n)) == 0 && bitcast<u32>(kth_largest(zeros, 1)) == 0, 1.0, 0.0), n)",
     np.ones(SIZE)),
    ("argmax_of_nothing", "", "fill(argmax(g, where: g > 1000) as f32, n)", np.zeros(SIZE)),
    ("counted_of_some", "", "scatter(histogram((g as i32), bins: 4) as f32, at: iota(4), size: n)",
     np.concatenate([np.bincount(np.trunc(GRADIENT).astype(int)[np.trunc(GRADIENT) >= 0], minlength=4)[:4], np.zeros(SIZE - 4)])),
    # Bits of a narrow integer.
    ("bits_of_one", AS_BYTES + "    let mut x = bytes\n    x[1] &= 0xf\n    x[2] |= bytes[3]\n    x[3] ^= -1\n", "x as f32",
     np.concatenate([BYTES[:1], [BYTES[1] & 0xf, BYTES[2] | BYTES[3], BYTES[3] ^ 0xff], BYTES[4:]]).astype(np.float32)),
    ("bits_of_all", AS_BYTES + "    let mut x = bytes\n    x &= 0x3c\n    x ^= bytes\n", "x as f32",
     ((BYTES & 0x3c) ^ BYTES).astype(np.float32)),
    ("bits_of_shifts", AS_BYTES + "    let mut x = bytes\n    x |= 1 << (g as u8)\n", "x as f32",
     (BYTES | 1 << np.maximum(GRADIENT, 0).astype(int) & 0xff).astype(np.float32)),
    ("bits_of_choices", AS_BYTES + "    let mut x = bytes\n    x |= select(g > 3, 64, 0)\n", "x as f32",
     (BYTES | np.where(GRADIENT > 3, 64, 0)).astype(np.float32)),
    ("bits_of_lookups", AS_BYTES + "    let mut x = bytes\n    x ^= [1, 2, 128][bytes % 3]\n", "x as f32",
     (BYTES ^ np.array([1, 2, 128])[BYTES % 3]).astype(np.float32)),
    ("bits_of_a_size", AS_BYTES + "    let mut x = bytes\n    x[1] ^= n\n    x[2] ^= n - 41\n    x[3] &= n << 4\n", "x as f32",
     np.concatenate([BYTES[:1], [BYTES[1] ^ SIZE, BYTES[2] ^ 0xff, BYTES[3] & (SIZE << 4 & 0xff)], BYTES[4:]]).astype(np.float32)),
    ("bits_of_a_loop", AS_BYTES + "    let mut x = bytes\n    for i in 0..10 { x ^= 1 << i }\n", "x as f32", (BYTES ^ 0xff).astype(np.float32)),
    ("bits_with_a_sign", AS_BYTES + "    let mut x = bitcast<i8>(bytes)\n    x |= 1 << (g as u8)\n    x ^= select(g > 3, -128, 1)\n", "x as f32",
     ((BYTES | 1 << np.maximum(GRADIENT, 0).astype(int) & 0xff).astype(np.uint8).view(np.int8) ^ np.where(GRADIENT > 3, -128, 1).astype(np.int8))
     .astype(np.float32)),
]

TEXT = """
fn both(x: f32, y: f32) -> (f32, f32) {{ let s = x + y; (s, x * y) }}
fn parts(x: f32) -> (i32, f32) {{ (x as i32, x - trunc(x)) }}
fn drawn(x: f32) -> (f32, f32) {{ let r = x + random(1)[0]; (r, r) }}

compressor form {{
  wire {{ value: [f32; n] }}
  encode(g: [f32; n]) {{
{statements}    wire {{ value: {expression} }}
  }}
  decode(w) {{ w.value }}
}}
"""


def main():
    cinch = sys.argv[1]
    for options in (["--interpret"], [], ["--device", "emulated"]):
        for what, statements, expression, expected in FORMS:
            found = run(cinch, TEXT.format(statements=statements, expression=expression), GRADIENT, *options)
            if found.tobytes() != expected.astype(np.float32).tobytes():
                sys.exit(f"{' '.join(options) or 'CPU'}: {what} gives {found}, not {expected}")
    print(f"{len(FORMS)} forms mean what they should on three targets")


main()
