"""ends_one.py FOLDER COMMAND…: has mpirun start three ranks of the command in the folder, in a launch that outlives ranks, and ends one of them (SIGTERM)
while they work, later each time. Fails unless all of them end soon, and without the update x.npy."""
import os
import signal
import subprocess
import sys
import time

MOST_SECONDS = 60


def children_of(pid: int) -> list[int]:
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(child) for child in file.read().split()]
    return sorted(found)


folder, command = sys.argv[1], sys.argv[2:]
for delay in (1, 4, 8):
    launch = ["mpirun", "--enable-recovery", "--oversubscribe", "-n", "3", *command]
    process = subprocess.Popen(launch, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(delay)
    ranks = children_of(process.pid)
    if len(ranks) != 3:
        sys.exit(f"after {delay} s: {len(ranks)} ranks, not 3")
    os.kill(ranks[1], signal.SIGTERM)
    try:
        process.wait(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        sys.exit(f"after {delay} s: some rank has not ended within {MOST_SECONDS} s")
if os.path.exists(os.path.join(folder, "x.npy")):
    sys.exit("an update was written")
print("all have ended")
