"""Averaging without DistributedDataParallel."""
from typing import Any, Dict, Iterable, Optional, Tuple, Union

import torch

from ..errors import InvalidArgumentError
from ..program import Program
from . import _tensors
from ._ddp import Compression
from ._hook import Hook
from ._names import plain_name
from ._recipes import chosen


class Averager(Compression):
    """Averages gradients over ranks between `backward` and the optimizer's step. All ranks make it alike.

        averager = cinch.torch.Averager(model.named_parameters(), "qsgd")
        loss.backward()
        averager.average()
        optimizer.step()

    Arguments, `optimizer` and the program "auto" among them, and errors are those of `compress`; `group` is a process group, by default
    that of all ranks.
    """

    def __init__(
        self,
        named_parameters: Iterable[Tuple[str, "torch.Tensor"]],
        program: Union[str, Program, None] = None,
        *,
        group: Optional[Any] = None,
        optimizer: Optional["torch.optim.Optimizer"] = None,
        **settings: Any,
    ) -> None:
        self._parameters = [(plain_name(name), parameter) for name, parameter in named_parameters if parameter.requires_grad]
        found = chosen(program, [parameter for _, parameter in self._parameters], optimizer, settings, group)
        super().__init__(Hook(found.program, group=group, **found.settings))
        self._failure = found.failure
        self.hook.bind(self._parameters, check=self._check, optimizer=optimizer, is_permuted=True)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        names: Dict[int, str] = {}
        for name, parameter in self._parameters:
            if id(parameter) in names:
                raise InvalidArgumentError(f"{name} is the parameter {names[id(parameter)]}, too: give it once")
            names[id(parameter)] = name

    def average(self) -> bool:
        """Every gradient becomes the mean over ranks, in place; one that is None counts as zeros, and becomes zeros
        where no rank has one, whose states stay. Returns whether the step was skipped, as skips_non_finite says; gradients are then NaN.
        Errors: SyncError (also where a gradient is sparse)."""
        engine = self.engine
        engine.begin()
        taken = []
        for place, (name, parameter) in enumerate(self._parameters):
            is_used = parameter.grad is not None
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            engine.check(name, gradient)
            lies = gradient.detach().permute(_tensors.memory_order(parameter))
            dense = lies.contiguous()
            if dense.data_ptr() % dense.element_size():
                dense = dense.clone()
            taken.append((parameter, gradient, lies, dense))
            engine.ready(place, dense, is_used=is_used)
        is_skipped = engine.finish()
        for parameter, gradient, lies, dense in taken:
            if is_skipped:
                dense.fill_(float("nan"))
            if dense.data_ptr() != lies.data_ptr():
                lies.copy_(dense)
            if parameter.grad is None:
                parameter.grad = gradient
        return is_skipped
