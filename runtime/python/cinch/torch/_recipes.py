"""What to train with: a program, its plan and its exact steps, chosen from what was measured (docs/recipes.md)."""
import math
import operator
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..program import Program, compile
from ._momentum import check_optimizer
from ._rules import begins_late
from ._settings import AUTO
from ._told import log

_EXACT_UNDER = 4096  # elements, and tensors of one dimension: the usual rules
_SECONDS = 0.1  # that an exchange may take
_RANKS = 4  # with which the table was measured
_SHARED, _BUNDLE = 1 << 12, 1 << 20  # elements for each rank from which on a tensor is divided, and those of a bundle
_SAMPLE = 1 << 14  # elements from which on payloads grow evenly


@dataclass(frozen=True)
class Measured:
    """A row of the table.

    Attributes:
        name: for people.
        bits: that an element of a very large tensor takes, on the average of both ways.
        plan: "two_shot", where a rank sends 2 (P - 1) / P payloads, or "allgather", where it sends P - 1.
        part_dense: of all steps, that are exact at first.
        excess: percent of loss above dense training after 200 steps of 4 ranks, by optimizer: the larger of two tasks' means over seeds. A
            recipe is for the optimizers that it names.
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

    def fits(self, kind: str, total_steps: Optional[int]) -> bool:
        """Is it one for such an optimizer, with its exact steps? Without `total_steps` programs with states have some exact steps, others none."""
        return kind in self.excess and (self.part_dense == 0 or total_steps is not None or begins_late(compile(self.program, bindings=self.parameters)))

    def part(self, sizes: Sequence[int], world: int) -> float:
        """Of the bytes that ranks send in a dense all-reduce of f32, for tensors of so many elements."""
        program = compile(self.program, bindings=self.parameters)
        if self.plan == "allgather":
            return world / 2 * _payload_bytes(program, sizes, world) / (4 * sum(sizes))
        pieces = [piece for size in sizes for piece in _pieces(size, world)]
        carrier = program if program.carrier == "itself" else compile(program.carrier)
        return (_payload_bytes(program, pieces, world) + _payload_bytes(carrier, pieces, world)) / 2 / (4 * sum(sizes))


def _pieces(size: int, world: int) -> List[int]:
    """Elements of what two_shot encodes apart: bundles of large tensors are divided among ranks (docs/sync_reference.md, Pieces and bundles)."""
    count = 1 if size < world * _SHARED else world * -(-size // _BUNDLE)
    return [size * (piece + 1) // count - size * piece // count for piece in range(count)]


def _payload_bytes(program: Program, sizes: Sequence[int], world: int) -> float:
    """The most that payloads of vectors take. Long ones are reckoned from shorter ones: a session has memory for what it encodes."""
    sampled = sorted({_SAMPLE, 2 * _SAMPLE, *(size for size in sizes if size < _SAMPLE)})
    found = dict(zip(sampled, program.session([(size,) for size in sampled], world=world).payload_bounds(0)))
    each = (found[2 * _SAMPLE] - found[_SAMPLE]) / _SAMPLE
    return sum(found[size] if size < _SAMPLE else found[_SAMPLE] + each * (size - _SAMPLE) for size in sizes)


RECIPES = (
    Measured("int8_block", "int8_block", 8.25, "two_shot", {"sgd": 0.8, "adamw": 0.2}),
    Measured("int4_block", "int4_block", 4.25, "two_shot", {"sgd": 2.2, "adamw": 2.6}),
    Measured("eden of 3 bits", "eden(bits: 3)", 3.03, "two_shot", {"sgd": 1.0, "adamw": 5.4}),
    Measured("eden of 3 bits, half exact", "eden(bits: 3)", 3.03, "two_shot", {"adamw": 0.4}, part_dense=0.5),
    Measured("unbiased drive", "drive(unbiased: true)", 1.03, "allgather", {"sgd": 3.9, "adamw": 10.5}),
    Measured("drive", "drive", 1.53, "two_shot", {"sgd": 2.7, "adamw": 13.2}),
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
        part: of the bytes of a dense all-reduce, of this model's tensors that are compressed.
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
        budget: what compressed tensors may send in a compressed step, as a part of what they send in a dense all-reduce: 1/8. Without a link, too: 1/8.
        total_steps: of the training, of which some recipes take a part as exact ones. Without it, recipes are left out whose programs have no states
            and which want exact steps.
        world: ranks; None: of the process group, or 4.

    Errors: InvalidArgumentError (nothing to compress, another optimizer, a link, budget or number that is not above 0).
    """
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgumentError(f"model is of type {type(model).__name__}: a torch.nn.Module is taken")
    return _recipe_of(model.parameters(), optimizer, link=link, budget=budget, total_steps=total_steps, world=world)


def _recipe_of(
    parameters: Iterable["torch.Tensor"],
    optimizer: torch.optim.Optimizer,
    *,
    link: Optional[float],
    budget: Optional[float],
    total_steps: Optional[int],
    world: Optional[int],
) -> Recipe:
    for name, number in (("link", link), ("budget", budget)):
        if number is not None and (isinstance(number, bool) or not (isinstance(number, (int, float)) and 0 < number < math.inf)):
            raise InvalidArgumentError(f"{name} is {number!r}: a number above 0 is taken")
    for name, count in (("total_steps", total_steps), ("world", world)):
        if count is not None and not _is_count(count):
            raise InvalidArgumentError(f"{name} is {count!r}: an integer above 0 is taken")
    kind = _kind_of(optimizer)
    sizes = [p.numel() for p in parameters if p.requires_grad and p.dim() > 1 and p.numel() >= _EXACT_UNDER]
    elements = sum(sizes)
    if elements == 0:
        raise InvalidArgumentError(
            f"the model has no parameter of two dimensions and {_EXACT_UNDER} elements, so all would be exact: rules= of compress say otherwise")
    ranks = world if world is not None else dist.get_world_size() if dist.is_available() and dist.is_initialized() else _RANKS
    wanted = budget if budget is not None else 1 / 8 if link is None else _budget_of(link, elements, ranks)
    if wanted >= 1:
        return Recipe("none", None, 0, 1.0, f"a dense exchange of {4 * elements / 1e6:.3g} MB keeps within the budget: nothing is compressed")
    parts: Dict[float, Measured] = {}
    for measured in sorted((each for each in RECIPES if each.fits(kind, total_steps)), key=lambda each: each.excess[kind]):
        part = measured.part(sizes, ranks)
        if part <= wanted * (1 + 1e-9):
            return _chosen(measured, part, kind, ranks, total_steps, "")
        parts[part] = measured
    least = min(parts)
    return _chosen(parts[least], least, kind, ranks, total_steps, f"no recipe keeps within 1/{1 / wanted:.3g}; the smallest is ")


def _is_count(value: Any) -> bool:
    try:
        return operator.index(value) > 0 and not isinstance(value, bool)
    except TypeError:
        return False


def _kind_of(optimizer: torch.optim.Optimizer) -> str:
    check_optimizer(optimizer, may_be_none=False)
    if isinstance(optimizer, torch.optim.SGD):
        return "sgd"
    if isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)):
        return "adamw"
    raise InvalidArgumentError(f"recipes were measured with SGD and AdamW, and the optimizer is {type(optimizer).__name__}: pass a program to compress instead")


def _budget_of(link: float, elements: int, ranks: int) -> float:
    dense_bits = 2 * (ranks - 1) / ranks * 32 * elements
    return link * 1e6 * _SECONDS / dense_bits if dense_bits > 0 else 1.0


def _chosen(measured: Measured, part: float, kind: str, ranks: int, total_steps: Optional[int], before: str) -> Recipe:
    steps: Optional[int] = 0
    exact = ""
    if measured.part_dense > 0:
        steps = None if total_steps is None else round(measured.part_dense * total_steps)
        in_all = measured.part_dense + (1 - measured.part_dense) * part
        exact = f"; the first {100 * measured.part_dense:.0f} % of the steps are exact, so that all steps together send 1/{1 / in_all:.3g}" if steps else ""
    excess = measured.excess[kind]
    why = (
        f"{before}{measured.name} by {measured.plan} sends 1/{1 / part:.3g} of dense's bytes over {ranks} {'rank' if ranks == 1 else 'ranks'}{exact}; after 200 steps of {_RANKS} ranks "
        f"under {'SGD' if kind == 'sgd' else 'AdamW'} its loss was {excess:+.1f} % off dense's"
    )
    return Recipe(measured.program, measured.plan, steps, part, why, parameters=measured.parameters)


class Chosen(NamedTuple):
    """What `compress` and its like were asked for, or what a recipe says in the place of "auto"."""

    program: Union[str, Program, None]
    settings: Dict[str, Any]
    failure: Optional[Exception]  # why there is no recipe: ranks tell each other before one of them raises


def chosen(
    program: Union[str, Program, None],
    parameters: Iterable["torch.Tensor"],
    optimizer: Optional[torch.optim.Optimizer],
    given: Mapping[str, Any],
    group: Any,
) -> Chosen:
    """Settings that are given come before the recipe's. All ranks choose alike, since they choose by what is the same on all of them."""
    if program != AUTO:
        return Chosen(program, dict(given), None)
    try:
        return _automatic(parameters, optimizer, given, dist.get_world_size(group))
    except Exception as failure:
        return Chosen("none", {name: given[name] for name in ("timeout",) if name in given}, failure)


def _automatic(
    parameters: Iterable["torch.Tensor"], optimizer: Optional[torch.optim.Optimizer], given: Mapping[str, Any], world: int
) -> Chosen:
    if optimizer is None:
        raise InvalidArgumentError('"auto" chooses by the optimizer: pass optimizer=')
    settings = {name: value for name, value in given.items() if value is not None}
    link, budget = settings.pop("link", None), settings.pop("budget", None)
    # Exact steps of the call are not those that a recipe was measured with.
    total_steps = settings.get("total_steps") if "dense_steps" not in settings else None
    found = _recipe_of(parameters, optimizer, link=link, budget=budget, total_steps=total_steps, world=world)
    plan = settings.get("plan", found.plan)
    log.info("auto: %s%s", found.why, "" if plan == found.plan else f". The call says plan {plan}, with which nothing was measured")
    return Chosen(found.program, {**found.settings, **settings}, None)
