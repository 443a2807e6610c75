"""`cinch.jax.Compressor`: a compressor's calls as functions of JAX arrays."""
import math
import operator
import os
from typing import Any, Optional, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Shape, shapes_of, unsigned
from ..errors import InvalidArgumentError
from ..program import Program, StrPath, Value, compile
from . import _cores, _targets, _varying

Encoded = Tuple[jax.Array, jax.Array, jax.Array]  # payload, length, states; plain tuples, as specs of shard_map are
Updated = Tuple[jax.Array, jax.Array]  # update, states
Number = Any  # an int, or a scalar array of integers, which may be traced
_TAKEN = ("float32", "float16", "bfloat16")
_MOST_PAYLOAD_BYTES = (1 << 32) - 1  # a length is a uint32


class Compressor:
    """A compressor for arrays of one shape. Its calls are pure functions, which `jax.jit`, `jax.vmap` and `jax.shard_map` trace.

        compressor = cinch.jax.Compressor("dgc", (300, 200), ratio=0.001)
        states = compressor.init()
        payload, length, states = compressor.encode(gradient, states, step)
        update = compressor.decode(payload, length, step)

    Args:
        program: a name of the library, a file or an expression, as `cinch.compile` takes it, or a `cinch.Program` for CPUs.
        shape: of the gradient: a tuple of integers, an integer for a vector, or an array.
        world: the number of ranks.
        seed: of random draws, where a call passes none.
        tensor: a number of this tensor among those of a model; draws of different numbers differ.
        threads: how many threads a call uses; 0: all of the machine. Results do not depend on it.
        payload_bytes: the size of payload arrays; by default the most that a payload takes. Only a program whose payload is
            largest in the middle of its schedule needs another.
        **parameters: values of the program's parameters.

    `step`, `worker` and `seed` of the calls are integers or scalar integer arrays, traced ones too. States are one uint8 array, in
    the format of `cinch.Session.states_save`; of a program without states it has no elements. Same program, shape, step,
    seed and worker give the bits of a `cinch.Session`.

    No call is differentiable: jax.grad through one is an error. Calls run on CPUs alone. What goes wrong while they run is
    a jax.errors.JaxRuntimeError with Cinch's message, where the results are awaited.

    Attributes:
        program, shape, world, seed: as given.
        payload_bytes, state_bytes: the sizes of these arrays.

    Errors: InvalidArgumentError (no such program, one for GPUs, one with a `sync` body), those of `cinch.compile` and of
    `Program.session`. Errors of all calls: InvalidArgumentError (shape, element type, an array that is not on a CPU),
    OutOfRangeError (a number below 0).
    """

    def __init__(
        self,
        program: Union[StrPath, Program],
        shape: Any,
        *,
        world: int = 1,
        seed: int = 0,
        tensor: int = 0,
        threads: int = 0,
        payload_bytes: Optional[int] = None,
        **parameters: Value,
    ) -> None:
        _targets.register()
        self.program = _compiled(program, parameters)
        try:
            shapes = shapes_of(shape)
        except TypeError as error:
            raise InvalidArgumentError(f"shape is {shape!r}: a tuple of integers, an integer or an array is taken") from error
        if len(shapes) != 1:
            raise InvalidArgumentError(f"a cinch.jax.Compressor is for one shape, not for {len(shapes)}")
        self.shape: Shape = shapes[0]
        self.world = unsigned(world, 32, "world")
        if self.world == 0:
            raise InvalidArgumentError("world is 0: a number of ranks is taken")
        self.seed = unsigned(seed, 64, "seed")
        setting = _cores.Setting(self.shape, self.world, unsigned(tensor, 32, "tensor"), unsigned(threads, 32, "threads"))
        self._core = _cores.kept(self.program, setting)
        self.payload_bytes = self._core.payload_bytes if payload_bytes is None else operator.index(payload_bytes)
        self.state_bytes = self._core.state_bytes
        if not 0 < self.payload_bytes <= _MOST_PAYLOAD_BYTES:
            raise InvalidArgumentError(f"payloads of {self.payload_bytes} bytes: a length is a uint32 above 0")

    def __repr__(self) -> str:
        return f"<cinch.jax.Compressor {self.program.name} of {self.shape}>"

    def __reduce__(self) -> Any:
        raise TypeError("a cinch.jax.Compressor is neither pickled nor copied: make another one of the same program and shape")

    def init(self, *, worker: Number = 0, seed: Optional[Number] = None) -> jax.Array:
        """The first states of a worker: uint8 of `state_bytes`."""
        states: jax.Array
        (states,) = self._call("init", [self._bytes(self.state_bytes)], _number(worker, "worker"), self._seed(seed))
        return states

    def encode(self, gradient: Any, states: Any, step: Number, *, worker: Number = 0, seed: Optional[Number] = None) -> Encoded:
        """Compresses `gradient`, which is float32, float16 or bfloat16 and has the compressor's shape.

        Returns the payload, uint8 of `payload_bytes`; its length as uint32, behind which the payload's bytes are 0; and the states.
        A gradient with an infinity or a NaN makes a payload that decodes to NaN, and leaves the states as they were. `states`
        are written in place where XLA may reuse their memory: donate them to jax.jit.
        """
        return self._encode(gradient, states, step, worker, seed, aliases={1: 2})

    def _encode(self, gradient: Any, states: Any, step: Number, worker: Number, seed: Optional[Number], *, aliases: Any) -> Encoded:
        results = [self._bytes(self.payload_bytes), ((), jnp.uint32), self._bytes(self.state_bytes)]
        numbers = (_number(step, "step"), _number(worker, "worker"), self._seed(seed))
        made: Encoded = self._call("encode", results, self._gradient(gradient), self._states(states), *numbers, aliases=aliases)
        return made

    def decode(self, payload: Any, length: Any, step: Number, *, seed: Optional[Number] = None, dtype: Any = jnp.float32) -> jax.Array:
        """The update that a payload decodes to, with elements of `dtype`: float32, float16 or bfloat16.

        Errors at run time: a payload that is cut, changed or of another compressor.
        """
        arguments = (self._payload(payload), _length(length, ()), _number(step, "step"), self._seed(seed))
        update: jax.Array
        (update,) = self._call("decode", [(self.shape, _float(dtype))], *arguments)
        return update

    def finish(
        self, total: Any, states: Any, step: Number, *, worker: Number = 0, seed: Optional[Number] = None, dtype: Any = jnp.float32
    ) -> Updated:
        """Turns a sum over ranks of decoded payloads (float32) into an update and states.

        The update is the mean, or what the program's `finish` makes of the sum.
        """
        total = self._shaped(total, self.shape, ("float32",), "the sum")
        numbers = (_number(step, "step"), _number(worker, "worker"), self._seed(seed))
        results = [(self.shape, _float(dtype)), self._bytes(self.state_bytes)]
        made: Updated = self._call("finish", results, total, self._states(states), *numbers, aliases={1: 1}, same_as=total)
        return made

    def all_reduce(
        self,
        gradient: Any,
        states: Any,
        step: Number,
        axis_name: Any,
        *,
        seed: Optional[Number] = None,
        dtype: Any = jnp.float32,
    ) -> Updated:
        """The mean of the gradients of all ranks, compressed, and this rank's states; within `jax.shard_map`, or `jax.vmap` with an axis name.

        Each rank encodes as worker `jax.lax.axis_index(axis_name)`, payloads are gathered, and each rank decodes all of them, adds
        in order of ranks and finishes: all ranks get the same bits. Where the gradient of one rank is not finite, all
        updates are NaN, and no rank's states advance. The axis has `world` ranks.
        """
        worker = jax.lax.axis_index(axis_name)
        # The present states are needed once more, so they must not be overwritten.
        payload, length, after = self._encode(gradient, states, step, worker, seed, aliases=None)
        payloads, lengths = (_varying.gathered(each, axis_name) for each in (payload, length))
        if lengths.shape != (self.world,):
            raise InvalidArgumentError(f"axis {axis_name!r} has {math.prod(lengths.shape)} ranks, the compressor is for world={self.world}")
        results = [(self.shape, _float(dtype)), self._bytes(self.state_bytes)]
        arguments = (payloads, lengths, self._states(states), after, _number(step, "step"), _number(worker, "worker"), self._seed(seed))
        made: Updated = self._call("average", results, *arguments, aliases={3: 1}, same_as=payloads)
        return made

    def _call(self, target: str, results: Any, *arguments: Any, aliases: Any = None, same_as: Any = None) -> Any:
        """Calls a target. The first result varies over the axes that `same_as` varies over, others over those of all arguments."""
        _check_platforms(arguments)
        operands = _varying.alike([jnp.asarray(each) for each in arguments])
        axes = _varying.axes_of(operands[0])
        first = axes if same_as is None else _varying.axes_of(same_as)
        types = [_varying.result(shape, dtype, axes if i else first) for i, (shape, dtype) in enumerate(results)]
        # JAX waits for calls with a side effect before the process ends. A handler that needed the interpreter later would hang.
        options: Any = {"vmap_method": "sequential", "has_side_effect": True, "input_output_aliases": aliases}
        made = jax.ffi.ffi_call(_targets.name_of(target), types, **options)
        return tuple(made(*operands, key=self._core.key))

    @staticmethod
    def _bytes(count: int) -> Tuple[Shape, Any]:
        return (count,), jnp.uint8

    def _seed(self, seed: Optional[Number]) -> Any:
        return _number(self.seed if seed is None else seed, "seed")

    def _gradient(self, gradient: Any) -> Any:
        return self._shaped(gradient, self.shape, _TAKEN, "the gradient")

    def _states(self, states: Any) -> Any:
        return self._shaped(states, (self.state_bytes,), ("uint8",), "the array of states")

    def _payload(self, payload: Any) -> Any:
        return self._shaped(payload, (self.payload_bytes,), ("uint8",), "the payload")

    def _shaped(self, array: Any, shape: Shape, dtypes: Tuple[str, ...], what: str) -> Any:
        """`array`, checked. Errors: InvalidArgumentError."""
        array = jnp.asarray(array)
        if array.dtype.name not in dtypes:
            raise InvalidArgumentError(f"{self.program.name}: {what} has elements of type {array.dtype}, not {' or '.join(dtypes)}")
        if array.shape != shape:
            raise InvalidArgumentError(f"{self.program.name}: {what} has shape {array.shape}, not {shape}")
        return array


def _compiled(program: Union[StrPath, Program], parameters: Any) -> Program:
    made = _for_cpus(program, parameters)
    for name in made.inputs:
        raise InvalidArgumentError(f"{made.name} takes the input {name}, and cinch.jax hands over gradients alone; cinch.Session takes inputs=")
    return made


def _for_cpus(program: Union[StrPath, Program], parameters: Any) -> Program:
    if not isinstance(program, Program):
        # Each call brings its states, so a session need not keep a second buffer of them.
        return compile(os.fspath(program), states="in_place", bindings=parameters)
    if parameters:
        raise InvalidArgumentError(f"{program.name} is compiled: its parameters are bound by cinch.compile")
    if program.cpu.startswith("cuda"):
        raise InvalidArgumentError(f"{program.name} is compiled for {program.cpu}; cinch.jax runs on CPUs")
    return program


def _number(value: Number, name: str) -> Any:
    """An operand for an integer: a traced scalar, or two numbers of 32 bits, as JAX has none of 64 by default."""
    if isinstance(value, (int, np.integer)):
        number = unsigned(value, 64, name)
        return np.array([number & 0xFFFFFFFF, number >> 32], np.uint32)
    array = jnp.asarray(value)
    if array.ndim != 0 or not jnp.issubdtype(array.dtype, jnp.integer):
        raise InvalidArgumentError(f"{name} is an array of {array.dtype} with shape {array.shape}, not one integer")
    return array


def _length(value: Any, shape: Shape) -> Any:
    array = jnp.asarray(np.uint32(unsigned(value, 32, "a payload's length")) if isinstance(value, int) else value)
    if array.shape != shape or not jnp.issubdtype(array.dtype, jnp.integer):
        raise InvalidArgumentError(f"a payload's length is an array of {array.dtype} with shape {array.shape}, not one integer")
    return array


def _float(dtype: Any) -> Any:
    found = jnp.dtype(dtype)
    if found.name not in _TAKEN:
        raise InvalidArgumentError(f"updates have elements of type {found}, not {' or '.join(_TAKEN)}")
    return found


def _check_platforms(arrays: Any) -> None:
    for each in arrays:
        if isinstance(each, jax.Array) and not isinstance(each, jax.core.Tracer):
            for device in each.devices():
                if device.platform != "cpu":
                    raise InvalidArgumentError(f"an array is on {device}: cinch.jax runs on CPUs")
