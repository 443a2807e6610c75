"""Programs with a `sync` body, in a world of one rank, through bench_sync (the C API has no such call)."""
import ctypes
import math
import subprocess
import tempfile
from ctypes import POINTER, c_char_p, c_float, c_int64, c_uint32, c_void_p
from pathlib import Path

import arrays
from peer import Peer


def load(build):
    library = ctypes.CDLL(str(build / "lib" / "libbench_sync.so"))
    library.sync_open.argtypes = [c_char_p, c_int64, c_int64, c_uint32]
    library.sync_open.restype = c_void_p
    library.sync_time.argtypes = [c_void_p, POINTER(c_float), POINTER(c_float), ctypes.c_int]
    library.sync_time.restype = ctypes.c_double
    library.sync_close.argtypes = [c_void_p]
    return library


def build_image(build, measured, folder):
    path = Path(folder) / "program.image"
    command = [build / "bin" / "cinch", "build", measured.name, "--emit=image", "--output", path]
    for name, value in measured.settings.items():
        command += ["--set", f"{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return str(path).encode()


class SyncPeer(Peer):
    def __init__(self, build, measured, gradient, elements, threads):
        self._library = load(build)
        rows, columns = (*measured.shape(elements), 1)[:2]
        self.out = arrays.floats(math.prod(measured.shape(elements)))
        self._gradient = gradient
        with tempfile.TemporaryDirectory() as folder:
            self._session = self._library.sync_open(build_image(build, measured, folder), rows, columns, threads)
        if not self._session:
            raise RuntimeError(f"{measured.name} cannot be opened")

    def sync(self, repeats=1):
        seconds = self._library.sync_time(self._session, self._gradient, self.out, repeats)
        if seconds < 0:
            raise RuntimeError("a sync failed")
        return seconds

    def close(self):
        self._library.sync_close(self._session)
