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
REVERSED = GRADIENT[::-1]
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


WHOLE = np.maximum(GRADIENT, 0).astype(int).astype(object)


def wrapped(numbers, bits):
    """Python's integers in an unsigned type; of 64 bits the high half."""
    return np.array([float((int(x) & (1 << bits) - 1) >> (32 if bits == 64 else 0)) for x in numbers]).astype(np.float32)


def joined(rows):
    """The sums of rows of 8 numbers, in the language's order."""
    halves = rows[:, :4] + rows[:, 4:]
    quarters = halves[:, :2] + halves[:, 2:]
    return (quarters[:, :1] + quarters[:, 1:]).ravel()


def in_order(rows):
    """The sums of columns of 5 numbers, in the language's order."""
    return ((rows[0] + rows[4]) + rows[2]) + (rows[1] + rows[3])


ROW_SUMS = joined(MATRIX).reshape(ROWS, 1)


def stored():
    """MATRIX after the stores of `stores`."""
    x = MATRIX.copy()
    x[:, 3] = 0.5
    x[1:3, 4:6] = 9
    x[0, 1] = 5
    x[3, 2:] += ROW[2:]
    x[np.arange(3), 7 - np.arange(3)] *= -1
    x[[4, 2], :2] -= ROW[:2]
    x[1:, [7, 0]] = np.arange(8, dtype=np.float32).reshape(4, 2)
    x[2, [5, 6]] += 100
    x[4, :] = 1
    return x


def stored_in_rounds():
    x = MATRIX.copy()
    for i in range(4):
        x[i:i + 2, i] = x[i + 1, i + 1:i + 3] + F32(i)
    return x


KEPT = (np.arange(SIZE) * 7 % 5) < 3

# (what, statements, expression, its value)
FORMS = [
    # A fn of scalars that gives several values, element by element.
    ("tuple_sum", "    let (a, b) = both(g, 2.0)\n", "a + b", (GRADIENT + F32(2)) + GRADIENT * F32(2)),
    ("tuple_of_two", "    let (a, b) = both(g, -g)\n", "a - b", (GRADIENT + -GRADIENT) - GRADIENT * -GRADIENT),
    ("tuple_types", "    let (whole, rest) = parts(g)\n", "(whole as f32) + rest",
     np.trunc(GRADIENT) + (GRADIENT - np.trunc(GRADIENT))),
    ("tuple_matrix", AS_MATRIX + "    let (a, b) = both(m, row)\n", "reshape(a + b, n)", ((MATRIX + ROW) + MATRIX * ROW).ravel()),
    # A fn that gives several values, those of one branch or another.
    ("branches_of_elements", "    let (a, b) = ordered(g, g[n - 1 - iota(n)])\n", "a - 2 * b",
     np.minimum(GRADIENT, REVERSED) - F32(2) * np.maximum(GRADIENT, REVERSED)),
    ("branches_of_arrays", "    let (x, k, up) = turned(g, g[0])\n    let (y, l, down) = turned(g, -g[0])\n",
     "select(up || !down, 0.0, x * (k as f32) + y * (l as f32))", -GRADIENT * F32(3) + REVERSED * F32(4)),
    ("branches_of_counts", "    let s = if sum(g) > 1e9 { 1 } else { 2 }\n    let (a, b) = if s == 1 { (g, 1) } else { let y = g * g; (y, s) }\n",
     "a * b", GRADIENT * GRADIENT * F32(2)),
    ("branches_of_branches", "    let (a, b) = thirds(g)\n", "a + 100 * b",
     np.select([GRADIENT < 0, GRADIENT < 9], [-GRADIENT + F32(100), GRADIENT + F32(200)], GRADIENT * GRADIENT + F32(300))),
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
    # A variable that begins with a quotient.
    ("mutable_quotient", "    let mut x = 1 / 2\n    x += 1\n    let mut y = 6 / 2\n    y += 1\n", "g * x + fill(y as f32, n)",
     GRADIENT * F32(1.5) + F32(4)),
    ("mutable_quotients", "    let mut x = [1 / 2, 2]\n    x[1] += 1\n    let mut y = n / 3\n", "fill(sum(x) + (y as f32), n)",
     np.full(SIZE, 16.5)),
    # Numbers of loops that are negative, by name and without, beside unsigned integers.
    *((f"negative_{what}_{bits}", f"    let mut x = (max(g, 0.0) as u32) as u{bits}\n    for i in 0..2 {{ let t = i - 3; x = x {op} {with_} }}\n",
       f"(x {'>> 32 ' if bits == 64 else ''}) as f32", value(bits))
      for bits in (32, 64)
      for what, op, with_, value in (("name", "+", "t", lambda bits: wrapped(WHOLE - 5, bits)),
                                     ("number", "+", "(i - 3)", lambda bits: wrapped(WHOLE - 5, bits)),
                                     ("of_name", "*", "(t - n)", lambda bits: wrapped(WHOLE * (3 + SIZE) * (2 + SIZE), bits)),
                                     ("quotient", "+", "(i - 3) / 2", lambda bits: wrapped(WHOLE - 2, bits)),
                                     ("mask", "^", "t", lambda bits: wrapped(WHOLE ^ -3 ^ -2, bits)))),
    # A column beside a row is a matrix.
    ("column_times_row", AS_MATRIX, "reshape(sum(m[0..5], axis: 1) * row, n)",
     (ROW_SUMS * ROW).ravel()),
    ("column_of_bytes", AS_BYTES, "reshape((reshape(bytes[0..5], 5, 1) as u32 << transpose(reshape(iota(8), 8, 1))) as f32, n)",
     (BYTES[:5].reshape(5, 1) << np.arange(8, dtype=np.uint32)).ravel()),
    ("turned_table", AS_BYTES, "reshape((reshape(bytes[0..5], 5, 1) as u32 * transpose([[3], [1 << 31], [7], [9], [2], [4], [6], [8]])) as f32, n)",
     (BYTES[:5].reshape(5, 1).astype(np.uint32) * np.array([3, 1 << 31, 7, 9, 2, 4, 6, 8], np.uint32)).ravel()),
    ("one_beside_all", AS_MATRIX, "reshape(m - row[0..1], n)", GRADIENT - ROW[0]),
    ("dot_of_rows", AS_MATRIX, "reshape(dot(m, row, axis: 1) + fill(0.0, 8), n)", np.repeat(joined(MATRIX * ROW), 8)),
    ("dot_of_columns", AS_MATRIX, "reshape(dot(row, m, axis: 0) + reshape(fill(0.0, 5), 5, 1), n)", np.tile(in_order(MATRIX * ROW), 5)),
    # What is left of nothing, or is not counted.
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
    # Rows, columns and blocks.
    ("columns", AS_MATRIX, "concat(m[.., 3], m[1..3, 5], m[2, 1..7], m[..2, n - 39], m[4, ..], fill(0.0, n - 23))",
     padded(np.concatenate([MATRIX[:, 3], MATRIX[1:3, 5], MATRIX[2, 1:7], MATRIX[:2, 1], MATRIX[4, :]]))),
    ("blocks", AS_MATRIX, "concat(reshape(m[1..4, 2..=5], 12), reshape(m[.., [6, 0, 6]], 15), reshape(m[[4, 0, 4], 5..], 9), fill(0.0, n - 36))",
     padded(np.concatenate([MATRIX[1:4, 2:6].ravel(), MATRIX[:, [6, 0, 6]].ravel(), MATRIX[[4, 0, 4], 5:].ravel()]))),
    ("pairs", AS_MATRIX + "    let i = (bitcast<u32>(g[..9]) >> 21) % 5\n",
     "concat(m[[3, 1], [2, 7]], m[[0, 4], 6], m[i, iota(9) % 8], reshape(m[reshape([4, 1], 2, 1), [0, 5, 2]], 6), m[2, i], fill(0.0, n - 28))",
     padded(np.concatenate([MATRIX[[3, 1], [2, 7]], MATRIX[[0, 4], 6],
                            MATRIX[(GRADIENT[:9].view(np.uint32) >> np.uint32(21)) % 5, np.arange(9) % 8],
                            MATRIX[np.ix_([4, 1], [0, 5, 2])].ravel(), MATRIX[2, (GRADIENT[:9].view(np.uint32) >> np.uint32(21)) % 5]]))),
    ("exact_columns", "    let t = [[1, 2, 3], [4, 5, 1 << 31]]\n",
     "concat(t[.., 1] as f32, reshape(t[.., 1..], 4) as f32, g[..2] * t[.., 0], ((g[..2] as u32) + t[.., 2]) as f32, fill(0.0, n - 10))",
     padded([2, 5, 2, 3, 5, 2.0 ** 31, GRADIENT[0], 4 * GRADIENT[1], 3, 2.0 ** 31])),
    ("columns_in_rounds", AS_MATRIX + "    let mut s = fill(0.0, 5)\n    let mut t = fill(0.0, 2)\n    for i in 0..7 { s += m[.., i]\n      t -= m[1..3, i..i + 2][1] }\n",
     "concat(s, t, fill(0.0, n - 7))",
     padded(np.concatenate([np.add.accumulate(MATRIX[:, :7], axis=1)[:, -1],
                            -np.add.accumulate(np.stack([MATRIX[2, i:i + 2] for i in range(7)]), axis=0)[-1]]))),
    ("stores", AS_MATRIX + "    let mut x = m\n    x[.., 3] = 0.5\n    x[1..3, 4..6] = 9\n    x[0, 1] = 5.0\n    x[3, 2..] += row[2..]\n"
     "    x[iota(3), 7 - iota(3)] *= -1\n    x[top_k([0.0, 0.0, 5.0, 0.0, 6.0], 2), ..2] -= row[..2]\n"
     "    x[1.., flip(top_k([1, 0, 0, 0, 0, 0, 0, 1], 2))] = reshape(iota(8) as f32, 4, 2)\n    x[2, 5..=6] += 100\n    x[4, ..] = 1\n",
     "reshape(x, n)", stored().ravel()),
    ("stores_in_rounds", AS_MATRIX + "    let mut x = m\n    for i in 0..4 { x[i..i + 2, i] = x[i + 1, i + 1..i + 3] + i }\n", "reshape(x, n)",
     stored_in_rounds().ravel()),
    ("joins", AS_MATRIX, "concat(reshape(concat(concat(m[..2, 5..], m[3.., 5..]), stack(g[..4], g[4..8], axis: 1),"
     " outer(row[..4], [0.5, 2.0, 1.0]), axis: 1), 32), fill(0.0, n - 32))",
     padded(np.concatenate([np.concatenate([MATRIX[:2, 5:], MATRIX[3:, 5:]]), np.stack([GRADIENT[:4], GRADIENT[4:8]], axis=1),
                            np.outer(ROW[:4], np.float32([0.5, 2, 1]))], axis=1))),
    ("turned", AS_MATRIX, "reshape(flip(m, axis: 0), n) + 2 * flip(g) - reshape(flip(m, axis: 1), n) + 4 * reshape(stack(g[..20], g[20..40]), n)",
     np.flip(MATRIX, 0).ravel() + F32(2) * np.flip(GRADIENT) - np.flip(MATRIX, 1).ravel() + F32(4) * GRADIENT),
    # Reductions by name, and order.
    ("more_reductions", AS_MATRIX + "    let k = m as i32\n",
     "concat(reshape(argmin(abs(m), axis: 1), 5) as f32, reshape(argmin(m, where: m > -1, axis: 0), 8) as f32, reshape(prod(k, where: odd, axis: 1), 5) as f32,"
     " reshape(var([[1.0, 3.0, 5.0, 7.0], [2.0, 2.0, 2.0, 2.0]], axis: 1), 2), fill(prod(k[0..0]) as f32, n - 20))",
     np.concatenate([np.abs(MATRIX).argmin(1), np.where(MATRIX > -1, MATRIX, np.inf).argmin(0), np.trunc(MATRIX).astype(np.int32)[:, ODD].prod(1),
                     [5, 0], np.ones(SIZE - 20)])),
    ("running_largest", AS_MATRIX + "    let x = g * ((iota(n) * 13 % 7) as f32)\n", "cummax(x) + reshape(cummax(-m, axis: 1), n)",
     np.maximum.accumulate(GRADIENT * F32(1) * (np.arange(SIZE) * 13 % 7).astype(np.float32)) + np.maximum.accumulate(-MATRIX, axis=1).ravel()),
    ("places_in_order", "    let s = sort(g[..17] * g[..17])\n",
     "(searchsorted(s, g) + 100 * searchsorted(s, g, side: right) + 10000 * searchsorted([-1.5, 0.0, 0.75, 0.75, 9.0], g)) as f32",
     (np.searchsorted(np.sort(GRADIENT[:17] ** 2), GRADIENT) + 100 * np.searchsorted(np.sort(GRADIENT[:17] ** 2), GRADIENT, "right")
      + 10000 * np.searchsorted([-1.5, 0, 0.75, 0.75, 9], GRADIENT)).astype(np.float32)),
    ("ranks_of_some", AS_MATRIX + "    let kept = iota(n) * 7 % 5 < 3\n    let rows = reshape(kept, 5, 8)\n",
     "concat(fill(quantile(g, 0.25), 1), fill(quantile(g, 0.25, where: kept), 1), fill(median(g, where: kept), 1), fill(kth_largest(g, 3, where: kept), 1),"
     " fill(kth_largest(g, 39, where: kept), 1), reshape(quantile(m, 0.5, axis: 1), 5), reshape(quantile(m, 0.5, where: rows, axis: 1), 5),"
     " reshape(median(m, where: rows, axis: 1), 5), reshape(median(m, where: m > 12, axis: 1), 5), fill(0.0, n - 25))",
     padded(np.concatenate([[np.quantile(GRADIENT, 0.25), np.quantile(GRADIENT[KEPT], 0.25), np.sort(GRADIENT[KEPT])[(KEPT.sum() - 1) // 2],
                             np.sort(GRADIENT[KEPT])[-3], -np.inf], np.quantile(MATRIX, 0.5, axis=1),
                            [np.quantile(MATRIX[i][KEPT.reshape(5, 8)[i]], 0.5) for i in range(5)],
                            [np.sort(MATRIX[i][KEPT.reshape(5, 8)[i]])[(KEPT.reshape(5, 8)[i].sum() - 1) // 2] for i in range(5)],
                            [np.sort(row[row > 12])[((row > 12).sum() - 1) // 2] if (row > 12).any() else np.inf for row in MATRIX]]))),
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
fn ordered(x: f32, y: f32) -> (f32, f32) {{ if x < y {{ (x, y) }} else {{ (y, x) }} }}
fn turned(x: [f32; m], by: f32) -> ([f32; m], u32, bool) {{
  if by < 0 {{
    let mut y = x
    for i in 0..1 {{ y = -y }}
    (y, 3, by > 1)
  }} else {{ (x[m - 1 - iota(m)], 4, true) }}
}}
fn thirds(x: f32) -> (f32, f32) {{
  if x < 0 {{ (-x, 1) }} else if x < 9 {{ (x, 2) }} else {{
    let y = x * x
    (y, 3)
  }}
}}
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
