"""What expressions in the documents give: lines `EXPRESSION  // RESULT`, which Cinch computes and compares with what the line says.

A result is written as a program would write it: `3`, `-0.5`, `true`, `[0, 2]`, `[[1.0, 2.0], [3.0, 4.0]]`. With a point (or inf, nan) it is a
float, which is right to the digits that are shown. Other lines are statements and declarations, which come before all expressions. A line that
ends inside a bracket goes on. All lines of a block are one program, which the interpreter runs; payloads are read as docs/payload.md says.

With several ranks (`ranks=2`), results differ: `// [3.0, 4.0] on rank 0, [1.0, 2.0] on rank 1`, or `// 5.0 on every rank`."""
import json
import os
import re
import struct
import subprocess
import tempfile

COUNTED = 64  # at most so many elements of a counted result
STATEMENT = re.compile(r"(let|for|while|assert|fn|const|import) |\w+(\[.*\])? [-+*/%&|^]?= ")
CELLS = 16  # of a rank's result that travels to rank 0


class Wrong(Exception):
    pass


def npy(floats):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(floats)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(floats)}f", *floats)


def floats_of_npy(data):
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return list(struct.unpack(f"<{(len(data) - start) // 4}f", data[start:]))


def flatten(value):
    return [x for part in value for x in flatten(part)] if isinstance(value, list) else [value]


def shape_of(value):
    return [len(value)] + (shape_of(value[0]) if value else []) if isinstance(value, list) else []


class Result:
    """What a line says: a nested list of texts of numbers."""

    def __init__(self, text):
        self.text = text.strip()
        try:
            self.cells = json.loads(re.sub(r"[^\[\],\s]+", lambda word: f'"{word.group(0)}"', self.text))
        except ValueError:
            raise Wrong(f"`{text}` is no result") from None
        self.shape, self.numbers = shape_of(self.cells), flatten(self.cells)
        if all(number in ("true", "false") for number in self.numbers) and self.numbers:
            self.type, self.bits = "bool", 1
        else:
            self.type, self.bits = ("f64" if any(re.search(r"[.]|inf|nan", number) for number in self.numbers) else "i64"), 64

    def is_met_by(self, values):
        return len(values) == len(self.numbers) and all(is_shown(text, value) for text, value in zip(self.numbers, values))


def is_shown(text, value):
    """Whether the text shows this number, with the digits that it has; two or more digits after the point may have been rounded."""
    if text in ("true", "false"):
        return value == (text == "true")
    if text.lstrip("-") in ("inf", "nan"):
        return str(float(value)) == text
    if isinstance(value, int):
        return str(value) == text
    digits = len(text.partition(".")[2])
    shown = f"{value:.{digits}f}"
    is_near = digits > 1 or abs(value - float(text)) <= 1e-6 * abs(value)
    return shown == text and is_near


def statements(lines, first):
    """(line number, statement, text of the result or None): the lines of a block, joined where a bracket is open."""
    out, text, comment, at = [], "", "", first
    for number, line in enumerate(lines, first):
        code, _, said = line.partition("//")
        if not code.strip():
            continue
        at, text = (number, code.strip()) if not text else (at, text + " " + code.strip())
        comment = said.strip() or comment
        if all(text.count(a) <= text.count(b) for a, b in ("()", "[]", "{}")):
            is_statement = STATEMENT.match(text) or (text.startswith("if ") and not comment)
            out.append((at, text, None if is_statement else comment))
            text, comment = "", ""
    if text:
        raise Wrong(f"line {at}: a bracket stays open")
    return out


def run(cinch, folder, arguments):
    done = subprocess.run([cinch, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"cinch {' '.join(arguments[:2])}:\n{done.stdout}{done.stderr}")


def fields_of_payload(data, results, is_counted):
    """The values of each field (docs/payload.md)."""
    at = 64 + 4 * sum(is_counted)
    counts = iter(struct.unpack_from(f"<{sum(is_counted)}I", data, 64))
    for result, counted in zip(results, is_counted):
        num = next(counts) if counted else len(result.numbers)
        at = (at + 15) // 16 * 16
        if result.bits == 1:
            yield [bool(data[at + i // 8] >> i % 8 & 1) for i in range(num)]
        else:
            yield list(struct.unpack_from(f"<{num}{'d' if result.type == 'f64' else 'q'}", data, at))
        at += (num * result.bits + 7) // 8


def field(i, result, counted):
    size = f"m{i}" if counted else ", ".join(map(str, result.shape))
    count = f"count m{i} <= {COUNTED}, " if counted else ""
    return count + f"f{i}: " + (f"[{result.type}; {size}]" if size else result.type)


def values_of_one(cinch, declarations, body, expressions, results):
    """What one rank computes."""
    is_counted = [bool(re.match(r"(filter|nonzero)\(", e)) for e in expressions]
    wire = ", ".join(field(i, result, counted) for i, (result, counted) in enumerate(zip(results, is_counted)))
    lets = [f"let e{i} = {e}" for i, e in enumerate(expressions) if is_counted[i]]
    fields = ", ".join(f"f{i}: " + (f"e{i}" if is_counted[i] else e) for i, e in enumerate(expressions))
    text = "\n".join([*declarations, "compressor tried {", f"wire {{ {wire} }}", "encode(g: [f32; n]) {", *body, *lets,
                      f"wire {{ {fields} }}", "}", "decode(w) { fill(0.0, n) }", "}", ""])
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "tried.cinch", text.encode())
        write(folder, "g.npy", npy([0.0]))
        run(cinch, folder, ["encode", "tried.cinch:tried", "--interpret", "--input", "g.npy", "--payload", "p"])
        with open(os.path.join(folder, "p"), "rb") as file:
            return list(fields_of_payload(file.read(), results, is_counted))


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def as_vector(expression, result):
    """The same numbers in a vector."""
    return {0: "fill({}, 1)", 1: "{}", 2: "reshape({}, %d)" % len(result.numbers)}[len(result.shape)].format(expression)


def values_of_ranks(cinch, ranks, body, vectors):
    """The first cells of what each rank computes, for each vector: x is [1, 2] on rank 0, [3, 4] on rank 1 …"""
    cells = CELLS * ranks
    lets = [f"let v{i} = {vector}" for i, vector in enumerate(vectors)]
    parts = [f"unchunk(allgather(scatter(v{i}, at: iota(len(v{i})), size: {CELLS})), {cells})" for i in range(len(vectors))]
    text = "\n".join(["compressor tried {", "sync(g: [f32; n]) {", "let x = g[0..2]", *body, *lets,
                      f"slice(concat({', '.join([*parts, 'fill(0.0, 1)'])}), 0, n)", "}", "}", ""])
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "tried.cinch", text.encode())
        names = [f"g{rank}.npy" for rank in range(ranks)]
        for rank, name in enumerate(names):
            write(folder, name, npy([2.0 * rank + 1, 2.0 * rank + 2] + [0.0] * (cells * len(parts) - 2)))
        run(cinch, folder, ["sync", "tried.cinch", "--input", *names, "--steps", "1", "--plan", "allreduce", "--output", "u.npy"])
        with open(os.path.join(folder, "u.npy"), "rb") as file:
            update = floats_of_npy(file.read())
    return [[update[cells * i + CELLS * rank:cells * i + CELLS * (rank + 1)] for rank in range(ranks)] for i in range(len(vectors))]


def results_of_ranks(said, ranks):
    every = re.fullmatch(r"(.*) on every rank", said)
    parts = dict(re.findall(r"(\S.*?) on rank (\d)(?:, |$)", said)) if not every else {}
    by_rank = {int(rank): text for text, rank in parts.items()}
    return [Result(every.group(1) if every else by_rank.get(rank, "?")) for rank in range(ranks)]


def check_ranks(cinch, ranks, body, wanted):
    shown = [results_of_ranks(said, ranks) for _, _, said in wanted]
    found = values_of_ranks(cinch, ranks, body, [as_vector(e, results[0]) for (_, e, _), results in zip(wanted, shown)])
    for (at, e, said), results, values in zip(wanted, shown, found):
        for result, cells in zip(results, values):
            num = len(result.numbers)
            if not result.is_met_by(cells[:num]) or any(cells[num:]):
                raise Wrong(f"line {at}: `{e}` gives {values}, not {said}")


def check_values(cinch, lines, first, ranks=1):
    """Raises Wrong where a line of this block says something else than what Cinch computes; returns how many lines do say a result."""
    parts = statements(lines, first)
    plain = [text for _, text, said in parts if said is None]
    declarations = [text for text in plain if re.match("(fn|const|import) ", text)]
    body = [text for text in plain if text not in declarations]
    wanted = [part for part in parts if part[2] is not None]
    if any(not said for _, _, said in wanted):
        raise Wrong(f"line {next(at for at, _, said in wanted if not said)}: says no result")
    if ranks > 1:
        check_ranks(cinch, ranks, body, wanted)
        return len(wanted)
    results = [Result(said) for _, _, said in wanted]
    found = values_of_one(cinch, declarations, body, [e for _, e, _ in wanted], results)
    for (at, e, said), result, values in zip(wanted, results, found):
        if not result.is_met_by(values):
            raise Wrong(f"line {at}: `{e}` gives {values}, not {said}")
    return len(wanted)
