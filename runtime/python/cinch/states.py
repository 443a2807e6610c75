"""States of tensors as bytes. Several tensors are concatenated: each part begins with its own size."""
import ctypes
from typing import Any, List, Sequence

from . import _library
from .arrays import Array, address_of
from .errors import Error, FileError, InvalidArgumentError

# runtime/call/state_file.h: bytes 48 to 56 are the size of the whole part, little endian.
_PREAMBLE_BYTES, _SIZE_BEGINS, _SIZE_ENDS = 64, 48, 56


def save(handle: Any, tensor: int) -> bytes:
    """The states of one tensor."""
    size = ctypes.c_size_t()
    _library.call("cinch_states_save", handle, tensor, None, ctypes.byref(size))
    saved = ctypes.create_string_buffer(size.value)
    _library.call("cinch_states_save", handle, tensor, saved, ctypes.byref(size))
    return saved.raw


def save_into(handle: Any, tensor: int, address: int, size: int) -> None:
    """The states of one tensor, written to memory that has exactly their size. Errors: InvalidArgumentError (it has not)."""
    used = ctypes.c_size_t(size)
    _library.call("cinch_states_save", handle, tensor, address, ctypes.byref(used))
    if used.value != size:
        raise InvalidArgumentError(f"the states take {used.value} bytes, not {size}")


def load_all(handle: Any, tensors: Sequence[int], saved: Array) -> None:
    """Restores the states of `tensors`, or of none. Errors: FileError, VersionError, InvalidArgumentError."""
    if len(tensors) == 1:
        return _load(handle, tensors[0], address_of(saved), saved.size)
    before: List[bytes] = []
    for place, (tensor, part) in enumerate(zip(tensors, _divided(saved, len(tensors)))):
        before.append(save(handle, tensor))
        try:
            _load(handle, tensor, address_of(part), part.size)
        except Error as error:
            error.tensor = place
            _restore(handle, tensors, before)
            raise
    return None


def _load(handle: Any, tensor: int, data: Any, size: int) -> None:
    _library.call("cinch_states_load", handle, tensor, data, size)


def _restore(handle: Any, tensors: Sequence[int], before: Sequence[bytes]) -> None:
    for tensor, old in zip(tensors, before):
        _load(handle, tensor, old, len(old))


def _divided(saved: Array, count: int) -> List[Array]:
    """The bytes of each tensor. Errors: FileError."""
    parts: List[Array] = []
    begin = 0
    for i in range(count):
        preamble = saved[begin : begin + _PREAMBLE_BYTES].tobytes()
        size = int.from_bytes(preamble[_SIZE_BEGINS:_SIZE_ENDS], "little")
        if len(preamble) < _PREAMBLE_BYTES or not _PREAMBLE_BYTES <= size <= saved.size - begin:
            raise FileError(f"states of {count} tensors are expected; those of this one are cut or changed", tensor=i)
        parts.append(saved[begin : begin + size])
        begin += size
    if begin != saved.size:
        raise FileError(f"{saved.size - begin} bytes follow the states of {count} tensors")
    return parts
