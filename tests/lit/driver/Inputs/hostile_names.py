"""hostile_names.py FOLDER CINCH GRADIENT: names of files, programs and parameters hold control characters, which a terminal would obey. None
of them leaves Cinch as it came, on either stream; and a folder that is searched is not hung by a pipe in it."""
import json
import os
import re
import shutil
import subprocess
import sys

folder, cinch, gradient = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "pipes"))
os.chdir(folder)
ESCAPE = "\x1b]0;owned\x07"  # sets a terminal's title
shutil.copy(gradient, ESCAPE + ".npy")
shutil.copy(gradient, "g.npy")
with open(f"{ESCAPE}.cinch", "w") as file:
    file.write("compressor c { nonsense }\n")
with open("policy.json", "w") as file:
    json.dump({"rules": [{ESCAPE: 1}]}, file)
with open("profile.csv", "w") as file:
    file.write(f"name,numel,ready_us\n{ESCAPE},10,5\n{ESCAPE},10,5\n")
with open("probe.json", "w") as file:
    json.dump({"file": "cinch network", "format": 1, "transport": "loopback", "ranks": 1, "models": [{"exchange": ESCAPE}]}, file)
with open("table.json", "w") as file:
    json.dump({"format": 1, "entries": [{"architecture": ESCAPE}]}, file)
GRADIENT = ["--input", "g.npy"]
COMMANDS = [
    ["check", f"{ESCAPE}.cinch"], ["check", f"{ESCAPE}none.cinch"], [ESCAPE], ["run", ESCAPE, *GRADIENT], ["run", "topk", *GRADIENT, "--set", f"{ESCAPE}=1"],
    ["run", "topk", *GRADIENT, "--set", f"ratio={ESCAPE}"], ["run", "topk", *GRADIENT, "--device", ESCAPE], ["run", "topk", "--input", ESCAPE + "none"],
    ["encode", "fp16", *GRADIENT, "--payload", ESCAPE + ".p"], ["decode", "fp16", "--payload", ESCAPE + ".p", "--output", ESCAPE + ".out"],
    ["explain", "fp16", "--html", ESCAPE + ".html"], ["list", ESCAPE], ["help", ESCAPE], ["fmt", "--check", f"{ESCAPE}.cinch"],
    ["sync", "none", *GRADIENT, "--policy", "policy.json"], ["sync", "none", "--profile", "profile.csv"], ["sync", "none", *GRADIENT, "--probe", "probe.json"],
    ["report", ".", "--programs", "fp16", "--seconds", "0.01"], ["report", ESCAPE], ["run", "fp16", *GRADIENT, "--seed", ESCAPE],
]
faults = []
for words in COMMANDS:
    done = subprocess.run([cinch, *words], capture_output=True, timeout=60, env=dict(os.environ, CINCH_TUNING="table.json"))
    if b"\x1b" in done.stdout + done.stderr or b"\x07" in done.stdout + done.stderr:
        faults.append(f"{words}: {done.stdout + done.stderr}")
    elif not re.search(rb"\\(x|u00)1b]0;owned\\(x|u00)07", done.stdout + done.stderr):
        faults.append(f"{words} does not show the name: {done.stdout + done.stderr}")
os.mkfifo("pipes/a.npy")
for words in (["report", "pipes"], ["sync", "none", "--input", "pipes", "--ranks", "1"]):
    done = subprocess.run([cinch, *words], capture_output=True, text=True, timeout=60)
    if done.returncode != 1 or done.stderr != "error: pipes/a.npy: not a regular file\n":
        faults.append(f"{words}: {done.returncode}: {done.stdout + done.stderr}")
# A pipe that is named itself is read.
piped = subprocess.run(["bash", "-c", '"$0" run fp16 --input <(cat g.npy)', cinch], capture_output=True, text=True, timeout=60)
if piped.returncode != 0:
    faults.append(f"a named pipe: {piped.stderr}")
print("\n".join(faults) or "names hold")
