"""The functions that XLA calls, and their registration.

XLA calls them from threads of its own, several at once. Calls of libcinch release the interpreter's lock. An exception
never leaves a handler: it becomes an error of XLA.
"""
import ctypes
import functools
from typing import Any, Callable, Dict, List

import jax
import numpy as np

from .. import states as state_bytes
from ..arrays import Array, address_of
from ..errors import (
    CancelledError,
    CheckError,
    Error,
    InternalError,
    InvalidArgumentError,
    OutOfMemoryError,
    OutOfRangeError,
    PayloadError,
    UnavailableError,
)
from ..session import Session
from . import _cores, _frame
from ._cores import Core, Use

Body = Callable[[Core, List[Array], List[Array]], None]

_NON_FINITE_AT = 8  # docs/payload.md: bit 0 of this byte of a payload
# absl's status codes; the first that matches is used.
_CODES = (
    (CancelledError, 1),
    (InvalidArgumentError, 3),
    (OutOfMemoryError, 8),
    (CheckError, 9),
    (OutOfRangeError, 11),
    (InternalError, 13),
    (UnavailableError, 14),
    (PayloadError, 15),
)
_UNKNOWN, _INTERNAL = 2, 13


def _number(array: Array, name: str) -> int:
    """A number of a call: one integer, or two of 32 bits, the low one first. Errors: OutOfRangeError."""
    number = int(array) if array.ndim == 0 else int(array[0]) | int(array[1]) << 32
    if number < 0:
        raise OutOfRangeError(f"{name} is {number}, which is below 0")
    return number


def _load(session: Session, states: Array) -> None:
    if states.size:
        session.states_load(states.data)


def _save(session: Session, states: Array) -> None:
    if states.size:
        with session._alone() as handle:
            state_bytes.save_into(handle, 0, address_of(states), states.size)


def _payload(payload: Array, length: Array, what: str) -> memoryview:
    """The payload without the zeros behind it. Errors: PayloadError."""
    if not 0 <= int(length) <= payload.size:
        raise PayloadError(f"{what} has a length of {int(length)} bytes, in an array of {payload.size}")
    return payload.data[: int(length)]


def init(core: Core, arguments: List[Array], results: List[Array]) -> None:
    """() -> states."""
    worker, seed = arguments
    # A session from the pool has the states of earlier calls.
    with core.opened(Use(_number(worker, "worker"), _number(seed, "seed"))) as session:
        _save(session, results[0])


def encode(core: Core, arguments: List[Array], results: List[Array]) -> None:
    """(gradient, states) -> (payload, length, states)."""
    gradient, before, step, worker, seed = arguments
    payload, length, after = results
    with core.session(Use(_number(worker, "worker"), _number(seed, "seed"))) as session:
        _load(session, before)
        used = len(session.encode(_number(step, "step"), [gradient], out=[payload.data])[0])
        _save(session, after)
    payload[used:] = 0
    length[()] = used


def decode(core: Core, arguments: List[Array], results: List[Array]) -> None:
    """(payload, length) -> update."""
    payload, length, step, seed = arguments
    with core.session(Use(None, _number(seed, "seed"))) as session:
        session.decode(_number(step, "step"), [_payload(payload, length, "payload")], out=[results[0]])


def finish(core: Core, arguments: List[Array], results: List[Array]) -> None:
    """(sum, states) -> (update, states)."""
    total, before, step, worker, seed = arguments
    _finish(core, total, before, [step, worker, seed], results)


def _finish(core: Core, total: Array, before: Array, numbers: List[Array], results: List[Array]) -> None:
    update, after = results
    step, worker, seed = (_number(each, name) for each, name in zip(numbers, ("step", "worker", "seed")))
    needs_states = core.program.has_finish and before.size > 0
    with core.session(Use(worker if needs_states else None, seed)) as session:
        if needs_states:
            _load(session, before)
        session.finish(step, [total], out=[update])
        if needs_states:
            _save(session, after)
        elif address_of(after) != address_of(before):
            after[...] = before


def average(core: Core, arguments: List[Array], results: List[Array]) -> None:
    """(payloads of all ranks, lengths, states before encoding, states after it) -> (update, states)."""
    payloads, lengths, before, after, step, worker, seed = arguments
    update = results[0]
    total = update if update.dtype == np.float32 else np.empty(update.shape, np.float32)
    received = [_payload(payload, length, f"payload of rank {i}") for i, (payload, length) in enumerate(zip(payloads, lengths))]
    with core.session(Use(None, _number(seed, "seed"))) as session:
        for rank, payload in enumerate(received):
            try:
                _add(session, _number(step, "step"), payload, total, is_first=rank == 0)
            except PayloadError as error:
                raise PayloadError(f"payload of rank {rank}: {error}") from error
    # If the gradient of one rank is not finite, no rank's states advance.
    is_skipped = any(payload[_NON_FINITE_AT] & 1 for payload in received)
    _finish(core, total, before if is_skipped else after, [step, worker, seed], results)


def _add(session: Session, step: int, payload: memoryview, total: Array, *, is_first: bool) -> None:
    if is_first:
        session.decode(step, [payload], out=[total])
    else:
        session.decode_add(step, [payload], [total])


_TARGETS: Dict[str, Body] = {"init": init, "encode": encode, "decode": decode, "finish": finish, "average": average}
_handlers: List[Any] = []  # XLA keeps their addresses


def name_of(target: str) -> str:
    """As XLA knows it, which names the target and the platform where it has none."""
    return f"cinch_{target}_on_cpu"


def _handler(name: str, body: Body) -> Any:
    def handle(address: int) -> Any:
        frame = _frame.frame_at(address)
        try:
            if not _frame.answers_metadata(frame):
                call = _frame.read(frame)
                _run(name, body, call)
        except BaseException as error:  # no Python exception may reach XLA
            return _frame.error_for(frame, str(error), _code_of(error))
        return None

    return _frame.Handler(handle)


def _run(name: str, body: Body, call: _frame.Call) -> None:
    try:
        body(_cores.named(call.key), call.arguments, call.results)
    except Error as error:
        error.tensor = None  # there is only one
        error.args = (f"cinch.jax, {name} of {call.key.rpartition(', ')[0]}: {error}",)
        error.message = error.args[0]
        raise


def _code_of(error: BaseException) -> int:
    found = (code for made_by, code in _CODES if isinstance(error, made_by))
    return next(found, _UNKNOWN if isinstance(error, Error) else _INTERNAL)


@functools.lru_cache(maxsize=None)
def register() -> None:
    """Makes the targets, once. Errors: UnavailableError (jaxlib's FFI is another one)."""
    for name, body in _TARGETS.items():
        handler = _handler(name, body)
        _handlers.append(handler)
        capsule: Any = jax.ffi.pycapsule
        try:
            jax.ffi.register_ffi_target(name_of(name), capsule(ctypes.cast(handler, ctypes.c_void_p).value), platform="cpu")
        except Exception as error:
            raise UnavailableError(f"jaxlib does not take the handlers of cinch.jax: {error}") from error
