"""Sessions: a program compresses the arrays of one worker step by step."""
import contextlib
import ctypes
import threading
import weakref
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union, overload

import numpy as np

from . import _abi, _library, states
from .arrays import (
    BUFFERS,
    Array,
    Buffer,
    PayloadBuffers,
    Shape,
    SpeaksDlpack,
    TensorArrays,
    bytes_view,
    check_apart,
    described,
    is_array,
    lent_payloads,
    payload_buffers,
    shape_descriptors,
    shapes_of,
    tensor_arrays,
    unsigned,
)
from .errors import InvalidArgumentError, OutOfRangeError
from .program import Program, Value

Tensors = Union[SpeaksDlpack, Shape, int, Sequence[Union[SpeaksDlpack, Shape, int]]]
Given = TypeVar("Given", bound=SpeaksDlpack)
Which = Union[int, Sequence[int], None]
Inputs = Optional[Mapping[str, Any]]


class _Call(NamedTuple):
    """The arguments that all calls share. `numbers` are the tensors; `is_single`: the caller passed one thing, not a list."""

    step: int
    numbers: List[int]
    is_single: bool

    def head(self, handle: Any) -> Tuple[Any, ...]:
        count = len(self.numbers)
        return handle, self.step, (ctypes.c_size_t * count)(*self.numbers), count


class Session:
    """The states of one or many tensors, and all that compressing them needs.

    Args:
        program: for CPUs.
        tensors: one tensor, or a list of them. A tensor is an array, of which only the shape matters, or a shape: a tuple
            of integers, or one integer for a vector.
        threads: how many threads calls use; 0: all of the machine. Results do not depend on it.
        world, worker: the number of ranks, and which of them this is.
        seed: of the program's random draws.
        tensor_numbers: a number for each tensor; draws of different numbers differ. By default 0, 1, 2 …

    Every call takes one array or payload and returns one, or takes a list and returns a list, one entry per tensor of the
    session. `which` chooses tensors by their numbers: an integer where the call takes one thing, a list where it takes a
    list. A call on a list is one parallel run, and all or nothing: where one tensor fails, no state has changed and
    `error.tensor` is its place in the list.

    Arrays are NumPy's, or of a framework that speaks DLPack, such as PyTorch, in the CPU's memory. They are float32,
    float16 or bfloat16, of the tensor's shape, dense and in row-major order. NumPy has bfloat16 from ml_dtypes, or as bits in
    uint16. Arrays are never copied. New arrays are NumPy's. Payloads may be arrays of bytes of such frameworks, too. The interpreter's lock is released while a call runs.

    A session runs one call at a time: one made while another runs, like one made after `close`, is an
    InvalidArgumentError. Different sessions run at once. Use it as a context manager, or `close` it.

    With `only_decodes` it holds no states: encode, states_save and states_load are InvalidArgumentErrors, as is a finish
    that has states.

    Errors of opening: InvalidArgumentError, OutOfRangeError, OutOfMemoryError, CheckError (the program allows no such shape).
    Errors of all calls: InvalidArgumentError, CheckError, CancelledError, OutOfMemoryError, SizeOverflowError.
    """

    def __copy__(self) -> "Session":
        raise TypeError("a session is not copied: its states are; states_save gives them")

    def __deepcopy__(self, memo: object) -> "Session":
        return self.__copy__()

    def __reduce__(self) -> str:
        raise TypeError("a session is not pickled: states_save gives its states")

    def __init__(
        self,
        program: Program,
        tensors: Tensors,
        *,
        threads: int = 0,
        world: int = 1,
        worker: int = 0,
        seed: int = 0,
        tensor_numbers: Optional[Sequence[int]] = None,
        only_decodes: bool = False,
    ) -> None:
        self.program = program
        self.shapes: Tuple[Shape, ...] = tuple(shapes_of(tensors))
        self._described = [described(shape) for shape in self.shapes]
        options = _abi.sized(
            _abi.SessionOptions,
            threads=unsigned(threads, 32, "threads"),
            world=unsigned(world, 32, "world"),
            worker=unsigned(worker, 32, "worker"),
            seed=unsigned(seed, 64, "seed"),
            only_decodes=int(bool(only_decodes)),
        )
        if tensor_numbers is not None:
            self._check_count(len(tensor_numbers), len(self.shapes), "tensor numbers")
            options.tensor_numbers = (ctypes.c_uint32 * len(self.shapes))(*(unsigned(each, 32, "a tensor's number") for each in tensor_numbers))
        handle = ctypes.c_void_p()
        _library.call(
            "cinch_session_open", program._handle, ctypes.byref(options), shape_descriptors(self._described), len(self.shapes), ctypes.byref(handle)
        )
        self._handle = handle
        self._held_inputs: List[Any] = []  # arrays of the last step
        self._in_use = threading.Lock()
        self._closing = threading.Lock()
        self._release = weakref.finalize(self, _library.loaded().cinch_session_release, handle)
        self._release.atexit = False  # other threads may still be in calls

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of tensors."""
        return len(self.shapes)

    def __repr__(self) -> str:
        closed = "" if self._release.alive else ", closed"
        return f"<cinch.Session of {self.program.name}: {len(self)} tensors{closed}>"

    def close(self) -> None:
        """Gives all memory back; again is allowed. Errors: InvalidArgumentError (a call is running)."""
        if not self._in_use.acquire(blocking=False):
            raise InvalidArgumentError("the session is in use: a call of it has not ended")
        with self._closing:
            self._release()
        self._in_use.release()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[ctypes.c_void_p]:
        # libcinch rejects a second call, too. After a call only this lock guards the result until it is copied.
        if not self._in_use.acquire(blocking=False):
            raise InvalidArgumentError("the session is in use: it takes one call at a time")
        try:
            if not self._release.alive:
                raise InvalidArgumentError("the session is closed")
            yield self._handle
        finally:
            self._in_use.release()

    @staticmethod
    def _check_count(count: int, expected: int, what: str) -> None:
        if count != expected:
            raise InvalidArgumentError(f"{count} {what} for {expected} tensors")

    def _call_on(self, step: int, which: Which, things: Any, kind: Any) -> Tuple[_Call, List[Any]]:
        """Checks the arguments that all calls share. Returns them, and `things` as a list; a single thing is an array or a `kind`."""
        is_single = self._is_one(things, kind)
        listed = self._listed(things, kind)
        if which is None:
            if is_single and len(self) != 1:
                raise InvalidArgumentError(f"the session has {len(self)} tensors: `which` says of which one this is")
            self._check_count(len(listed), len(self), "entries")
            numbers = list(range(len(self)))
        else:
            numbers = [unsigned(each, 64, "which") for each in ([which] if is_single else which)]  # type: ignore[union-attr]
            self._check_count(len(listed), len(numbers), "entries")
        for number in numbers:
            if number >= len(self):
                raise OutOfRangeError(f"tensor {number} of {len(self)}")
        return _Call(unsigned(step, 64, "step"), numbers, is_single), listed

    def _arrays(self, call: _Call, arrays: Sequence[Any], what: str, *, only_f32: bool = False, is_written: bool = False) -> TensorArrays:
        return tensor_arrays(arrays, [self._described[i] for i in call.numbers], what, only_f32=only_f32, is_written=is_written)

    def _outputs(self, call: _Call, out: Any) -> List[Any]:
        """The arrays that a call writes: `out`, or new ones."""
        if out is None:
            return [np.empty(self.shapes[i], np.float32) for i in call.numbers]
        return self._given(call, out, np.ndarray)

    @staticmethod
    def _is_one(things: Any, kind: Any) -> bool:
        return isinstance(things, kind) or is_array(things)

    @staticmethod
    def _listed(things: Any, kind: Any) -> List[Any]:
        if Session._is_one(things, kind):
            return [things]
        if not isinstance(things, Sequence):
            expected = "an array" if kind is np.ndarray else "bytes"
            raise TypeError(f"a call takes {expected}, or a list of them, not a {type(things).__name__}")
        return list(things)

    def _given(self, call: _Call, out: Any, kind: Any) -> List[Any]:
        listed = self._listed(out, kind)
        self._check_count(len(listed), len(call.numbers), "outputs")
        return listed

    def payload_bounds(self, step: int) -> List[int]:
        """The largest possible payload of each tensor, in bytes, with the present parameters."""
        bounds = (ctypes.c_size_t * len(self))()
        with self._alone() as handle:
            _library.call("cinch_payload_bounds", handle, unsigned(step, 64, "step"), None, len(self), bounds)
        return list(bounds)

    @overload
    def encode(self, step: int, gradients: SpeaksDlpack, *, which: Optional[int] = None, inputs: Inputs = None) -> bytes: ...
    @overload
    def encode(self, step: int, gradients: Sequence[SpeaksDlpack], *, which: Optional[Sequence[int]] = None, inputs: Inputs = None) -> List[bytes]: ...
    @overload
    def encode(self, step: int, gradients: SpeaksDlpack, *, which: Optional[int] = None, out: Buffer, inputs: Inputs = None) -> memoryview: ...
    @overload
    def encode(
        self, step: int, gradients: Sequence[SpeaksDlpack], *, which: Optional[Sequence[int]] = None, out: Sequence[Buffer], inputs: Inputs = None
    ) -> List[memoryview]: ...
    def encode(self, step: int, gradients: Any, *, which: Which = None, out: Any = None, inputs: Inputs = None) -> Any:
        """Compresses gradients and updates the states.

        Returns payloads as bytes. With `out`, which are writable buffers of at least `payload_bounds` bytes, payloads are
        written there and returned as memoryviews. A gradient with an infinity or a NaN makes a payload that decodes to
        NaN, and leaves the tensor's states as they were.

        `inputs` are what the program takes besides gradients, by name: numbers, and arrays of the tensors' shapes, one or a
        list as `gradients` are. `finish` of the same step uses them, too, so arrays are held until the next step's.
        """
        call, arrays = self._call_on(step, which, gradients, np.ndarray)
        tensors = self._arrays(call, arrays, "gradient")
        self.program.check_inputs(inputs or {})
        rooms = None if out is None else self._rooms(call, out)
        if rooms is not None:
            check_apart(rooms.pieces, tensors.pieces, "output")
        payloads = lent_payloads(len(arrays)) if rooms is None else rooms.descriptors
        with self._alone() as handle:
            self._give(handle, call, inputs)
            _library.call("cinch_encode", *call.head(handle), tensors.descriptors, payloads)
            made = self._made(payloads, rooms)
        return made[0] if call.is_single else made

    def _give(self, handle: Any, call: _Call, inputs: Inputs) -> None:
        """Hands inputs over. All are looked at before the first is taken."""
        if not inputs:
            return
        taken = []
        for name, value in inputs.items():
            if self.program.inputs[name].is_array:
                listed = self._listed(value, np.ndarray)
                self._check_count(len(listed), len(call.numbers), f"arrays of the input {name}")
                taken.append((name, self._arrays(call, listed, f"input {name}"), listed))
            else:
                _library.call("cinch_session_set", handle, _library.c_text(name), self.program._value(name, value))
        for name, arrays, _ in taken:
            for number, descriptor in zip(call.numbers, arrays.descriptors):
                _library.call("cinch_session_set_input", handle, number, _library.c_text(name), ctypes.byref(descriptor))
        self._held_inputs = taken

    def _rooms(self, call: _Call, out: Any) -> PayloadBuffers:
        rooms = [bytes_view(each, "output", i, is_written=True) for i, each in enumerate(self._given(call, out, (bytearray, memoryview)))]
        for i, room in enumerate(rooms):
            if room.size == 0:
                raise InvalidArgumentError("an output has no bytes", tensor=i)
        return payload_buffers(rooms, is_written=True)

    @staticmethod
    def _made(payloads: Any, rooms: Optional[PayloadBuffers]) -> List[Any]:
        if rooms is None:
            return [ctypes.string_at(payload.data, payload.size) for payload in payloads]
        return [room.data[: payload.size] for room, payload in zip(rooms.views, payloads)]

    @overload
    def decode(self, step: int, payloads: Buffer, *, which: Optional[int] = None, out: None = None) -> Array: ...
    @overload
    def decode(self, step: int, payloads: Sequence[Buffer], *, which: Optional[Sequence[int]] = None, out: None = None) -> List[Array]: ...
    @overload
    def decode(self, step: int, payloads: Buffer, *, which: Optional[int] = None, out: Given) -> Given: ...
    @overload
    def decode(self, step: int, payloads: Sequence[Buffer], *, which: Optional[Sequence[int]] = None, out: Sequence[Given]) -> List[Given]: ...
    def decode(self, step: int, payloads: Any, *, which: Which = None, out: Any = None) -> Any:
        """Decompresses payloads into `out`, or into new float32 arrays, and returns them.

        Payloads are checked before anything of them is used. Errors also: PayloadError (names the field), VersionError.
        """
        call, received = self._payloads(step, which, payloads)
        outputs = self._outputs(call, out)
        tensors = self._arrays(call, outputs, "output", is_written=True)
        check_apart(tensors.pieces, received.pieces, "output")
        with self._alone() as handle:
            _library.call("cinch_decode", *call.head(handle), received.descriptors, tensors.descriptors)
        return outputs[0] if call.is_single else outputs

    def _payloads(self, step: int, which: Which, payloads: Any) -> Tuple[_Call, PayloadBuffers]:
        call, listed = self._call_on(step, which, payloads, BUFFERS)
        return call, payload_buffers([bytes_view(each, "payload", i) for i, each in enumerate(listed)])

    @overload
    def decode_add(self, step: int, payloads: Buffer, sums: SpeaksDlpack, *, which: Optional[int] = None) -> None: ...
    @overload
    def decode_add(self, step: int, payloads: Sequence[Buffer], sums: Sequence[SpeaksDlpack], *, which: Optional[Sequence[int]] = None) -> None: ...
    def decode_add(self, step: int, payloads: Any, sums: Any, *, which: Which = None) -> None:
        """Adds what payloads decode to to `sums`, which are float32. Errors also: PayloadError (names the field), VersionError."""
        call, received = self._payloads(step, which, payloads)
        tensors = self._arrays(call, self._given(call, sums, np.ndarray), "sum", only_f32=True, is_written=True)
        check_apart(tensors.pieces, received.pieces, "sum")
        with self._alone() as handle:
            _library.call("cinch_decode_add", *call.head(handle), received.descriptors, tensors.descriptors)

    @overload
    def finish(self, step: int, sums: SpeaksDlpack, *, which: Optional[int] = None, out: None = None, inputs: Inputs = None) -> Array: ...
    @overload
    def finish(
        self, step: int, sums: Sequence[SpeaksDlpack], *, which: Optional[Sequence[int]] = None, out: None = None, inputs: Inputs = None
    ) -> List[Array]: ...
    @overload
    def finish(self, step: int, sums: SpeaksDlpack, *, which: Optional[int] = None, out: Given, inputs: Inputs = None) -> Given: ...
    @overload
    def finish(
        self, step: int, sums: Sequence[SpeaksDlpack], *, which: Optional[Sequence[int]] = None, out: Sequence[Given], inputs: Inputs = None
    ) -> List[Given]: ...
    def finish(self, step: int, sums: Any, *, which: Which = None, out: Any = None, inputs: Inputs = None) -> Any:
        """Turns sums over ranks of decoded payloads (float32) into updates, in `out` or in new float32 arrays, and returns
        them. An output may be its own sum. `inputs`: as of `encode`; left out where `encode` of the same step had them."""
        call, arrays = self._call_on(step, which, sums, np.ndarray)
        read = self._arrays(call, arrays, "sum", only_f32=True)
        outputs = self._outputs(call, out)
        written = self._arrays(call, outputs, "output", is_written=True)
        check_apart(written.pieces, read.pieces, "output", may_replace=True)
        if inputs is not None:
            self.program.check_inputs(inputs)
        with self._alone() as handle:
            self._give(handle, call, inputs)
            _library.call("cinch_finish", *call.head(handle), read.descriptors, written.descriptors)
        return outputs[0] if call.is_single else outputs

    def set(self, parameter: str, value: Value) -> None:
        """Binds a run-time parameter for the calls that follow. `value` is a number, or a word where the parameter takes words.

        Pass 0.001, not numpy.float32(0.001), which is above it. Errors: InvalidArgumentError (no such name),
        OutOfRangeError (of a word with those that there are); the old value stays.
        """
        number = self.program._value(parameter, value)
        with self._alone() as handle:
            _library.call("cinch_session_set", handle, _library.c_text(parameter), number)

    def cancel(self) -> None:
        """Ends the running call, or the next one, with CancelledError. Any thread may call it at any time."""
        with self._closing:
            if self._release.alive:
                _library.loaded().cinch_session_cancel(self._handle)

    @property
    def state_bytes(self) -> int:
        """Bytes of all states."""
        with self._alone() as handle:
            return int(_library.loaded().cinch_session_state_bytes(handle))

    @property
    def workspace_bytes(self) -> int:
        """Bytes of workspace, which grows with the first call of each kind."""
        with self._alone() as handle:
            return int(_library.loaded().cinch_session_workspace_bytes(handle))

    def states_save(self, tensor: Optional[int] = None) -> bytes:
        """The states of all tensors, or of one, for a checkpoint.

        For one tensor these are the bytes that `cinch run --state-out` writes; several tensors are concatenated.
        """
        with self._alone() as handle:
            return b"".join(states.save(handle, number) for number in self._numbers(tensor))

    def states_load(self, saved: Buffer, tensor: Optional[int] = None) -> None:
        """Restores what `states_save` returned, for all tensors or for one; all or nothing.

        Errors: FileError (cut, changed), VersionError, InvalidArgumentError (of another program or shape).
        """
        view = bytes_view(saved, "states", 0)
        with self._alone() as handle:
            states.load_all(handle, self._numbers(tensor), view)

    def _numbers(self, tensor: Optional[int]) -> List[int]:
        if tensor is None:
            return list(range(len(self)))
        if unsigned(tensor, 64, "tensor") >= len(self):
            raise OutOfRangeError(f"tensor {tensor} of {len(self)}")
        return [tensor]
