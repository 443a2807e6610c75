"""hostile_files.py FOLDER CINCH GRADIENT: every sub-command and option that reads a file is given a folder, a loop of links, a name that is
too long, a device and a pipe that never end, an empty file and one that is too large. Each says so, in time, with the documented status."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

folder, cinch, gradient = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "folder"))
os.chdir(folder)
os.symlink("loop", "loop")
os.symlink("loop", "loop.cinch")
open("empty", "w").close()
with open("large.cinch", "w") as file:
    file.write("// much\n" * (1 << 18))
PLAN = ["--plan", "ring"]
READERS = {
    "check": ["check", "%"], "fmt": ["fmt", "%"], "opt": ["opt", "%"], "explain": ["explain", "%"],
    "run": ["run", "%", "--input", gradient], "encode": ["encode", "%", "--input", gradient, "--payload", "p"],
    "decode": ["decode", "%", "--payload", gradient, "--output", "o"], "verify": ["verify", "%"], "bench": ["bench", "%"],
    "build": ["build", "%", "--emit=kir"], "sync": ["sync", "%", "--input", gradient, *PLAN], "warm": ["cache", "warm", "%"],
    "input": ["run", "onebit", "--input", "%"], "verify input": ["verify", "onebit", "--input", "%"],
    "bench input": ["bench", "onebit", "--input", "%"], "sync input": ["sync", "none", "--input", "%", *PLAN],
    "payload": ["decode", "onebit", "--payload", "%", "--output", "o"], "states": ["run", "dgc", "--input", gradient, "--state-in", "%"],
    "emulated states": ["run", "dgc", "--device", "emulated", "--input", gradient, "--state-in", "%"],
    "rank states": ["sync", "none", "--input", gradient, *PLAN, "--state-in", "%"],
    "policy": ["sync", "none", "--input", gradient, *PLAN, "--policy", "%"],
    "network": ["sync", "none", "--input", gradient, "--plan", "auto", "--probe", "%"],
}
FILES = ["./folder", "./loop", "./none", "./" + "x" * 300, "./" + "x" * 5000, "/dev/zero", "endless", "empty", "./large.cinch"]
FINE = {("check", "empty"), ("fmt", "empty"), ("opt", "empty"), ("opt", "./large.cinch")}  # programs of nothing
ENVIRONMENT = dict(os.environ, CINCH_CACHE="on", CINCH_CACHE_DIR=os.path.abspath("cache"))


def try_one(job):
    reader, file, environment = job
    words = ["/dev/stdin" if word == "%" and file == "endless" else file if word == "%" else word for word in READERS[reader]]
    yes = subprocess.Popen(["yes"], stdout=subprocess.PIPE) if file == "endless" else None
    done = subprocess.run([cinch, *words], stdin=yes.stdout if yes else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, env=environment)
    if yes:
        yes.kill()
        yes.communicate()
    text = done.stdout.decode(errors="replace")
    expected = 0 if (reader, file) in FINE else 1
    fits = done.returncode == expected and bool(re.search(r"error(\[\w+\])?:", text)) == (expected != 0) and "fault of Cinch" not in text
    return None if fits else f"{reader} {file[:20]}: {done.returncode}: {text[:300]}"


jobs = [(reader, file, ENVIRONMENT) for reader in READERS for file in FILES]
jobs = [job for job in jobs if job[:2] != ("sync input", "./folder")]  # of tensors
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    faults = [fault for fault in pool.map(try_one, jobs) if fault]


def expect(words, status, text, **variables):
    done = subprocess.run([cinch, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(ENVIRONMENT, **variables))
    if done.returncode != status or text not in done.stdout:
        faults.append(f"{words} {variables}: {done.returncode}: {done.stdout[:300]}")


def expect_end(words, file):
    """What goes on behind the size that its file names is refused, without being read to an end that never comes."""
    done = subprocess.run(["sh", "-c", f'cat {file} /dev/zero | exec timeout 20 "$0" "$@"', cinch, *words, "/dev/stdin"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    if done.returncode != 1 or "bytes, " not in done.stdout:
        faults.append(f"{words} without an end: {done.returncode}: {done.stdout[:300]}")


subprocess.run([cinch, "encode", "dgc", "--input", gradient, "--payload", "payload", "--state-out", "states"], check=True, stdout=subprocess.DEVNULL)
expect_end(["decode", "dgc", "--output", "o", "--payload"], "payload")
expect_end(["run", "dgc", "--input", gradient, "--state-in"], "states")
expect_end(["run", "dgc", "--device", "emulated", "--input", gradient, "--state-in"], "states")
# Tables of tuning numbers do not end a command; a library that cannot be read does.
for table in ("folder", "loop", "/dev/zero", "x" * 300, "empty"):
    expect(["run", "onebit", "--input", gradient], 0, "warning: ", CINCH_TUNING=table)
for library in ("loop", "empty", "x" * 300, "/dev/zero"):
    expect(["run", "onebit", "--input", gradient], 1, "error: ", CINCH_STDLIB=library)
# Imports.
os.makedirs("folder.cinch", exist_ok=True)
for name in (*(name + ".cinch" for name in ("x" * 300, "x" * 5000, "x" * 500000, "loop", "folder", "../" * 5000 + "x")), "/dev/zero", "/etc/passwd"):
    with open("imports.cinch", "w") as file:
        file.write(f'import "{name}"\n')
    expect(["check", "imports.cinch"], 1, "imports.cinch:1:")
print("\n".join(faults) or "files hold")
