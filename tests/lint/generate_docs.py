"""Writes docs/operators.md and docs/diagnostics.md from the tables, or with --check says whether they are up to date."""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
GROUPS = {
    "Map": "Map", "Reduce": "Reduce", "Scan": "Scan", "Filter": "Filter", "Sort": "Sort and select", "Pack": "Pack and join",
    "Move": "Move", "Random": "Random", "Matrix": "Matrix", "Collective": "Collectives (in `sync` only)",
}


def rows(path, macro):
    """Arguments of every MACRO(...) row: words, and strings with adjacent ones joined."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = re.sub(r"^\s*//.*$", "", file.read(), flags=re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    out = []
    for match in re.finditer(rf"\b{macro}\(((?:\"(?:[^\"\\]|\\.)*\"|[^()\"])*)\)", text):
        args = []
        for part in re.findall(r"((?:\"(?:[^\"\\]|\\.)*\"\s*)+)|([^,\s\"]+)", match.group(1)):
            if part[0]:
                joined = "".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", part[0]))
                args.append(joined.replace('\\"', '"').replace("\\\\", "\\"))
            else:
                args.append(part[1])
        out.append(args)
    return out


def cell(text):
    return text.replace("|", "\\|")


def operators():
    lines = ["# Operators", "", "Generated from `dsl/sema/builtins.def` and `runtime/core/scalar_op.def` by `./dev docs`.", ""]
    table = rows("dsl/sema/builtins.def", "BUILTIN")
    for group, title in GROUPS.items():
        lines += [f"## {title}", "", "| operator | meaning |", "| --- | --- |"]
        lines += [f"| `{cell(r[2])}` | {cell(r[3])} |" for r in table if r[1] == group]
        lines.append("")
    lines += ["## Element-wise operations", "", "By name (`abs(x)`, `min(a, b)`, `select(c, a, b)`) or by symbol (`a + b`); each applies to scalars and arrays alike.", "",
              "| operation | operands | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{r[0]}` | {r[1]} | {cell(r[-1])} |" for r in rows("runtime/core/scalar_op.def", "SCALAR_OP")]
    return "\n".join(lines) + "\n"


def diagnostics():
    lines = ["# Diagnostics", "", "Generated from `dsl/diag/diag.def` by `./dev docs`. `{0}`, `{1}` … stand for what was found.", ""]
    for name, severity, code, template, help_text in rows("dsl/diag/diag.def", "CINCH_DIAG"):
        lines += [f"## {code} · {name}", "", f"{severity.lower()}: {template}", "", help_text, ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    stale = []
    for name, text in (("operators.md", operators()), ("diagnostics.md", diagnostics())):
        path = os.path.join(ROOT, "docs", name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if old == text:
            continue
        if "--check" in sys.argv:
            stale.append(name)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if stale:
        sys.exit("out of date, run ./dev docs: " + ", ".join(stale))


if __name__ == "__main__":
    main()
