#!/usr/bin/env python3
"""accepted.py CINCH [--long] [--texts] [--only TEXT] [TYPE…]: what `cinch check` accepts compiles everywhere and means the same everywhere.

Every operator (those of runtime/core/numbers/scalar_op.def by sign and by name, those of dsl/sema/builtins.def) meets every element type, on
scalars, vectors and matrices, of operands that are known when the program is compiled and of others. `cinch check` looks at each
combination alone. What it accepts becomes kernels and text for CPUs and GPUs, many combinations in a program; then programs run in the
interpreter, on the CPU and on the emulated GPU, and their payloads must be the same, and be what Python computes where that is easy.
Without --long (or CINCH_LONG) a covering sample; its first and last part also run on the emulated GPU. --texts: nothing runs."""
import concurrent.futures
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from integers import FACTOR, npy  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
WIDTHS = (1, 2, 4, 7, 8, 12, 16, 24, 31, 32, 33, 48, 63, 64)
FLOATS = {"f8e4m3": 8, "f8e5m2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
TYPES = ["bool"] + [f"u{b}" for b in WIDTHS] + [f"i{b}" for b in WIDTHS if b > 1] + list(FLOATS)
FEW = ["bool", "u1", "i7", "u16", "i32", "u33", "i63", "u64", "f8e4m3", "bf16", "f32", "f64"]
ROWS, COLS = 11, 7
MOST_SHOWN = 16  # check shows 50 errors, and these programs have three at most: one for each field
SIZE = ROWS * COLS

# Signs of operations whose name is not how they are called.
SIGNS = {"neg": "-{a}", "bit_not": "!{a}", "add": "{a} + {b}", "sub": "{a} - {b}", "mul": "{a} * {b}", "div": "{a} / {b}",
         "mod": "{a} % {b}", "bit_and": "{a} & {b}", "bit_or": "{a} | {b}", "bit_xor": "{a} ^ {b}", "shl": "{a} << {b}",
         "shr": "{a} >> {b}", "eq": "{a} == {b}", "ne": "{a} != {b}", "lt": "{a} < {b}", "le": "{a} <= {b}", "gt": "{a} > {b}",
         "ge": "{a} >= {b}"}
MORE_SIGNS = {"and": "{a} && {b}", "or": "{a} || {b}"}

# Of each named operator its forms, as (rank of {a}, expression, shape of the result): {b} and {c} are like {a}, {k} is a number of
# the type, {m} a mask, {i} indices, {s} and {t} scalars, {o} the other shape of the same elements.
REDUCTIONS = [(1, "{f}({a})", "1"), (1, "{f}({a}, where: {m})", "1"), (2, "{f}({a})", "1"), (2, "{f}({a}, axis: 0)", "1, c"),
              (2, "{f}({a}, axis: 1)", "r, 1"), (2, "{f}({a}, where: {m}, axis: 0)", "1, c"),
              (2, "{f}({a}, where: {m}, axis: 1)", "r, 1")]
TWO = [(rank, text.replace("{a}", "{a}, {b}"), shape) for rank, text, shape in REDUCTIONS]
LINES = [(1, "{f}({a})", "n"), (2, "{f}({a}, axis: 0)", "r, c"), (2, "{f}({a}, axis: 1)", "r, c")]
DESCENDING = LINES + [(1, "{f}({a}, descending: true)", "n"), (2, "{f}({a}, descending: true, axis: 1)", "r, c")]
DRAWS = [(1, "{f}(n)", "n")]
FORMS = {
    "map": [(1, "map({a}, {b}, |p, q| select(p == q, p, q))", "n"), (2, "map({a}, |p| if p == {k} { p } else { {k} })", "r, c")],
    "fill": [(1, "fill({s}, 5)", "5"), (1, "fill({k}, n)", "n")],
    "floor_div": [(rank, "floor_div({a}, {b})", shape) for rank, shape in ((0, "1"), (1, "n"), (2, "r, c"))],
    "len": [(1, "len({a})", "1"), (2, "len({a})", "1")],
    "reduce": [(1, "reduce({a}, {k}, |p, q| min(p, q))", "1"), (2, "reduce({a}, {k}, |p, q| max(p, q), axis: 0)", "1, c"),
               (2, "reduce({a}, {k}, |p, q| p + q, axis: 1)", "r, 1"), (1, "reduce({a}, {k}, |p, q| p | q, where: {m})", "1")],
    **{name: REDUCTIONS for name in ("sum", "prod", "mean", "var", "std", "min", "max", "argmax", "argmin", "any", "all", "count", "norm1", "norm2", "norm_inf")},
    "dot": TWO,
    "scan": [(1, "scan({a}, {k}, |p, q| max(p, q))", "n"), (1, "scan({a}, {k}, |p, q| p + q, exclusive: true)", "n"),
             (2, "scan({a}, {k}, |p, q| min(p, q), axis: 1)", "r, c"), (2, "scan({a}, {k}, |p, q| p & q, axis: 0)", "r, c")],
    "cumsum": LINES + [(1, "{f}({a}, exclusive: true)", "n"), (2, "{f}({a}, exclusive: true, axis: 1)", "r, c")],
    "cummax": LINES,
    "flip": LINES,
    "filter": [(1, "sum(filter({a}, where: {m}))", "1"), (1, "max(filter({a}, where: {m}, limit: 3))", "1"),
               (1, "len(filter({a}, where: {m}))", "1"), (1, "scatter(filter({a}, where: {m}), at: nonzero({m}), size: n)", "n"),
               (1, "top_k(filter({a}, where: {m}), 2)", "2"), (1, "sum(top_k(filter({a}, where: {m}), min(3, len(filter({a}, where: {m})))))", "1")],
    "nonzero": [(1, "sum(nonzero({a}))", "1"), (1, "sum(nonzero({a} != {k}, limit: 4))", "1")],
    "sort": DESCENDING, "argsort": DESCENDING,
    "sort_by_key": [(1, "{f}({a}, {b})", "n"), (2, "{f}({a}, {b}, axis: 0)", "r, c"), (2, "{f}({a}, {i}, axis: 1, descending: true)", "r, c")],
    "top_k": [(1, "{f}({a}, 3)", "3"), (1, "{f}({a}, ceil_div(n, 2))", "ceil_div(n, 2)"), (2, "{f}({a}, 2, axis: 1)", "r, 2")],
    "median": [(1, "{f}({a})", "1"), (2, "{f}({a}, axis: 1)", "r, 1")],
    "quantile": [(1, "{f}({a}, 0.3)", "1"), (1, "{f}({a}, 0.5, where: {m})", "1"), (2, "{f}({a}, 1, axis: 1)", "r, 1")],
    "searchsorted": [(1, "searchsorted(sort({a}), {b})", "n"), (1, "searchsorted(sort({a}), {b}, side: right)", "n")],
    "kth_largest": [(1, "{f}({a}, 3)", "1"), (1, "{f}({a}, 0)", "1"), (2, "{f}({a}, 2, axis: 1)", "r, 1")],
    "pack": [(1, "pack({a}, bits: 5)", "ceil_div(5 * n, 8)"), (1, "pack({a}, bits: 33)", "ceil_div(33 * n, 8)")],
    "unpack": [(1, "unpack({a}, bits: 3, size: n)", "n"), (1, "unpack(pack({a}, bits: 12), bits: 12, size: n)", "n"),
               (1, "unpack(pack({a}, bits: 59), bits: 59, size: n)", "n"), (1, "unpack(pack({a}, bits: 64), bits: 64, size: n)", "n")],
    "concat": [(1, "concat({a}, {b})", "2 * n"), (1, "concat({a}, fill({k}, 2))", "n + 2")],
    "stack": [(1, "stack({a}, {b})", "2, n"), (1, "stack({a}, {b}, {a}, axis: 1)", "n, 3")],
    "slice": [(1, "slice({a}, 2, 5)", "5"), (1, "{a}[3..n]", "n - 3"), (2, "{a}[1..3]", "2, c"), (1, "{a}[{i}]", "n"), (2, "{a}[sum({i}) % r]", "c"),
              (1, "slice({a}, max({i}) / 2, 5)", "5")],
    "scatter": [(1, "scatter({a}, at: argsort({b}), size: n)", "n"), (2, "scatter({a}, at: argsort({b}, axis: 1), size: c)", "r, c"),
                (2, "scatter({a}, at: iota(r), size: r + 1)", "r + 1, c"), (1, "scatter({a}, at: {i} % 5, size: 5, keep: last)", "5"),
                (2, "scatter({a}, at: {i} % 3, size: 3, keep: first)", "r, 3")],
    "scatter_add": [(1, "scatter_add({a}, at: {i} % 5, size: 5)", "5"), (2, "scatter_add({a}, at: {i} % 3, size: 3)", "r, 3")],
    "scatter_min": [(1, "scatter_min({a}, at: {i} % 5, size: 5)", "5"), (2, "scatter_min({a}, at: {i} % 3, size: 3)", "r, 3")],
    "scatter_max": [(1, "scatter_max({a}, at: {i} % 5, size: 5)", "5"), (2, "scatter_max({a}, at: {i} % 3, size: 3)", "r, 3")],
    "reshape": [(1, "reshape({a}, 1, n)", "1, n"), (2, "reshape({a}, r * c)", "r * c"), (1, "reshape({a}, n / 7, 7)", "n / 7, 7")],
    "transpose": [(2, "transpose({a})", "c, r")],
    "chunk": [(1, "chunk({a}, 8)", "ceil_div(n, 8), 8")],
    "unchunk": [(2, "unchunk({a}, r)", "r")],
    "iota": [(1, "iota(n)", "n"), (1, "{a}[iota(n)]", "n")],
    "histogram": [(1, "histogram({a}, bins: 9)", "9"), (2, "histogram({a}, bins: r)", "r")],
    "random": DRAWS, "random_bits": DRAWS, "normal": DRAWS,
    "random_index": [(1, "{a}[random_index(5, size: n)]", "5")],
    "stochastic_round": [(1, "{f}({a})", "n"), (2, "{f}({a})", "r, c"), (0, "{f}({a})", "1")],
    "matmul": [(2, "{a} @ transpose({b})", "r, r"), (2, "transpose({a}) @ {b}", "c, c"), (2, "{a} @ reshape(fill({k}, c * 2), c, 2)", "r, 2"),
               (2, "{a}[0..3] @ reshape(fill({k}, c * 3), c, 3)", "3, 3"), (1, "reshape({a}, n, 1) @ fill({k}, 1) [0..1]", "n, 1"),
               (1, "chunk({a}, 4) @ reshape(concat({b}[0..8], {a}[0..8]), 4, 4)", "ceil_div(n, 4), 4")],
    "outer": [(1, "outer({a}, {b})", "n, n")],
    "orthonormalize": [(2, "{f}({a})", "r, c")],
    "hadamard": [(1, "hadamard(chunk({a}, 8))", "ceil_div(n, 8), 8"), (1, "hadamard({a}[0..16])", "16")],
}
# In `sync` alone: tests/programs/collectives.cinch and routed.cinch.
ELSEWHERE = {"allreduce", "allgather", "all_to_all", "reduce_scatter", "broadcast", "sendrecv"}


def table(path, row):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.findall(rf"^{row}\((\w+), (\w+)", file.read(), re.MULTILINE)


class Combination:
    """One expression on operands of one type: `text` on arrays of `rank`, with a result of `shape`."""

    def __init__(self, name, of, rank, operands, text, shape):
        self.name, self.of, self.rank, self.operands, self.text, self.shape = name, of, rank, operands, text, shape
        self.converted = ["f64"] if of in FLOATS else ["i64", "u64", "f64"]

    def __str__(self):
        return f"{self.of}, rank {self.rank}: {self.text}"

    def field(self, to):
        is_one = self.shape == "1"
        value = f"({self.text}) as {to}"
        return f"[{to}; {self.shape}]", f"fill({value}, 1)" if is_one else value


def filled(text, name, of, rank, operands):
    """Operands: a letter each; x an array or run-time scalar, k a constant of the type, l a number without a type."""
    number = "true" if of == "bool" else "1"
    constant = "true" if of == "bool" else f"(1 as {of})"
    run = {0: ("s", "t", "s"), 1: ("x", "y", "z"), 2: ("xm", "ym", "zm")}[rank]
    given = [run[i] if how == "x" else constant if how == "k" else number for i, how in enumerate(operands)]
    values = {"a": given[0], "b": given[1], "c": given[2], "f": name, "k": constant, "s": "s", "t": "t",
              "m": "mm" if rank == 2 else "m", "i": "im" if rank == 2 else "i"}
    return re.sub(r"\{(\w)\}", lambda found: values[found.group(1)], text)


def combinations(types):
    """All of them: (name, type, rank, which operands are constant, expression)."""
    scalar_ops = [(name, int(arity)) for name, arity in table("runtime/core/numbers/scalar_op.def", "SCALAR_OP")]
    shapes = {0: "1", 1: "n", 2: "r, c"}
    element_wise = []
    for name, arity in scalar_ops:
        names = ", ".join(f"{{{letter}}}" for letter in "abc"[:arity])
        element_wise.append((name, arity, SIGNS.get(name, f"{name}({names})")))
    element_wise += [(name, 2, text) for name, text in MORE_SIGNS.items()]
    element_wise += [(f"as_{to}", 1, f"{{a}} as {to}") for to in FEW + ["i2", "u31", "f16", "f8e5m2"]]
    element_wise += [(f"bitcast_{to}", 1, f"bitcast<{to}>({{a}})") for to in ("u8", "i16", "f16", "bf16", "u32", "f32", "i64", "f64", "u7", "i33")]
    for of in types:
        for name, arity, text in element_wise:
            for rank in (0, 1, 2):
                choices = {1: ["x", "k", "l"], 2: ["xx", "xk", "kx", "xl", "lx", "kk", "kl"], 3: ["xxx", "xkx", "kxx", "xlk", "mxx", "mxk", "mkk"]}[arity]
                if arity == 3 and name != "select":
                    choices = [how for how in choices if "m" not in how]
                for how in choices:
                    if rank > 0 and not set(how) & set("xm"):
                        continue
                    body = text.replace("{a}", "{m}", 1) if how[0] == "m" else text
                    mask = "x[3] == y[4]" if rank == 0 else "{m}"
                    body = filled(body.replace("{m}", mask), name, of, rank, (how + "xx")[:3])
                    yield Combination(name, of, rank, how, body, shapes[rank])
        for name, forms in FORMS.items():
            for rank, text, shape in forms:
                yield Combination(name, of, rank, "x", filled(text, name, of, rank, "xxx"), shape)


def prelude(of):
    """x of any bits with the ends of the type among them; y and z the same elsewhere, of floats moderate numbers; their first
    elements s and t; m masks, i indices; and matrices of all."""
    drawn, moved = "", "x[(i + 3) % n]"
    if of == "bool":
        drawn = "(mixed >> 63) == 1"
    elif of in FLOATS:
        bits = FLOATS[of]
        word = "mixed" if bits == 64 else f"((mixed >> {64 - bits}) as u{bits})"
        drawn = f"select(i % 4 == 1, bitcast<{of}>({word}), (v as {of}))"
        moved = f"(v[(i + 3) % n] as {of})"
    else:
        bits = int(of[1:])
        wide = "bitcast<i64>(mixed)" if of[0] == "i" else "mixed"
        drawn = (f"({wide} >> {64 - bits})" if bits < 64 else wide) + f" as {of}"
    return ["let i = iota(n)", "let mixed = (bitcast<u32>(v) as u64) * %d + 1442695040888963407" % FACTOR, f"let x = {drawn}", f"let y = {moved}",
            "let z = y[(i + 5) % n]", "let s = x[2]", "let t = y[5]", "let m = (mixed >> 62) % 2 == 1"]


def program(name, of, rank, fields):
    lets = prelude(of)
    if rank == 2:
        lets = ["let v = reshape(g, r * c)"] + [text.replace("% n", "% (r * c)").replace("iota(n)", "iota(r * c)") for text in lets]
        lets += [f"let {letter}m = reshape({letter}, r, c)" for letter in "xyzmi"]
    else:
        lets = ["let v = g"] + lets
    used = "\n".join(value for _, value in fields)
    kept = []
    for text in reversed(lets):  # only what is used
        made = text.split()[1]
        if re.search(rf"\b{made}\b", used):
            kept.insert(0, text)
            used += "\n" + text.split("=", 1)[1]
    types = ", ".join(f"f{k}: {to}" for k, (to, _) in enumerate(fields))
    values = ", ".join(f"f{k}: {value}" for k, (_, value) in enumerate(fields))
    shape, back = ("[f32; r, c]", "reshape(fill(0.0, r * c), r, c)") if rank == 2 else ("[f32; n]", "fill(0.0, n)")
    return (f"compressor {name} {{ wire {{ {types} }}; encode(g: {shape}) {{ {'; '.join(kept)}{'; ' if kept else ''}wire {{ {values} }} }}; "
            f"decode(w) {{ {back} }} }}")


def fields_of(batch):
    return [combination.field(to) for combination in batch for to in combination.converted]


class Tested:
    def __init__(self, cinch, folder):
        self.cinch, self.folder = cinch, folder
        self.faults, self.num_programs = [], 0

    def run(self, *words):
        return subprocess.run([self.cinch, *words], capture_output=True, text=True, errors="replace")

    def accepted(self, given, part):
        """Those that check accepts, each a program of its own. So many at a time that check shows what is wrong with each."""
        accepted = []
        for begin in range(0, len(given), MOST_SHOWN):
            accepted += self.accepted_of_few(given[begin:begin + MOST_SHOWN], part)
        return accepted

    def accepted_of_few(self, given, part):
        path = os.path.join(self.folder, f"check{part}.cinch")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(program(f"k{k}", c.of, c.rank, fields_of([c])) for k, c in enumerate(given)) + "\n")
        done = self.run("check", "--diagnostics=json", path)
        if done.returncode not in (0, 1):
            self.faults.append(f"check ends with {done.returncode}: {done.stderr[:500]}")
            return []
        found = [d for d in json.loads(done.stdout)["diagnostics"] if d["severity"] == "error"]
        self.faults += [f"syntax: {given[d['line'] - 1]}: {d['message']}" for d in found if d["code"].startswith("P")]
        refused = {d["line"] for d in found}
        return [c for k, c in enumerate(given) if k + 1 not in refused]

    def compiled(self, path, batch):
        """Kernels and texts, of which a fault of one combination is found without a compiler of machine code."""
        for words in (["--emit=source"], ["--emit=cu", "--target", "cuda:sm_90"]):
            done = self.run("build", path, *words)
            if done.returncode:
                return f"build {' '.join(words)}: status {done.returncode}: {done.stderr.strip()[:300]}"
        return None

    def payloads(self, path, batch, targets):
        """What runs on each target: bytes, or a status with its message."""
        gradient = os.path.join(self.folder, "m.npy" if batch[0].rank == 2 else "g.npy")
        found = []
        for target in targets:
            payload = path + ".payload"
            done = self.run("run", path, "--input", gradient, "--payload", payload, *target)
            if done.returncode:
                found.append((done.returncode, done.stderr.strip()[:300]))
                continue
            with open(payload, "rb") as file:
                found.append((0, file.read()))
        return found

    def fault_of(self, path, batch, targets):
        text = self.compiled(path, batch)
        if text or not targets:
            return text
        found = self.payloads(path, batch, targets)
        for target, (status, what) in zip(targets, found):
            where = " ".join(target) or "cpu"
            if status > 1 or (status and len(batch) > 1):
                return f"{where}: status {status}: {what}"
            if status != found[0][0]:
                return f"{where}: status {status}, of {' '.join(targets[0])} {found[0][0]}: {what if status else found[0][1]}"
            if status == 0 and what != found[0][1]:
                return f"{where}: other bits than {' '.join(targets[0])}: {difference(batch, found[0][1], what)}"
        return difference_from_python(batch, found[0][1]) if found[0][0] == 0 else None

    def try_out(self, batch, targets, name):
        """Faults of a batch, halved until single combinations are named."""
        path = os.path.join(self.folder, f"{name}.cinch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program("p", batch[0].of, batch[0].rank, fields_of(batch)) + "\n")
        self.num_programs += 1
        text = self.fault_of(path, batch, targets)
        if text is None:
            return
        if len(batch) == 1:
            self.faults.append(f"{batch[0]}: {text}")
            return
        before = len(self.faults)
        self.try_out(batch[:len(batch) // 2], targets, name + "a")
        self.try_out(batch[len(batch) // 2:], targets, name + "b")
        if len(self.faults) == before and "status" in text and "status 1:" not in text:
            self.faults.append(f"together, not alone: {[str(c) for c in batch]}: {text}")


def num_elements(shape):
    sizes = {"n": SIZE, "r": ROWS, "c": COLS, "ceil_div": lambda a, b: -(-a // b)}
    return math.prod(eval(part.strip().replace("/", "//"), sizes) for part in re.split(r",(?![^(]*\))", shape))  # noqa: S307


def places(batch):
    """(combination, type of the field, where its words begin, how many)."""
    at = 64
    for combination in batch:
        for to in combination.converted:
            at = -(-at // 16) * 16
            count = num_elements(combination.shape)
            yield combination, to, at, count
            at += 8 * count


def difference(batch, expected, found):
    for combination, to, at, count in places(batch):
        a, b = expected[at:at + 8 * count], found[at:at + 8 * count]
        for k in range(count):
            if a[8 * k:8 * k + 8] != b[8 * k:8 * k + 8]:
                return f"{combination.text} as {to}: element {k} of {count} is {b[8 * k:8 * k + 8].hex()}, not {a[8 * k:8 * k + 8].hex()}"
    return "of another length" if len(expected) != len(found) else "in the header"


def rounded(of, value):
    if of != "f32" or math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def quotient(a, b):
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


# Of f32 and f64 operands: doubles are wide enough that f32 results are rounded as if once.
PYTHON = {"x + y": lambda a, b: a + b, "x - y": lambda a, b: a - b, "x * y": lambda a, b: a * b, "x / y": quotient,
          "x == y": lambda a, b: float(a == b), "x < y": lambda a, b: float(a < b), "x >= y": lambda a, b: float(a >= b),
          "-x": lambda a, b: -a, "abs(x)": lambda a, b: abs(a), "trunc(x)": lambda a, b: a if math.isnan(a) or math.isinf(a) else math.copysign(math.trunc(a), a),
          "sqrt(x)": lambda a, b: math.nan if a < 0 or math.isnan(a) else math.sqrt(a), "x as f64": lambda a, b: a,
          "min(x, y)": lambda a, b: b if math.isnan(a) else min(a, b)}


def operands_in_python(of):
    """x and y of `prelude`, from the gradient."""
    words, values = gradient()
    mixed = [word * FACTOR + 1442695040888963407 & 0xffffffffffffffff for word in words]
    form, shift = ("<f", 32) if of == "f32" else ("<d", 0)
    x = []
    for k, word in enumerate(mixed):
        bits = (word >> shift).to_bytes(4 if of == "f32" else 8, "little")
        x.append(struct.unpack(form, bits)[0] if k % 4 == 1 else values[k])
    return x, [values[(k + 3) % SIZE] for k in range(SIZE)]


def difference_from_python(batch, body):
    for combination, to, at, count in places(batch):
        meaning = PYTHON.get(combination.text)
        if combination.of not in ("f32", "f64") or meaning is None or combination.rank != 1:
            continue
        found = struct.unpack_from(f"<{count}d", body, at)
        for k, (a, b) in enumerate(zip(*operands_in_python(combination.of))):
            wanted = rounded(combination.of, meaning(a, b))
            is_same = math.isnan(wanted) and math.isnan(found[k]) or struct.pack("<d", wanted) == struct.pack("<d", found[k])
            if not is_same:
                return f"{combination.text}: element {k} is {found[k]}, in Python {wanted} (of {a} and {b})"
    return None


def gradient():
    """Words and values of numbers of moderate size."""
    state, words = 2463534242, []
    for _ in range(SIZE):
        state = state * FACTOR + 1442695040888963407 & 0xffffffffffffffff
        value = ((state >> 40) / (1 << 24) - 0.5) * 16
        words.append(struct.unpack("<I", struct.pack("<f", value))[0])
    return words, [struct.unpack("<f", struct.pack("<I", word))[0] for word in words]


def write_gradients(folder):
    words, _ = gradient()
    flat = npy(words)
    with open(os.path.join(folder, "g.npy"), "wb") as file:
        file.write(flat)
    matrix = flat.replace(b"(%d,), }" % SIZE, b"(%d, %d), }" % (ROWS, COLS))
    header_size = struct.unpack_from("<H", matrix, 8)[0] + len(matrix) - len(flat)
    with open(os.path.join(folder, "m.npy"), "wb") as file:
        file.write(matrix[:8] + struct.pack("<H", header_size) + matrix[10:])


def sample(given):
    """Of every name with every type of a few, every 29th (of named operators every 13th), the ranks and constant operands taking turns."""
    turns, kept = {}, []
    for combination in given:
        turns.setdefault((combination.name, combination.of), []).append(combination)
    for k, choices in enumerate(turns.values()):
        if k % 29 == 0 or choices[0].name in FORMS and k % 13 == 0:
            kept.append(choices[k * 7 % len(choices)])
    return kept


def main():
    arguments = sys.argv[1:]
    is_long = "--long" in arguments or os.environ.get("CINCH_LONG", "0") not in ("", "0")
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    names = [a for a in arguments if not a.startswith("--") and a != only]
    cinch, types = names[0], names[1:] or (TYPES if is_long else FEW)
    runs = "--texts" not in arguments
    unknown = {name for name, _ in table("dsl/sema/builtins.def", "BUILTIN")} - set(FORMS) - ELSEWHERE
    given = [c for c in combinations(types) if only in c.text]
    if not is_long and not names[1:]:
        given = sample(given)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tested = Tested(cinch, folder)
        tested.faults += [f"no form of `{name}` is tried" for name in sorted(unknown)]
        write_gradients(folder)
        parts = [given[k:k + 1000] for k in range(0, len(given), 1000)]
        accepted = [c for part in pool.map(tested.accepted, parts, range(len(parts))) for c in part]
        batches = {}
        for combination in accepted:
            batches.setdefault((combination.of, combination.rank), []).append(combination)
        batches = [made[k:k + 24] for made in batches.values() for k in range(0, len(made), 24)]
        everywhere = [["--interpret"], [], ["--device", "emulated"]]
        waited = []
        for k, batch in enumerate(batches):
            on_gpu = is_long or bool(names[1:]) or k in (0, len(batches) - 1)
            targets = everywhere if on_gpu else everywhere[:2]
            waited.append(pool.submit(tested.try_out, batch, targets if runs else [], f"p{k}_"))
        for each in waited:
            each.result()
    print("\n".join(sorted(tested.faults)))
    print(f"{len(given)} combinations, {len(accepted)} accepted, {tested.num_programs} programs, {len(tested.faults)} faults")
    return 1 if tested.faults else 0


if __name__ == "__main__":
    sys.exit(main())
