"""What libcinch.so takes and gives, as cinch.h has it."""
import ctypes
from ctypes import POINTER, c_char, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

ABI_VERSION = 1


class Error(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("native_code", c_int64), ("tensor", c_size_t),
                ("message_size", c_size_t), ("message", c_char * 1024)]


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("program", c_char_p), ("text", c_char_p), ("text_size", c_size_t),
                ("bindings", POINTER(c_char_p)), ("num_bindings", c_size_t), ("cpu", c_char_p), ("compiler", c_char_p),
                ("states", c_int32)]


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_uint32), ("world", c_uint32), ("worker", c_uint32), ("seed", c_uint64),
                ("tensor_numbers", c_void_p), ("allocator", c_void_p)]


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("dtype", c_int32), ("device", c_int32), ("device_number", c_int32),
                ("num_dims", c_int32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("stream", c_void_p)]


class Payload(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("capacity", c_size_t), ("size", c_size_t)]


class Outcome(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("is_non_finite", c_int32), ("payload_size", c_size_t), ("message", c_char_p)]


def sized(struct, **fields):
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def load(path):
    library = ctypes.CDLL(str(path))
    library.cinch_abi_version.restype = c_uint32
    if library.cinch_abi_version() != ABI_VERSION:
        raise RuntimeError(f"{path} has ABI version {library.cinch_abi_version()}, not {ABI_VERSION}")
    library.cinch_session_release.argtypes = library.cinch_program_release.argtypes = [c_void_p]
    library.cinch_session_open.argtypes = [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]
    return library
