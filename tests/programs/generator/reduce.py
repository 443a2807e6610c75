#!/usr/bin/env python3
"""Makes a program that fails small: statements, fields and operands go while the failure stays.

    reduce.py PROGRAM_SEARCH FILE… [-- OPTIONS]     writes each with .small.cinch behind its name
    reduce.py PROGRAM_SEARCH [-- OPTIONS]           searches, and prints what failed, made small;
                                                    where CINCH_SAMPLE is set, a quarter of --count

The failure stays when its kind is the same (program_search --try prints it) and, where the compiler
found it, its message but for numbers and names.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

NAME = re.compile(r"\b(?:v|x|y|f|k|i|state_|r|Table)\d+\b|\b(?:keep|kept)\b")
SECONDS = 150


def message_shape(kind, text):
    if kind != "internal":
        return ""
    return re.sub(r"\b\w*\d\w*\b|@\d+|\(\w+\)", "#", text)[:120]


class Failing:
    """Says whether a text fails as the first one did."""

    def __init__(self, search, options):
        self.search, self.options, self.tried = search, options, {}
        self.count = 0

    def failure(self, text):
        if text not in self.tried:
            self.tried[text] = self._try(text)
        return self.tried[text]

    def _try(self, text):
        self.count += 1
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.cinch")
            with open(path, "w") as file:
                file.write(text)
            try:
                done = subprocess.run([self.search, "--try", path, *self.options], text=True,
                                      capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return "hangs", ""
        if done.returncode < 0:
            return "falls", ""
        kind, _, rest = done.stdout.partition("\n")
        return kind, message_shape(kind, rest)


def matching_end(lines, begin):
    """The line that closes the block which `begin` opens; `begin` where it opens none."""
    depth = 0
    for i in range(begin, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth <= 0:
            return i
    return begin


def without_blocks(lines):
    """Each statement gone, the latest first; a block goes as one, or loses its frame."""
    for begin in reversed(range(len(lines))):
        end = matching_end(lines, begin)
        yield lines[:begin] + lines[end + 1:]
        if end > begin:
            yield lines[:begin] + lines[begin + 1:end] + lines[end + 1:]


def without_runs(lines):
    """Half of the lines gone, a quarter, …"""
    size = len(lines) // 2
    while size > 1:
        for begin in range(0, len(lines), size):
            yield lines[:begin] + lines[begin + size:]
        size //= 2


def without_names(lines):
    """All lines that hold a name gone: what makes it and what reads it."""
    for name in sorted(set(NAME.findall("\n".join(lines)))):
        word = re.compile(r"\b" + name + r"\b")
        yield [line for line in lines if not word.search(line)]


def with_other_name(lines):
    """A name made by `let` replaced by what it is made of, or by another name of that statement."""
    for i, line in enumerate(lines):
        made = re.match(r"\s*let (?:mut )?(\w+) = (.*)$", line)
        if not made:
            continue
        name, expression = made.groups()
        word = re.compile(r"\b" + name + r"\b")
        for other in [*sorted(set(NAME.findall(expression))), "g"]:
            if other != name:
                yield lines[:i] + [word.sub(other, later) for later in lines[i + 1:]]


def operands(expression):
    """Parts between brackets and commas, and both sides of an operator."""
    for match in re.finditer(r"\(", expression):
        depth, start = 0, match.end()
        for i in range(match.start(), len(expression)):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(expression[i], 0)
            if (depth == 0 or depth == 1 and expression[i] == ",") and i > start:
                yield expression[start:i].strip()
                start = i + 1
            if depth == 0:
                break
    for operator in (" + ", " - ", " * ", " / ", " && ", " || ", " as ", " @ "):
        left, found, right = expression.partition(operator)
        if found:
            yield left.strip()
            yield right.strip()
    if "[" in expression:
        yield expression[:expression.index("[")]


def with_operand(lines):
    """An expression replaced by one of its operands."""
    for i, line in enumerate(lines):
        parts = re.match(r"(\s*(?:let (?:mut )?)?[\w\[\]]+ = |\s*\w+: )(.*?)(,?)$", line)
        if not parts:
            continue
        head, expression, comma = parts.groups()
        for operand in dict.fromkeys(operands(expression)):
            if operand and operand != expression and operand.count("(") == operand.count(")"):
                yield lines[:i] + [head + operand + comma] + lines[i + 1:]


STEPS = (without_runs, without_names, without_blocks, with_other_name, with_operand)


def reduce_text(text, failing):
    wanted = failing.failure(text)
    if wanted[0] in ("", "refused"):
        return None, wanted
    lines = [line for line in text.split("\n") if line.strip()]
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for step in STEPS:
            again = True
            while again:
                again = False
                for candidate in step(lines):
                    if candidate == lines or not candidate:
                        continue
                    if failing.failure("\n".join(candidate) + "\n") == wanted:
                        lines, again, is_smaller = candidate, True, True
                        break
    return "\n".join(lines) + "\n", wanted


def reduce_file(search, path, options):
    """The path of the small program; None where the program does not fail by itself."""
    number = re.search(r"_(\d+)\.cinch$", path)
    seed = ["--seed", number.group(1)] if number else []
    failing = Failing(search, [*options, *seed])
    with open(path) as file:
        small, kind = reduce_text(file.read(), failing)
    if small is None:
        print(f"{path}: does not fail here ({kind[0]})")
        return None
    to = path.removesuffix(".cinch") + ".small.cinch"
    with open(to, "w") as file:
        file.write(small)
    print(f"{to}: {kind[0]}, {small.count(chr(10))} lines, {failing.count} programs tried")
    return to


def sample_of(options):
    if not os.environ.get("CINCH_SAMPLE") or "--count" not in options:
        return options
    at = options.index("--count") + 1
    return [*options[:at], str(max(1, int(options[at]) // 4)), *options[at + 1:]]


def search_and_reduce(search, options):
    options = sample_of(options)
    with tempfile.TemporaryDirectory() as folder:
        status = subprocess.run([search, *options, "--keep", folder], check=False).returncode
        for path in sorted(glob.glob(os.path.join(folder, "*.cinch"))):
            small = reduce_file(search, path, options)
            with open(small or path) as file:
                print(file.read())
            with open(path.removesuffix(".cinch") + ".txt") as file:
                print(file.read()[:4000])
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("search")
    parser.add_argument("files", nargs="*")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    arguments, options = parser.parse_args(words[:at]), words[at + 1:]
    if not arguments.files:
        return search_and_reduce(arguments.search, options)
    for path in arguments.files:
        reduce_file(arguments.search, path, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
