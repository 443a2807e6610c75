"""Describes arrays and buffers for the C API without copying them, and checks them first."""
import bisect
import ctypes
import operator
from typing import Any, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _abi, _dlpack
from .errors import InvalidArgumentError, OutOfRangeError


class SpeaksDlpack(Protocol):
    """An array of NumPy, or of another framework: a torch.Tensor."""

    def __dlpack__(self, *arguments: Any, **named: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


Array = npt.NDArray[Any]
Buffer = Union[bytes, bytearray, memoryview, SpeaksDlpack]
BUFFERS = (bytes, bytearray, memoryview)
Shape = Tuple[int, ...]
_TENSOR_BYTES, _PAYLOAD_BYTES = ctypes.sizeof(_abi.Tensor), ctypes.sizeof(_abi.Payload)


class Piece(NamedTuple):
    """The memory of one entry of a call: addresses [begin, end)."""

    begin: int
    end: int
    entry: int


class DescribedShape(NamedTuple):
    """A shape, and the same shape as the C API reads it."""

    sizes: Shape
    pointer: Any  # of int64_t; keeps its memory alive


class TensorArrays(NamedTuple):
    """Descriptors of a list of arrays, and the memory of each. The arrays must outlive them."""

    descriptors: Any  # (Tensor * n)
    pieces: List[Piece]
    held: List[Any]  # objects that keep memory of other frameworks alive


class PayloadBuffers(NamedTuple):
    """Descriptors of a list of payloads, the memory of each, and the arrays that keep this memory alive."""

    descriptors: Any  # (Payload * n)
    pieces: List[Piece]
    views: Sequence[Array]


def unsigned(value: Any, bits: int, what: str) -> int:
    """Checks that `value` fits, because ctypes wraps numbers around. Errors: TypeError, OutOfRangeError."""
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise OutOfRangeError(f"{what} is {number}, which is not an unsigned number of {bits} bits")
    return number


def is_array(value: Any) -> bool:
    """Is it an array of NumPy, or of a framework that speaks DLPack?"""
    return isinstance(value, np.ndarray) or _dlpack.has_dlpack(value)


def shapes_of(tensors: Any) -> List[Shape]:
    """The shapes of one tensor, or of a list of tensors. A tensor is an array, a tuple of integers, or one integer."""
    if is_array(tensors) or _is_shape(tensors):
        return [_shape_of(tensors)]
    return [_shape_of(each) for each in tensors]


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def _is_shape(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, tuple) and all(map(_is_integer, value)))


def _shape_of(tensor: Any) -> Shape:
    if is_array(tensor):
        return tuple(int(size) for size in tensor.shape)
    if not _is_shape(tensor):
        raise TypeError(f"a tensor is described by an array, a tuple of integers or an integer, not by {type(tensor).__name__}")
    shape = (tensor,) if _is_integer(tensor) else tensor
    return tuple(unsigned(size, 63, "a dimension") for size in shape)


def described(shape: Shape) -> DescribedShape:
    return DescribedShape(shape, ctypes.cast((ctypes.c_int64 * len(shape))(*shape), ctypes.POINTER(ctypes.c_int64)))


def shape_descriptors(shapes: Sequence[DescribedShape]) -> Any:
    """Tensors without memory, for opening a session."""
    return (_abi.Tensor * len(shapes))(*(_tensor(0, _abi.F32, shape) for shape in shapes))


def _tensor(data: int, dtype: int, shape: DescribedShape) -> _abi.Tensor:
    # Positional arguments take a third of the time of named ones; device and its number are 0.
    return _abi.Tensor(_TENSOR_BYTES, data, dtype, 0, 0, len(shape.sizes), shape.pointer)


_DTYPES = {np.dtype(np.float32): _abi.F32, np.dtype(np.float16): _abi.F16, np.dtype(np.uint16): _abi.BF16}


def _dtype_of(array: Array) -> Optional[int]:
    found = _DTYPES.get(array.dtype)
    # Recognises the type of ml_dtypes by its name, so that the package is not needed.
    if found is None and array.dtype.name == "bfloat16" and array.dtype.itemsize == 2:
        return _abi.BF16
    return found


def address_of(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def tensor_arrays(
    arrays: Sequence[Any], shapes: Sequence[DescribedShape], what: str, *, only_f32: bool = False, is_written: bool = False
) -> TensorArrays:
    """Descriptors of `arrays`, whose shapes must be `shapes`.

    Errors, with the entry as `tensor`: TypeError (no array), InvalidArgumentError (element type, shape, layout, read-only,
    not in the CPU's memory).
    """
    made = TensorArrays((_abi.Tensor * len(arrays))(), [], [])
    for i, (array, shape) in enumerate(zip(arrays, shapes)):
        if not isinstance(array, np.ndarray) and _dlpack.has_dlpack(array):
            memory = _dlpack.read(array, _name(what, i, arrays), i)
            _check_memory(memory, shape.sizes, _name(what, i, arrays), i, only_f32, is_written)
            assert memory.dtype is not None
            made.descriptors[i] = _tensor(memory.address, memory.dtype, shape)
            made.pieces.append(Piece(memory.address, memory.address + memory.nbytes, i))
            made.held.append(memory.capsule)
            continue
        dtype = _usable_dtype(array, shape.sizes, only_f32, is_written)
        if dtype is None:
            raise _mistake(array, shape.sizes, _name(what, i, arrays), i, only_f32)
        begin = address_of(array)
        made.descriptors[i] = _tensor(begin, dtype, shape)
        made.pieces.append(Piece(begin, begin + array.nbytes, i))
    return made


def _name(what: str, i: int, arrays: Sequence[Any]) -> str:
    return f"{what} {i}" if len(arrays) > 1 else what


def _check_memory(memory: _dlpack.Memory, shape: Shape, name: str, i: int, only_f32: bool, is_written: bool) -> None:
    """As `_usable_dtype` and `_mistake`, for memory of another framework."""
    if memory.dtype is None or (only_f32 and memory.dtype != _abi.F32):
        taken = "float32" if only_f32 else "float32, float16 or bfloat16"
        raise InvalidArgumentError(f"{name} has elements of type {memory.type_name}, not {taken}", tensor=i)
    if memory.shape != shape:
        raise InvalidArgumentError(f"{name} has shape {memory.shape}, the session's tensor has {shape}", tensor=i)
    if not memory.is_dense:
        raise InvalidArgumentError(f"{name} is not dense in row-major order; a contiguous copy is", tensor=i)
    size = 4 if memory.dtype == _abi.F32 else 2
    if memory.nbytes and memory.address % size:
        raise InvalidArgumentError(f"{name} is not aligned: it begins at no multiple of {size}, the bytes of an element; a copy, such as its clone(), does", tensor=i)
    if memory.is_read_only and is_written:
        raise InvalidArgumentError(f"{name} is read-only", tensor=i)


def _usable_dtype(array: Any, shape: Shape, only_f32: bool, is_written: bool) -> Optional[int]:
    """The element type, or None where a call cannot take the array."""
    if not isinstance(array, np.ndarray) or array.shape != shape:
        return None
    dtype, flags = _dtype_of(array), array.flags
    is_dense = flags.c_contiguous and flags.aligned
    return dtype if is_dense and (flags.writeable or not is_written) and (dtype == _abi.F32 or not only_f32) else None


def _mistake(array: Any, shape: Shape, name: str, i: int, only_f32: bool) -> Exception:
    """The exception for an array that a call cannot take."""
    if not isinstance(array, np.ndarray):
        return TypeError(f"{name} is a {type(array).__name__}, not a numpy.ndarray, and does not speak DLPack")
    dtype = _dtype_of(array)
    if dtype is None or (only_f32 and dtype != _abi.F32):
        taken = "float32" if only_f32 else "float32, float16, bfloat16, or uint16 with the bits of bfloat16"
        return InvalidArgumentError(f"{name} has elements of type {array.dtype}, not {taken}", tensor=i)
    if array.shape != shape:
        return InvalidArgumentError(f"{name} has shape {array.shape}, the session's tensor has {shape}", tensor=i)
    if not array.flags.c_contiguous:
        return InvalidArgumentError(f"{name} is not dense in row-major order; numpy.ascontiguousarray makes a copy that is", tensor=i)
    if not array.flags.aligned:
        size = array.dtype.itemsize
        return InvalidArgumentError(f"{name} is not aligned: it begins at no multiple of {size}, the bytes of an element; its copy() does", tensor=i)
    return InvalidArgumentError(f"{name} is read-only", tensor=i)


def bytes_view(buffer: Any, name: str, i: int, *, is_written: bool = False) -> Array:
    """The bytes of a buffer, as an array over the same memory. Errors: TypeError (no buffer), InvalidArgumentError (gaps, read-only)."""
    if not isinstance(buffer, (*BUFFERS, np.ndarray)) and _dlpack.has_dlpack(buffer):
        return _dlpack_bytes(buffer, name, i, is_written)
    try:
        view = np.frombuffer(buffer, dtype=np.uint8)
    except TypeError as error:
        raise TypeError(f"{name} is a {type(buffer).__name__}, not bytes, a bytearray, a memoryview or an array") from error
    except (ValueError, BufferError) as error:
        raise InvalidArgumentError(f"{name} is not dense: {error}", tensor=i) from error
    if is_written and not view.flags.writeable:
        raise InvalidArgumentError(f"{name} is read-only", tensor=i)
    return view


def _dlpack_bytes(buffer: Any, name: str, i: int, is_written: bool) -> Array:
    memory = _dlpack.read(buffer, name, i)
    if not memory.is_dense:
        raise InvalidArgumentError(f"{name} is not dense", tensor=i)
    if is_written and memory.is_read_only:
        raise InvalidArgumentError(f"{name} is read-only", tensor=i)
    if memory.nbytes == 0:
        return np.empty(0, np.uint8)
    lent: Any = (ctypes.c_uint8 * memory.nbytes).from_address(memory.address)
    lent.capsule = memory.capsule  # lives as long as views of the memory
    return np.frombuffer(lent, dtype=np.uint8)


def payload_buffers(views: Sequence[Array], *, is_written: bool = False) -> PayloadBuffers:
    """Payloads in the memory of `views`: to be read, or as room for payloads that are made."""
    pieces = []
    for i, view in enumerate(views):
        begin = address_of(view)
        pieces.append(Piece(begin, begin + view.size, i))
    sizes = ((view.size, 0) if is_written else (0, view.size) for view in views)
    payloads = (_abi.Payload(_PAYLOAD_BYTES, piece.begin, *each) for piece, each in zip(pieces, sizes))
    return PayloadBuffers((_abi.Payload * len(views))(*payloads), pieces, views)


def lent_payloads(count: int) -> Any:
    """Payloads whose memory the session lends until its next call."""
    return (_abi.Payload * count)(*[_abi.Payload(_PAYLOAD_BYTES)] * count)


def check_apart(written: List[Piece], read: List[Piece], what: str, *, may_replace: bool = False) -> None:
    """Checks that a call writes no memory twice and none that it reads. With `may_replace`, an entry may write exactly the
    memory that it reads. Errors: InvalidArgumentError."""
    ordered = sorted(piece for piece in written if piece.begin < piece.end)
    for before, after in zip(ordered, ordered[1:]):
        if after.begin < before.end:
            raise InvalidArgumentError(f"{what} {before.entry} and {after.entry} overlap in memory", tensor=max(before.entry, after.entry))
    begins = [piece.begin for piece in ordered]
    for piece in read:
        last = bisect.bisect_left(begins, piece.end) - 1
        if piece.begin == piece.end or last < 0 or ordered[last].end <= piece.begin or (may_replace and ordered[last] == piece):
            continue
        raise InvalidArgumentError(f"{what} {ordered[last].entry} overlaps in memory with what the call reads", tensor=ordered[last].entry)
