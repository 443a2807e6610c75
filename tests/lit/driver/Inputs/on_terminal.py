"""on_terminal.py COLUMNS COMMAND…: runs a command on a terminal of that width; prints what the terminal was given."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
command = subprocess.Popen(sys.argv[2:], stdout=slave)
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
lines = shown.decode().replace("\r\n", "\n")
print(lines, end="")
print("longest line:", max(map(len, lines.split("\n"))))
sys.exit(command.wait())
