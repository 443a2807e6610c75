"""Commands on a terminal of their own."""
import fcntl
import os
import pty
import struct
import subprocess
import termios


def run(command, columns=80, **streams):
    """Runs the command with the named streams ("stdout", "stderr") on a terminal of that width where they are None. Gives its exit status and
    what the terminal was given."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, **{name: slave if stream is None else stream for name, stream in streams.items()})
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
    return process.wait(), shown.decode()
