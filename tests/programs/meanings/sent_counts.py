#!/usr/bin/env python3
"""sent_counts.py CINCH: filters in `decode` that find as many elements as `encode` sent, by numpy.

Each program sends what a filter keeps, and `decode` filters again by what it received. The interpreter, the CPU and the emulated GPU
decode it, and reject a payload in which the filter finds another number than the wire's count."""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SIZE = 5000
GRADIENT = ((np.arange(SIZE, dtype=np.int64) * 7919 % SIZE).astype(np.float32) - SIZE / 2) / np.float32(SIZE)
LARGE = np.abs(GRADIENT) > np.float32(0.25)
KEPT = np.where(LARGE, GRADIENT, 0).astype(np.float32)
CODES = np.clip(np.trunc(GRADIENT * np.float32(5)), -2, 2)

TEXT = """
import std.error_feedback

fn is_set(code: i4) -> bool { let low = code & 1; low == 1 || code == -2 }

compressor masked {
  wire { mask: [bool; n], count m <= n, value: [f32; m] }
  encode(g: [f32; n]) {
    let mask = abs(g) > 0.25
    wire { mask, value: filter(g, where: mask) }
  }
  decode(w) { scatter(w.value, at: nonzero(w.mask), size: n) }
}

// The mask is computed of what is sent, here and there, in other words.
compressor coded {
  wire { code: [i8; n], count m <= n, value: [f32; m], count k <= n / 4, first: [f32; k] }
  encode(g: [f32; n]) {
    let code = clamp(g * 5, -2, 2) as i4
    let index = nonzero(code != 0)
    wire { code, value: g[index], first: filter(g, where: is_set(code), limit: n / 4) }
  }
  decode(w) {
    let is_some = w.code != 0
    let at = nonzero(is_some)
    let all = scatter(w.value, at: at, size: n)
    let first = scatter(w.first, at: nonzero(is_set(w.code as i4), limit: n / 4), size: n)
    // What decode filters by one mask has one length.
    all + 0 * first + scatter((filter(w.code, where: is_some) as f32) * w.value * 0, at: at, size: n)
  }
}

// One filter fills two counts.
compressor twice {
  wire { mask: [bool; n], count m <= n, value: [f32; m], count k <= n, half: [f32; k] }
  encode(g: [f32; n]) {
    let mask = abs(g) > 0.25
    wire { mask, value: filter(g, where: mask), half: filter(g / 2, where: mask) }
  }
  decode(w) { scatter(w.value - w.half, at: nonzero(w.mask), size: n) + scatter(w.half, at: nonzero(w.mask), size: n) }
}

// A name that may change, and does not.
compressor changeable {
  wire { mask: [bool; n], count m <= n, value: [f32; m] }
  encode(g: [f32; n]) {
    let mut mask = abs(g) > 0.25
    wire { mask, value: filter(g, where: mask) }
  }
  decode(w) {
    let mut mask = w.mask
    scatter(w.value, at: nonzero(mask), size: n)
  }
}

compressor inn {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: g } }
  decode(w) { w.value }
}
compressor wr(inner: compressor) {
  wire { mask: [bool; n], count m <= n, value: [f32; m], rest: inner.wire }
  encode(g: [f32; n]) {
    let mask = abs(g) > 0.25
    wire { mask, value: filter(g, where: mask), rest: inner.encode(g) }
  }
  decode(w) { scatter(w.value, at: nonzero(w.mask), size: n) + 0 * inner.decode(w.rest) }
}
compressor wrapped = wr(wr(inn))

compressor fed = error_feedback(masked)
"""
OTHER = """
compressor other {
  wire { mask: [bool; n], count m <= n, value: [f32; m] }
  encode(g: [f32; n]) { let mask = g > 0; wire { mask, value: filter(g, where: mask) } }
  decode(w) {
    let mut mask = w.mask
    let mut x = fill(0.0, n)
    for i in 0..2 { x += scatter(w.value, at: nonzero(mask), size: n); mask = !mask }
    x
  }
}
"""
# Bytes of the first field with which the filter finds another number: behind the header and the counts.
REFUSALS = ("finds another number in the payload", "the payload has another number for count")
PROGRAMS = [("masked", KEPT, [(80, 0), (80, 0xff)]), ("coded", np.where(CODES != 0, GRADIENT, 0).astype(np.float32), [(80, 0), (81, 1)]),
            ("twice", KEPT, [(84, 0), (84, 0xff)]), ("changeable", KEPT, [(80, 0)]), ("wrapped", KEPT, [(84, 0)]), ("fed", KEPT, [(80, 0), (80, 0xff)])]


def cinch(*words):
    return subprocess.run([sys.argv[1], *words], capture_output=True, text=True, env={**os.environ, "CINCH_CACHE": "off"})


def check(program, expected, changes, options, folder):
    what = f"{program} {' '.join(options) or 'CPU'}"
    payload, update = folder / "payload", folder / "x.npy"
    source = f"{folder / 'sent.cinch'}:{program}"
    sent = cinch("run", source, "--input", folder / "g.npy", "--payload", payload, "--output", update, *options)
    if sent.returncode:
        sys.exit(f"{what}: {sent.stderr}")
    if np.load(update).tobytes() != expected.tobytes():
        sys.exit(f"{what} gives {np.load(update)}, not {expected}")
    honest = payload.read_bytes()
    for place, byte in changes:
        payload.write_bytes(honest[:place] + bytes([byte]) + honest[place + 1:])
        refused = cinch("decode", source, "--payload", payload, "--output", update, *options)
        if refused.returncode != 1 or not any(said in refused.stderr for said in REFUSALS):
            sys.exit(f"{what} takes a payload of other counts: {refused.returncode} {refused.stderr}")


def check_note(folder):
    (folder / "other.cinch").write_text(OTHER)
    refused = cinch("check", folder / "other.cinch")
    if refused.returncode != 1 or "if both make the mask the same way" not in refused.stderr:
        sys.exit(f"a filter by another mask: {refused.returncode} {refused.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sent.cinch").write_text(TEXT)
        np.save(folder / "g.npy", GRADIENT)
        check_note(folder)
        for options in (["--interpret"], [], ["--device", "emulated"]):
            for program, expected, changes in PROGRAMS:
                check(program, expected, changes, options, folder)
    print(f"{len(PROGRAMS)} programs know what they sent on three targets")


main()
