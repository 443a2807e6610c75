"""A wrong and a right program for a diagnostic: files of tests/lit/diagnostics, which docs/diagnostics.md shows."""
import glob
import os
import re
from dataclasses import dataclass

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lit", "diagnostics")


@dataclass
class Pair:
    code: str  # "S014"
    title: str
    wrong: str
    says: list  # lines "5:7: error: …"
    right: str


def read_pair(path):
    with open(path, encoding="utf-8") as file:
        head, wrong, says, right = re.split(r"^== (?:wrong|says|right)\n", file.read(), flags=re.M)
    code, title = head.strip().split("\n")[-1].split(" ", 1)
    return Pair(code, title, wrong, says.split("\n")[:-1], right)


def pairs_by_code():
    pairs = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.test"))):
        pair = read_pair(path)
        pairs.setdefault(pair.code, []).append(pair)
    return pairs


def as_markdown(pair):
    return ["", f"**{pair.title}**", "", "```cinch", *pair.wrong.rstrip("\n").split("\n"), "```", "", *[f"    {line}" for line in pair.says], "", "Right:", "",
            "```cinch", *pair.right.rstrip("\n").split("\n"), "```", ""]
