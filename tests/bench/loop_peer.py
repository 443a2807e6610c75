"""The hand-written loops of tests/bench/loops: compiled by the Clang that Cinch uses, called in this process."""
import ctypes
import hashlib
import os
import subprocess
from ctypes import c_double, c_float, c_uint64, c_void_p
from pathlib import Path

import arrays
from peer import Peer

SOURCES = Path(__file__).resolve().parent / "loops"
COMPILER = ["clang++-19", "-std=c++20", "-O3", "-march=native", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra"]


class Job(ctypes.Structure):
    """As in loops/loops.h."""
    _fields_ = [("gradient", c_void_p), ("out", c_void_p), ("payload", c_void_p), ("state", c_void_p * 2), ("next_state", c_void_p * 2),
                ("workspace", c_void_p), ("n", c_uint64), ("capacity", c_uint64), ("step", c_uint64), ("tau", c_float),
                ("ratio", c_double), ("sample", c_double), ("momentum", c_float)]


class Difference(ctypes.Structure):
    """As in loops/measure.cpp."""
    _fields_ = [(name, c_uint64) for name in ("differing", "far", "nonzero_a", "nonzero_b", "both_nonzero", "unequal_where_both")]


def build(folder):
    """Compiles the loops unless they were for this processor before; gives the library's path."""
    sources = sorted(SOURCES.iterdir())
    made_of = [*COMPILER, *(source.read_text() for source in sources), *processor_flags()]
    path = folder / f"libloops-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        subprocess.run([*COMPILER, *(str(source) for source in sources if source.suffix == ".cpp"), "-o", str(unfinished)], check=True)
        unfinished.rename(path)
    return path


def processor_flags():
    return [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")][:1]


def load(folder, threads):
    path = build(folder)
    library = ctypes.CDLL(str(path))
    library.use_threads(threads)
    library.time_cinch.restype = library.time_loop.restype = ctypes.c_double
    library.make_gradient.argtypes = [c_void_p, c_uint64]
    library.compare.argtypes = [c_void_p, c_void_p, c_uint64, c_float, c_void_p]
    return library


def make_gradient(library, elements):
    gradient = arrays.floats(elements)
    library.make_gradient(gradient, elements)
    return gradient


def compare(library, a, b, elements, tolerance):
    difference = Difference()
    library.compare(a, b, elements, tolerance, ctypes.byref(difference))
    return difference


SELECTIONS = {"threshold", "topk", "graddrop", "dgc"}
NUM_STATES = {"tbq": 1, "ef_sign": 1, "graddrop": 1, "dgc": 2}


class LoopPeer(Peer):
    def __init__(self, library, measured, gradient, elements):
        name, self._time = measured.name, library.time_loop
        self._encode, self._decode = getattr(library, name + "_encode"), getattr(library, name + "_decode")
        self.out = arrays.floats(elements)
        selects = name in SELECTIONS
        # A header, then two words for each element of a selection, at most two bytes and a norm per bucket for the others.
        payload = arrays.memory(4096 + (8 if selects else 3) * arrays.padded(elements))
        self._payload = (ctypes.c_uint8 * len(payload)).from_buffer(payload)
        self._states = [arrays.floats(elements) for _ in range(2 * NUM_STATES.get(name, 0))]
        self._workspace = arrays.floats(2 * elements) if selects else None
        self._job = Job(gradient=arrays.address(gradient), out=arrays.address(self.out), payload=arrays.address(self._payload),
                        workspace=arrays.address(self._workspace) if selects else None, n=elements, capacity=elements,
                        **{name: value for name, value in measured.settings.items() if name != "bucket"})
        half = len(self._states) // 2
        for i in range(half):
            self._job.state[i] = arrays.address(self._states[i])
            self._job.next_state[i] = arrays.address(self._states[half + i])
        self._reference = ctypes.byref(self._job)

    def _run(self, function, repeats, steps_per_call):
        seconds = self._time(function, self._reference, repeats, steps_per_call)
        if seconds < 0:
            raise RuntimeError("the gradient holds a non-finite value, or the payload is corrupt")
        return seconds

    def encode(self, repeats=1):
        return self._run(self._encode, repeats, 1)

    def decode(self, repeats=1):
        return self._run(self._decode, repeats, 0)
