"""Writes docs/operators.md and docs/diagnostics.md from the tables.

    generate_docs.py BUILD            writes them; BUILD is a build folder with the target print_tables
    generate_docs.py BUILD --check    says whether they are up to date
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
GROUPS = {
    "Map": "Map", "Reduce": "Reduce", "Scan": "Scan", "Filter": "Filter", "Sort": "Sort and select", "Pack": "Pack and join",
    "Move": "Move", "Random": "Random", "Matrix": "Matrix", "Collective": "Collectives (in `sync` only)",
}


def read_tables(build):
    """{macro: [[column, …], …]}, as the compiler reads the tables."""
    tool = os.path.join(build, "tests", "print_tables")
    if not os.access(tool, os.X_OK):
        sys.exit(f"there is no {tool}: build the target print_tables")
    return json.loads(subprocess.run([tool], capture_output=True, text=True, check=True).stdout)


def cell(text):
    return text.replace("|", "\\|")


def operators(tables):
    lines = ["# Operators", "", "Generated from `dsl/sema/builtins.def` and `runtime/core/scalar_op.def` by `./dev docs`.", ""]
    table = tables["BUILTIN"]
    for group, title in GROUPS.items():
        lines += [f"## {title}", "", "| operator | meaning |", "| --- | --- |"]
        lines += [f"| `{cell(r[2])}` | {cell(r[3])} |" for r in table if r[1] == group]
        lines.append("")
    lines += ["## Element-wise operations", "", "By name (`abs(x)`, `min(a, b)`, `select(c, a, b)`) or by symbol (`a + b`); each applies to scalars and arrays alike.", "",
              "| operation | operands | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{r[0]}` | {r[1]} | {cell(r[-1])} |" for r in tables["SCALAR_OP"]]
    return "\n".join(lines) + "\n"


def diagnostics(tables):
    lines = ["# Diagnostics", "", "Generated from `dsl/diag/diag.def` by `./dev docs`. `{0}`, `{1}` … stand for what was found.", ""]
    for name, severity, code, template, help_text in tables["CINCH_DIAG"]:
        lines += [f"## {code} · {name}", "", f"{severity.lower()}: {template}", "", help_text, ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tables = read_tables(options.build)
    stale = []
    for name, text in (("operators.md", operators(tables)), ("diagnostics.md", diagnostics(tables))):
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
