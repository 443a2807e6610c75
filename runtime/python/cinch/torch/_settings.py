"""How gradients are averaged: what `compress` and its like take as keyword arguments."""
import math
import operator
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Union

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..program import Program, Value
from ._policy import NONE, Rules, has_plan_file

Schedule = Mapping[str, Callable[[int], float]]
AUTO = "auto"  # the program that a recipe chooses
PLANS = ("two_shot", "allreduce", "allgather", "ring", "tree", "auto")
_MOST_SECONDS = 1e6
_MOST_STEP = (1 << 56) - 1  # the most that the number of a draw has room for


@dataclass
class Settings:
    """`cinch.torch.compress` describes the fields."""

    program: Union[str, Program, None] = "none"  # None: a plan file has it
    bindings: Dict[str, Value] = field(default_factory=dict)
    rules: Rules = None
    plan: Optional[str] = None
    dense_steps: Optional[int] = None
    total_steps: Optional[int] = None
    dense_after: Optional[int] = None
    clip: Optional[float] = None
    delay: int = 0
    schedule: Schedule = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    scale: Optional[Callable[[], float]] = None
    skips_non_finite: bool = False
    measures_errors: bool = False
    report_every: int = 0
    replan_after: int = 5
    first_step: int = 0
    piece_bytes: int = 0
    seed: int = 0
    threads: Optional[int] = None
    timeout: Optional[float] = None
    transport: Optional[str] = None
    interface: Optional[str] = None
    secret: bytes = b""

    def most_seconds(self, group: Any) -> float:
        """The time-out, or that of the process group (None: the default one). Ranks meet even if theirs is wrong, to tell each other of it."""
        return self.timeout if self.timeout is not None and _is_time(self.timeout) else _timeout_of(group or dist.group.WORLD)

    def check(self, *, is_reduced: bool) -> None:
        """`is_reduced`: each rank gets its part alone. Errors: InvalidArgumentError, which names the setting."""
        if self.program is None and has_plan_file(self.plan):
            self.program = NONE
        if not isinstance(self.program, (str, os.PathLike, Program)):
            raise InvalidArgumentError(f'program is {self.program!r}: a name, a file, an expression or a cinch.Program is taken, and "none" averages exactly')
        if self.program == AUTO:
            raise InvalidArgumentError('"auto" is taken by compress and Averager alone: pass a program, such as cinch.torch.recipe(model, optimizer) has')
        if self.timeout is not None and not _is_time(self.timeout):
            raise InvalidArgumentError(f"timeout is {self.timeout!r}: seconds above 0 are taken, at most {_MOST_SECONDS:g}")
        for name in ("first_step", "report_every", "replan_after", "piece_bytes", "seed"):
            _check_count(name, getattr(self, name), may_be_none=False)
        for name in ("dense_steps", "total_steps", "dense_after", "threads"):
            _check_count(name, getattr(self, name), may_be_none=True)
        if self.clip is not None and not (isinstance(self.clip, (int, float)) and 0 < self.clip < math.inf):
            raise InvalidArgumentError(f"clip is {self.clip!r}: a norm above 0 is taken")
        if self.delay != 0:
            raise InvalidArgumentError(f"delay is {self.delay!r}: compress takes 1, since one exchange is under way at a time; other calls have no delay, or their own")
        if self.first_step > _MOST_STEP:
            raise InvalidArgumentError(f"first_step is {self.first_step}: at most {_MOST_STEP} is taken")
        plans = ("reduce_scatter",) if is_reduced else PLANS
        is_known = self.plan in plans or (not is_reduced and (self.plan is None or has_plan_file(self.plan)))
        if not is_known:
            raise InvalidArgumentError(f"plan is {self.plan!r}; there {'is' if is_reduced else 'are'} {', '.join(plans)}")
        if has_plan_file(self.plan) and (self.rules is not None or self.piece_bytes or self.bindings):
            raise InvalidArgumentError(
                f"plan is the file {self.plan}, which says how each tensor is compressed and sent: pass neither rules, piece_bytes nor parameters of programs")
        if not isinstance(self.schedule, Mapping):
            raise InvalidArgumentError(f"schedule is of type {type(self.schedule).__name__}: functions of the step by name are taken")
        if not isinstance(self.inputs, Mapping):
            raise InvalidArgumentError(f"inputs is of type {type(self.inputs).__name__}: numbers, tensors and functions by name are taken")
        for name, act in [("scale", self.scale), *((f"schedule of {name}", act) for name, act in self.schedule.items())]:
            if act is not None and not callable(act):
                raise InvalidArgumentError(f"{name} is {act!r}, which is not a function")
        if not isinstance(self.secret, (bytes, bytearray)):
            raise InvalidArgumentError(f"secret is of type {type(self.secret).__name__}; bytes are taken")


def _timeout_of(group: Any) -> float:
    """Seconds that the group's collectives wait; PyTorch's usual time-out where a backend does not tell."""
    for device in ("cpu", "cuda"):
        try:
            return min(float(group._get_backend(torch.device(device)).options._timeout.total_seconds()), _MOST_SECONDS)
        except (AttributeError, RuntimeError):  # a backend of none of these devices, or of an older version
            continue
    return 1800.0


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and 0 < value <= _MOST_SECONDS


def _check_count(name: str, value: Any, *, may_be_none: bool) -> None:
    if value is None and may_be_none:
        return
    try:
        is_count = operator.index(value) >= 0
    except TypeError:
        is_count = False
    if not is_count:
        raise InvalidArgumentError(f"{name} is {value!r}: integers from 0 on are taken")


def settings_of(program: Union[str, Program, None], given: Mapping[str, Any]) -> Settings:
    """Settings from keyword arguments, of which the others are parameters of the program."""
    known = {name: value for name, value in given.items() if name in Settings.__dataclass_fields__ and name != "bindings"}
    if isinstance(known.get("plan"), os.PathLike):
        known["plan"] = os.fspath(known["plan"])
    bindings = {name: value for name, value in given.items() if name not in Settings.__dataclass_fields__}
    return Settings(program=program, bindings={**given.get("bindings", {}), **bindings}, **known)
