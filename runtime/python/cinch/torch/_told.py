"""Lines about the start and about steps."""
import logging
import math
import warnings
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Sequence

from ..synchronizer import Synchronizer

if TYPE_CHECKING:
    from ._engine import Engine

log = logging.getLogger("cinch.torch")
_STEPS_TO_COMPARE = 5
_STEPS_OF_DRIFT, _FIRST_DISTANCES, _FAR = 16, 4, 16.0
_LITTLE = 0.02
_FIRST_RESIDUALS, _NEARLY_DOUBLE, _SETTLING, _IN_A_ROW = 8, 1.7, 3, 3


@dataclass
class StepTimes:
    """Milliseconds that steps took behind the backward pass, by kind of step."""

    dense: List[float] = field(default_factory=list)
    compressed: List[float] = field(default_factory=list)
    has_warned: bool = False

    def note(self, milliseconds: float, *, is_dense: bool, warns: bool) -> None:
        """Warns once, with `warns`, where compressed steps take longer."""
        kept = self.dense if is_dense else self.compressed
        kept.append(milliseconds)
        del kept[:-100]
        if self.has_warned or not warns or min(len(self.dense), len(self.compressed)) < _STEPS_TO_COMPARE:
            return
        dense, compressed = median(self.dense[1:]), median(self.compressed[1:])
        if compressed > dense:
            self.has_warned = True
            warnings.warn(f"compression costs more than it saves: steps wait {compressed:.1f} ms for the exchange, dense ones waited {dense:.1f} ms", stacklevel=3)

    def last(self, *, is_dense: bool) -> float:
        times = self.dense if is_dense else self.compressed
        return times[-1] if times else 0.0


@dataclass
class Drift:
    """How far a rank's weights were from the global ones, at every 16th step."""

    distances: List[float] = field(default_factory=list)
    has_warned: bool = False

    def note(self, step: int, distance: Callable[[], float], own_share: float) -> None:
        """Warns once where the distance rises to 16 times what it was at first: the rank's own steps then lead away, as an optimizer's rate that is too large has it."""
        if step % _STEPS_OF_DRIFT != 0 or self.has_warned:
            return
        self.distances.append(distance())
        kept = self.distances
        if len(kept) <= 2 * _FIRST_DISTANCES:
            return
        first, last = median(kept[:_FIRST_DISTANCES]), kept[-_FIRST_DISTANCES:]
        if not math.isfinite(last[-1]) or (last[0] > _FAR * first and last == sorted(last)):
            self.has_warned = True
            remedy = "a smaller own_share or learning rate, or method stale" if own_share > 0 else "a smaller learning rate"
            warnings.warn(f"step {step}: this rank's weights lead away from the global ones, by {last[-1]:.3g} in the norm and {first:.3g} at first: {remedy} may help", stacklevel=4)
        del kept[_FIRST_DISTANCES:-_FIRST_DISTANCES]


def warn_of_needless_delay(phases: Sequence[Mapping[str, Any]], milliseconds: float, period: str, remedy: str) -> None:
    """Where an exchange takes next to nothing of the time between two. `phases`: of a report; `period`: what that time is."""
    exchange = sum(phase["ms"] for phase in phases)
    if exchange < _LITTLE * milliseconds:
        warnings.warn(f"an exchange takes {exchange:.2f} ms of {period} of {milliseconds:.1f} ms: it needs no delay, and {remedy}", stacklevel=4)


@dataclass
class Residuals:
    """How large a rank's residuals were behind its 8th exchange, and behind twice as many again and again: reading them takes a copy of all states."""

    count: int = 0
    norms: List[float] = field(default_factory=list)
    has_warned: bool = False

    def note(self, norm: Callable[[], float]) -> None:
        """Warns once, where they have become 16 times as large, or have nearly doubled three times behind the 64th exchange: feedback that is stable
        comes to rest."""
        self.count += 1
        if self.has_warned or self.count < _FIRST_RESIDUALS or self.count & (self.count - 1):
            return
        self.norms.append(norm())
        grows = [after > _NEARLY_DOUBLE * before > 0 for before, after in zip(self.norms, self.norms[1:])][_SETTLING:]
        last, before = self.norms[-1], self.norms[-2] if len(self.norms) > 1 else 0.0
        if not math.isfinite(last) or last > _FAR * before > 0 or (len(grows) >= _IN_A_ROW and all(grows[-_IN_A_ROW:])):
            self.has_warned = True
            warnings.warn(
                f"what this rank has not sent yet grows: a norm of {last:.3g} behind {self.count} exchanges, and of {before:.3g} behind half as many. "
                "Larger payloads, or a feedback that fades (decay), may help",
                stacklevel=4,
            )


def tell_start(compressed: Synchronizer, dense_steps: int) -> None:
    """What is compressed by what."""
    if log.isEnabledFor(logging.INFO):
        log.info(start_line(compressed, dense_steps))


def warn_of_start(engines: Sequence["Engine"]) -> None:
    """Warnings, on rank 0, of rules that fit no parameter of any engine, and what the compiler warns of."""
    if engines[0].transport.rank != 0:
        return
    idle = [rule for rule in engines[0].idle_rules if all(rule in engine.idle_rules for engine in engines)]
    if idle:
        warnings.warn(f"rules that fit no parameter: {', '.join(idle)}", stacklevel=4)
    for text in dict.fromkeys(text for engine in engines for text in engine.warnings):
        warnings.warn(text, stacklevel=4)


def start_line(compressed: Synchronizer, dense_steps: int) -> str:
    counts: Dict[str, int] = {}
    for tensor in compressed.tensors:
        name = "" if tensor.program is None else tensor.program.name
        counts[name] = counts.get(name, 0) + 1
    exact = counts.pop("", 0)
    said = [f"{count} {'tensor' if count == 1 else 'tensors'} by {name}" for name, count in counts.items()]
    words = compressed.plan.split()  # "plan two_shot, rank 0 of 2: …"
    plan = words[1].rstrip(",") if len(words) > 1 else "none"
    states = compressed.report()["memory_bytes"]["states"]
    steps = "" if dense_steps == 0 else ", the first step exact" if dense_steps == 1 else f", the first {dense_steps} steps exact"
    return f"{', '.join([*said, f'{exact} exact'])}, plan {plan}, states {states / 1e6:.3g} MB{steps}"


def line_of(step: int, told: Mapping[str, Any]) -> str:
    """A step, of what `report` says of it."""
    sent, before = told["sent_bytes"], told["gradient_bytes"]
    phases = ", ".join(f"{phase['phase']} {phase['ms']:.1f}" for phase in told["phases"])
    memory = sum(told["memory_bytes"].values())
    return (
        f"cinch step {step}: gradients {before / 1e6:.3f} MB, sent {sent / 1e6:.3f} MB ({sent / max(1, before):.2%}), "
        f"exposed {told['exposed_ms']:.1f} ms, ms by phase: {phases}; memory {memory / 1e6:.1f} MB"
    )
