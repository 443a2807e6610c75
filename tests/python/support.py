"""What the tests of the Python package share. CINCH_COMMAND names the command that they compare with."""
import os
import subprocess
import unittest

import numpy as np

COMMAND = os.environ["CINCH_COMMAND"]
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
GRADIENT = os.path.join(SOURCE, "examples", "data", "resnet-step40.npy")

# Rows with a scale of their own: it works on matrices.
ROW_SIGNS = """compressor row_signs {
  wire { scale: [f32; r, 1], negative: [bool; r, c] }
  encode(g: [f32; r, c]) { wire { scale: mean(abs(g), axis: 1), negative: g < 0 } }
  decode(w) { w.scale * select(w.negative, -1.0, 1.0) }
}
"""

# A run-time and a constant parameter that take words.
WORDED = """compressor worded(fit: {near, far} = near, const half: {whole, halved} = whole) {
  wire { value: [f32; n] }
  encode(g: [f32; n]) {
    let x = if fit == near { g } else { -g }
    wire { value: if half == halved { x / 2 } else { x } }
  }
  decode(w) { w.value }
}
"""


def run_command(*words):
    """Standard output of `cinch WORDS…`."""
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"cinch {' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class TestCase(unittest.TestCase):
    def assertSameBits(self, a, b):  # noqa: N802  (named like unittest's own)
        self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
        self.assertEqual(a.tobytes(), b.tobytes())

    def fails(self, kind, words, call, *arguments, **named):
        """The exception of a call that must fail with `words` in its message."""
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        self.assertIn(words, str(caught.exception))
        return caught.exception
