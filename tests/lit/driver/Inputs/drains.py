"""drains.py FOLDER FILE… -- COMMAND…: starts the command in the folder and ends it (SIGTERM) while it works, later each time until it leaves
the files. Fails unless it dies of the signal each time and leaves all of the files or none."""
import os
import signal
import subprocess
import sys
import time

folder, split = sys.argv[1], sys.argv.index("--")
files, command = sys.argv[2:split], sys.argv[split + 1:]
os.makedirs(folder, exist_ok=True)
for delay in (0.5, 1, 2, 4, 8, 16, 32):
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    status = process.wait(timeout=60)
    if status != -signal.SIGTERM:
        sys.exit(f"after {delay} s: ended with {status}, not by the signal")
    left = sorted(os.listdir(folder))
    if left == sorted(files):
        print("drained")
        break
    if left:
        sys.exit(f"after {delay} s: left {left}")
else:
    sys.exit("never left the files")
