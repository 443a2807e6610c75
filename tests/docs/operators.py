"""operators.py CINCH: computes the examples of docs/operators.md (operators.txt)."""
import os
import re
import sys
from dataclasses import dataclass

from values import Wrong, check_values

FOLDER = os.path.dirname(os.path.abspath(__file__))
RANKS = 2  # of collectives


@dataclass
class Example:
    group: str  # "Reduce", as in builtins.def, or "Elementwise"
    name: str
    expression: str
    result: str
    line: int


def examples():
    """All examples, in order."""
    group = ""
    with open(os.path.join(FOLDER, "operators.txt"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("["):
                group = line.strip("[]\n")
            elif line.strip() and not line.startswith("#"):
                yield Example(group, *re.fullmatch(r"(\w+): (.*?) // (.*)\n", line).groups(), number)


def programs():
    """Examples that are computed together: those of a group, but a draw by itself, so that each is the first of its program."""
    parts = {}
    for example in examples():
        parts.setdefault((example.group, example.name if example.group == "Random" else ""), []).append(example)
    return parts.items()


def is_wrong_found(cinch):
    """Whether a result that is not that of its expression is found, of one rank and of several."""
    found = 0
    for line, ranks in (("sum([1.0, 2.0]) // 4.0", 1), ("top_k([1.0, 2.0], 1) // [0]", 1), ("allreduce(x, sum) // [4.0, 7.0] on every rank", RANKS)):
        try:
            check_values(cinch, [line], 1, ranks)
        except Wrong as error:
            found += "gives" in str(error)
    return found == 3


def main():
    if not is_wrong_found(sys.argv[1]):
        sys.exit("a wrong result was not found")
    num = wrong = 0
    for (group, _), part in programs():
        lines = [f"{example.expression} // {example.result}" for example in part]
        try:
            num += check_values(sys.argv[1], lines, part[0].line, RANKS if group == "Collective" else 1)
        except Wrong as error:
            wrong += 1
            print(f"tests/docs/operators.txt, {group}: {error}")
    print(f"{num} examples hold, {wrong} groups do not")
    sys.exit(1 if wrong or not num else 0)


if __name__ == "__main__":
    main()
