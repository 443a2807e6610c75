"""huffman.py CINCH FOLDER: payloads with Huffman codes, read as docs/payload.md says, beside Huffman's algorithm with a heap."""
import heapq
import itertools
import os
import struct
import subprocess
import sys

import numpy as np

CINCH, FOLDER = sys.argv[1:]
PROGRAM = """
import std.huffman
compressor coded {
  wire { length: [u4; 256], count m <= n, code: [u32; m] huffman(length), head: [u8; 3], fixed: [u32; 3] huffman(head) }
  encode(g: [f32; n]) {
    let code = filter(g as u32, where: g < 256)
    let head = concat(fill(1 as u8, 1), fill(2 as u8, 2))
    wire { length: code_lengths(histogram(code, bins: 256)), code, head, fixed: [2, 0, 1] }
  }
  decode(w) { scatter(w.code as f32, at: iota(len(w.code)), size: n) + (w.fixed[0] * 100000 + w.fixed[1] * 10000 + w.fixed[2] * 1000) as f32 }
}
"""


def file(name):
    return os.path.join(FOLDER, name)


def cinch(*arguments):
    subprocess.run([CINCH, *arguments], check=True, stdout=subprocess.DEVNULL)


def bits_of_heap(counts):
    """How many bits the best prefix code takes for symbols that occur this often."""
    heap = [int(c) for c in counts if c]
    heapq.heapify(heap)
    total = heap[0] if len(heap) == 1 else 0
    while len(heap) > 1:
        total += heap[0]
        merged = heapq.heappop(heap) + heap[0]
        total += heap[0]
        heapq.heapreplace(heap, merged)
    return total


def codes_of(lengths):
    """The canonical code of each symbol as a text of bits."""
    codes, number, before = {}, 0, 0
    for length, symbol in sorted((l, s) for s, l in enumerate(lengths) if l):
        number <<= length - before
        codes[format(number, f"0{length}b")] = symbol
        number, before = number + 1, length
    return codes


def numbers_in(words, lengths, num):
    bits = "".join(format(w, "032b")[::-1] for w in words)
    blocks = -(-num // 256)
    sizes = [int(bits[16 * b : 16 * b + 16][::-1], 2) for b in range(blocks)]
    at, codes, found = -(-blocks // 2) * 32, codes_of(lengths), []
    for block in range(blocks):
        begin = at
        for _ in range(min(256, num - 256 * block)):
            end = next(e for e in itertools.count(at + 1) if bits[at:e] in codes)
            found.append(codes[bits[at:end]])
            at = end
        assert at - begin == sizes[block], (block, at - begin, sizes[block])
    assert "1" not in bits[at:] and len(bits) - at < 32
    return found


def up(at):
    return -(-at // 16) * 16


def check(name, values):
    n = len(values)
    np.save(file("in.npy"), np.array(values, "f4"))
    cinch("encode", file("coded.cinch"), "--input", file("in.npy"), "--payload", file("out.bin"))
    payload = open(file("out.bin"), "rb").read()
    m, code_words, fixed_words = struct.unpack_from("<3I", payload, 64)
    sent = [int(v) for v in values if v < 256]
    assert m == len(sent)
    at = up(64 + 12)
    lengths = [payload[at + s // 2] >> 4 * (s % 2) & 15 for s in range(256)]
    at = up(at + 128)
    words = struct.unpack_from(f"<{code_words}I", payload, at)
    assert numbers_in(words, lengths, m) == sent
    counts = np.bincount(sent, minlength=256)
    total = sum(int(c) * l for c, l in zip(counts, lengths))
    best = bits_of_heap(counts) if m else 0
    assert all((c > 0) == (l > 0) for c, l in zip(counts, lengths))
    # What is rarer than a 2000th counts as that; no code exceeds 15 bits.
    assert best <= total <= best * 1.01 if counts[counts > 0].min(initial=1) * 2000 < m else best == total, (name, total, best)
    at = up(at + 4 * code_words)
    head = list(payload[at : at + 3])
    at = up(at + 3)
    fixed = struct.unpack_from(f"<{fixed_words}I", payload, at)
    assert head == [1, 2, 2] and numbers_in(fixed, head, 3) == [2, 0, 1]
    targets = ((), ("--interpret",), ("--device", "emulated")) if name in ("none", "geometric") else ((),)
    for options in targets:
        cinch("decode", file("coded.cinch"), "--payload", file("out.bin"), "--output", file("back.npy"), *options)
        want = np.zeros(n, "f4")
        want[:m] = sent
        np.testing.assert_array_equal(np.load(file("back.npy")), want + 201000)
    print(f"{name}: as expected, {max(lengths)} bits at most")


open(file("coded.cinch"), "w").write(PROGRAM)
rng = np.random.default_rng(7)
check("none", [300.0] * 5)
check("one", [42.0])
check("equal", [7.0] * 1000)
check("all", list(range(256)) * 3)
check("geometric", np.minimum(rng.geometric(0.4, 5000), 255))
check("skewed", [s for s in range(40) for _ in range(min(2**s, 1 << 14))])
check("block", rng.integers(0, 9, 256))
check("odd", rng.integers(0, 300, 1000))
