"""little_memory.py COMMAND…: the command with less and less address space (RLIMIT_AS): it succeeds, or ends with status 3 and a word why,
and is never ended by a signal. Prints how often which."""
import resource
import subprocess
import sys

MIB = 1 << 20


def run_with(limit):
    return subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def least_that_succeeds():
    fails, succeeds = 0, 4096 * MIB
    assert run_with(succeeds).returncode == 0
    while succeeds - fails > 4 * MIB:
        middle = (fails + succeeds) // 2
        if run_with(middle).returncode == 0:
            succeeds = middle
        else:
            fails = middle
    return succeeds


enough = least_that_succeeds()
refused = 0
for below in range(0, 480 * MIB, 20 * MIB):
    done = run_with(max(enough - below, 64 * MIB))
    assert done.returncode in (0, 3), (max(enough - below, 64 * MIB), done.returncode, done.stderr)
    if done.returncode == 3:
        refused += 1
        assert done.stderr.startswith("error: "), done.stderr
print("refused:", "often" if refused > 10 else refused)
