"""at_once.py N VARIABLE COMMAND…: runs the command N times at once, each with its number in the environment variable, passes their output on (standard
error to standard output), and fails unless all succeed."""
import os
import subprocess
import sys

number, variable, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
started = [subprocess.Popen(command, stderr=subprocess.STDOUT, env={**os.environ, variable: str(i)}) for i in range(number)]
ended = [process.wait(timeout=120) for process in started]
if any(ended):
    print(f"exit statuses {ended}")
    sys.exit(1)
