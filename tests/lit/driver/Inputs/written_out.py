"""written_out.py CINCH PROGRAMS: what the programs of written_out.cinch decode and send, on all targets."""
import os
import subprocess
import sys
import tempfile

import numpy as np

cinch, programs = sys.argv[1:]


def run(name, gradient, folder, *options):
    """The decoded gradient, and what the payload holds behind its header of 64 bytes."""
    paths = [os.path.join(folder, each) for each in ("g.npy", "out.npy", "payload")]
    np.save(paths[0], gradient)
    subprocess.run([cinch, "run", f"{programs}:{name}", "--input", paths[0], "--output", paths[1], "--payload", paths[2], *options], check=True, capture_output=True)
    with open(paths[2], "rb") as payload:
        return np.load(paths[1]), payload.read()[64:]


with tempfile.TemporaryDirectory() as folder:
    for options in (["--interpret"], [], ["--device", "emulated"]):
        for first in (2, -3):
            g = np.array([first, 1, 5, 7], dtype=np.float32)
            assert not run("behind_loops", g, folder, *options)[0].any(), (options, first)
            chosen = run("chosen", g, folder, *options)[0]
            assert ((chosen == 0) | (chosen == g)).all() and chosen.any(), (options, first, chosen)
        assert run("looped", g, folder, *options)[1] == run("written", g, folder, *options)[1], options
