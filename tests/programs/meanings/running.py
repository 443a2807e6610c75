"""Runs a program's text on one gradient."""
import pathlib
import subprocess
import tempfile

import numpy as np


def run(cinch, text, gradient, *options):
    """What `cinch run` decodes, with these options."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "tried.cinch").write_text(text)
        np.save(place / "g.npy", gradient)
        subprocess.run([cinch, "run", place / "tried.cinch", "--input", place / "g.npy", "--output", place / "x.npy", *options], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(place / "x.npy")
