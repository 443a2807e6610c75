#!/usr/bin/env python3
"""Searches for cliffs: forms of an operator that take several times as long as their neighbours.

    cliffs.py [--elements N] [--seconds S] [--widths W…] [--only TEXT] [--all] [--json]

Needs the Python package on the path, and numpy. Each form is a program with one operator at one width, along one axis or of one
type. A form's neighbours are the next widths of the same operator and axis; of forms without widths, the median of their group.
All run on one thread, in one process with numpy's form where there is one. Times are the least of several calls, so a busy machine
moves them little. The table shows forms that are slower than four times a neighbour, or with --all every form.
"""
import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Callable, Optional

import cinch
import numpy as np

CLIFF = 4.0
WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48, 50, 60, 63, 64, 65, 80, 96, 100, 127, 128, 129,
          160, 192, 200, 255, 256, 257, 300]
REDUCTIONS = {"sum": "sum({})", "mean": "mean({})", "std": "std({})", "min": "min({})", "max": "max({})", "argmax": "argmax({})",
              "norm1": "norm1({})", "norm2": "norm2({})", "norm_inf": "norm_inf({})", "count": "count({} > 0)",
              "any": "any({} > 3)", "reduce": "reduce({}, 1.0, |a, b| a * b)"}
NUMPY_REDUCTIONS = {"sum": np.sum, "mean": np.mean, "std": np.std, "min": np.min, "max": np.max, "argmax": np.argmax,
                    "norm_inf": lambda x, axis: np.max(np.abs(x), axis=axis)}
RESULT_TYPES = {"argmax": "u32", "count": "u32", "any": "bool"}


@dataclass
class Form:
    group: str
    width: Optional[int]
    text: str
    numpy: Optional[Callable] = None


def program(expression, type_, length, sizes="", before=""):
    return (f"compressor probe {{\n{sizes}\nwire {{ out: [{type_}; {length}] }}\n"
            f"encode(g: [f32; n]) {{\n{before}\nwire {{ out: {expression} }} }}\n"
            f"decode(w) {{ fill(0.0, n) }} }}")


def with_axis(pattern, x, axis):
    inner = pattern.format(x)
    return f"{inner[:-1]}, axis: {axis})"


def reductions(widths):
    for name, pattern in REDUCTIONS.items():
        type_ = RESULT_TYPES.get(name, "f32")
        function = NUMPY_REDUCTIONS.get(name)
        for b in widths:
            along = None if function is None else lambda g, b=b, f=function: f(g[:g.size // b * b].reshape(-1, b), axis=1)
            across = None if function is None else lambda g, b=b, f=function: f(g[:g.size // b * b].reshape(b, -1), axis=0)
            yield Form(f"{name} axis 1", b, program(with_axis(pattern, f"chunk(g, {b})", 1), type_, "r, 1", f"size r = ceil_div(n, {b})"),
                       along)
            yield Form(f"{name} axis 0", b, program(with_axis(pattern, f"reshape(g[0..{b} * c], {b}, c)", 0), type_, "1, c",
                                                    f"size c = n / {b}"), across)


def rows(widths):
    """Operators that give back rows."""
    for b in widths:
        chunk, size = f"chunk(g, {b})", f"size r = ceil_div(n, {b})"
        whole = f"r, {b}"
        yield Form("cumsum axis 1", b, program(f"cumsum({chunk}, axis: 1)", "f32", whole, size),
                   lambda g, b=b: np.cumsum(g[:g.size // b * b].reshape(-1, b), axis=1))
        yield Form("scan axis 1", b, program(f"scan({chunk}, 0.0, |a, b| max(a, b), axis: 1)", "f32", whole, size))
        yield Form("sort axis 1", b, program(f"sort({chunk}, axis: 1)", "f32", whole, size),
                   lambda g, b=b: np.sort(g[:g.size // b * b].reshape(-1, b), axis=1))
        yield Form("median axis 1", b, program(f"median({chunk}, axis: 1)", "f32", "r, 1", size))
        k = max(1, b // 16)
        yield Form("top_k axis 1", b, program(f"top_k(abs({chunk}), {k}, axis: 1)", "u32", f"r, {k}", size))
        yield Form("scale by rows", b, program(f"unchunk(x / norm_inf(x, axis: 1), n)", "f32", "n", before=f"let x = {chunk}"))
        yield Form("codes by rows", b, program("unchunk(clamp(x / norm_inf(x, axis: 1) * 7, -7, 7) as int<4>, n)", "int<4>", "n",
                                               before=f"let x = {chunk}"))
        yield Form("rounded codes by rows", b, program("unchunk(stochastic_round(x / norm_inf(x, axis: 1) * 7) as int<4>, n)", "int<4>", "n",
                                                       before=f"let x = {chunk}"))
        yield Form("transpose", b, program(f"transpose(reshape(g[0..{b} * c], {b}, c))", "f32", f"c, {b}", f"size c = n / {b}"),
                   lambda g, b=b: np.ascontiguousarray(g[:g.size // b * b].reshape(b, -1).T))
    for b in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        yield Form("hadamard", b, program(f"hadamard(chunk(g, {b}))", "f32", f"r, {b}", f"size r = ceil_div(n, {b})"))


def element_wise():
    functions = ["abs(g)", "sqrt(abs(g))", "exp(g)", "exp2(g)", "log(abs(g))", "log2(abs(g))", "sin(g)", "cos(g)", "floor(g)", "round(g)",
                 "g / (g + 1)", "exp2(floor(log2(abs(g))))", "sign(g)", "clamp(g, -1, 1)", "select(g > 0, g, 0.5 * g)"]
    for f in functions:
        yield Form("element-wise", None, program(f, "f32", "n"))
    for type_ in ["f16", "bf16", "f8e4m3", "f8e5m2", "i8", "u16", "i32", *(f"int<{b}>" for b in range(2, 16))]:
        yield Form("store as", None, program(f"g as {type_}", type_, "n"))
    for draw, type_ in [("random(n)", "f32"), ("random_bits(n)", "u32"), ("normal(n)", "f32"), ("stochastic_round(g)", "f32"),
                        ("random_index(n, size: n)", "u32")]:
        yield Form("draw", None, program(draw, type_, "n"))


def whole():
    """Operators over the whole array."""
    yield Form("whole", None, program("cumsum(g)", "f32", "n"), np.cumsum)
    yield Form("whole", None, program("sort(g)", "f32", "n"), np.sort)
    yield Form("whole", None, program("median(g)", "f32", "1").replace("out: median(g)", "out: fill(median(g), 1)"), np.median)
    yield Form("whole", None, program("top_k(abs(g), n / 100)", "u32", "m", "size m = n / 100"))
    yield Form("whole", None, program("scatter(g[0..m], at: random_index(m, size: n), size: n)", "f32", "n", "size m = n / 10"))
    yield Form("whole", None, program("g[random_index(m, size: n)]", "f32", "m", "size m = n / 10"))
    yield Form("whole", None, program("scatter_add(g[0..m], at: random_index(m, size: n), size: n)", "f32", "n", "size m = n / 10"))
    yield Form("whole", None, program("histogram((abs(g) * 16) as u32, bins: 64)", "u32", "64"))


def forms(widths):
    yield from reductions(widths)
    yield from rows(widths)
    yield from element_wise()
    yield from whole()


def least_time(call, seconds):
    call()
    best, end, rounds = float("inf"), time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
        rounds += 1
    return best * 1000


def measure(form, gradient, seconds):
    """Milliseconds of an encode and of numpy, or the compiler's message."""
    try:
        compiled = cinch.compile("probe", text=form.text)
    except cinch.ProgramError as error:
        return {"group": form.group, "width": form.width, "error": str(error).splitlines()[0]}
    with compiled.session(gradient, threads=1) as session:
        room = bytearray(session.payload_bounds(0)[0])
        took = least_time(lambda: session.encode(0, gradient, out=room), seconds)
    numpy = None if form.numpy is None else least_time(lambda: form.numpy(gradient), seconds)
    return {"group": form.group, "width": form.width, "form": form.text.split("out: ")[-1].split(" } }")[0], "ms": took, "numpy": numpy}


def note_neighbours(measured):
    """Adds how many times as long as the faster neighbour a form takes."""
    groups = {}
    for row in measured:
        if "ms" in row:
            groups.setdefault(row["group"], []).append(row)
    for group in groups.values():
        for i, row in enumerate(group):
            near = ([group[j]["ms"] for j in (i - 1, i + 1) if 0 <= j < len(group)] if row["width"] is not None
                    else [statistics.median(other["ms"] for other in group)])
            row["ratio"] = row["ms"] / min(near) if near else 1.0


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--elements", type=int, default=1 << 20)
    options.add_argument("--seconds", type=float, default=0.03)
    options.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    options.add_argument("--only", default="", help="forms whose group holds this text")
    options.add_argument("--all", action="store_true")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    gradient = np.random.default_rng(0).standard_normal(given.elements, dtype=np.float32)
    measured = [measure(form, gradient, given.seconds) for form in forms(given.widths) if given.only in form.group]
    note_neighbours(measured)
    if given.json:
        json.dump(measured, sys.stdout, indent=1)
        return
    print(f"{given.elements} elements, one thread; ms, times the faster neighbour, numpy's ms")
    for row in measured:
        if "error" in row:
            print(f"{row['group']:24} {row['width'] or '':>5}  {row['error']}")
        elif given.all or row["ratio"] > CLIFF:
            numpy = "" if row["numpy"] is None else f"{row['numpy']:9.2f}"
            print(f"{row['group']:24} {row['width'] or '':>5} {row['ms']:9.2f} {row['ratio']:6.1f} {numpy:9}  {row['form']}")


if __name__ == "__main__":
    main()
