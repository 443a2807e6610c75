"""An exchange that goes on while its caller computes."""
import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from ..errors import InvalidArgumentError
from ._engine import Engine
from ._states import norm_of_residuals
from ._told import Residuals

_ABOUT_BYTES = 512
_NOTHING, _MEANS, _SKIPPED = 0, 1, 2  # what has been collected and not taken


class Exchange:
    """One step of an engine at a time, of tensors that are copied to memory of its own when it begins, and become means over ranks there.

    Attributes:
        is_under_way: has it begun, and not been collected?
        bytes: of its memory.
    """

    was_skipped = False  # did the last step that was taken find a gradient that is not finite?

    def __init__(self, engine: Engine, named: Sequence[Tuple[str, "torch.Tensor"]], updates: Optional[Sequence["torch.Tensor"]] = None) -> None:
        """`updates`: where means go, of this rank's part of each tensor (plan "reduce_scatter"). None: where the tensors were."""
        self.engine, self.is_under_way = engine, False
        self._names = [name for name, _ in named]
        self._held = [torch.zeros_like(tensor) for _, tensor in named]
        self._updates = updates
        self.bytes = sum(held.nbytes for held in [*self._held, *(updates or [])])
        self._collected = _NOTHING
        self._residuals = Residuals()

    @property
    def _means(self) -> Sequence["torch.Tensor"]:
        return self._held if self._updates is None else self._updates

    @property
    def is_idle(self) -> bool:
        """Is there nothing under way, and nothing to take?"""
        return not self.is_under_way and self._collected == _NOTHING

    def begin(self, given: Sequence[Optional["torch.Tensor"]]) -> None:
        """Begins a step; None counts as zeros. The caller may write into `given` when it returns. Errors: SyncError."""
        if not self.is_idle:
            raise InvalidArgumentError("an exchange is under way: take its means first")
        self.engine.begin()
        for place, (name, tensor) in enumerate(zip(self._names, given)):
            held = self._held[place]
            if tensor is None:
                held.zero_()
            else:
                self.engine.check(name, tensor)
                held.copy_(tensor.detach())
            self.engine.ready(place, held, None if self._updates is None else self._updates[place], is_used=tensor is not None)
        self.engine.all_ready()
        self.is_under_way = True

    def collect(self) -> None:
        """Waits for all ranks, if anything is under way; `take` gives the means later. Errors: SyncError."""
        if self.is_under_way:
            self.is_under_way = False
            self._collected = _SKIPPED if self.engine.finish() else _MEANS
            if self._collected == _MEANS and self.engine.transport.rank == 0 and not self.engine.was_dense:
                self._residuals.note(lambda: norm_of_residuals(self.engine.compressed.states_save()))

    def take(self) -> Optional[Sequence["torch.Tensor"]]:
        """Collects, and gives the means, which last until the next `begin`; None: nothing had begun, or the step was skipped. Errors:
        SyncError."""
        self.collect()
        collected, self._collected = self._collected, _NOTHING
        self.was_skipped = collected == _SKIPPED
        return self._means if collected == _MEANS else None

    def state_dict(self, prefix: str) -> Dict[str, "torch.Tensor"]:
        """Collects. What is there to take comes back by `load_state_dict`."""
        self.collect()
        saved = {f"{prefix}{name}": mean.clone() for name, mean in zip(self._names, self._means)}
        return {**saved, f"{prefix}collected": torch.tensor(self._collected), f"{prefix}scale": torch.tensor(self.engine.scale, dtype=torch.float64)}

    def load_state_dict(self, saved: Mapping[str, Any], prefix: str) -> None:
        """Errors: InvalidArgumentError (something is under way, a tensor is missing or has another shape)."""
        if self.is_under_way:
            raise InvalidArgumentError("an exchange is under way: states are loaded behind state_dict(), or before the first step")
        for name, mean in zip(self._names, self._means):
            copy_saved(mean, saved, f"{prefix}{name}")
        self._collected = int(found(saved, f"{prefix}collected"))
        self.engine.scale = float(found(saved, f"{prefix}scale"))


def padded(about: Mapping[str, Any]) -> "torch.Tensor":
    """What is said of a schedule, as a tensor whose size is always the same."""
    text = json.dumps(dict(about)).encode()
    return torch.frombuffer(bytearray(text.ljust(_ABOUT_BYTES)), dtype=torch.uint8)


def check_saved(saved: Any, expected: Mapping[str, Any], about: str, kind: str) -> List[str]:
    """What cannot be taken over without harm. `expected`: what `state_dict` gives now; `about`: the key of what is said of the schedule, of
    which another `kind` is an error. Errors: InvalidArgumentError (a key is missing, another shape, another kind), before anything has changed."""
    if not isinstance(saved, Mapping) or about not in saved:
        raise InvalidArgumentError("there are no states of this rank in it: each rank loads what it has saved, by the same class")
    told, own = (json.loads(bytes(each[about].tolist()).decode()) for each in (saved, expected))
    if told.get(kind) != own.get(kind):
        raise InvalidArgumentError(f"{kind} is {told.get(kind)!r} in the saved states, and {own.get(kind)!r} here")
    check_tensors(saved, expected)
    return [f"{name} was {told.get(name)!r}, and is {value!r}" for name, value in own.items() if told.get(name) != value]


def check_tensors(saved: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Errors: InvalidArgumentError (a key is missing, another shape)."""
    for key, tensor in expected.items():
        if isinstance(tensor, torch.Tensor) and not key.endswith(".states"):
            if not isinstance(found(saved, key), torch.Tensor) or tuple(saved[key].shape) != tuple(tensor.shape):
                raise InvalidArgumentError(f"{key} has another shape in the saved states than {tuple(tensor.shape)}")
        else:
            found(saved, key)


def found(saved: Mapping[str, Any], key: str) -> Any:
    """Errors: InvalidArgumentError (there is no such key)."""
    if key not in saved:
        raise InvalidArgumentError(f"there is no {key} in the saved states")
    return saved[key]


def copy_saved(into: "torch.Tensor", saved: Mapping[str, Any], key: str) -> None:
    """Errors: InvalidArgumentError (there is no such key, another shape)."""
    tensor = found(saved, key)
    if tuple(tensor.shape) != tuple(into.shape):
        raise InvalidArgumentError(f"{key} has the shape {tuple(tensor.shape)} in the saved states, and {tuple(into.shape)} here")
    into.copy_(tensor)
