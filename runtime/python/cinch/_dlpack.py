"""Reads where an array of another framework lies, by DLPack. Nothing is copied, and no framework is imported."""
import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional, Tuple

from . import _abi
from .errors import InvalidArgumentError

_CPU = 1  # kDLCPU
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_DTYPES = {(2, 32, 1): _abi.F32, (2, 16, 1): _abi.F16, (4, 16, 1): _abi.BF16}


class _DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


# Private prototypes: those of ctypes.pythonapi are shared by all modules of the process.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Memory(NamedTuple):
    """An array's memory, which stays while `capsule` does.

    Attributes:
        dtype: `_abi.F32`, `F16` or `BF16`; None where the elements are others.
        type_name: of the elements, for messages.
    """

    address: int
    nbytes: int
    dtype: Optional[int]
    type_name: str
    shape: Tuple[int, ...]
    is_dense: bool
    is_read_only: bool
    capsule: Any


def has_dlpack(value: Any) -> bool:
    return hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")


def read(array: Any, name: str, entry: int) -> Memory:
    """Where `array` lies. Errors, with `entry` as tensor: InvalidArgumentError (it is not on the CPU, or gives no capsule)."""
    if hasattr(array, "device_mesh"):
        raise InvalidArgumentError(f"{name} is a DTensor, of which each rank has a part: give its to_local()", tensor=entry)
    try:
        device = int(array.__dlpack_device__()[0])
        if device != _CPU:
            raise InvalidArgumentError(f"{name} is not in the CPU's memory: its DLPack device type is {device}", tensor=entry)
        # Only outside of DLPack does a view say that it is the negative of its memory (a part of a conjugate).
        if getattr(array, "is_neg", bool)():
            raise InvalidArgumentError(f"{name} is a negative view: give {name}.resolve_neg()", tensor=entry)
        capsule = _capsule(array)
    except (BufferError, RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidArgumentError(f"{name} gives no DLPack capsule: {error}", tensor=entry) from error
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major > 1:
            raise InvalidArgumentError(f"{name} speaks DLPack {managed.major}.{managed.minor}; 1 is taken", tensor=entry)
        memory = _memory(managed.tensor, bool(managed.flags & _READ_ONLY), capsule)
    elif _is_valid(capsule, b"dltensor"):
        # Before DLPack 1.0 a capsule did not say whether its memory may be written. That of PyTorch's tensors may.
        is_torch = type(array).__module__.partition(".")[0] == "torch"
        memory = _memory(_Tensor.from_address(_pointer(capsule, b"dltensor")), not is_torch, capsule)
    else:
        raise InvalidArgumentError(f"{name} gives no DLPack capsule, but a {type(capsule).__name__}", tensor=entry)
    if memory.address == 0 and memory.nbytes > 0:
        raise InvalidArgumentError(f"{name} is a {type(array).__name__}, which has no memory: give a tensor that has", tensor=entry)
    return memory


def _capsule(array: Any) -> Any:
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than DLPack 1.0
        return array.__dlpack__()


def _memory(tensor: _Tensor, is_read_only: bool, capsule: Any) -> Memory:
    kind = tensor.dtype
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    count = 1
    for size in shape:
        count *= size
    return Memory(
        address=(tensor.data or 0) + tensor.byte_offset,
        nbytes=count * ((kind.bits * kind.lanes + 7) // 8),
        dtype=_DTYPES.get((kind.code, kind.bits, kind.lanes)),
        type_name=f"{_KINDS.get(kind.code, f'type {kind.code} of ')}{kind.bits}" + (f"x{kind.lanes}" if kind.lanes > 1 else ""),
        shape=shape,
        is_dense=count == 0 or not tensor.strides or _is_row_major(shape, [tensor.strides[i] for i in range(tensor.ndim)]),
        is_read_only=is_read_only,
        capsule=capsule,
    )


def _is_row_major(shape: Tuple[int, ...], strides: Any) -> bool:
    wanted = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != wanted:
            return False
        wanted *= size
    return True
