"""count_options.py CINCH: every option of every command that takes a whole number says that 1.5 is none, and none is left to the parser's own
reading (INT, UINT)."""
import re
import subprocess
import sys

cinch = sys.argv[1]


def commands_below(path):
    text = subprocess.run([cinch, *path, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    commands = re.findall(r"^  ([\w-]+) ", text.split("Subcommands:")[1], re.M) if "Subcommands:" in text else []
    yield path, text
    for command in commands:
        yield from commands_below([*path, command])


count = 0
for path, text in commands_below([]):
    assert not re.search(r"^  (?:-\w,)?--[\w-]+ U?INT\b", text, re.M), (path, text)
    for name in re.findall(r"^  (?:-\w,)?(--[\w-]+) (?:COUNT|BYTES)\b", text, re.M):
        ended = subprocess.run([cinch, *path, name, "1.5"], stderr=subprocess.PIPE, text=True)
        assert ended.returncode == 2 and f"{name}: 1.5 is not a whole number" in ended.stderr, (path, name, ended.stderr)
        count += 1
print(count, "options read counts")
