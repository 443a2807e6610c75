"""What to train with: a program, its plan and its exact steps, chosen from what was measured (docs/recipes.md)."""
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ._told import log

AUTO = "auto"  # the program that `recipe` chooses
_EXACT_UNDER = 4096  # elements, and tensors of one dimension: the usual rules
_SECONDS = 0.1  # that an exchange may take
_RANKS = 4  # with which the table was measured


@dataclass(frozen=True)
class Measured:
    """A row of the table.

    Attributes:
        name: for people.
        bits: that a rank sends of an element to each rank that it sends it to.
        plan: "two_shot", where a rank sends 2 (P - 1) / P payloads, or "allgather", where it sends P - 1.
        part_dense: of all steps, that are exact at first.
        excess: percent of loss above dense training after 200 steps of 4 ranks, by optimizer: the larger of two tasks' means over seeds.
    """

    name: str
    program: str
    bits: float
    plan: str
    excess: Mapping[str, float]
    part_dense: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Dict[str, Any]:
        return {"program": self.program, "plan": self.plan, "part_dense": self.part_dense, **self.parameters}

    def part(self, world: int) -> float:
        """Of the bytes that a rank sends in a dense all-reduce of f32."""
        copies = world / 2 if self.plan == "allgather" else 1.0
        return self.bits / 32 * copies


RECIPES = (
    Measured("int8_block", "int8_block", 8.25, "two_shot", {"sgd": 0.8, "adamw": 0.2}),
    Measured("int4_block", "int4_block", 4.25, "two_shot", {"sgd": 2.2, "adamw": 2.6}),
    Measured("eden of 3 bits", "eden(bits: 3)", 3.03, "two_shot", {"sgd": 1.0, "adamw": 5.4}),
    Measured("unbiased drive", "drive(unbiased: true)", 1.03, "allgather", {"sgd": 3.9, "adamw": 10.5}),
    Measured("drive", "drive", 1.03, "two_shot", {"sgd": 2.7, "adamw": 13.2}),
    Measured("topk 1 % with feedback", "error_feedback(topk(ratio: 0.01))", 0.41, "allgather", {"sgd": 21.8, "adamw": 45.3}, part_dense=0.25),
    Measured("topk 0.5 % with feedback", "error_feedback(topk(ratio: 0.005))", 0.21, "two_shot", {"sgd": 30.7, "adamw": 45.8}, part_dense=0.25),
)


@dataclass(frozen=True)
class Recipe:
    """What `recipe` chose. `compress(model, found.program, **found.settings)` takes it.

    Attributes:
        program, parameters: of the program.
        plan: None where nothing is compressed.
        dense_steps: None where `total_steps` was not said and the program wants some.
        rules: None: tensors of one dimension or under 4096 elements are exact.
        part: of the bytes of a dense all-reduce, of the tensors that are compressed.
        why: for people.
    """

    program: str
    plan: Optional[str]
    dense_steps: Optional[int]
    part: float
    why: str
    rules: None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Dict[str, Any]:
        """Keyword arguments of `compress`, beside the program."""
        return {"plan": self.plan, "dense_steps": self.dense_steps, "rules": self.rules, **self.parameters}


def recipe(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    link: Optional[float] = None,
    budget: Optional[float] = None,
    total_steps: Optional[int] = None,
    world: Optional[int] = None,
) -> Recipe:
    """The recipe that lost least among those that were measured with such an optimizer and stay within the budget.

    Args:
        model: in DistributedDataParallel or not.
        optimizer: SGD, Adam or AdamW, or one derived from them.
        link: Mbit/s of a rank. Without a budget, exchanges may take a tenth of a second over it.
        budget: what compressed tensors may send, as a part of what they send in a dense all-reduce: 1/8. Without a link, too: 1/8.
        total_steps: of the training, of which some recipes take a part as exact ones.
        world: ranks; None: of the process group, or 4.

    Errors: InvalidArgumentError (nothing to compress, another optimizer, a link, budget or number that is not above 0).
    """
    for name, value in (("link", link), ("budget", budget), ("total_steps", total_steps), ("world", world)):
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
            raise InvalidArgumentError(f"{name} is {value!r}: a number above 0 is taken")
    kind = _kind_of(optimizer)
    elements = sum(p.numel() for p in model.parameters() if p.requires_grad and p.dim() > 1 and p.numel() >= _EXACT_UNDER)
    if elements == 0:
        raise InvalidArgumentError(
            f"the model has no parameter of two dimensions and {_EXACT_UNDER} elements, so all would be exact: rules= of compress say otherwise")
    ranks = world if world is not None else dist.get_world_size() if dist.is_available() and dist.is_initialized() else _RANKS
    wanted = budget if budget is not None else 1 / 8 if link is None else _budget_of(link, elements, ranks)
    if wanted >= 1:
        return Recipe("none", None, 0, 1.0, f"a dense exchange of {4 * elements / 1e6:.3g} MB keeps within the budget: nothing is compressed")
    fitting = [each for each in RECIPES if kind in each.excess and each.part(ranks) <= wanted * (1 + 1e-9)]
    if not fitting:
        least = min((each for each in RECIPES if kind in each.excess), key=lambda each: each.part(ranks))
        return _chosen(least, kind, ranks, total_steps, f"no recipe keeps within 1/{1 / wanted:.3g}; the smallest is ")
    return _chosen(min(fitting, key=lambda each: each.excess[kind]), kind, ranks, total_steps, "")


def _kind_of(optimizer: torch.optim.Optimizer) -> str:
    if isinstance(optimizer, torch.optim.SGD):
        return "sgd"
    if isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)):
        return "adamw"
    raise InvalidArgumentError(f"recipes were measured with SGD and AdamW, and the optimizer is {type(optimizer).__name__}: pass a program to compress instead")


def _budget_of(link: float, elements: int, ranks: int) -> float:
    dense_bits = 2 * (ranks - 1) / ranks * 32 * elements
    return link * 1e6 * _SECONDS / dense_bits if dense_bits > 0 else 1.0


def _chosen(measured: Measured, kind: str, ranks: int, total_steps: Optional[int], before: str) -> Recipe:
    part = measured.part(ranks)
    steps: Optional[int] = 0
    if measured.part_dense > 0:
        steps = None if total_steps is None else round(measured.part_dense * total_steps)
    excess = measured.excess[kind]
    why = (
        f"{before}{measured.name} by {measured.plan} sends 1/{1 / part:.3g} of dense's bytes over {ranks} ranks; after 200 steps of {_RANKS} ranks "
        f"under {'SGD' if kind == 'sgd' else 'AdamW'} its loss was {excess:+.1f} % off dense's"
    )
    return Recipe(measured.program, measured.plan, steps, part, why, parameters=measured.parameters)


def chosen_settings(model: Any, optimizer: Optional[torch.optim.Optimizer], given: Mapping[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """The program and the settings of `compress(model, "auto", …)`; those that are given come before the recipe's. All ranks choose alike, since
    they choose by what is the same on all of them. Errors: those of `recipe`, InvalidArgumentError (no optimizer)."""
    if optimizer is None:
        raise InvalidArgumentError('"auto" chooses by the optimizer: pass optimizer=')
    settings = dict(given)
    asked = {name: settings.pop(name, None) for name in ("link", "budget")}
    world = dist.get_world_size(model.process_group)
    found = recipe(model.module, optimizer, total_steps=settings.get("total_steps"), world=world, **asked)
    log.info("auto: %s", found.why)
    return found.program, {**found.settings, **settings}
