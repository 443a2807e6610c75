"""pair.py CINCH FILE: the file's wrong program gets the errors that it says, and its right one none. docs/diagnostics.md shows both."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "lint"))
from example_pairs import read_pair  # noqa: E402


def check(cinch, program):
    """(status, the lines of its errors from their place on)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.cinch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        done = subprocess.run([cinch, "check", path], stderr=subprocess.PIPE, text=True)
        coded = subprocess.run([cinch, "check", path, "--json"], stdout=subprocess.PIPE, text=True)
    return done.returncode, re.findall(r"^\S*program\.cinch:(\d+:\d+: error\[\w+\]: .*)$", done.stderr, re.M), coded.stdout


cinch, path = sys.argv[1:]
pair = read_pair(path)
status, errors, coded = check(cinch, pair.wrong)
if status == 0 or errors != pair.says:
    sys.exit("the wrong program gets\n" + "\n".join(errors) + "\nin place of\n" + "\n".join(pair.says))
if f'"{pair.code}"' not in coded:
    sys.exit(f"no error is {pair.code}: {coded}")
status, errors, _ = check(cinch, pair.right)
if status != 0:
    sys.exit("the right program gets\n" + "\n".join(errors))
