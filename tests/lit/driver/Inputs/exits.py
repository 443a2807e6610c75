"""exits.py CODE COMMAND…: runs the command, passes its output on (standard error to standard output), and fails unless it ends with CODE."""
import subprocess
import sys

code, command = int(sys.argv[1]), sys.argv[2:]
ended = subprocess.run(command, stderr=subprocess.STDOUT).returncode
if ended != code:
    print(f"expected exit status {code}, found {ended}")
    sys.exit(1)
