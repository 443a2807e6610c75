"""Lines about the start and about steps."""
import logging
import warnings
from typing import Any, Dict, Mapping, Sequence

from ..program import Program
from ..synchronizer import Synchronizer

log = logging.getLogger("cinch.torch")


def tell_start(compressed: Synchronizer, dense_steps: int, idle_rules: Sequence[str]) -> None:
    """What is compressed by what; a warning of rules that fit no parameter."""
    if idle_rules:
        warnings.warn(f"rules that fit no parameter: {', '.join(idle_rules)}", stacklevel=5)
    if log.isEnabledFor(logging.INFO):
        log.info(start_line(compressed, dense_steps))


def warn_of_programs(programs: Sequence[Program]) -> None:
    """What the compiler warns of, once."""
    for text in dict.fromkeys(program.warnings.rstrip() for program in programs if program.warnings):
        warnings.warn(text, stacklevel=5)


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
