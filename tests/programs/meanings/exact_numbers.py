#!/usr/bin/env python3
"""exact_numbers.py CINCH: what exact numbers mean where they meet floats and integers of other types, by numpy.

Each program is a list of expressions over a gradient; the interpreter, the CPU and the emulated GPU give their values, which are compared bit
by bit with what docs/language.md says, computed here without Cinch."""
import sys

import numpy as np

from running import run

SIZE = 40
F32 = np.float32
GRADIENT = (np.arange(SIZE, dtype=np.float32) - 11.5) * F32(0.75)
ONE, TWO = GRADIENT[1], GRADIENT[2]
WORDS = GRADIENT.view(np.uint32)


def f32(number):
    return F32(number)


# (expression, its value as f32)
QUOTIENTS = [
    ("g[1] * (1 / 4)", ONE * f32(0.25)),
    ("2 / 3 * g[1]", f32(2 / 3) * ONE),
    ("g[1] * (1 / n)", ONE * (f32(1) / f32(SIZE))),
    ("g[1] + n / 3", ONE + f32(SIZE) / f32(3)),
    ("g[1] * (1 - 1 / 4)", ONE * f32(0.75)),
    ("g[1] * (1 / 3 * 3)", ONE),
    ("g[1] * max(1 / 3, 1 / 2)", ONE * f32(0.5)),
    ("g[1] * third", ONE * f32(1 / 3)),
    ("g[1] * [1 / 2, 3 / 4][1]", ONE * f32(0.75)),
    ("sum(table * g[0..2])", f32(0.5) * GRADIENT[0] + f32(0.25) * ONE),
    ("g[1] * [1 / 3, 2 / 3][u[0] % 2]", ONE * np.array([1 / 3, 2 / 3], np.float32)[WORDS[0] % 2]),
    ("[1 / 2, 1 / 3][u[1] % 2] as f32", np.array([1 / 2, 1 / 3], np.float32)[WORDS[1] % 2]),
    ("g[1] * (if n > 3 { 1 / 4 } else { 2 })", ONE * f32(0.25)),
    ("g[1] * (if g[1] > 0 { 1 / 4 } else { 3 / 4 })", ONE * f32(0.25 if ONE > 0 else 0.75)),
    ("select(g[1] > 0, 1 / 4, g[2])", f32(0.25) if ONE > 0 else TWO),
    ("(7 / 2) as f32", f32(3.5)),
    ("ceil(7 / 2)", f32(4)),
    ("sqrt(1 / 4)", f32(0.5)),
    ("g[1] * tenth", ONE * f32(0.1)),
    ("of_f32(1 / 4)", f32(0.5)),
    # Nothing is met: one with a fraction is a float, others are whole numbers.
    ("g[1] * sum([1 / 2, 1 / 2])", ONE),
    ("sum(fill(1 / 2, 3))", f32(1.5)),
    ("g[1] * sign(1 / 2)", ONE),
    ("max([1 / 2, 1 / 4])", f32(0.5)),
    ("sum(map([1 / 2, 1 / 4], |x| x + 1))", f32(2.75)),
    ("sum([0 / 0, 2]) as f32", f32(2)),
    ("sum([7 / 7, 4 / 2]) as f32", f32(3)),
    ("fill(select(sum(g) > 3, 1 / 2, 1 / 3), 1)[0]", f32(1 / 2)),
    ("fill(if sum(g) > 3 { 1 / 2 } else { 1 / 3 }, 1)[0]", f32(1 / 2)),
    ("fill(chosen, 1)[0]", f32(1 / 2)),
    ("fill(select(n > 3, 1 / 2, 1 / 3), 1)[0]", f32(1 / 2)),
    ("fill(if n > 50 { 1 / 2 } else { n }, 1)[0]", f32(SIZE)),
    ("sum([if n > 3 { 1 / 2 } else { 1 / 3 }, n])", f32(SIZE + 0.5)),
    ("fill(1 - (if n > 3 { 1 / 4 } else { 1 / 3 }), 1)[0]", f32(3 / 4)),
    ("fill(n * (1 / 2), 1)[0]", f32(SIZE / 2)),
    ("fill(max(1 / 2, n / 80), 1)[0]", f32(1 / 2)),
    ("g[if n > 3 { 7 / 2 } else { 9 / 2 }]", GRADIENT[3]),
    ("fill(n / 3, 1)[0] as f32", f32(13)),
    ("select(g > 3, 1 / 2, 1 / 3)[0]", f32(1 / 3)),
    ("concat([1 / 2], [1 / 3])[0]", f32(1 / 2)),
    ("concat([1 / 2, 1 / 3], [2])[0]", f32(1 / 2)),
    ("concat([2], [1 / 2, 1 / 3])[2]", f32(1 / 3)),
    ("reshape([1 / 2, 1 / 3, 1 / 4, 1 / 5], 2, 2)[0][0]", f32(1 / 2)),
    ("reshape([1 / 2, 1 / 3, 1 / 4, 1 / 5], 2, 2)[1][u[0] % 2]", np.array([1 / 4, 1 / 5], np.float32)[WORDS[0] % 2]),
    ("reshape([1 / 2, 1 / 3, 1 / 4, 1 / 5], 2, 2)[u[0] % 2][1]", np.array([1 / 3, 1 / 5], np.float32)[WORDS[0] % 2]),
    ("(reshape([1 / 2, 1 / 3], 1, 2) @ reshape([1, 2], 2, 1))[0][0]", f32(1 / 2) * f32(1) + f32(1 / 3) * f32(2)),
    ("[1 / 2, 1 / 3][iota(1)][0]", f32(1 / 2)),
    ("[1 / 2, 1 / 3, 1 / 4][1..3][0]", f32(1 / 3)),
    ("[[1 / 2, 1 / 3], [1, 2]][0][0]", f32(1 / 2)),
    ("map([1, 2], |a| 1 / 2)[0]", f32(1 / 2)),
    ("reduce(u, 0, |a, b| 1 / 2) as f32", f32(0)),
    # Whole numbers are wanted: the quotient is cut.
    ("(7 / 2) as i32 as f32", f32(3)),
    ("g[7 / 2]", GRADIENT[3]),
    ("g[select(sum(g) > 3, 7 / 2, 9 / 2)]", GRADIENT[3]),
    ("g[[7 / 2, 1][0..1]][0]", GRADIENT[3]),
    ("g[[7 / 2, 9 / 2][iota(1)]][0]", GRADIENT[3]),
    ("g[[select(sum(g) > 3, 7 / 2, 9 / 2), n - 1]][0]", GRADIENT[3]),
    ("[select(sum(g) > 3, 1 / 2, 1 / 3), n / 80][0]", f32(1 / 2)),
    ("fill([select(sum(g) > 3, 1 / 2, 1 / 3), n - 1][0], 1)[0]", f32(1 / 2)),
    ("g[[[7 / 2, 1], [1, 2]][0][0]]", GRADIENT[3]),
    ("(u[0] + select(sum(g) > 3, 7 / 2, 9 / 2) - u[0]) as f32", f32(3)),
    ("fill(floor_div(select(sum(g) > 3, 7 / 2, 9 / 2), 2), 1)[0] as f32", f32(1)),
    ("len(g[0..n / 3]) as f32", f32(13)),
    ("(1 << 7 / 2) as f32", f32(8)),
    ("-9223372036854775808 * g[1]", f32(-2.0**63) * ONE),
    ("(-9223372036854775808 / 2) as f32", f32(-2.0**62)),
    ("((all as i64) + -9223372036854775808) as f32", f32(-2.0**63)),
    ("floor_div(7, 2) * g[1]", f32(3) * ONE),
    ("floor_div(-7, 2) * g[1]", f32(-4) * ONE),
    ("ceil_div(7, 2) * g[1]", f32(4) * ONE),
    ("of_i32(7 / 2)", f32(6)),
    # Loop variables.
    ("cut_halves", f32(0 + 0 + 1 + 1)),
    ("down_halves", sum((GRADIENT[0] * f32(i // 2) for i in range(4)), f32(0))),
    ("halves", sum((GRADIENT[0] * f32(i / 2) for i in range(4)), f32(0))),
]

MASKS = [
    ("u & -1", WORDS),
    ("((u as u64) & -1) as u32", WORDS),
    ("u | select(g < 0, 8, 0)", WORDS | np.where(GRADIENT < 0, 8, 0).astype(np.uint32)),
    ("u ^ (1 << (u >> 30))", WORDS ^ (np.uint32(1) << (WORDS >> np.uint32(30)))),
    ("u ^ (if n > 3 { 0x80000000 } else { 1 })", WORDS ^ np.uint32(0x80000000)),
    ("u + [1, 2][iota(n) % 2]", WORDS + np.array([1, 2], np.uint32)[np.arange(SIZE) % 2]),
    ("u ^ marks[(u % 3)]", WORDS ^ np.array([0x80000000, 0x7f, 0xffffffff], np.uint32)[WORDS % 3]),
    ("shifted", WORDS ^ np.uint32(0b111111)),
    ("select(odd[iota(n) % 4], u, 1)", np.where(np.arange(SIZE) % 4 % 3 != 0, WORDS, 1).astype(np.uint32)),
    # A shift by a count or a size is made in the type that it meets, not in that of the count.
    ("u ^ (1 << all)", WORDS ^ np.uint32(1 << 8)),
    ("u ^ (1 << n)", WORDS ^ np.uint32(1 << 8)),
    ("u ^ (1 << len(kept))", WORDS ^ np.uint32(1 << 8)),
    ("(((u as u64) ^ (1 << all)) >> 32) as u32", np.full(SIZE, 1 << 8, np.uint32)),
    ("(((u as u64) ^ ((1 << all) - 1)) >> 32) as u32", np.full(SIZE, (1 << 8) - 1, np.uint32)),
    ("(((u as u64) ^ (if all > 3 { 1 << all } else { 1 })) >> 32) as u32", np.full(SIZE, 1 << 8, np.uint32)),
    ("(((u as u64) ^ (1 << n)) >> 32) as u32", np.full(SIZE, 1 << 8, np.uint32)),
    ("(((u as u64) ^ (if n > 3 { 1 << n } else { 1 })) >> 32) as u32", np.full(SIZE, 1 << 8, np.uint32)),
    ("(((u as u64) ^ ((1 << n) - 1)) >> 32) as u32", np.full(SIZE, (1 << 8) - 1, np.uint32)),
    ("(((u as u64) ^ (1 << len(kept))) >> 32) as u32", np.full(SIZE, 1 << 8, np.uint32)),
    ("(((u as u64) | (1 << n + 23)) >> 32) as u32", np.full(SIZE, 1 << 31, np.uint32)),
    ("(((u as u64) | (1 << 63)) >> 32) as u32", np.full(SIZE, 1 << 31, np.uint32)),
    ("(((u as u64) + top) >> 32) as u32", np.full(SIZE, 1 << 31, np.uint32)),
    ("fill((((1 << all) as u64) >> 32) as u32, n)", np.full(SIZE, 1 << 8, np.uint32)),
    ("fill((((1 << n) as u64) >> 32) as u32, n)", np.full(SIZE, 1 << 8, np.uint32)),
    ("fill(((((1 << n + 23) - 1) as u64) >> 32) as u32, n)", np.full(SIZE, (1 << 31) - 1, np.uint32)),
    ("cast_shift", WORDS ^ np.uint32(1 << 31)),
    # `as` and the signature of a fn say the type.
    ("(((u as u64) ^ ((1 << all) as u32)) >> 32) as u32", np.zeros(SIZE, np.uint32)),
    ("named_shift", WORDS ^ np.uint32((1 << 7) ^ (1 << 8))),
    # Sizes that may be negative have the bits of their two's complement.
    ("u ^ -n", WORDS ^ np.uint32(2**32 - SIZE)),
    ("u + (n - 45)", WORDS + np.uint32(2**32 - 5)),
    ("u & (len(kept) - 50)", WORDS & np.uint32(2**32 - 10)),
    ("select(iota(n) == n - 45, 0, u)", WORDS),
    ("(((u as u64) ^ -n) >> 32) as u32", np.full(SIZE, 2**32 - 1, np.uint32)),
    ("(wide >> 32) as u32", ((WORDS.astype(np.uint64) ^ np.uint64(sum(1 << s for s in range(30, 40)))) >> np.uint64(32)).astype(np.uint32)),
]

WIDE = WORDS.astype(np.uint64)
COUNTS = [int(number) * 9 for number in np.maximum(GRADIENT, 0)]


def words(made):
    """The u64 that Python's integers give for each count."""
    return np.array([made(count) & (2**64 - 1) for count in COUNTS], np.uint64)


SHIFTED = words(lambda s: 1 << s % 64)

# (expression, its value as u64): a number that an array shifts is made in the type that it meets, by every operator between.
WIDE_MASKS = [
    ("v + max(1 << s, 3)", WIDE + np.maximum(SHIFTED, np.uint64(3))),
    ("v + clamp(1 << s, 3, 1 << 30)", WIDE + np.clip(SHIFTED, 3, 1 << 30)),
    ("v + (1 << s) * 3", WIDE + SHIFTED * np.uint64(3)),
    ("v + (1 << s) / 3", WIDE + SHIFTED // np.uint64(3)),
    ("v + ((1 << s) >> 2)", WIDE + (SHIFTED >> np.uint64(2))),
    ("v + ((1 << s) << 2)", WIDE + (SHIFTED << np.uint64(2))),
    ("v + (1 << s) % 1000003", WIDE + SHIFTED % np.uint64(1000003)),
    ("v + (1 << s) % [7, 1000003][iota(n) % 2]", WIDE + SHIFTED % np.array([7, 1000003], np.uint64)[np.arange(SIZE) % 2]),
    ("v + abs(1 << s)", WIDE + SHIFTED),
    ("v + floor_div(1 << s, 3)", WIDE + SHIFTED // np.uint64(3)),
    ("v + (0xffffffffff >> s)", WIDE + words(lambda s: 0xffffffffff >> s % 64)),
    ("v + min(max(1 << s, 7 / 2), 1 << 31)", WIDE + np.clip(SHIFTED, 3, 1 << 31)),
    ("v + select(g > 3, 1 << s, 1)", WIDE + np.where(GRADIENT > 3, SHIFTED, 1).astype(np.uint64)),
    ("max(1 << s, 3) as u64", np.maximum(SHIFTED, np.uint64(3))),
    ("v + select(g > 3, 1 << s as i64, v)", WIDE + np.where(GRADIENT > 3, SHIFTED, WIDE).astype(np.uint64)),
    # A size that may be negative, in lookups and choices.
    ("v + [n - 45, 3][u % 2]", WIDE + np.where(WORDS % 2 == 0, 2**64 - 5, 3).astype(np.uint64)),
    ("v + [[n - 45, 3][u[1] % 2], 7][0]", WIDE + np.where(WORDS % 2 == 0, 2**64 - 5, 3).astype(np.uint64)[1]),
    ("v + select(g > 3, n - 45, 4)", WIDE + np.where(GRADIENT > 3, 2**64 - 5, 4).astype(np.uint64)),
    ("v + (if g[1] < 0 { n - 45 } else { 4 })", WIDE + np.uint64(2**64 - 5)),
    ("v + select(g > 3, n - 45, 4) * 3", WIDE + np.where(GRADIENT > 3, 2**64 - 15, 12).astype(np.uint64)),
    ("select(g > 3, n - 45, v)", np.where(GRADIENT > 3, np.uint64(2**64 - 5), WIDE)),
    ("fill(if g[1] < 0 { n - 45 } else { v[0] }, n)", np.full(SIZE, 2**64 - 5, np.uint64)),
    ("max(v, select(g > 3, n - 45, 4))", np.maximum(WIDE, np.where(GRADIENT > 3, 0, 4).astype(np.uint64))),
    *[(f"v ^ 1 << (s % 100) as {type}", WIDE ^ words(lambda s: 1 << s % 100 % 64)) for type in ("u8", "i8", "u16", "i16", "i32", "i64", "u64")],
]
MASKS += [(f"{{{{ let x = {text}; ((bitcast<u64>(x) >> 32) as u32) * 3 + ((x & 0xffffffff) as u32) }}}}"[1:-1],
           (value >> np.uint64(32)).astype(np.uint32) * np.uint32(3) + value.astype(np.uint32)) for text, value in WIDE_MASKS]
MASKS += [(f"bitcast<u32>(u ^ 1 << (s % 100) as {type})", WORDS ^ np.array([1 << s % 100 % 32 for s in COUNTS], np.uint32))
          for type in ("u8", "i8", "u16", "i16", "i32", "i64", "u64")]
MASKS += [("u + select(g > 3, n - 45, 4)", WORDS + np.where(GRADIENT > 3, 2**32 - 5, 4).astype(np.uint32)),
          ("u + [n - 45, 3][u % 2]", WORDS + np.where(WORDS % 2 == 0, 2**32 - 5, 3).astype(np.uint32))]

TEXT = """
const third = 1 / 3
const table = [1 / 2, 1 / 4]
const marks = [0x80000000, 0x7f, 0xffffffff]
const odd = [0, 1, 1, 0] == 1
const top = 1 << 63

fn of_f32(x: f32) -> f32 {{ x + x }}
fn of_shift(x: i32) -> i64 {{ (0 as i64) ^ x }}
fn of_i32(x: i32) -> f32 {{ (x + x) as f32 }}

compressor exact(const tenth: f32 = 1 / 10 in (0, 1 / 2]) {{
  wire {{ {fields} }}
  encode(g: [f32; n]) {{
    let u = bitcast<u32>(g)
    let v = u as u64
    let s = (g as u32) * 9
    let kept = filter(g, where: g < 1000)
    let all = count(g < 1000)
    let chosen = select(sum(g) > 3, 1 / 2, 1 / 3)
    let mut halves = 0.0
    for i in 0..4 {{ halves += g[0] * (i / 2) }}
    let mut down_halves = 0.0
    for i in 0..4 {{ down_halves += g[0] * floor_div(i, 2) }}
    let mut cut_halves = 0.0
    for i in 0..4 {{ cut_halves += (i / 2) as i64 as f32 }}
    let mut shifted = u
    for s in 0..6 {{ shifted ^= 1 << s }}
    let mut cast_shift = u
    for s in 31..32 {{ cast_shift ^= (1 << s) as u32 }}
    let mut named_shift = u
    for s in 39..41 {{ named_shift = ((named_shift as i64) ^ of_shift(1 << s)) as u32 }}
    let mut wide = u as u64
    for s in 30..40 {{ wide ^= 1 << s }}
    wire {{ {values} }}
  }}
  decode(w) {{ {result} }}
}}
"""


def compare(what, expressions, found, expected):
    for (text, _), mine, theirs in zip(expressions, found, expected):
        if mine.tobytes() != theirs.tobytes():
            sys.exit(f"{what}: {text} gives {mine}, not {theirs}")


def main():
    cinch = sys.argv[1]
    for options in (["--interpret"], [], ["--device", "emulated"]):
        what = " ".join(options) or "CPU"
        for begin in range(0, len(QUOTIENTS), SIZE):
            rows = QUOTIENTS[begin:begin + SIZE]
            values = ", ".join(text for text, _ in rows)
            scalars = TEXT.format(fields=f"value: [f32; {len(rows)}]", values=f"value: [{values}]",
                                  result=f"scatter(w.value, at: iota({len(rows)}), size: n)")
            found = run(cinch, scalars, GRADIENT, *options)[:len(rows)]
            compare(what, rows, found, np.array([value for _, value in rows], np.float32))
        for text, expected in MASKS:
            words = TEXT.format(fields="value: [u32; n]", values=f"value: {text}", result="bitcast<f32>(w.value)")
            found = run(cinch, words, GRADIENT, *options).view(np.uint32)
            # Decoded NaNs are canonical.
            is_nan = np.isnan(expected.view(np.float32))
            compare(what, [(text, None)], [found[~is_nan]], [expected[~is_nan]])
    print(f"{len(QUOTIENTS) + len(MASKS)} expressions mean what they should on three targets")


main()
