"""The call frame of XLA's FFI, read with ctypes: arguments and results of a handler, and errors for XLA.

XLA fixes the layout of these structs by the major version of its FFI. Each struct carries its own size, and a new field
is appended at the end of a struct.
"""
import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, List, NamedTuple, Optional

import numpy as np

from ..arrays import Array
from ..errors import UnavailableError

_MAJOR = 0  # of XLA's FFI, whose structs these are
_METADATA, _BUFFER, _STRING, _EXECUTE = 1, 1, 4, 3  # of XLA's enums

_HEAD: Any = [("struct_size", c_size_t), ("extension", c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", c_int), ("minor", c_int)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("next", c_void_p)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", POINTER(_Metadata))]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("message", c_char_p), ("code", c_int)]


class _Api(ctypes.Structure):
    _fields_ = [*_HEAD, ("version", _Version), ("internal", c_void_p), ("create_error", c_void_p)]


class _Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class _Buffer(ctypes.Structure):
    _fields_ = [*_HEAD, ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]


class _Buffers(ctypes.Structure):
    _fields_ = [*_HEAD, ("count", c_int64), ("kinds", POINTER(c_int)), ("buffers", POINTER(POINTER(_Buffer)))]


class _Attributes(ctypes.Structure):
    _fields_ = [*_HEAD, ("count", c_int64), ("kinds", POINTER(c_int)), ("names", POINTER(POINTER(_Text))), ("values", POINTER(c_void_p))]


class _Frame(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("api", POINTER(_Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    ]


Handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)  # from a frame to an error of XLA's, or NULL
_create_error = ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))

# XLA's element types. bfloat16 is read as its bits, which `cinch.Session` takes.
_DTYPES = {
    number: np.dtype(name)
    for number, name in {
        2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64", 10: "float16", 11: "float32", 16: "uint16"
    }.items()
}  # fmt: skip


class Call(NamedTuple):
    """A call of a handler. The arrays lie in XLA's memory, which is there until the handler returns.

    Attributes:
        key: the text that the call site names its compressor by.
    """

    arguments: List[Array]
    results: List[Array]
    key: str


def frame_at(address: int) -> Any:
    return _Frame.from_address(address)


def answers_metadata(frame: Any) -> bool:
    """Says which version of the FFI the handlers speak, if the call asks for that alone."""
    if not frame.extension or _Extension.from_address(frame.extension).kind != _METADATA:
        return False
    metadata = _MetadataExtension.from_address(frame.extension).metadata.contents
    _check_size(metadata, "the metadata")
    # A minor version only appends fields, so these structs fit each of them.
    metadata.version.major, metadata.version.minor = _MAJOR, frame.api.contents.version.minor
    metadata.traits = 0
    return True


def read(frame: Any) -> Call:
    """The arrays and the attribute `key` of a call. Errors: UnavailableError (a layout that this file does not know)."""
    version = frame.api.contents.version
    if version.major != _MAJOR:
        raise UnavailableError(f"jaxlib has version {version.major}.{version.minor} of XLA's FFI, this package reads {_MAJOR}")
    _check_size(frame, "the call frame")
    # These lie inline in the frame: a larger struct would move the fields after it.
    for part in (frame.arguments, frame.results, frame.attributes):
        _check_size(part, "a list of the call frame", is_exact=True)
    if frame.stage != _EXECUTE:
        raise UnavailableError(f"XLA calls the handler at stage {frame.stage}, not to execute")
    return Call(_arrays(frame.arguments), _arrays(frame.results), _attribute(frame.attributes, b"key"))


def _check_size(struct: Any, what: str, *, is_exact: bool = False) -> None:
    known, given = ctypes.sizeof(struct), struct.struct_size
    # ctypes counts the padding after the last field, XLA does not.
    if given < known - 7 or (is_exact and given != known):
        raise UnavailableError(f"{what} of XLA's FFI has {given} bytes, this package reads {known}: jaxlib has another version of it")


def _arrays(buffers: Any) -> List[Array]:
    return [_array(buffers.buffers[i].contents, buffers.kinds[i]) for i in range(buffers.count)]


def _array(buffer: Any, kind: int) -> Array:
    _check_size(buffer, "a buffer")
    dtype = _DTYPES.get(buffer.dtype)
    if kind != _BUFFER or dtype is None:
        raise UnavailableError(f"XLA passes a buffer of kind {kind} with elements of type {buffer.dtype}")
    shape = tuple(buffer.dims[: buffer.rank])
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(buffer.data)
    array: Array = np.frombuffer(memory, dtype)
    return array.reshape(shape)


def _attribute(attributes: Any, name: bytes) -> str:
    for i in range(attributes.count):
        text = attributes.names[i].contents
        if attributes.kinds[i] == _STRING and ctypes.string_at(text.data, text.size) == name:
            value = _Text.from_address(attributes.values[i])
            return ctypes.string_at(value.data, value.size).decode()
    raise UnavailableError(f"XLA passes no attribute {name.decode()}")


def error_for(frame: Any, message: str, code: int) -> Optional[int]:
    """An error that XLA owns, with a code of absl's statuses."""
    arguments = _ErrorArguments(message=message.encode(errors="replace").replace(b"\0", b"?"), code=code)
    arguments.struct_size = ctypes.sizeof(_ErrorArguments) - 4  # without the padding, as XLA counts
    made: Optional[int] = _create_error(frame.api.contents.create_error)(ctypes.byref(arguments))
    return made
