"""When gradients of a model become ready, as a profile that `cinch sync --profile` plays and `cinch.torch` plans against."""
import json
import math
import os
import time
from dataclasses import dataclass, field
from statistics import median, pstdev
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, Union

import torch

from ..errors import InvalidArgumentError
from ._names import plain_names, without_compile

_STEPS = 20


@dataclass
class _Step:
    """Moments: when the forward pass began, when it turned into the backward pass, when gradients were ready, and around the optimizer's step."""

    begun: Any = None
    turned: Any = None
    ready: Dict[str, Any] = field(default_factory=dict)
    ended: Any = None
    done: Any = None


class ProfileRecorder:
    """Records steps of training between `__enter__` and `__exit__`; `record_profile` makes it."""

    def __init__(self, model: "torch.nn.Module", optimizer: Optional["torch.optim.Optimizer"], steps: int) -> None:
        if not isinstance(model, torch.nn.Module):
            raise InvalidArgumentError(f"model is of type {type(model).__name__}: a torch.nn.Module is taken")
        if not (optimizer is None or isinstance(optimizer, torch.optim.Optimizer)):
            raise InvalidArgumentError(f"the optimizer is of type {type(optimizer).__name__}: a torch.optim.Optimizer is taken")
        if not (isinstance(steps, int) and steps > 0):
            raise InvalidArgumentError(f"steps is {steps!r}: a number from 1 on is taken")
        model = without_compile(model)
        plain = plain_names(model)
        self._model, self._optimizer, self._most = model, optimizer, steps
        self._named = [(plain(name), parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
        if not self._named:
            raise InvalidArgumentError("no parameter has a gradient")
        lazy = next((name for name, parameter in self._named if isinstance(parameter, torch.nn.parameter.UninitializedParameter)), None)
        if lazy is not None:
            raise InvalidArgumentError(f"{lazy} has no shape yet: it gets one in the first forward pass")
        self._clock = clock_of(self._named[0][1].device)
        self._handles: List[Any] = []
        self._steps: List[_Step] = []
        self._step = _Step()

    def __enter__(self) -> "ProfileRecorder":
        if self._handles:
            raise InvalidArgumentError("the recorder is recording")
        keep = self._handles.append
        keep(self._model.register_forward_pre_hook(lambda *_: self._begin()))
        keep(self._model.register_forward_hook(lambda *_: self._turn()))
        for name, parameter in self._named:
            keep(parameter.register_post_accumulate_grad_hook(self._marker(name)))  # type: ignore[no-untyped-call]
        if self._optimizer is not None:
            keep(self._optimizer.register_step_pre_hook(lambda *_: self._end_backward()))
            keep(self._optimizer.register_step_post_hook(lambda *_: self._end_step()))
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._keep()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _marker(self, name: str) -> Callable[["torch.Tensor"], None]:
        def mark(_: "torch.Tensor") -> None:
            if self._step.turned is not None:
                self._step.ready[name] = self._clock.now()

        return mark

    def _begin(self) -> None:
        """A forward pass behind a backward pass begins a step; of several before it the last one counts."""
        if not torch.is_grad_enabled():
            return  # of an evaluation
        if self._step.ready:
            self._keep()
        self._step = _Step(begun=self._clock.now())

    def _turn(self) -> None:
        if torch.is_grad_enabled() and not self._step.ready:
            self._step.turned = self._clock.now()

    def _end_backward(self) -> None:
        if self._step.ready:  # an optimizer with a closure begins before
            self._step.ended = self._clock.now()

    def _end_step(self) -> None:
        if self._step.ended is not None:
            self._step.done = self._clock.now()

    def _keep(self) -> None:
        step, self._step = self._step, _Step()
        if step.turned is not None and step.ready and len(self._steps) < self._most:
            self._steps.append(step)

    @property
    def num_steps(self) -> int:
        """Steps that have been recorded."""
        return len(self._steps)

    def profile(self) -> Dict[str, Any]:
        """Waits for the GPU. As `cinch sync --profile` takes it in JSON: medians over steps, in microseconds, of tensors in the order in which they become ready; a tensor
        whose gradient no step had is left out. Errors: InvalidArgumentError (no step has been recorded)."""
        self._keep()
        if self.num_steps == 0:
            raise InvalidArgumentError("no step has been recorded: train within the recorder's `with`")
        between = self._clock.between
        times = {name: [between(step.turned, step.ready[name]) for step in self._steps if name in step.ready] for name, _ in self._named}
        shapes = {name: list(parameter.shape) for name, parameter in self._named}
        tensors = [
            {"name": name, "numel": math.prod(shapes[name]), "shape": shapes[name], "ready_us": round(at, 1), "spread_us": round(pstdev(times[name]), 1)}
            for at, name in sorted((median(found), name) for name, found in times.items() if found)
        ]
        told: Dict[str, Any] = {"steps": self.num_steps, "forward_us": round(median(between(step.begun, step.turned) for step in self._steps), 1)}
        optimizing = [between(step.ended, step.done) for step in self._steps if step.done is not None]
        if optimizing:
            told["optimizer_us"] = round(median(optimizing), 1)
        return {**told, "tensors": tensors}

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it: as CSV where the name ends so, else as JSON. Errors: InvalidArgumentError (no step; a name that CSV cannot hold), OSError."""
        profile = self.profile()
        text = _csv(profile) if os.fspath(path).endswith(".csv") else json.dumps(profile, indent=1) + "\n"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def record_profile(model: "torch.nn.Module", optimizer: Optional["torch.optim.Optimizer"] = None, *, steps: int = _STEPS) -> ProfileRecorder:
    """Measures when the gradients of a model become ready, of which plans are made.

        with cinch.torch.record_profile(model, optimizer) as recorder:
            for batch in batches:                 # the first ones are slower: begin behind them
                ...                               # forward, backward, optimizer.step()
        recorder.save("model.json")

    Args:
        model: any; on one rank, without DistributedDataParallel, whose exchanges would be in the times.
        optimizer: for its own time.
        steps: so many are recorded, and later ones are not.

    On a GPU times are those of events on the stream, and the script does not wait. Errors: InvalidArgumentError.
    """
    return ProfileRecorder(model, optimizer, steps)


def clock_of(device: "torch.device") -> Union["_CpuClock", "_GpuClock"]:
    """Of moments in the work for the device: a GPU computes a gradient later than its script has asked for it."""
    return _GpuClock() if device.type == "cuda" else _CpuClock()


class _CpuClock:
    @staticmethod
    def now() -> float:
        return time.perf_counter()

    @staticmethod
    def between(begin: float, end: float) -> float:
        """Microseconds."""
        return 1e6 * (end - begin)


class _GpuClock:
    @staticmethod
    def now() -> Any:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    @staticmethod
    def between(begin: Any, end: Any) -> float:
        """Microseconds. Waits for the second one."""
        end.synchronize()
        return 1e3 * float(begin.elapsed_time(end))


def _csv(profile: Dict[str, Any]) -> str:
    lines = [f"# {fact} {profile[fact]}" for fact in ("steps", "forward_us", "optimizer_us") if fact in profile]
    lines.append("name,numel,shape,ready_us,spread_us")
    for tensor in profile["tensors"]:
        if any(mark in tensor["name"] for mark in ',"\n\r') or tensor["name"].startswith("#") or tensor["name"] != tensor["name"].strip():
            raise InvalidArgumentError(f"{tensor['name']!r} is no name for a cell of CSV: save the profile as .json")
        shape = "x".join(map(str, tensor["shape"])) or "1"
        lines.append(f"{tensor['name']},{tensor['numel']},{shape},{tensor['ready_us']},{tensor['spread_us']}")
    return "\n".join(lines) + "\n"
