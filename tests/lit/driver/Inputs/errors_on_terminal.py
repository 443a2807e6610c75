"""errors_on_terminal.py COMMAND…: runs it with standard error on a terminal and output elsewhere; prints each line that progress wrote, and
last what is left on the terminal."""
import os
import pty
import subprocess
import sys

master, slave = pty.openpty()
command = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=slave)
os.close(slave)
shown = b""
while True:
    try:
        part = os.read(master, 4096)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    shown += part
lines = shown.decode().split("\r\033[K")
for line in lines[1:-1]:
    print("progress:", line)
print("left: '%s'" % lines[-1], "of", len(lines) - 1)
sys.exit(command.wait())
