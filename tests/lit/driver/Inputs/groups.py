"""groups.py CINCH FOLDER: programs whose ranks exchange in groups, or add in types of their own, against what they mean, computed here."""
import os
import subprocess
import sys

import numpy as np

CINCH, FOLDER = sys.argv[1:]
N = 48 * 7

TWO_HOPS = """
fn codes(x: f32) -> f32 { clamp(round(x * 2), -8, 7) }

compressor two_hops {
  sync(g: [f32; n]) {
    let here = all_to_all(codes(reshape(g, machine_ranks, n / machine_ranks)) as i4, group: machine_ranks)
    let part = reshape(sum(here as f32 / 2, axis: 0), world / machine_ranks, n / world)
    let there = all_to_all(codes(part) as i4, group: world / machine_ranks, stride: machine_ranks)
    let own = reshape(sum(there as f32 / 2, axis: 0), n / world)
    let back = allgather((own * 4) as i8, group: world / machine_ranks, stride: machine_ranks)
    reshape(allgather(reshape(back, n / machine_ranks), group: machine_ranks) as f32 / 4, n)
  }
}
"""
SUMS = """
compressor sums {
  sync(g: [f32; n]) {
    let a = allreduce(g, sum, in: TYPE) as f32
    let b = allreduce(g, mean, group: machine_ranks, in: TYPE) as f32
    allgather(b)[step % world] + a * 16
  }
}
"""
PAIRS = """
compressor pairs {
  sync(g: [f32; n]) {
    let near = allreduce(g, sum, group: 2)
    allreduce(near, max, group: world / 2, stride: 2)
  }

  claims local
}
"""


def values_of(exponent_bits, mantissa_bits, largest):
    """Every finite number of a float type that is not negative, by its bits."""
    bias = 2 ** (exponent_bits - 1) - 1
    found = []
    for bits in range(2 ** (exponent_bits + mantissa_bits)):
        exponent, mantissa = bits >> mantissa_bits, bits % 2 ** mantissa_bits
        value = mantissa * 2.0 ** (1 - bias - mantissa_bits) if exponent == 0 else (1 + mantissa / 2 ** mantissa_bits) * 2.0 ** (exponent - bias)
        if value > largest:
            break
        found.append(value)
    return np.array(found)


TYPES = {"f16": (5, 10, 65504.0), "bf16": (8, 7, 3.3895313892515355e38), "f8e4m3": (4, 3, 448.0), "f8e5m2": (5, 2, 57344.0)}


def to_type(x, name):
    """To the nearest number of the type; of two as near, that with an even last bit."""
    table = values_of(*TYPES[name])
    magnitude = np.abs(x.astype("f8"))
    above = np.minimum(np.searchsorted(table, magnitude), len(table) - 1)
    below = np.maximum(above - 1, 0)
    up, down = table[above] - magnitude, magnitude - table[below]
    nearest = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    return (np.sign(x) * table[nearest]).astype("f4")


def in_order(rows):
    total = rows[0].copy()
    for row in rows[1:]:
        total = (total + row).astype("f4")
    return total


def two_hops(g, on_each):
    world, machines = len(g), len(g) // on_each
    codes = lambda x: np.clip(np.rint(x * 2), -8, 7) / 2
    parts = [[codes(g[rank]).reshape(on_each, -1)[number] for rank in range(world)] for number in range(on_each)]
    own = {}
    for machine in range(machines):
        for number in range(on_each):
            own[machine, number] = sum(parts[number][machine * on_each + other] for other in range(on_each))
    back = {}
    for machine in range(machines):
        for number in range(on_each):
            back[machine, number] = sum(codes(own[other, number]).reshape(machines, -1)[machine] for other in range(machines))
    return np.concatenate([np.trunc(back[machine, number] * 4) / 4 for number in range(on_each) for machine in range(machines)]).astype("f4")


def sums(g, on_each, name):
    rows = [to_type(row, name) for row in g]
    total = to_type(in_order(rows), name)
    of_group = to_type(in_order(rows[:on_each]) / np.float32(on_each), name)
    return (of_group + total * np.float32(16)).astype("f4")


def pairs(g, _):
    near = [g[rank & ~1] + g[rank | 1] for rank in range(len(g))]
    return np.max(near[0::2], axis=0)


def run(name, text, g, on_each, *options):
    path = f"{FOLDER}/{name}.cinch"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    inputs = []
    for rank, row in enumerate(g):
        inputs += ["--input", f"{FOLDER}/{rank}.npy"]
        np.save(inputs[-1], row)
    machines = ["--machine-ranks", str(on_each)] if on_each else []
    done = subprocess.run([CINCH, "run", path, "--ranks", *inputs, *machines, "--output", f"{FOLDER}/x.npy", *options], capture_output=True, text=True)
    return np.load(f"{FOLDER}/x.npy") if done.returncode == 0 else done.stderr


def check(what, text, meaning, worlds, scale):
    for world, on_each in worlds:
        g = (np.random.default_rng(world).standard_normal((world, N)) * scale).astype("f4")
        wanted = meaning(g, on_each or world)
        for options in [()] + [("--interpret",)] * (world == 4):
            found = run(what, text, g, on_each, *options)
            if isinstance(found, str) or not np.array_equal(found, wanted):
                sys.exit(f"{what} of {world} ranks, {on_each} on each machine {options}: {found} is not {wanted}")
    print(f"{what}: as expected")


os.makedirs(FOLDER, exist_ok=True)
check("two_hops", TWO_HOPS, two_hops, [(1, 0), (2, 0), (2, 1), (4, 2), (6, 3), (8, 4)], 1)
for each in TYPES:
    worlds = [(1, 0), (3, 0), (4, 2)] if each == "bf16" else [(3, 0)]
    check("sums", SUMS.replace("TYPE", each), lambda g, on_each, name=each: sums(g, on_each, name), worlds, 3)
check("pairs", PAIRS, pairs, [(2, 0), (4, 0), (8, 0)], 1)
one = np.ones((4, N), "f4")
for text in (TWO_HOPS, PAIRS.replace("group: 2)", "group: step)")):
    print(run("refused", text, one, 3))
