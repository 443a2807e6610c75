"""reproduce.py CINCH PROGRAM LAW FOLDER: `cinch verify` finds that LAW (and no other but `sums`) does not hold for PROGRAM; the command that it gives, run in
FOLDER on the file that it left there, shows it. Prints the law, or what was found instead."""
import json
import os
import shlex
import struct
import subprocess
import sys

cinch, program, law, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)


def floats(path):
    with open(os.path.join(folder, path), "rb") as file:
        data = file.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return [x for x, in struct.iter_unpack("<f", data[start:])]


def norm(values):
    return sum(x * x for x in values) ** 0.5


def run(command):
    words = shlex.split(command)
    assert words[0] == "cinch"
    ended = subprocess.run([cinch, *words[1:], "--json"], cwd=folder, stdout=subprocess.PIPE, check=True)
    return json.loads(ended.stdout), floats(words[words.index("--output") + 1])


verified = subprocess.run([cinch, "verify", program, "--budget", "0.5", "--json"], cwd=folder, stdout=subprocess.PIPE, check=False)
laws = json.loads(verified.stdout)
broken = [entry for entry in laws if not entry["holds"]]
# What carries its own sums carries them as falsely as it claims.
if law != "sums":
    broken = [entry for entry in broken if entry["law"] != "sums"]
if verified.returncode != 1 or [entry["law"] for entry in broken] != [law]:
    sys.exit(f"exit status {verified.returncode}, broken: {[entry['law'] for entry in broken]}")
entry = broken[0]
with open(os.path.join(folder, entry["counterexample"]["description"]), encoding="utf-8") as file:
    described = json.load(file)
assert described["law"] == law and described["commands"] == entry["counterexample"]["commands"]
inputs = [floats(path) for path in described["inputs"]]
report, output = run(described["commands"][0])
given = inputs[-1]
if law == "unbiased":
    shown = output != given
elif law in ("contraction", "variance"):
    # Of what is drawn, one seed is not the mean: only far beyond the bound is one enough.
    shown = report["relative_error"] ** 2 > entry["bound"]
elif law == "absolute_error":
    shown = norm([x - y for x, y in zip(given, output)]) > entry["bound"]
elif law == "conserves":
    with open(os.path.join(folder, "states.bin"), "rb") as file:
        kept = [x for x, in struct.iter_unpack("<f", file.read()[-4 * len(given):])]
    shown = norm([x - y - z for x, y, z in zip(given, output, kept)]) > entry["bound"] * norm(given)
elif law in ("scale_equivariant", "sign_equivariant"):
    factor = float(described["shows"].split(" times")[0].split()[-1])
    changed = "changed.npy"
    with open(os.path.join(folder, described["inputs"][-1]), "rb") as file:
        data = file.read()
    with open(os.path.join(folder, changed), "wb") as file:
        file.write(data[:-4 * len(given)] + struct.pack(f"<{len(given)}f", *[x / factor for x in given]))
    _, plain = run(described["commands"][0].replace(described["inputs"][-1], changed, 1))
    shown = [x * factor for x in plain] != output
elif law == "idempotent":
    shown = report["relative_error"] > 0
elif law == "density":
    shown = sum(x != 0 for x in output) > entry["bound"] * len(output)
elif law == "sums":
    _, by_allgather = run(described["commands"][0].replace("two_shot", "allgather"))
    shown = norm([x - y for x, y in zip(output, by_allgather)]) > 0.1 * norm(by_allgather)
elif law == "linear":
    # The update is the mean of what is decoded; a linear one would be that of the gradients.
    mean = [sum(column) / len(inputs) for column in zip(*inputs)]
    shown = norm([x - y for x, y in zip(output, mean)]) > 1e-3 * norm(mean)
else:
    shown = False
print(law if shown else f"{law}: the command does not show it")
