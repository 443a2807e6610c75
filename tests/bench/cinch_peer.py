"""Compiled programs, called through libcinch.so as any program would call them."""
import ctypes
from ctypes import byref, c_char_p, c_int64, c_uint64, c_void_p

import arrays
from cinch_abi import CompileOptions, Error, Payload, SessionOptions, Tensor, sized
from peer import Peer


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
