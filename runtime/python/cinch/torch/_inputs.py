"""What programs take besides gradients: weights, the learning rate, and what the caller names."""
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from ..errors import InvalidArgumentError
from ..synchronizer import Synchronizer, SyncTensor
from . import _tensors

WEIGHTS, LEARNING_RATE = "weights", "lr"


class Inputs:
    """Values come from the caller's `inputs`: numbers, tensors by the parameter's name, or functions. Otherwise `weights` are the parameter
    itself, and `lr` is the optimizer's."""

    def __init__(
        self,
        named: Sequence[Tuple[str, "torch.Tensor"]],
        tensors: Sequence[SyncTensor],
        given: Mapping[str, Any],
        optimizer: Optional["torch.optim.Optimizer"],
        *,
        are_parameters: bool,
        copies: bool,
    ) -> None:
        """`are_parameters`: `named` are the model's, not gradients on their way. `copies`: the optimizer changes parameters while a step
        is under way. Errors: InvalidArgumentError (an input that nobody gives, or that no program has)."""
        self._named, self._given, self._optimizer, self._copies = list(named), dict(given), optimizer, copies
        self._held: List["torch.Tensor"] = []
        takers = {each.program.name: each.program for each in tensors if each.program is not None}
        self._numbers: Dict[str, List[int]] = {}  # by name: tensors whose programs take it
        for place, tensor in enumerate(tensors):
            for name, each in ({} if tensor.program is None else tensor.program.inputs).items():
                if not each.is_array:
                    self._numbers.setdefault(name, []).append(place)
        for program in takers.values():
            for name, each in program.inputs.items():
                if name in self._given:
                    continue
                if each.is_array and not (name == WEIGHTS and are_parameters):
                    raise InvalidArgumentError(
                        f"{program.name} takes the input {name}, an array for each parameter: pass inputs={{{name!r}: a function of the parameter's name}}"
                    )
                if not each.is_array and not (name == LEARNING_RATE and optimizer is not None):
                    how = "optimizer=, or " if name == LEARNING_RATE else ""
                    raise InvalidArgumentError(f"{program.name} takes the input {name}, a number: pass {how}inputs={{{name!r}: a number, or a function that gives it}}")
        for name in self._given:
            if not any(name in program.inputs for program in takers.values()):
                raise InvalidArgumentError(f"inputs: no program that a tensor has takes an input {name}")

    def begin(self, sync: Synchronizer) -> None:
        """Before a step begins: numbers. Errors: InvalidArgumentError, OutOfRangeError."""
        self._held.clear()
        for name, places in self._numbers.items():
            value = self._number(name, places)
            for program in sync.programs:
                if name in program.inputs:
                    sync.set(program, name, value)

    def _number(self, name: str, places: Sequence[int]) -> float:
        if name in self._given:
            value = self._given[name]
            return float(value() if callable(value) else value)
        assert self._optimizer is not None
        wanted = {id(self._named[place][1]): self._named[place][0] for place in places}
        rates: Dict[float, str] = {}
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in wanted:
                    rates.setdefault(float(group["lr"]), wanted[id(parameter)])
        if len(rates) > 1:
            (one, first), (other, second) = list(rates.items())[:2]
            raise InvalidArgumentError(
                f'the learning rate of {first} is {one}, that of {second} {other}: a program takes one; pass inputs={{"lr": …}}, or a rule with another program'
            )
        # Parameters that the optimizer does not know by identity, as behind a wrapper: those of its groups.
        return next(iter(rates), float(self._optimizer.param_groups[0]["lr"]))

    def arrays(self, place: int, tensor: SyncTensor) -> Dict[str, "torch.Tensor"]:
        """By name, in the order of the parameter's memory, as its gradient comes; held until the next step. Errors: InvalidArgumentError."""
        found = {}
        for name, each in ({} if tensor.program is None else tensor.program.inputs).items():
            if each.is_array:
                found[name] = self._array(name, place)
        return found

    def _array(self, name: str, place: int) -> "torch.Tensor":
        parameter_name, parameter = self._named[place]
        value = self._given.get(name)
        if callable(value):
            value = value(parameter_name)
        elif isinstance(value, Mapping):
            value = value.get(parameter_name)
        elif name not in self._given:
            value = parameter
        if not isinstance(value, torch.Tensor):
            raise InvalidArgumentError(f"{parameter_name}: the input {name} is of type {type(value).__name__}, not a tensor")
        if value.shape != parameter.shape:
            raise InvalidArgumentError(f"{parameter_name}: the input {name} has the shape {tuple(value.shape)}, the parameter {tuple(parameter.shape)}")
        if value.device != parameter.device:
            raise InvalidArgumentError(f"{parameter_name}: the input {name} is on {value.device}, the parameter on {parameter.device}")
        dense = value.detach().permute(_tensors.memory_order(parameter)).contiguous()
        if dense.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            dense = dense.to(torch.float32)
        elif self._copies:
            dense = dense.clone()
        self._held.append(dense)
        return dense
