"""hostile_streams.py FOLDER CINCH GRADIENT: every sub-command with a standard output that is a full device, closed or a broken pipe, with all
streams closed, and with few descriptors. None ends with status 0 where its output was lost, and none with an internal error."""
import concurrent.futures
import os
import resource
import shutil
import subprocess
import sys

folder, cinch, gradient = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
os.chdir(folder)
RUN = ["run", "onebit", "--input", gradient]
subprocess.run([cinch, "encode", "onebit", "--input", gradient, "--payload", "p"], check=True, stdout=subprocess.DEVNULL)
with open("ugly.cinch", "w") as file:
    file.write("const  A = 1\n")
SYNC = ["sync", "none", "--input", gradient, "--plan", "ring"]
PRINTING = [
    ["--help"], ["--version"], ["run", "--help"], ["check", "ugly.cinch", "--json"], ["check", "ugly.cinch", "--diagnostics=sarif"],
    ["fmt", "--check", "ugly.cinch"], ["fmt", "-"], ["explain", "onebit"], ["explain", "onebit", "--json"],
    ["explain", "onebit", "--formulas"], ["report", gradient, "--programs", "onebit", "--seconds", "0"],
    ["report", gradient, "--programs", "onebit", "--seconds", "0", "--json"], RUN, [*RUN, "--json"],
    ["encode", "onebit", "--input", gradient, "--payload", "q", "--json"], ["encode", "onebit", "--input", gradient, "--payload", "q"],
    ["decode", "onebit", "--payload", "p", "--output", "x.npy", "--json"], ["decode", "onebit", "--payload", "p", "--output", "x.npy"],
    ["build", "onebit", "--emit=ast"], ["build", "onebit", "--emit=source"], ["opt", "--list"], ["list"], ["list", "--json"], ["doctor"],
    ["doctor", "--json"], ["cache", "show"], ["cache", "show", "--json"], ["cache", "clear"], ["cache", "warm", "onebit"],
    ["completion", "bash"], ["verify", "onebit", "--budget", "0"], ["verify", "onebit", "--budget", "0", "--json"],
    ["bench", "onebit", "--elements", "1000", "--seconds", "0", "--json"], ["bench", "onebit", "--elements", "1000", "--seconds", "0"],
    SYNC, [*SYNC, "--json"], [*SYNC, "--explain"], [*SYNC, "--explain", "--json"],
    ["probe", "--ranks", "2", "--seconds", "0.05", "--largest", "1024"], ["probe", "--ranks", "2", "--seconds", "0.05", "--largest", "1024", "--json"],
    ["tune", "--device", "emulated", "--budget", "0"], ["tune", "--device", "emulated", "--budget", "0", "--json"],
]
ENVIRONMENT = dict(os.environ, CINCH_CACHE="on", CINCH_CACHE_DIR=os.path.abspath("cache"))


def run(words, by=None, **options):
    command = [cinch, *words] if by is None else ["sh", "-c", by, cinch, *words]
    return subprocess.run(command, input=b"const  A = 1\n", stderr=subprocess.PIPE, timeout=120, **{"env": ENVIRONMENT, **options})


# One for all, made while no other thread starts a process: such a process would keep the end that reads until it becomes another program.
read, write = os.pipe()
os.close(read)
# By a shell: Python runs nothing safely between fork and exec while other threads run.
CLOSED, IGNORED = 'exec "$0" "$@" >&-', 'trap "" PIPE; exec "$0" "$@"'


def try_one(words):
    faults = []
    # `cache clear` must not take what another command is about to use.
    environment = dict(ENVIRONMENT, CINCH_CACHE_DIR=os.path.abspath("cleared")) if words == ["cache", "clear"] else ENVIRONMENT
    with open("/dev/full", "wb") as full:
        outputs = {"full": run(words, stdout=full, env=environment)}
    outputs["closed"] = run(words, by=CLOSED, env=environment)
    outputs["pipe"] = run(words, by=IGNORED, stdout=write, env=environment)
    for name, done in outputs.items():
        if done.returncode != 1 or b"error: cannot write to standard output: " not in done.stderr:
            faults.append(f"{name} {words}: {done.returncode}: {done.stderr[:300]}")
    return faults


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    faults = [fault for found in pool.map(try_one, PRINTING) for fault in found]


# Files that are opened later must not take the place of a closed stream.
def close_all():
    for descriptor in (0, 1, 2):
        os.close(descriptor)


done = subprocess.run([cinch, *RUN, "--output", "alone.npy"], preexec_fn=close_all, env=ENVIRONMENT)
subprocess.run([cinch, *RUN, "--output", "usual.npy"], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
if done.returncode != 1 or open("alone.npy", "rb").read() != open("usual.npy", "rb").read():
    faults.append(f"all closed: {done.returncode}")
# Nor is a full error stream a bug of Cinch.
with open("/dev/full", "wb") as full:
    done = subprocess.run([cinch, *RUN], stdout=subprocess.DEVNULL, stderr=full, env=dict(ENVIRONMENT, CINCH_TUNING="none"))
if done.returncode != 0:
    faults.append(f"errors to a full device: {done.returncode}")

seen = set()
for words in (RUN, ["check", "ugly.cinch"], ["list"], [*RUN, "--output", "x.npy"], [*RUN, "--device", "emulated"], [*SYNC, "--output", "x.npy"]):
    for few in [*range(3, 16), 20]:
        done = run(words, stdout=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
        seen.add(done.returncode)
        # Below some number the system's loader finds no library: 127.
        is_told = done.returncode == 0 or b"error" in done.stderr
        if done.returncode not in (0, 3, 127) or not is_told:
            faults.append(f"{few} descriptors {words}: {done.returncode}: {done.stderr[:300]}")
if not {0, 3} <= seen:
    faults.append(f"few descriptors: only {seen}")
print("\n".join(faults) or "streams hold")
