"""Programs of the tree."""
import os
import subprocess

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CINCH = os.environ["CINCH_COMMAND"]


def programs():
    """Paths of all .cinch files, but for those of build folders."""
    found = []
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if name != "build" and not name.startswith(".")]
        found += [os.path.join(folder, name) for name in files if name.endswith(".cinch")]
    return sorted(found)


def is_in_canonical_layout(path):
    return subprocess.run([CINCH, "fmt", "--check", path], capture_output=True).returncode == 0


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()
