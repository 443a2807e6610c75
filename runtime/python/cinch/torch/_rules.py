"""What programs want of the optimizer, and what exact tensors get beside programs whose update is a direction.

The table is of names, since nothing in a compiled program says it: an update of `signsgd` is 1 or -1 whatever the gradient is, so under
its learning rate a mean gradient would not move a bias at all. Names are those of the compressor within all wrappers.
"""
import math
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from ..program import Program
from ..synchronizer import SyncTensor
from ._compositions import innermost

_VELOCITIES = ("velocity", "momentum")
_ADAM_STATES = ("momentum", "variance", "residual", "owed")


class Direction:
    """What exact tensors get in the place of their mean gradient. Tensors are elements of gradients, by place.

    Attributes:
        kinds: states of each tensor, float32.
    """

    kinds: Tuple[str, ...] = ()

    def __init__(self, program: Program) -> None:
        self.states: Dict[int, List["torch.Tensor"]] = {}
        self._program, self._fixed = program, innermost(program).fixed
        self._names: Dict[int, str] = {}  # in a pause other tensors have states, too, which are not saved

    def open(self, tensors: Sequence[SyncTensor], rank: int, device: "torch.device", *, has_exact_steps: bool) -> None:
        """Before the first step: checkpoints are read into states. `has_exact_steps`: in some steps all tensors are exact."""
        for place, tensor in enumerate(tensors):
            if self.kinds and (tensor.program is None or has_exact_steps):
                ends = tensor.part_ends
                own = tensor.shape if ends is None else (ends[rank] - (ends[rank - 1] if rank > 0 else 0),)
                self.states_of(place, own, device)
                self._names[place] = tensor.name

    def named_states(self) -> Dict[str, "torch.Tensor"]:
        return {f"{kind}.{name}": state for place, name in self._names.items() for kind, state in zip(self.kinds, self.states[place])}

    def load(self, found: Mapping[str, Any]) -> List[str]:
        """Takes over `named_states` of an earlier run, or step. Returns what begins anew, as all that is not saved does."""
        self.states = {place: self.states[place] for place in self._names}
        notes = []
        for name, state in self.named_states().items():
            given = found.get(name)
            if given is not None and given.numel() == state.numel():
                state.copy_(given.reshape(state.shape))
            else:
                state.zero_()
                notes.append(f"the {name.replace('.', ' of ', 1)} in exact steps begins anew")
        return notes

    def _value(self, parameter: str, otherwise: float) -> float:
        """As the program's text fixes it, or as it was bound."""
        if parameter in self._fixed:
            return self._fixed[parameter]
        found = [name for name in self._program.parameters if name.rpartition(".")[2] == parameter]
        # Of several, the longest is that of the compressor within the others: inner.beta.
        return self._program.parameters[max(found, key=len)].default if found else otherwise

    def states_of(self, place: int, shape: Sequence[int], device: "torch.device") -> List["torch.Tensor"]:
        if place not in self.states:
            self.states[place] = [torch.zeros(tuple(shape), device=device) for _ in self.kinds]
        return self.states[place]

    def apply(self, step: int, place: int, update: "torch.Tensor", scale: float) -> None:
        """In place; `update` is a mean of gradients, times `scale`, and so is what it becomes."""
        states = [state.view(update.shape) for state in self.states_of(place, update.shape, update.device)]
        update.copy_(self._direction(step, update.float() / scale, states) * scale)

    def _direction(self, step: int, mean: "torch.Tensor", states: List["torch.Tensor"]) -> "torch.Tensor":
        raise NotImplementedError


class _Sign(Direction):
    """Of the mean gradient; 0 stays 0."""

    def _direction(self, step: int, mean: "torch.Tensor", states: List["torch.Tensor"]) -> "torch.Tensor":
        return mean.sign()


class _SignOfMomentum(Direction):
    kinds = ("momentum",)

    def _direction(self, step: int, mean: "torch.Tensor", states: List["torch.Tensor"]) -> "torch.Tensor":
        beta = self._value("beta", 0.9)
        return states[0].mul_(beta).add_(mean, alpha=1 - beta).sign()


class _Lion(Direction):
    kinds = ("momentum",)

    def _direction(self, step: int, mean: "torch.Tensor", states: List["torch.Tensor"]) -> "torch.Tensor":
        beta1, beta2 = self._value("beta1", 0.9), self._value("beta2", 0.99)
        mix = states[0] * beta1 + mean * (1 - beta1)
        states[0].mul_(beta2).add_(mean, alpha=1 - beta2)
        return mix.sign()


class _Adam(Direction):
    """As `onebit_adam` has it: no correction of the bias, and a variance that is frozen, if there is a step for that."""

    kinds = ("momentum", "variance")

    def _direction(self, step: int, mean: "torch.Tensor", states: List["torch.Tensor"]) -> "torch.Tensor":
        momentum, variance = states
        beta1, beta2 = self._value("beta1", 0.9), self._value("beta2", 0.999)
        momentum.mul_(beta1).add_(mean, alpha=1 - beta1)
        if step < self._value("freeze", math.inf):
            variance.mul_(beta2).addcmul_(mean, mean, value=1 - beta2)
        return torch.where(variance > 0, momentum / (variance.sqrt() + self._value("epsilon", 1e-8)), 0.0)


DIRECTIONS: Mapping[str, Callable[[Program], Direction]] = {
    "signsgd": _Sign, "signum": _SignOfMomentum, "lion_mavo": _Lion, "demo": _Sign, "onebit_adam": _Adam,
}


def _direction_name(program: Program) -> Optional[str]:
    """Of the program, of what it wraps, or, where its text is not known, of what has the same states and signs as sums."""
    name = innermost(program).name
    if name in DIRECTIONS:
        return name
    if tuple(program.states) == _ADAM_STATES:
        return "onebit_adam"
    if program.carrier == "signs":
        return "demo"
    if program.carrier.startswith("signs("):
        return "signum" if "momentum" in program.states else "signsgd"
    return next((each for each in DIRECTIONS if program.name.endswith(f"_{each}")), None)


def direction_of(programs: Sequence[Program]) -> Optional[Direction]:
    """What exact tensors get beside these programs; None: their mean gradient, also where programs differ in this."""
    names = {_direction_name(program) for program in programs}
    name = names.pop() if len(names) == 1 else None
    return None if name is None else DIRECTIONS[name](programs[0])


def begins_alone(programs: Sequence[Program]) -> Optional[Program]:
    """The first of them whose states exact steps of all tensors would leave behind."""
    return next((each for each in programs if _direction_name(each) == "onebit_adam"), None)


def begins_late(program: Program) -> bool:
    """Do its states, such as residuals, do harm in the first steps, when gradients change fast?"""
    return bool(program.states) and _direction_name(program) is None


def has_momentum(program: Program) -> bool:
    return any(name in program.states for name in _VELOCITIES) or "momentum" in program.parameters


def warn_of_misfit(programs: Sequence[Program], optimizer: Optional["torch.optim.Optimizer"], has_taken: Callable[[Program], bool]) -> None:
    """One warning, where the optimizer is not what a program wants. `has_taken`: does the program have the optimizer's momentum?"""
    said = None if optimizer is None else next((text for text in (_misfit(each, optimizer, has_taken(each)) for each in programs) if text), None)
    if said is not None:
        warnings.warn(said, stacklevel=5)


def _misfit(program: Program, optimizer: "torch.optim.Optimizer", is_taken: bool) -> Optional[str]:
    kind = type(optimizer).__name__
    is_adaptive = any("betas" in group or "momentum" not in group for group in optimizer.param_groups)
    momentum = next((group["momentum"] for group in optimizer.param_groups if group.get("momentum")), 0)
    has = kind if is_adaptive else f"{kind} with momentum {momentum}"
    if not is_adaptive and (not momentum or is_taken):
        return None
    if _direction_name(program) is not None:
        return f"the update of {program.name} is a direction already: it wants SGD without momentum behind it, and the optimizer is {has}"
    if not has_momentum(program):
        return None
    way = f"SGD is what {program.name} wants" if is_adaptive else "cinch.torch.take_momentum moves the optimizer's into the program"
    return f"{program.name} has momentum of its own, and the optimizer ({has}), too: {way}"


def states_in(saved: Mapping[str, Any], prefix: str) -> Dict[str, "torch.Tensor"]:
    """Of exact tensors, by the rest of the key."""
    return {key[len(prefix) :]: value for key, value in saved.items() if key.startswith(prefix)}
