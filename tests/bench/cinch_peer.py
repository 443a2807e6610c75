"""Compiled programs, called through libcinch.so as any program would call them."""
import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

import arrays
from peer import Peer


class Error(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("native_code", c_int64), ("tensor", c_size_t),
                ("message_size", c_size_t), ("message", ctypes.c_char * 1024)]


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


ABI_VERSION = 1


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


class Call(ctypes.Structure):
    """As CinchCall in loops/measure.cpp."""
    _fields_ = [("function", c_void_p), ("session", c_void_p), ("step", c_uint64), ("steps_per_call", c_uint64),
                ("input", c_void_p), ("output", c_void_p), ("error", c_void_p)]


class CinchPeer(Peer):
    """One program's session for one gradient. encode takes a payload that the session lends; decode gets a copy of it."""

    def __init__(self, library, loops, measured, gradient, elements, threads):
        self._library, self._time = library, loops.time_cinch
        self._error = sized(Error)
        self.out = arrays.floats(elements)
        self._shape = (c_int64 * 1)(elements)
        self._gradient, self._result = self._describe(gradient), self._describe(self.out)
        self._lent, self._received, self._copy = sized(Payload), sized(Payload), None
        self._program, self._session = c_void_p(), c_void_p()
        self._compile(measured)
        options = sized(SessionOptions, threads=threads)
        self._check(library.cinch_session_open(self._program, byref(options), byref(self._gradient), 1, byref(self._session),
                                               byref(self._error)) == 0)
        self._encode = self._make_call(library.cinch_encode, 1, self._gradient, self._lent)
        self._decode = self._make_call(library.cinch_decode, 0, self._received, self._result)

    def _describe(self, array):
        return sized(Tensor, data=arrays.address(array), num_dims=1, shape=self._shape)

    def _compile(self, measured):
        bindings = [f"{name}={value}".encode() for name, value in measured.settings.items()]
        options = sized(CompileOptions, program=measured.name.encode(), bindings=(c_char_p * len(bindings))(*bindings),
                        num_bindings=len(bindings))
        self._check(self._library.cinch_program_compile(byref(options), byref(self._program), byref(self._error)) == 0)

    def _make_call(self, function, steps_per_call, given, taken):
        return Call(ctypes.cast(function, c_void_p), self._session, 0, steps_per_call, arrays.address(given), arrays.address(taken),
                    arrays.address(self._error))

    def _check(self, is_fine):
        if not is_fine:
            raise RuntimeError(self._error.message.decode())

    def _run(self, call, repeats):
        seconds = self._time(byref(call), repeats)
        self._check(seconds >= 0)
        return seconds

    def encode(self, repeats=1):
        return self._run(self._encode, repeats)

    def receive(self):
        size = self._lent.size
        self._copy = (ctypes.c_uint8 * size).from_buffer(arrays.memory(size))
        ctypes.memmove(self._copy, self._lent.data, size)
        self._received.data, self._received.size = arrays.address(self._copy), size
        self._decode.step = self._encode.step - 1  # what both sides draw depends on it

    def decode(self, repeats=1):
        return self._run(self._decode, repeats)

    def close(self):
        self._library.cinch_session_release(self._session)
        self._library.cinch_program_release(self._program)
