"""interrupt.py FOLDER COMMAND…: starts the command in the folder, interrupts it (Ctrl-C) while it works, and fails unless it died of that
and left no file behind."""
import os
import signal
import subprocess
import sys
import time

folder, command = sys.argv[1], sys.argv[2:]
os.makedirs(folder, exist_ok=True)
for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
for delay in (0.05, 0.3, 1.0, 2.0):
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=60)
    if status != -signal.SIGINT:
        sys.exit(f"after {delay} s: ended with {status}, not by the signal")
    if os.listdir(folder):
        sys.exit(f"after {delay} s: left {os.listdir(folder)}")
print("interrupted")
