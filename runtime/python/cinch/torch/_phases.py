"""Which steps compress, and how a rank's gradient is clipped before."""
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import torch

from ..errors import InvalidArgumentError
from ..program import Program
from ._group import Meeting
from ._rules import begins_alone, begins_late
from ._settings import Settings

if TYPE_CHECKING:
    from ._engine import Engine

_USUAL_DENSE_STEPS = 50  # error feedback and top-k need about as many before gradients change slowly
_PART_OF_ALL = 10


@dataclass
class Phases:
    """Steps from `first_step` on: `dense_steps` exact ones, compressed ones until `dense_after`, and exact ones again."""

    first_step: int
    dense_steps: int
    dense_after: Optional[int]
    is_paused: bool = False

    @staticmethod
    def of(settings: Settings, programs: Sequence[Program]) -> "Phases":
        """Errors: InvalidArgumentError (exact steps that a program's states would miss)."""
        dense_steps = settings.dense_steps
        if dense_steps is None:
            usual = _USUAL_DENSE_STEPS if settings.total_steps is None else settings.total_steps // _PART_OF_ALL
            dense_steps = usual if any(begins_late(program) for program in programs) else 0
        alone = begins_alone(programs)
        if alone is not None and dense_steps > 0:
            why = "" if settings.dense_steps is not None else ", as is usual beside a program with states"
            raise InvalidArgumentError(f"dense_steps is {dense_steps}{why}, and {alone.name} has exact steps of its own, which fill its states: 0 is taken")
        if alone is not None and settings.dense_after is not None:
            raise InvalidArgumentError(f"dense_after is {settings.dense_after}, and exact steps leave the states of {alone.name} behind: None is taken")
        return Phases(settings.first_step, dense_steps, settings.dense_after)

    @property
    def has_dense_steps(self) -> bool:
        return self.dense_steps > 0 or self.dense_after is not None

    def is_dense(self, step: int) -> bool:
        return self.is_paused or step < self.first_step + self.dense_steps or (self.dense_after is not None and step >= self.dense_after)


Given = Tuple[int, "torch.Tensor", Optional["torch.Tensor"], bool]


class Clip:
    """Local clipping, as deep gradient compression has it: the norm of a rank's gradient is at most `norm` / sqrt(ranks), so that the
    norm of a sum of independent ones is about `norm`. All gradients must be there before the first one is passed on."""

    def __init__(self, norm: float, world: int) -> None:
        self._limit = norm / math.sqrt(world)
        self._given: List[Given] = []

    def add(self, tensor: int, gradient: "torch.Tensor", update: Optional["torch.Tensor"], is_used: bool) -> None:
        self._given.append((tensor, gradient, update, is_used))

    def clipped(self, scale: float) -> List[Given]:
        """What `add` was given, with gradients clipped in place. One that is not finite stays as it is."""
        given, self._given = self._given, []
        norms = [torch.linalg.vector_norm(gradient, dtype=torch.float32) for _, gradient, _, _ in given]
        norm = float(torch.linalg.vector_norm(torch.stack(norms))) / abs(scale) if norms else 0.0
        if math.isfinite(norm) and norm > self._limit:
            for _, gradient, _, _ in given:
                gradient.mul_(self._limit / norm)
        return given


def agree_on_pause(engines: Sequence["Engine"], is_paused: bool) -> None:
    """All ranks call it between the same steps. Errors: InvalidArgumentError (programs that cannot pause, another step on some rank,
    pause on one and resume on another), TimedOutError (names ranks that have not come). All but the first end the connection, so
    that no rank waits."""
    for engine in engines:
        engine.check_pause()
    first = engines[0]
    asked = {"what is asked for": "pause" if is_paused else "resume", "the step": first.step}
    try:
        Meeting(first.group, first.settings.most_seconds(first.group)).agree(lambda: asked, lambda told: told)
    except Exception:
        for engine in engines:
            engine.close()
        raise
    for engine in engines:
        engine.set_pause(is_paused)
