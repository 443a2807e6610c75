"""Synchronizers: gradients of all ranks become the averaged update on every rank."""
import contextlib
import ctypes
import json
import math
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _library
from . import _sync_abi as sync_abi
from .arrays import Shape, described, tensor_arrays, unsigned
from .errors import Error, InvalidArgumentError
from .program import Program, Value
from .transport import Transport, milliseconds


@dataclass(frozen=True)
class SyncTensor:
    """A tensor that is averaged.

    Attributes:
        name: states are kept under it.
        shape: a program for matrices takes the first dimension as rows, the others as columns.
        program: what compresses it; None: it is sent as float32.
        priority: higher ones go first.
        part_ends: for plan "reduce_scatter". Rank r gets elements [part_ends[r - 1], part_ends[r]) of the tensor, counted in
            row-major order; rank 0 begins at 0. There is an entry for each rank, and the last one is the number of elements.
            Parts may be uneven, or empty. None: parts are as equal as they can be.
        plan, piece_bytes: how it is exchanged, if not as the synchronizer says; not beside plan "auto" or "reduce_scatter".
    """

    name: str
    shape: Shape
    program: Optional[Program] = None
    priority: int = 0
    part_ends: Optional[Tuple[int, ...]] = None
    plan: Optional[str] = None
    piece_bytes: int = 0


@dataclass(frozen=True)
class Restored:
    """What restoring did to this rank's states, by pieces of tensors."""

    next_step: int
    num_kept: int
    num_joined: int
    num_reset: int
    notes: str
    num_left: int  # saved by this rank, and not taken by any


class Synchronizer:
    """Averages tensors over the ranks of a transport, step by step. All ranks open it alike.

    Args:
        transport: not used by anything else during a step.
        tensors: the same list on all ranks.
        plan: "two_shot", "allreduce", "allgather", "ring", "tree", "ps", "hierarchical", "reduce_scatter", or "auto", which measures first. None:
            "allreduce" where the payloads of all programs add up, else "two_shot" where all programs take it, else "allgather".
            Under "reduce_scatter" each rank gets the update of its part of each tensor alone: see SyncTensor.part_ends. A text with a dot or
            a slash is a file of `cinch plan`, which fits the tensors and their programs.
        machine_ranks: how many ranks each machine has, with successive numbers, for the plan "hierarchical" and for programs that name
            `machine_ranks`; 0: all ranks are on one machine.
        piece_bytes: of the gradient, encoded and sent at a time; 0: a default.
        first_step: payloads are given room as of this step.
        seed: of the programs' random draws.
        threads: of this rank; 0: all of the machine.
        timeout: seconds in which something must move.
        device: None for CPUs, or the number of a GPU, where tensors then are.
        stream: CUstream in whose order tensors are ready.
        ready_seconds: for "auto", when each tensor becomes ready in a step, the same on all ranks: plans are compared behind such a
            backward pass.

    Use it as a context manager, or `close` it.

    A step is `step(…)`, or `begin`, `ready` for each tensor, `finish`. After one that failed all ranks have an error, and no
    more steps are taken. Errors of opening: InvalidArgumentError (also where ranks differ, on all of them), UnavailableError,
    CancelledError, TimedOutError.
    """

    def __init__(
        self,
        transport: Transport,
        tensors: Sequence[SyncTensor],
        *,
        plan: Optional[str] = None,
        machine_ranks: int = 0,
        piece_bytes: int = 0,
        first_step: int = 0,
        seed: int = 0,
        threads: int = 0,
        timeout: float = 300.0,
        device: Optional[int] = None,
        stream: int = 0,
        plain: Optional[Program] = None,
        ready_seconds: Optional[Sequence[float]] = None,
    ) -> None:
        self.transport = transport
        self.tensors = tuple(tensors)
        self.programs = _distinct(tensors)
        self._described = [described(tensor.shape) for tensor in tensors]
        self._part_ends = [self._ends(tensor, plan) for tensor in tensors]
        # The shapes of updates: those of tensors, or parts of them.
        self._updates = self._described if plan != "reduce_scatter" else [described((self._part(tensor),)) for tensor in tensors]
        self._has_parts = plan == "reduce_scatter"
        options = _abi.sized(
            sync_abi.SyncOptions,
            plan=None if plan is None else _library.c_text(plan),
            ranks_per_machine=unsigned(machine_ranks, 32, "machine_ranks"),
            piece_bytes=unsigned(piece_bytes, 64, "piece_bytes"),
            first_step=unsigned(first_step, 64, "first_step"),
            seed=unsigned(seed, 64, "seed"),
            threads=unsigned(threads, 32, "threads"),
            timeout_ms=milliseconds(timeout),
            device=0 if device is None else 1,
            device_number=device or 0,
            stream=stream,
            plain=None if plain is None else plain._handle,
            ready_seconds=None if ready_seconds is None else self._listed_times(ready_seconds),
        )
        handles = (ctypes.c_void_p * len(self.programs))(*(program._handle for program in self.programs))
        listed = (sync_abi.SyncTensor * len(tensors))(*(self._listed(tensor, ends) for tensor, ends in zip(tensors, self._part_ends)))
        handle = ctypes.c_void_p()
        _library.call(
            "cinch_sync_open", transport._handle, handles, len(handles), listed, len(listed), ctypes.byref(options), ctypes.byref(handle)
        )
        self._handle = handle
        self._held: List[Tuple[Any, Any]] = []  # for the running step
        self._release = weakref.finalize(self, _library.loaded().cinch_sync_release, handle)
        self._release.atexit = False

    def _listed_times(self, times: Sequence[float]) -> Any:
        if len(times) != len(self.tensors):
            raise InvalidArgumentError(f"ready_seconds has {len(times)} times of {len(self.tensors)} tensors")
        return (ctypes.c_double * len(times))(*times)

    def _ends(self, tensor: SyncTensor, plan: Optional[str]) -> Any:
        """The tensor's `part_ends` as the C API reads them, or None."""
        ends, world = tensor.part_ends, self.transport.world
        if ends is None:
            return None
        if plan != "reduce_scatter":
            named = "the usual plan" if plan is None else f'plan "{plan}"'
            raise InvalidArgumentError(f'{tensor.name} has part_ends, which {named} does not take; "reduce_scatter" does')
        if len(ends) != world or list(ends) != sorted(ends) or ends[0] < 0 or ends[-1] != math.prod(tensor.shape):
            raise InvalidArgumentError(f"{tensor.name}: part_ends {tuple(ends)} do not cut {math.prod(tensor.shape)} elements into parts of {world} ranks")
        return (ctypes.c_int64 * world)(*ends)

    def _part(self, tensor: SyncTensor) -> int:
        """The number of elements of this rank's part."""
        rank, world, count = self.transport.rank, self.transport.world, math.prod(tensor.shape)
        ends = tensor.part_ends or [count // world * (each + 1) + count % world * (each + 1) // world for each in range(world)]
        return ends[rank] - (ends[rank - 1] if rank > 0 else 0)

    def _listed(self, tensor: SyncTensor, ends: Any) -> sync_abi.SyncTensor:
        rows, columns = rows_and_columns(tensor.shape, tensor.program)
        place = sync_abi.EXACT if tensor.program is None else self.programs.index(tensor.program)
        return _abi.sized(
            sync_abi.SyncTensor, name=_library.c_text(tensor.name), rows=rows, columns=columns, program=place, priority=tensor.priority, part_ends=ends,
            plan=None if tensor.plan is None else _library.c_text(tensor.plan), piece_bytes=unsigned(tensor.piece_bytes, 64, "piece_bytes"),
        )

    def __reduce__(self) -> str:
        raise TypeError("a synchronizer is not pickled: states_save gives its states")

    def close(self) -> None:
        """Again is allowed; no call runs then. The transport stays open."""
        self._release()

    def __enter__(self) -> "Synchronizer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _alive(self) -> ctypes.c_void_p:
        if not self._release.alive:
            raise InvalidArgumentError("the synchronizer is closed")
        return self._handle

    def set(self, program: Program, parameter: str, value: Value) -> None:
        """Binds a run-time parameter to a number, or to a word where it takes words. What rank 0 has bound holds on all ranks from the next step on. Errors:
        InvalidArgumentError (no such name), OutOfRangeError."""
        if not any(program is each for each in self.programs):
            raise InvalidArgumentError(f"{program!r} is not a program of this synchronizer")
        _library.call("cinch_sync_set", self._alive(), self.programs.index(program), _library.c_text(parameter), program._value(parameter, value))

    def give(self, inputs: Mapping[str, Any]) -> None:
        """Hands over what programs take besides gradients, for the step that begins next. By name: a number, or a list of arrays,
        one for each tensor, which are the same on all ranks (None where the tensor's program does not take it). What rank 0 gives as a
        number holds on all ranks. Arrays are held until the step ends. Errors: InvalidArgumentError (no such input, another length or
        type), OutOfRangeError."""
        for name, value in inputs.items():
            programs = [each for each in self.programs if name in each.inputs]
            if not programs:
                raise InvalidArgumentError(f"no program of this synchronizer has an input {name}")
            if not programs[0].inputs[name].is_array:
                for program in programs:
                    self.set(program, name, value)
                continue
            if len(value) != len(self.tensors):
                raise InvalidArgumentError(f"input {name}: {len(value)} arrays for {len(self.tensors)} tensors")
            for place, array in enumerate(value):
                takes = self.tensors[place].program
                if array is not None and takes is not None and name in takes.inputs:
                    read = tensor_arrays([array], [self._described[place]], f"input {name} of {self.tensors[place].name}")
                    self._held.append((read, array))
                    self.give_at(place, name, read.descriptors[0])

    def give_at(self, tensor: int, name: str, array: _abi.Tensor) -> None:
        """An array for one tensor, in memory that the caller has described and keeps until the step ends."""
        _library.call("cinch_sync_set_input", self._alive(), tensor, _library.c_text(name), ctypes.byref(array))

    def begin(
        self, step: int, *, scale: float = 1.0, is_sum: bool = False, skips_non_finite: bool = False, measures_errors: bool = False
    ) -> None:
        """Begins a step in parts; all ranks give the same arguments.

        Args:
            scale: gradients are so many times what is synchronised, and updates, too: a loss scale.
            is_sum: updates are sums over ranks.
            skips_non_finite: where a gradient of some rank is not finite, no state changes, and `finish` returns True.
            measures_errors: `report` says how far updates are from the mean, for an all-reduce more.

        Errors: InvalidArgumentError, CancelledError (an earlier step failed).
        """
        options = _abi.sized(
            sync_abi.StepOptions,
            scale=scale,
            is_sum=int(is_sum),
            skips_non_finite=int(skips_non_finite),
            measures_errors=int(measures_errors),
        )
        _library.call("cinch_sync_begin", self._alive(), unsigned(step, 64, "step"), ctypes.byref(options))

    def ready(self, tensor: int, gradient: Any, update: Any = None, *, is_used: bool = True) -> None:
        """The gradient of tensor `tensor` is there; its update is in `update`, or in its place, when `finish` returns.

        Both are float32, float16 or bfloat16 arrays, stay where they are, and are held until the step ends; nothing else writes
        them, and updates overlap nothing. Under plan "reduce_scatter" there must be an
        `update`: a vector with as many elements as this rank's part. `is_used=False`: the gradient is zeros, since
        the model has not used the tensor. Errors: InvalidArgumentError; the step has then failed on all ranks.
        """
        try:
            shape = [self._described[tensor]] if 0 <= tensor < len(self.tensors) else [described(gradient.shape)]
            read = tensor_arrays([gradient], shape, "gradient", is_written=update is None)
            if update is None:
                self._check_in_place()
            shape = [self._updates[tensor]] if 0 <= tensor < len(self.tensors) else shape
            written = read if update is None else tensor_arrays([update], shape, "update", is_written=True)
        except Exception:
            self._fail_step()
            raise
        self._held.append((gradient, update))
        self.ready_at(tensor, read.descriptors[0], written.descriptors[0], is_used=is_used)

    def _fail_step(self) -> None:
        """The other ranks need not wait for what this one cannot give: no tensor has this number."""
        nothing = _abi.sized(_abi.Tensor)
        with contextlib.suppress(Error):
            self.ready_at(len(self.tensors), nothing, nothing)

    def ready_at(self, tensor: int, gradient: _abi.Tensor, update: _abi.Tensor, *, is_used: bool = True) -> None:
        """`ready`, for memory that the caller has described."""
        _library.call("cinch_sync_ready", self._alive(), tensor, ctypes.byref(gradient), ctypes.byref(update), int(is_used))

    def _check_in_place(self) -> None:
        if self._has_parts:
            raise InvalidArgumentError('plan "reduce_scatter" writes parts of tensors, which do not take the gradients\' place: pass updates')

    def descriptor(self, tensor: int, data: int, dtype: int, *, is_update: bool = False) -> _abi.Tensor:
        """Describes the tensor's gradient or update, dense at address `data`; `dtype` is `_abi.F32`, `F16` or `BF16`."""
        shape = (self._updates if is_update else self._described)[tensor]
        return _abi.sized(_abi.Tensor, data=data, dtype=dtype, num_dims=len(shape.sizes), shape=shape.pointer)

    def is_done(self, tensor: int) -> bool:
        """Has the tensor's update been written in this step? From any thread."""
        return bool(_library.loaded().cinch_sync_is_done(self._alive(), tensor))

    def wait(self, tensor: int) -> None:
        """Waits for that, or for the step's failure. From any thread. Errors: InvalidArgumentError (not ready)."""
        _library.call("cinch_sync_wait", self._alive(), tensor)

    def finish(self) -> bool:
        """Waits for all ranks. Returns whether the step was skipped. Errors name rank, tensor and phase: CancelledError,
        TimedOutError, InvalidArgumentError (a tensor is not ready), PayloadError, CheckError, DeviceError."""
        outcome = _abi.sized(sync_abi.StepOutcome)
        try:
            _library.call("cinch_sync_finish", self._alive(), ctypes.byref(outcome))
        finally:
            self._held.clear()
        return bool(outcome.is_skipped)

    def step(
        self, step: int, gradients: Sequence[Any], updates: Optional[Sequence[Any]] = None, *, inputs: Optional[Mapping[str, Any]] = None
    ) -> None:
        """One synchronisation of all tensors, in their order. Updates take the gradients' place where `updates` is None. `inputs`: as of `give`.
        Under plan "reduce_scatter" `updates` are vectors, as `ready` describes them. Errors: those of `begin`, `ready` and `finish`."""
        if updates is None:
            self._check_in_place()
        read = tensor_arrays(gradients, self._described, "gradient", is_written=updates is None)
        written = read if updates is None else tensor_arrays(updates, self._updates, "update", is_written=True)
        if len(gradients) != len(self.tensors) or (updates is not None and len(updates) != len(self.tensors)):
            raise InvalidArgumentError(f"{len(gradients)} gradients for {len(self.tensors)} tensors")
        try:
            if inputs is not None:
                self.give(inputs)
            _library.call("cinch_sync_step", self._alive(), unsigned(step, 64, "step"), read.descriptors, written.descriptors, len(gradients))
        finally:
            self._held.clear()

    @property
    def plan(self) -> str:
        """The tasks of this rank, a line each: for people."""
        return _library.text_of(_library.loaded().cinch_sync_plan(self._alive()))

    @property
    def choice(self) -> str:
        """Why "auto" chose its plan, on rank 0; else empty."""
        return _library.text_of(_library.loaded().cinch_sync_choice(self._alive()))

    def report(self) -> Dict[str, Any]:
        """What the last step took on this rank: docs/sync_reference.md. Errors: InvalidArgumentError (a step is under way)."""
        found: Dict[str, Any] = json.loads(self._bytes("cinch_sync_report"))
        return found

    def trace(self) -> str:
        """The last step as a timeline that opens in Perfetto."""
        return self._bytes("cinch_sync_trace").decode()

    def states_save(self) -> bytes:
        """This rank's states after the last step."""
        return self._bytes("cinch_sync_states_save")

    def _bytes(self, function: str) -> bytes:
        size = ctypes.c_size_t()
        _library.call(function, self._alive(), None, ctypes.byref(size))
        room = ctypes.create_string_buffer(max(1, size.value))
        _library.call(function, self._alive(), room, ctypes.byref(size))
        return room.raw[: size.value]

    def states_load(self, saved: Union[bytes, Sequence[bytes]]) -> Restored:
        """Takes over saved states. Between steps; the next step is then `next_step` of what is returned. Bytes: this rank's, of the same
        plan and number of ranks, by itself. A list: what the ranks of an earlier run saved, whatever its plan and number were;
        all ranks call it with the same, between the same steps. Errors: InvalidArgumentError, FileError, VersionError, CancelledError, TimedOutError; states are then as
        before."""
        told = _abi.sized(sync_abi.SyncRestored)
        if isinstance(saved, bytes):
            _library.call("cinch_sync_states_restore_own", self._alive(), saved, len(saved), ctypes.byref(told))
        else:
            data = (ctypes.c_char_p * len(saved))(*saved)
            sizes = (ctypes.c_size_t * len(saved))(*map(len, saved))
            _library.call("cinch_sync_states_load", self._alive(), data, sizes, len(saved), ctypes.byref(told))
        return Restored(told.next_step, told.num_kept, told.num_joined, told.num_reset, _library.text_of(told.notes), told.num_left)

    def states_reset(self, tensor: int) -> None:
        """The tensor's states become what they were before the first step. All ranks call it between the same steps."""
        _library.call("cinch_sync_states_reset", self._alive(), tensor)


def rows_and_columns(shape: Shape, program: Optional[Program]) -> Tuple[int, int]:
    """As a program takes a tensor: rows and columns of a matrix, or all elements as rows of one column."""
    count = 1
    for size in shape:
        count *= size
    if program is None or not program.is_matrix or len(shape) < 2:
        return count, 1
    return shape[0], count // shape[0] if shape[0] else 0


def _distinct(tensors: Sequence[SyncTensor]) -> List[Program]:
    found: List[Program] = []
    for tensor in tensors:
        if tensor.program is not None and not any(program is tensor.program for program in found):
            found.append(tensor.program)
    return found


