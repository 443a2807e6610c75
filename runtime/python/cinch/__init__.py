"""Cinch, a compression compiler for gradients.

    import cinch, numpy as np

    gradient = np.random.default_rng(0).standard_normal(1000000).astype(np.float32)
    program = cinch.compile("dgc", ratio=0.001)
    with program.session(gradient) as session:
        payload = session.encode(0, gradient)       # bytes
        decoded = session.decode(0, payload)        # a float32 array of the same shape

docs/python.md is a tour.
"""
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
    TimedOutError,
    UnavailableError,
    VersionError,
)
from .program import Library, Parameter, Program, State, compile, library, load, load_bytes

if TYPE_CHECKING:
    from .session import Session

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
    "Library",
    "OutOfMemoryError",
    "OutOfRangeError",
    "Parameter",
    "PayloadError",
    "Program",
    "ProgramError",
    "Session",
    "SizeOverflowError",
    "State",
    "TimedOutError",
    "UnavailableError",
    "VersionError",
    "compile",
    "library",
    "load",
    "load_bytes",
]


def __getattr__(name: str) -> Any:
    # Sessions alone need NumPy: the command starts without it.
    if name == "Session":
        from .session import Session

        return Session
    if name == "__version__":
        return _library.text_of(_library.loaded().cinch_version())
    raise AttributeError(f"module 'cinch' has no attribute {name!r}")
