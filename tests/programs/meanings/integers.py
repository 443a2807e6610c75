#!/usr/bin/env python3
"""integers.py CINCH [--long] [TYPE…]: what every operator on integers means, by Python's own integers.

For each element type a program applies all operators to numbers of the type, its ends among them, and its payload is compared with what
docs/language.md, docs/operators.md and docs/language_bits.md say, computed here without Cinch. The interpreter, the CPU and the emulated GPU
run it. Without --long (or CINCH_LONG) a few types at one size; with it all widths of a list, at sizes around the ends of tiles."""
import os
import struct
import subprocess
import sys
import tempfile

FACTOR = 6364136223846793005
FEW = ["u3", "i5", "u8", "i24", "u33", "i40", "u63", "i64"]
ALL = [f"{sign}{bits}" for bits in (2, 3, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64) for sign in "ui"] + ["u1"]
FEW_ON_GPU = ["i5", "u33"]
LENGTHS = [1151]
ALL_LENGTHS = [1, 33, 1023, 1025, 1151, 3073, 5000]


class Type:
    def __init__(self, name):
        self.name, self.is_signed, self.bits = name, name[0] == "i", int(name[1:])
        self.least = -(1 << self.bits - 1) if self.is_signed else 0
        self.most = (1 << self.bits - self.is_signed) - 1

    def wrap(self, x):
        """Two's complement in the type's width."""
        x &= (1 << self.bits) - 1
        return x - (1 << self.bits) if self.is_signed and x >> self.bits - 1 else x

    def clip(self, x):
        return min(max(x, self.least), self.most)

    def arithmetic(self):
        """The type in which numbers of this one are computed: 32 bits at least."""
        return Type("i32") if self.bits < 32 else self


def truncated(a, b):
    """Division toward zero, and its rest; by zero 0."""
    if b == 0:
        return 0, 0
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def numbers(of, words):
    """The numbers that the programs' `x` has, from the bits of the gradient."""
    made = []
    for i, word in enumerate(words):
        mixed = word * FACTOR + 1442695040888963407 & 0xffffffffffffffff
        x = mixed >> 64 - of.bits
        x = of.wrap(x)
        made.append({0: 0, 1: of.least, 2: of.most}.get(i % 11, x))
    return made


TEXT = """
compressor meanings {{
  wire {{ {fields} }}
  encode(g: [f32; n]) {{
    let i = iota(n)
    let mixed = (bitcast<u32>(g) as u64) * {factor} + 1442695040888963407
    let drawn = {drawn}
    let x = select(i % 11 == 0, 0 as {type}, select(i % 11 == 1, ({least}) as {type}, select(i % 11 == 2, {most} as {type}, drawn)))
    let y = x[(i + 3) % n]
    wire {{ {values} }}
  }}
  decode(w) {{ w.{first} as f32 }}
}}
"""


def by_element(of, x, y):
    """{name: (expression, type of the result, numbers)} of the element-wise operators."""
    to = of.arithmetic()
    u32, flag, i = Type("u32"), Type("u1"), range(len(x))

    def two(function):
        return [function(a, b) for a, b in zip(x, y)]

    def ceiled(a, b):
        quotient, rest = truncated(a, b)
        return to.wrap(quotient + (rest != 0 and (a < 0) == (b < 0)))

    shifts = [k % 70 for k in i]
    made = {
        "added": ("x + y", to, two(lambda a, b: to.wrap(a + b))),
        "less": ("x - y", to, two(lambda a, b: to.wrap(a - b))),
        "times": ("x * y", to, two(lambda a, b: to.wrap(a * b))),
        "quotient": ("x / y", to, two(lambda a, b: to.wrap(truncated(a, b)[0]))),
        "rest": ("x % y", to, two(lambda a, b: to.wrap(truncated(a, b)[1]))),
        "up": ("ceil_div(x, y)", to, two(ceiled)),
        "down": ("floor_div(x, y)", to, two(lambda a, b: to.wrap(a // b if b else 0))),
        "both": ("x & y", to, two(lambda a, b: a & b)),
        "either": ("x | y", to, two(lambda a, b: a | b)),
        "one": ("x ^ y", to, two(lambda a, b: a ^ b)),
        "inverse": ("!x", to, [to.wrap(~a) for a in x]),
        "negative": ("-x", to, [to.wrap(-a) for a in x]),
        "size": ("abs(x)", to, [to.wrap(abs(a)) for a in x]),
        "signs": ("sign(x)", to, [(a > 0) - (a < 0) for a in x]),
        "smaller": ("min(x, y)", to, two(min)),
        "larger": ("max(x, y)", to, two(max)),
        "left": (f"x << ((i % 70) as {to.name})", to, [to.wrap(a << s % to.bits) for a, s in zip(x, shifts)]),
        "right": (f"x >> ((i % 70) as {to.name})", to, [a >> s % to.bits for a, s in zip(x, shifts)]),
        "ones": ("popcount(x)", u32, [bin(a & (1 << of.bits) - 1).count("1") for a in x]),
        "zeros": ("clz(x)", u32, [of.bits - (a & (1 << of.bits) - 1).bit_length() for a in x]),
        "below": ("x < y", flag, two(lambda a, b: int(a < b))),
        "same": ("x == y", flag, two(lambda a, b: int(a == b))),
    }
    for name in ("u1", "u5", "i5", "u33", "i33", "u64", "i64"):
        other = Type(name)
        made["as_" + name] = (f"x as {name}", other, [other.clip(a) for a in x])
    return made


def by_array(of, x):
    """The same of operators on whole arrays; a scalar is an array of one."""
    to, u32 = of.arithmetic(), Type("u32")
    n = len(x)
    running, total = [], 0
    for a in x:
        running.append(to.wrap(total))
        total += a
    after = running[1:] + [to.wrap(total)]
    cells = [to.wrap(sum(x[k::9])) for k in range(9)]
    order = sorted(range(n), key=lambda k: (x[k], k))
    odd = 0
    for a in x:
        odd ^= a
    bits = "".join(format(a & 31, "05b")[::-1] for a in x)
    bits += "0" * (-len(bits) % 8)
    packed = [int(bits[k:k + 8][::-1], 2) for k in range(0, len(bits), 8)]
    return {
        "sum_all": ("fill(sum(x), 1)", to, [to.wrap(total)]),
        "least_of_all": ("fill(min(x), 1)", to, [min(x)]),
        "most_of_all": ("fill(max(x), 1)", to, [max(x)]),
        "place": ("fill(argmax(x), 1)", u32, [x.index(max(x))]),
        "odd": ("fill(reduce(x, 0, |a, b| a ^ b), 1)", to, [to.wrap(odd)]),
        "running": ("cumsum(x)", to, after),
        "before": ("cumsum(x, exclusive: true)", to, running),
        "cells": ("scatter_add(x, at: i % 9, size: 9)", to, cells),
        "sorted": ("sort(x)", of, sorted(x)),
        "order": ("argsort(x)", u32, order),
        "packed": ("pack(x, bits: 5)", Type("u8"), packed),
    }


def program(of, made):
    fields, values = [], []
    for name, (expression, to, expected) in made.items():
        wide = "i64" if to.is_signed else "u64"
        # The wire's length is a formula; those of the arrays here are n, or what they are at this size.
        size = {"packed": "ceil_div(5 * n, 8)", "cells": "9"}.get(name, "1" if expression.startswith("fill(") else "n")
        fields.append(f"{name}: [{wide}; {size}]")
        values.append(f"{name}: ({expression}) as {wide}")
    shifted = f"(mixed >> {64 - of.bits})" if of.bits < 64 else "mixed"
    drawn = f"{shifted} as {of.name}"
    if of.is_signed:
        wide = "bitcast<i64>(mixed)"
        drawn = f"({wide} >> {64 - of.bits}) as {of.name}" if of.bits < 64 else wide
    least = "-9223372036854775807 - 1" if of.least == -(1 << 63) else str(of.least)
    most = "18446744073709551615" if of.bits == 64 and not of.is_signed else str(of.most)
    return TEXT.format(fields=", ".join(fields), values=", ".join(values), type=of.name, first=next(iter(made)), factor=FACTOR,
                       drawn=drawn, least=least, most=most)


def payload_arrays(body, made):
    at, found = 64, {}
    for name, (_, to, expected) in made.items():
        at = -(-at // 16) * 16
        found[name] = list(struct.unpack_from(f"<{len(expected)}{'q' if to.is_signed else 'Q'}", body, at))
        at += 8 * len(expected)
    return found if at == len(body) else f"{len(body)} bytes, not {at}"


def npy(words):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(words)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(words)}I", *words)


def gradient_bits(length):
    """Bits of finite floats."""
    state, words = 12345, []
    for _ in range(length):
        state = state * FACTOR + 1442695040888963407 & 0xffffffffffffffff
        word = state >> 32
        words.append(word & 0xff7fffff)
    return words


def check(cinch, folder, of, length, targets):
    words = gradient_bits(length)
    x = numbers(of, words)
    y = [x[(i + 3) % length] for i in range(length)]
    made = {**by_element(of, x, y), **by_array(of, x)}
    source, gradient, payload = (os.path.join(folder, name) for name in ("meanings.cinch", "g.npy", "payload"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(program(of, made))
    with open(gradient, "wb") as file:
        file.write(npy(words))
    faults = []
    for target in targets:
        run = subprocess.run([cinch, "run", source, "--input", gradient, "--payload", payload, *target], capture_output=True, text=True)
        where = f"{of.name}, {length} elements, {' '.join(target) or 'cpu'}"
        if run.returncode:
            return [f"{where}: status {run.returncode}\n{run.stderr}"]
        with open(payload, "rb") as file:
            found = payload_arrays(file.read(), made)
        if isinstance(found, str):
            return [f"{where}: {found}"]
        for name, (expression, _, expected) in made.items():
            wrong = [k for k, (a, b) in enumerate(zip(found[name], expected)) if a != b]
            if wrong:
                k = wrong[0]
                faults.append(f"{where}: {expression}: element {k} is {found[name][k]}, not {expected[k]} "
                              f"(x {x[k] if k < length else '-'}, y {y[k] if k < length else '-'}); {len(wrong)} of {len(expected)} differ")
    return faults


def main():
    arguments = sys.argv[1:]
    is_long = "--long" in arguments or os.environ.get("CINCH_LONG", "0") not in ("", "0")
    cinch, *types = [a for a in arguments if a != "--long"]
    num_cases, faults = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in types or (ALL if is_long else FEW):
            targets = [["--interpret"], []]
            if is_long or types or name in FEW_ON_GPU:
                targets.append(["--device", "emulated"])
            for length in ALL_LENGTHS if is_long else LENGTHS:
                num_cases += len(targets)
                faults += check(cinch, folder, Type(name), length, targets)
    print("\n".join(faults))
    print(f"{num_cases} runs, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
