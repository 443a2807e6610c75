"""Writes docs/operators.md, docs/diagnostics.md and docs/numpy.md from the tables and the examples in tests/docs/operators.txt and
tests/lit/diagnostics.

    generate_docs.py BUILD            writes them; BUILD is a build folder with the target print_tables
    generate_docs.py BUILD --check    says whether they are up to date
"""
import argparse
import json
import os
import re
import subprocess
import sys

from example_pairs import as_markdown, pairs_by_code

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "docs"))
from operators import examples  # noqa: E402
# Titles of groups, none of which is the name of an operator: both are anchors.
GROUPS = {
    "Map": "Maps", "Reduce": "Reductions", "Scan": "Scans", "Filter": "Filters", "Sort": "Sort and select", "Pack": "Pack and join",
    "Move": "Moves", "Random": "Random numbers", "Matrix": "Matrices", "Collective": "Collectives in `sync`",
}


def read_tables(build):
    """{macro: [[column, …], …]}, as the compiler reads the tables."""
    tool = os.path.join(build, "tests", "print_tables")
    if not os.access(tool, os.X_OK):
        sys.exit(f"there is no {tool}: build the target print_tables")
    return json.loads(subprocess.run([tool], capture_output=True, text=True, check=True).stdout)


def cell(text):
    return text.replace("|", "\\|")


OPERATORS_HEAD = """# Operators

Every operator of the language, by group, with examples.

| group | operators |
| --- | --- |
{index}

Operators work on whole arrays. [Arrays, indices and slices](language/arrays.md) and [Matrices and rows](language/matrices.md) explain how arrays fit together.

## Arguments that many operators take

| argument | meaning |
| --- | --- |
| `axis: 0`, `axis: 1` | of a matrix: 0 joins the rows, with a result for each column; 1 joins the columns, with a result for each row. Without it, the whole array is taken |
| `where: mask` | takes only the elements where the mask is true |
| `limit: m` | keeps the first m elements |
| `descending: true` | sorts from the largest to the smallest |
| `exclusive: true` | leaves the element itself out of its running reduction |
| `side: left`, `side: right` | where an equal element would be inserted: before those that are there, or behind them |
| `at: i` | the indices that are stored to |
| `keep: first`, `keep: last` | of several values for one place, the one at the first or the last position stays |
| `size: m` | the number of elements of the result, or the limit of indices |
| `shared: true` | [draws the same on every rank](language/random.md#shared-draws) |
| `stream: i` | [names a draw](language/random.md#streams) |
| `group: k`, `stride: s` | the [ranks of a group](language/collectives.md#groups-of-ranks) instead of all |
| `in: f16` | the [type in which sums travel](language/collectives.md#types-on-the-way) |
"""
GROUP_NOTES = {
    "Reduce": "[The same bits everywhere](language/same_bits.md#reductions) has the order of reductions, "
              "[Arrays](language/arrays.md#reductions-of-nothing) the results for no elements.",
    "Sort": "Sorts along an axis take `axis:`. -0 and +0 are equal in every sort.",
    "Move": "`x[i]` gathers: see [indices](language/arrays.md#indices). [Indices free of repeats](language/arrays.md#indices-free-of-repeats) says which ones "
            "`scatter` takes.",
    "Random": "The examples are the first draws of a program with seed 0 and step 0, for the first tensor, on rank 0. "
              "[Random numbers](language/random.md) says what a draw depends on.",
    "Collective": "In the examples there are two ranks. `x` is `[1.0, 2.0]` on rank 0 and `[3.0, 4.0]` on rank 1. [Collectives](language/collectives.md) has the rules.",
}
# How operations are written, and the meaning of the table's `x + y` in words.
FORMS = {
    "neg": ("-x", "opposite"), "bit_not": ("!x", "not"), "add": ("x + y", "sum"), "sub": ("x - y", "difference"), "mul": ("x * y", "product"),
    "div": ("x / y", "quotient"), "mod": ("x % y", "remainder"), "bit_and": ("x & y", "bitwise and"), "bit_or": ("x | y", "bitwise or"),
    "bit_xor": ("x ^ y", "bitwise exclusive or"), "shl": ("x << y", ""), "shr": ("x >> y", ""), "eq": ("x == y", "equal"), "ne": ("x != y", "not equal"),
    "lt": ("x < y", "less"), "le": ("x <= y", "less or equal"), "gt": ("x > y", "greater"), "ge": ("x >= y", "greater or equal"),
    "clamp": ("clamp(x, lo, hi)", ""), "select": ("select(c, a, b)", ""),
}
LOGICAL = {"bit_and": "x && y", "bit_or": "x || y"}  # the same of bools


def operator_section(row, shown):
    """The section of one operator; `matmul` is written as a sign."""
    name, group, signature, meaning = row
    title = signature if "(" not in signature else name
    fence = "cinch values ranks=2" if group == "Collective" else "cinch values"
    width = max(len(example.expression) for example in shown)
    lines = [f"{example.expression:{width}}  // {example.result}" for example in shown]
    return [f"### {title}", "", f"`{signature}`", "", meaning, "", f"```{fence}", *lines, "```", ""]


def elementwise(rows, by_name):
    lines = ["## Element-wise operations", "", "These apply to scalars and arrays alike. Those without a sign are called by name.", "",
             "| operation | meaning | example |", "| --- | --- | --- |"]
    for name, arity, *_, meaning in rows:
        form, words = FORMS.get(name, (f"{name}({', '.join('xyz'[:int(arity)])})", ""))
        if words:
            meaning = meaning.replace(form, words, 1)
        forms = [form] + ([LOGICAL[name]] if name in LOGICAL else [])
        shown = "<br>".join(f"`{cell(example.expression)}` is `{example.result}`" for example in by_name["Elementwise", name])
        lines.append(f"| {', '.join(f'`{cell(each)}`' for each in forms)} | {cell(meaning)} | {shown} |")
    return lines


def operators(tables):
    by_name = {}
    for example in examples():
        by_name.setdefault((example.group, example.name), []).append(example)
    rows = tables["BUILTIN"]
    known = {(row[1], row[0]) for row in rows} | {("Elementwise", row[0]) for row in tables["SCALAR_OP"]}
    if known != set(by_name):
        sys.exit("tests/docs/operators.txt: no example of, or no operator: " + ", ".join(f"{name} ({group})" for group, name in sorted(known ^ set(by_name))))
    index = [f"| [{title}](#{anchor(title)}) | " + " ".join(f"[`{row[0]}`](#{row[0]})" if row[0] != "matmul" else "[`@`](#a--b)" for row in rows if row[1] == group) + " |"
             for group, title in GROUPS.items()]
    index.append("| [Element-wise](#element-wise-operations) | arithmetic, comparisons, `abs`, `sqrt`, `exp`, `clamp`, `select` and more |")
    lines = OPERATORS_HEAD.format(index="\n".join(index)).split("\n")
    for group, title in GROUPS.items():
        lines += [f"## {title}", ""] + ([GROUP_NOTES[group], ""] if group in GROUP_NOTES else [])
        for row in rows:
            if row[1] == group:
                lines += operator_section(row, by_name[group, row[0]])
    return "\n".join(lines + elementwise(tables["SCALAR_OP"], by_name)) + "\n"


def anchor(title):
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def diagnostics(tables):
    lines = ["# Diagnostics", "",
             "Every message of `cinch check`, by its code. Many have an example: a wrong program, the message for it, and a right program. `{0}`, `{1}` … stand "
             "for names, types and numbers of the program.", "",
             "Codes never change. They begin with L for text, P for syntax, and S for names, types and sizes.", ""]
    examples = pairs_by_code()
    for name, severity, code, template, help_text in tables["CINCH_DIAG"]:
        lines += [f"## {code} · {name}", "", f"{severity.lower()}: " + template.replace("{{", "{").replace("}}", "}"), ""] + ([help_text, ""] if help_text else [])
        for pair in examples.get(code, []):
            lines += as_markdown(pair)[1:]
    return "\n".join(lines).rstrip() + "\n"


FOREIGN_HEAD = """# Cinch for NumPy and PyTorch users

Cinch works on whole arrays, as NumPy does, and has its own words for some things. If a program says one of these words, the message of `cinch check` says what to write instead.

In the tables `x` is a vector of `n` elements, `v` one of 4, `m` a matrix of 3 by 4, `mask` holds a truth value for each element, `i` are indices, `a` and `b` numbers, `c` a truth value and `k` a whole number. [`cinch eval`](command_line.md#values-of-expressions) computes an expression, and `cinch run --show` prints a value of a program.

Four things differ in more than words:

- **Sizes are proved.** Only scalars and the constant size 1 broadcast; other sizes that meet must be equal. See [sizes](language/sizes.md).
- **Types do not change silently.** `as` converts. See [types](language/types.md).
- **Values do not change.** `let mut` makes a variable that can be assigned; slices are copies, never views.
- **Bits are fixed.** `sum` adds in [an order of its own](language_bits.md), which is the same on every target and differs from NumPy's in the last digits.
"""
FOREIGN_PLACES = {
    "Syntax": "Signs and words", "Function": "Functions", "Name": "Names", "Type": "Types", "Argument": "Arguments", "Member": "Methods and members",
}


def numpy_page(tables):
    lines = FOREIGN_HEAD.rstrip().split("\n")
    for place, title in FOREIGN_PLACES.items():
        lines += ["", f"## {title}", "", "| NumPy, PyTorch, Python | Cinch | |", "| --- | --- | --- |"]
        for _, _, theirs, ours, why in (row for row in tables["FOREIGN_WORD"] if row[0] == place):
            lines.append(f"| `{cell(theirs)}` | {f'`{cell(ours)}`' if ours else ''} | {cell(why)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tables = read_tables(options.build)
    stale = []
    for name, text in (("operators.md", operators(tables)), ("diagnostics.md", diagnostics(tables)), ("numpy.md", numpy_page(tables))):
        path = os.path.join(ROOT, "docs", name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if old == text:
            continue
        if options.check:
            stale.append(name)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if stale:
        sys.exit("out of date, run ./dev docs: " + ", ".join(stale))


if __name__ == "__main__":
    main()
