"""errors_on_terminal.py COMMAND…: runs it with standard error on a terminal and output elsewhere; prints each line that progress wrote, and
last what is left on the terminal."""
import subprocess
import sys

from pseudo_terminal import run

status, shown = run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=None)
lines = shown.split("\r\033[K")
for line in lines[1:-1]:
    print("progress:", line)
print("left: '%s'" % lines[-1], "of", len(lines) - 1)
sys.exit(status)
