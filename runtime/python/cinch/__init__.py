"""Cinch, a compression compiler for gradients.

    import cinch, numpy as np

    gradient = np.random.default_rng(0).standard_normal(1000000).astype(np.float32)
    program = cinch.compile("dgc", ratio=0.001)
    with program.session(gradient) as session:
        payload = session.encode(0, gradient)       # bytes
        decoded = session.decode(0, payload)        # a float32 array of the same shape

docs/python.md is a tour.
"""
import importlib
from typing import TYPE_CHECKING, Any

from . import _library
from .errors import (
    CancelledError,
    CheckError,
    DeviceError,
    Diagnostic,
    Error,
    FileError,
    InternalError,
    InvalidArgumentError,
    IoError,
    OutOfMemoryError,
    OutOfRangeError,
    PayloadError,
    ProgramError,
    SizeOverflowError,
    SyncError,
    TimedOutError,
    UnavailableError,
    VersionError,
)
from .program import Input, Library, Parameter, Program, State, compile, library, load, load_bytes

if TYPE_CHECKING:
    from .session import Session
    from .synchronizer import Restored, Synchronizer, SyncTensor
    from .transport import Store, Transport

    __version__: str

__all__ = [
    "CancelledError",
    "CheckError",
    "DeviceError",
    "Diagnostic",
    "Error",
    "FileError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Input",
    "Library",
    "OutOfMemoryError",
    "OutOfRangeError",
    "Parameter",
    "PayloadError",
    "Program",
    "ProgramError",
    "Restored",
    "Session",
    "SizeOverflowError",
    "State",
    "Store",
    "SyncError",
    "SyncTensor",
    "Synchronizer",
    "TimedOutError",
    "Transport",
    "UnavailableError",
    "VersionError",
    "compile",
    "library",
    "load",
    "load_bytes",
]


_WITH_NUMPY = {
    "Session": "session",
    "Synchronizer": "synchronizer",
    "SyncTensor": "synchronizer",
    "Restored": "synchronizer",
    "Store": "transport",
    "Transport": "transport",
}


def __getattr__(name: str) -> Any:
    # These need NumPy, which the command must be able to start without.
    if name in _WITH_NUMPY:
        return getattr(importlib.import_module(f".{_WITH_NUMPY[name]}", __name__), name)
    if name == "__version__":
        return _library.text_of(_library.loaded().cinch_version())
    raise AttributeError(f"module 'cinch' has no attribute {name!r}")
