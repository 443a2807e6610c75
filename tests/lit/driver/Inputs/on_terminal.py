"""on_terminal.py COLUMNS COMMAND…: runs a command on a terminal of that width; prints what the terminal was given."""
import sys

from pseudo_terminal import run

status, shown = run(sys.argv[2:], columns=int(sys.argv[1]), stdout=None)
lines = shown.replace("\r\n", "\n")
print(lines, end="")
print("longest line:", max(map(len, lines.split("\n"))))
sys.exit(status)
