"""Structs, numbers and prototypes of `cinch.h` and `cinch_library.h`. `tests/python/abi_test.py` compares them with the headers."""
import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Type, TypeVar

ABI_VERSION = 1
NO_TENSOR = c_size_t(-1).value
F32, F16, BF16 = 0, 1, 2
STATES = {"second_buffer": 0, "in_place": 1}
AGGREGATIONS = ("gather", "sum_to_test", "sum_proved")


class Error(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("status", c_int32),
        ("native_code", c_int64),
        ("tensor", c_size_t),
        ("message_size", c_size_t),
        ("message", c_char * 1024),
    ]


class CompileOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("program", c_char_p),
        ("text", c_char_p),
        ("text_size", c_size_t),
        ("bindings", POINTER(c_char_p)),
        ("num_bindings", c_size_t),
        ("cpu", c_char_p),
        ("compiler", c_char_p),
        ("states", c_int32),
        ("arch", c_char_p),
        ("device", c_int32),
        ("device_number", c_int32),
        ("include_folders", POINTER(c_char_p)),
        ("num_include_folders", c_size_t),
        ("compile_commands", c_char_p),
        ("confine", c_char_p),
    ]


class ProgramInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("doc", c_char_p),
        ("cpu", c_char_p),
        ("fingerprint", c_uint64 * 2),
        ("num_parameters", c_size_t),
        ("num_states", c_size_t),
        ("is_matrix", c_int32),
        ("has_finish", c_int32),
        ("aggregation", c_int32),
        ("carrier", c_char_p),
        ("warnings", c_char_p),
        ("is_local", c_int32),
        ("num_inputs", c_size_t),
    ]


class ParameterInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("type", c_char_p), ("range", c_char_p), ("default_value", c_double), ("words", c_char_p)]


class InputInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("type", c_char_p), ("range", c_char_p), ("is_array", c_int32)]


class StateInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("type", c_char_p)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("data", c_void_p),
        ("dtype", c_int32),
        ("device", c_int32),
        ("device_number", c_int32),
        ("num_dims", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("stream", c_void_p),
    ]


class Payload(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("capacity", c_size_t), ("size", c_size_t)]


class SessionOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_uint32),
        ("world", c_uint32),
        ("worker", c_uint32),
        ("seed", c_uint64),
        ("tensor_numbers", POINTER(c_uint32)),
        ("allocator", c_void_p),
        ("largest_names", POINTER(c_char_p)),
        ("largest_values", POINTER(c_double)),
        ("num_largest", c_size_t),
        ("only_decodes", c_int32),
    ]


class CpuCode(ctypes.Structure):
    _fields_ = [("level", c_char_p), ("kernels", c_void_p), ("num_kernels", c_size_t)]


class Compressor(ctypes.Structure):
    _fields_ = [
        ("library_version", c_uint32),
        ("struct_size", c_uint32),
        ("name", c_char_p),
        ("image", c_void_p),
        ("image_size", c_size_t),
        ("cpu", POINTER(CpuCode)),
        ("num_cpu", c_size_t),
        ("gpu", c_void_p),
        ("num_gpu", c_size_t),
    ]


class Library(ctypes.Structure):
    _fields_ = [
        ("library_version", c_uint32),
        ("struct_size", c_uint32),
        ("name", c_char_p),
        ("made_by", c_char_p),
        ("compressors", POINTER(POINTER(Compressor))),
        ("num_compressors", c_size_t),
    ]


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("choice", c_int32), ("device_number", c_int32), ("cpu", c_char_p), ("arch", c_char_p)]


_CALL: List[Any] = [c_void_p, c_uint64, POINTER(c_size_t), c_size_t]
_TENSORS, _PAYLOADS, _SIZES = POINTER(Tensor), POINTER(Payload), POINTER(c_size_t)

# Functions that return a status. Each takes a cinch_error as its last argument, which this table omits.
STATUS_FUNCTIONS: Dict[str, List[Any]] = {
    "cinch_program_compile": [POINTER(CompileOptions), POINTER(c_void_p)],
    "cinch_program_load": [c_char_p, POINTER(c_void_p)],
    "cinch_program_load_bytes": [c_char_p, c_size_t, POINTER(c_void_p)],
    "cinch_program_save": [c_void_p, c_char_p],
    "cinch_program_get_info": [c_void_p, POINTER(ProgramInfo)],
    "cinch_program_get_parameter": [c_void_p, c_size_t, POINTER(ParameterInfo)],
    "cinch_program_parameter_value": [c_void_p, c_char_p, c_char_p, POINTER(c_double)],
    "cinch_program_get_state": [c_void_p, c_size_t, POINTER(StateInfo)],
    "cinch_program_get_input": [c_void_p, c_size_t, POINTER(InputInfo)],
    "cinch_program_open": [POINTER(Compressor), POINTER(OpenOptions), POINTER(c_void_p)],
    "cinch_library_load": [c_char_p, POINTER(POINTER(Library))],
    "cinch_library_find": [POINTER(Library), c_char_p, POINTER(POINTER(Compressor))],
    "cinch_session_open": [c_void_p, POINTER(SessionOptions), _TENSORS, c_size_t, POINTER(c_void_p)],
    "cinch_session_set": [c_void_p, c_char_p, c_double],
    "cinch_session_set_input": [c_void_p, c_size_t, c_char_p, _TENSORS],
    "cinch_payload_bounds": [*_CALL, _SIZES],
    "cinch_encode": [*_CALL, _TENSORS, _PAYLOADS],
    "cinch_decode": [*_CALL, _PAYLOADS, _TENSORS],
    "cinch_decode_add": [*_CALL, _PAYLOADS, _TENSORS],
    "cinch_finish": [*_CALL, _TENSORS, _TENSORS],
    "cinch_states_save": [c_void_p, c_size_t, c_void_p, _SIZES],
    "cinch_states_load": [c_void_p, c_size_t, c_void_p, c_size_t],
}

Struct = TypeVar("Struct", bound=ctypes.Structure)


def sized(struct: Type[Struct], **fields: Any) -> Struct:
    """A struct that tells the library its own size, as every struct of the C API does."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def declare_status(library: ctypes.CDLL, functions: Dict[str, List[Any]]) -> None:
    """Gives functions that return a status their prototypes."""
    for name, arguments in functions.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [*arguments, POINTER(Error)], c_int32


def declare(library: ctypes.CDLL) -> None:
    """Gives every function of `cinch.h` and `cinch_library.h` that the package calls its prototype."""
    declare_status(library, STATUS_FUNCTIONS)
    library.cinch_version.argtypes, library.cinch_version.restype = [], c_char_p
    for name in ("cinch_program_release", "cinch_session_release", "cinch_session_cancel"):
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], None
    for name in ("cinch_session_state_bytes", "cinch_session_workspace_bytes"):
        getattr(library, name).argtypes, getattr(library, name).restype = [c_void_p], c_size_t
