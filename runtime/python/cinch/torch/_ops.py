"""`torch.ops.cinch.encode` and `torch.ops.cinch.decode`: compression as operators, which torch.compile traces.

    payload = torch.ops.cinch.encode(gradient, "topk(ratio: 0.01)", step)
    update = torch.ops.cinch.decode(payload, gradient.shape, "topk(ratio: 0.01)", step)
"""
import functools
import threading
from collections import OrderedDict
from typing import Any, List, Tuple

import torch

from ..arrays import Shape
from ..errors import InvalidArgumentError
from ..program import Program, compile
from ..session import Session

_MOST_SESSIONS = 64  # that a thread keeps
_kept = threading.local()


@functools.lru_cache(maxsize=None)
def _stateless(name: str) -> Program:
    """The compiled program. Errors: InvalidArgumentError (it has states), those of `cinch.compile`."""
    program = compile(name)
    if program.states:
        raise InvalidArgumentError(
            f"{program.name} keeps {', '.join(program.states)} from step to step, which an operator cannot: use a cinch.Session, "
            "or cinch.torch.compress, or name the program without its feedback or momentum"
        )
    return program


def _session(name: str, shape: Shape, world: int, worker: int, seed: int) -> Session:
    """A session of this thread for such a tensor; the last ones are kept, as opening one takes longer than a call."""
    kept: "OrderedDict[Tuple[Any, ...], Session]" = _kept.__dict__.setdefault("sessions", OrderedDict())
    key = (name, shape, world, worker, seed, torch.get_num_threads())
    session = kept.pop(key, None)
    if session is None:
        session = _stateless(name).session([shape], threads=torch.get_num_threads(), world=world, worker=worker, seed=seed)
    kept[key] = session
    if len(kept) > _MOST_SESSIONS:
        kept.popitem(last=False)
    return session


def encode(tensor: torch.Tensor, program: str, step: int, world: int = 1, worker: int = 0, seed: int = 0) -> torch.Tensor:
    """The payload of `tensor`, which is float32, float16 or bfloat16 on the CPU: a vector of uint8, as long as the payload.

    Args:
        program: a name of the library, a file, or an expression, as `cinch.compile` takes it; one without states. It is
            compiled once per process, a file too.
        step, seed: of the program's random draws.
        world, worker: the number of ranks, and which of them this is. Draws differ between workers.

    The length depends on the data: torch.compile breaks the graph here, unless
    torch._dynamo.config.capture_dynamic_output_shape_ops is True. Not differentiable. Errors: InvalidArgumentError (a program
    with states, element type), those of `cinch.compile` and of `cinch.Session`.
    """
    given = tensor.detach().contiguous()
    payload = _session(program, tuple(given.shape), world, worker, seed).encode(step, [given])[0]
    return torch.frombuffer(bytearray(payload), dtype=torch.uint8) if payload else torch.empty(0, dtype=torch.uint8)


def decode(payload: torch.Tensor, shape: List[int], program: str, step: int, world: int = 1, seed: int = 0) -> torch.Tensor:
    """What `payload`, a vector of uint8, stands for: a float32 tensor of `shape`. The other arguments are those of
    `encode`. Errors: PayloadError, InvalidArgumentError (a program with states), those of `cinch.compile`."""
    if payload.dtype != torch.uint8 or payload.dim() != 1:
        raise InvalidArgumentError(f"a payload is a vector of uint8, not a tensor of {payload.dtype} with {payload.dim()} dimensions")
    update = torch.empty(shape, dtype=torch.float32)
    _session(program, tuple(shape), world, 0, seed).decode(step, [payload.detach().contiguous()], out=[update])
    return update


def _fake_encode(tensor: torch.Tensor, program: str, step: int, world: int = 1, worker: int = 0, seed: int = 0) -> torch.Tensor:
    return tensor.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_decode(payload: torch.Tensor, shape: List[int], program: str, step: int, world: int = 1, seed: int = 0) -> torch.Tensor:
    return payload.new_empty(shape, dtype=torch.float32)


@functools.lru_cache(maxsize=None)
def register() -> None:
    """Makes the operators, once. With PyTorch before 2.4 there are none."""
    if not hasattr(torch.library, "custom_op"):
        return
    for name, act, fake in (("cinch::encode", encode, _fake_encode), ("cinch::decode", decode, _fake_decode)):
        torch.library.custom_op(name, act, mutates_args=(), device_types="cpu").register_fake(fake)
