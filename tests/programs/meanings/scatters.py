#!/usr/bin/env python3
"""scatters.py CINCH: what scatter_min, scatter_max, scatter_add of rows and scatter with `keep` mean, by numpy.

The interpreter, the CPU and the emulated GPU give the cells of all expressions, which are compared bit by bit with what docs/language.md says,
computed here without Cinch."""
import sys

import numpy as np

from running import run

CELLS, WIDTH = 20, 4
GRADIENT = np.random.default_rng(7).standard_t(3, 480).astype(np.float32)
WORDS = GRADIENT.view(np.uint32)
AT = (WORDS >> 9) % 19
ODD = np.where(WORDS & 7 == 3, np.float32("nan"), np.where(WORDS & 7 == 5, np.float32(-0.0), np.where(WORDS & 7 == 6, np.float32(0), GRADIENT)))
ROWS = ODD.reshape(-1, WIDTH)
ROW_AT = np.arange(len(ROWS)) * 3 % 4


def order(x):
    """The place of a float among all, -0 below +0."""
    bits = int(np.float32(x).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF) - 1


def joined(values, at, choose, empty, size=CELLS):
    cells = []
    for cell in range(size):
        found = [x for x in values[at == cell] if x == x]
        cells.append(choose(found, key=order if values.dtype == np.float32 else None) if found else empty)
    return np.array(cells, values.dtype)


def kept(values, at, which, size=CELLS):
    cells = np.zeros((size,) + values.shape[1:], values.dtype)
    for i in range(len(values)) if which == "last" else reversed(range(len(values))):
        cells[at[i]] = values[i]
    return cells


def rows_joined(values, at, choose, empty):
    return np.stack([joined(values[:, c], at, choose, empty, 5) for c in range(WIDTH)], axis=1).ravel()


def rows_added(values, at):
    cells = np.zeros((5, WIDTH), np.float32)
    for i in range(len(values)):
        cells[at[i]] += values[i]
    return cells.ravel()


def low_byte(x):
    return (x & 0xFF).astype(np.uint8)


INF = np.float32("inf")
# (expression, its cells as f32)
EXPRESSIONS = [
    ("scatter_min(odd, at: at, size: 20)", joined(ODD, AT, min, INF)),
    ("scatter_max(odd, at: at, size: 20)", joined(ODD, AT, max, -INF)),
    ("scatter_max(abs(odd), at: at, size: 20)", joined(np.abs(ODD), AT, max, -INF)),
    ("bitcast<f32>(scatter_min(u >> 1, at: at, size: 20))", joined(WORDS >> np.uint32(1), AT, min, 0xFFFFFFFF).view(np.float32)),
    ("bitcast<f32>(scatter_max(u >> 2, at: at, size: 20))", joined(WORDS >> np.uint32(2), AT, max, 0).view(np.float32)),
    ("scatter_min((u & 255) as u8, at: at, size: 20) as f32", joined(low_byte(WORDS).astype(np.int32), AT, min, 2**31 - 1).astype(np.float32)),
    ("scatter_max(bitcast<i32>(g), at: at, size: 20) as f32", joined(GRADIENT.view(np.int32), AT, max, -2**31).astype(np.float32)),
    ("scatter_min(bitcast<i32>(g) as i64, at: at, size: 20) as f32",
     joined(GRADIENT.view(np.int32).astype(np.int64), AT, min, 2**63 - 1).astype(np.float32)),
    ("scatter_max(1, at: at, size: 20) as f32", np.where(np.isin(np.arange(CELLS), AT), 1, -2**31).astype(np.float32)),
    ("scatter(odd, at: at, size: 20, keep: last)", kept(ODD, AT, "last")),
    ("scatter(odd, at: at, size: 20, keep: first)", kept(ODD, AT, "first")),
    ("reshape(scatter_min(x, at: row, size: 5), 20)", rows_joined(ROWS, ROW_AT, min, INF)),
    ("reshape(scatter_max(x, at: row, size: 5), 20)", rows_joined(ROWS, ROW_AT, max, -INF)),
    ("reshape(scatter_add(chunk(g, 4), at: row, size: 5), 20)", rows_added(GRADIENT.reshape(-1, WIDTH), ROW_AT)),
    ("reshape(scatter(x, at: row, size: 5, keep: last), 20)", kept(ROWS, ROW_AT, "last", 5).ravel()),
    ("reshape(scatter(x, at: row, size: 5, keep: first), 20)", kept(ROWS, ROW_AT, "first", 5).ravel()),
    # Of nothing.
    ("scatter_min(none, at: none_at, size: 20)", np.full(CELLS, INF)),
    ("scatter(none, at: none_at, size: 20, keep: last)", np.zeros(CELLS, np.float32)),
]

TEXT = """
compressor scatters {{
  size rows = ceil_div(n, 4)
  wire {{ {fields} }}
  encode(g: [f32; n]) {{
    let u = bitcast<u32>(g)
    let at = (u >> 9) % 19
    let odd = select(u & 7 == 3, nan, select(u & 7 == 5, -0.0, select(u & 7 == 6, 0.0, g)))
    let x = chunk(odd, 4)
    let row = iota(rows) * 3 % 4
    let none = filter(g, where: g > inf)
    let none_at = nonzero(g > inf) % 20
    wire {{ {values} }}
  }}
  decode(w) {{ scatter(concat({parts}), at: iota({num}), size: n) }}
}}
"""


def main():
    names = [f"f{i}" for i in range(len(EXPRESSIONS))]
    text = TEXT.format(fields=", ".join(f"{name}: [f32; {CELLS}]" for name in names), num=CELLS * len(names),
                       values=", ".join(f"{name}: {e}" for name, (e, _) in zip(names, EXPRESSIONS)), parts=", ".join(f"w.{name}" for name in names))
    for options in (["--interpret"], ["--threads", "1"], ["--threads", "4"], ["--device", "emulated"]):
        found = run(sys.argv[1], text, GRADIENT, *options).reshape(-1, CELLS)
        for (expression, expected), cells in zip(EXPRESSIONS, found):
            is_nan = np.isnan(expected)  # decoded NaNs are canonical
            if (np.isnan(cells) != is_nan).any() or cells[~is_nan].tobytes() != expected.astype(np.float32)[~is_nan].tobytes():
                sys.exit(f"{' '.join(options)}: {expression} gives {cells}, not {expected}")
    print(f"{len(EXPRESSIONS)} scatters mean what they should on three targets")


main()
