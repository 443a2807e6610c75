"""list_fits.py CINCH: `cinch list` has a line for each compressor of the library, none longer than 80 characters, and what the examples
run compiles."""
import json
import shlex
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def explained(cinch, item):
    """The example's command with `explain` in place of `run`, and without its files."""
    words = shlex.split(item["example"]["command"])
    end = next(i for i, word in enumerate(words) if word in ("--with", "--input", "--ranks"))
    return [cinch, "explain", *words[2:end], "--elements", "4096"]


cinch = sys.argv[1]
items = json.loads(output_of(cinch, "list", "--json"))
lines = output_of(cinch, "list").splitlines()
assert max(map(len, lines)) <= 80, max(lines, key=len)
shown = [line.split()[0] for line in lines[1:-3] if line.startswith("  ")]
assert shown == [item["name"] for item in items], shown
places = {tuple(i for i in (line.find(" gather "), line.find(" sum "), line.find(" sync ")) if i > 0) for line in lines} - {()}
assert len(places) == 1, places
for item in items:
    assert all(item[key] for key in ("summary", "paper", "stores")), item["name"]
    subprocess.run(explained(cinch, item), check=True, stdout=subprocess.DEVNULL)
print(f"{len(items)} compressors fit")
