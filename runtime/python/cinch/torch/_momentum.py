"""Momentum that moves from an SGD optimizer into programs, and back."""
import math
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

import torch

from ..errors import InvalidArgumentError
from ..program import Program
from . import _tensors
from ._rules import warn_of_misfit
from ._settings import Settings

if TYPE_CHECKING:
    from ._engine import Engine

# A parameter's velocity as its gradient comes, made of the optimizer's buffer and the parameter.
Velocity = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def check_optimizer(optimizer: Any, *, may_be_none: bool = True) -> None:
    """Errors: InvalidArgumentError (it is not one)."""
    if not (optimizer is None and may_be_none) and not isinstance(getattr(optimizer, "param_groups", None), list):
        raise InvalidArgumentError(f"optimizer is of type {type(optimizer).__name__}: a torch.optim.Optimizer is taken")


class Taken(float):
    """Momentum that a program gets from `optimizer`; a number everywhere else."""

    optimizer: "torch.optim.Optimizer"

    def __reduce__(self) -> Tuple[Any, ...]:
        return float, (float(self),)


def take_momentum(optimizer: "torch.optim.Optimizer") -> Taken:
    """Gives a program the momentum of an SGD optimizer: compress(model, "dgc", momentum=take_momentum(optimizer)). Parameters that a
    program compresses which was bound to it have it from the program, in steps that compress; all others, and all of them in
    exact steps, keep the optimizer's. The number has no effect elsewhere: `compress`, `Hook`, `Averager`, `compress_fsdp` and `compress_replicas` take it, or
    `set` of a rule. Errors: InvalidArgumentError (it has no momentum as SGD has it, groups differ, Nesterov, dampening)."""
    check_optimizer(optimizer, may_be_none=False)
    if not all("momentum" in group and "betas" not in group for group in optimizer.param_groups):
        raise InvalidArgumentError(f"{type(optimizer).__name__} has no momentum that could be taken out of it; SGD has")
    found = {group["momentum"] for group in optimizer.param_groups}
    if len(found) != 1:
        raise InvalidArgumentError(f"the optimizer's groups have different momentum: {sorted(found)}")
    if any(group.get("nesterov") for group in optimizer.param_groups):
        raise InvalidArgumentError(
            "Nesterov's step is a setting of programs, as in nesterov(topk) and dgc(nesterov: true): take the momentum of an optimizer with nesterov=False")
    if any(group.get("dampening") for group in optimizer.param_groups):
        raise InvalidArgumentError("momentum with dampening is not what programs have")
    taken = Taken(found.pop())
    taken.optimizer = optimizer
    return taken


def taken_in(settings: Settings) -> Optional[Taken]:
    """What the program of the call, or that of a rule, was bound to."""
    return next((value for _, value in _taken_by_name(settings)), None)


def _taken_by_name(settings: Settings) -> List[Tuple[str, Taken]]:
    rules = settings.rules if isinstance(settings.rules, Sequence) else []
    bound = [settings.bindings, *(rule.get("set") or {} for rule in rules if isinstance(rule, Mapping))]
    return [(name, value) for each in bound for name, value in each.items() if isinstance(value, Taken)]


def _is_bound(program: Program, taken: Sequence[Tuple[str, Taken]]) -> bool:
    """By value: rules have numbers by the time that their programs are compiled."""
    return any(name in program.bindings and math.isclose(float(program.bindings[name]), value) for name, value in taken)


class Handover:
    """Keeps the optimizer's momentum out of what a step has compressed by a program that was bound to it, and hands it to the program when compression begins.

    SGD's buffer of a parameter is set to 0 before and after a compressed step, which so ends with the update alone. Groups of
    the optimizer stay as they are: learning-rate schedules and checkpoints know them.
    """

    def __init__(self, engine: "Engine", parameters: Sequence["torch.Tensor"], taken: Taken, velocity_of: Velocity, factor: float = 1.0) -> None:
        """`parameters`: of each tensor. `velocity_of`: as gradients come, made of the optimizer's buffer and the parameter. `factor`: a
        mean gradient over what the optimizer gets of it."""
        self._engine, self._taken, self._velocity_of, self._factor = engine, taken, velocity_of, factor
        bound = _taken_by_name(engine.settings)
        tensors = enumerate(engine.compressed.tensors)
        self._parameters = {place: parameters[place] for place, tensor in tensors if tensor.program is not None and _is_bound(tensor.program, bound)}
        engine.handover = self
        taken.optimizer.register_step_pre_hook(self._around_step)
        taken.optimizer.register_step_post_hook(self._around_step)

    @property
    def places(self) -> Iterable[int]:
        """Of the tensors whose programs have the optimizer's momentum."""
        return self._parameters

    def _buffer(self, place: int) -> Optional["torch.Tensor"]:
        found: Optional["torch.Tensor"] = self._taken.optimizer.state.get(self._parameters[place], {}).get("momentum_buffer")
        return found

    def _around_step(self, *_: Any) -> None:
        if self._engine.was_dense:
            return
        buffers: List[Optional["torch.Tensor"]] = [self._buffer(place) for place in self._parameters]
        for buffer in buffers:
            if buffer is not None:
                buffer.zero_()

    def add(self, place: int, gradient: "torch.Tensor", scale: float) -> bool:
        """Adds what the optimizer's velocity makes of this step to the gradient, so that the program's, which is 0, becomes
        the sum: the same on all ranks. Returns whether there was one."""
        buffer = self._buffer(place) if place in self._parameters else None
        if buffer is None:
            return False
        velocity = self._velocity_of(buffer, self._parameters[place])
        gradient.add_(velocity.to(gradient.dtype), alpha=float(self._taken) * scale * self._factor)
        return True


def as_it_is(buffer: "torch.Tensor", parameter: "torch.Tensor") -> "torch.Tensor":
    return buffer


def as_in_memory(buffer: "torch.Tensor", parameter: "torch.Tensor") -> "torch.Tensor":
    """For gradients that come with their dimensions as they lie in memory."""
    return buffer.permute(_tensors.memory_order(parameter))


def fit(
    engine: "Engine",
    parameters: Sequence["torch.Tensor"],
    optimizer: Optional["torch.optim.Optimizer"],
    *,
    velocity_of: Velocity = as_it_is,
    factor: float = 1.0,
) -> None:
    """Moves momentum that the engine's programs were bound to, and warns on rank 0 where `optimizer`, or the one that it is of, does
    not suit them. `velocity_of`, `factor`: as of `Handover`."""
    taken = taken_in(engine.settings)
    if taken is not None:
        Handover(engine, parameters, taken, velocity_of, factor)
        optimizer = taken.optimizer if optimizer is None else optimizer
    if engine.transport.rank == 0:
        bound = _taken_by_name(engine.settings)
        warn_of_misfit(engine.compressed.programs, optimizer, lambda program: _is_bound(program, bound))
