"""Finds `libcinch.so` and calls it; a status other than OK becomes an exception."""
import atexit
import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import Any, Optional, Union

from . import _abi, _sync_abi
from .errors import Error, InvalidArgumentError, UnavailableError, VersionError, error_of

PACKAGE = Path(__file__).resolve().parent
_FILE_NAME = "libcinch.so.1"
log = logging.getLogger("cinch")


def _name() -> str:
    """What the loader is asked for: $CINCH_LIBRARY, else the wheel's own file, else the system's library."""
    named = os.environ.get("CINCH_LIBRARY")
    if named:
        return named
    own = PACKAGE / "lib" / _FILE_NAME
    return str(own) if own.exists() else _FILE_NAME


def _open(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise UnavailableError(f"cannot load libcinch: {error}; CINCH_LIBRARY may name the file") from error


@functools.lru_cache(maxsize=None)
def loaded() -> ctypes.CDLL:
    """The library, opened once per process. Errors: UnavailableError, VersionError (the library has another ABI)."""
    name = _name()
    library = _open(name)
    try:
        library.cinch_abi_version.restype = ctypes.c_uint32
        version = library.cinch_abi_version()
        if version != _abi.ABI_VERSION:
            raise VersionError(f"{name} has ABI version {version}, this package calls version {_abi.ABI_VERSION}")
        _abi.declare(library)
        _sync_abi.declare(library)
    except AttributeError as error:
        raise VersionError(f"{name} is not a libcinch that this package can call: {error}") from error
    library.cinch_set_log(_takes_line, None)
    # A thread of the library must not call into an interpreter that has ended.
    atexit.register(library.cinch_set_log, _sync_abi.TakesLine(), None)
    return library


def _warn(_: Any, line: bytes) -> None:
    log.warning("%s", text_of(line))


_takes_line = _sync_abi.TakesLine(_warn)  # as long as the process


def call(function: str, *arguments: Any) -> None:
    """Calls a function of the C API without holding the interpreter's lock. Errors: those of the function."""
    error = _abi.sized(_abi.Error)
    status = getattr(loaded(), function)(*arguments, ctypes.byref(error))
    if status != 0:
        raise _made(status, error)


def _made(status: int, error: _abi.Error) -> Error:
    message = error.message.decode(errors="replace")
    return error_of(
        status,
        message,
        tensor=None if error.tensor == _abi.NO_TENSOR else error.tensor,
        native_code=error.native_code,
        is_cut=error.message_size > len(error.message),
    )


def text_of(value: Optional[bytes]) -> str:
    """A text of the C API; file names in it may be any bytes."""
    return "" if value is None else value.decode(errors="surrogateescape")


def c_text(value: Union[str, "os.PathLike[str]"]) -> bytes:
    """A name or a path for the C API. Errors: InvalidArgumentError (a zero byte, which would end it early)."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{encoded!r} holds a zero byte")
    return encoded
