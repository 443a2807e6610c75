"""Weights that gradients of all ranks move: as a copy on every rank, or in parts that ranks own."""
import contextlib
import inspect
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

import torch
import torch.distributed as dist

from ..errors import Error, InvalidArgumentError
from . import _tensors
from ._engine import Engine
from ._exchange import Exchange, copy_saved, found
from ._optimizer_steps import rates_of, step_with

Named = Sequence[Tuple[str, "torch.Tensor"]]
# Each element's step depends on that element alone, so that an owner's part moves as it would within the whole.
_ELEMENT_WISE = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Rprop", "ASGD")


class GlobalWeights(Protocol):
    """Attributes:
    copies: of the weights that this rank holds beside the model's, for `report`.
    bytes: of those, and of gradients under way.
    """

    copies: int
    bytes: int

    def begin(self, gradients: Sequence[Optional["torch.Tensor"]]) -> None:
        """Begins to move the global weights by the mean of these. Errors: SyncError."""

    def collect(self) -> None:
        """Waits for what is under way, which changes nothing that a caller sees. Errors: SyncError."""

    def take(self) -> bool:
        """Waits for what is under way. Returns whether the parameters have become the newest global weights; they stay as they are where
        this rank does not get any this time. Errors: SyncError."""

    def flush(self) -> None:
        """As `take`, and the parameters become the newest global weights in any case."""

    def movement(self) -> Optional[Sequence["torch.Tensor"]]:
        """What a step has moved the global weights by, in the mean over those between the last two times that this rank got them; None:
        not known."""

    def show(self, parameters: Sequence["torch.Tensor"]) -> None:
        """Writes the newest global weights that this rank has."""

    def distance(self) -> float:
        """Of the parameters from the newest global weights that this rank has: the Euclidean norm."""

    def close(self) -> None:
        """Nothing of it runs then."""

    def state_dict(self, prefix: str) -> Dict[str, Any]: ...
    def load_state_dict(self, saved: Mapping[str, Any], prefix: str) -> None: ...


class Replicated:
    """The same copy on every rank, which moves it by the mean that all ranks get."""

    def __init__(self, named: Named, optimizer: "torch.optim.Optimizer", engine: Engine, *, has_copy: bool) -> None:
        """`has_copy`: the parameters may move away from the global weights."""
        self._parameters, self._optimizer = [parameter for _, parameter in named], optimizer
        self._names = [name for name, _ in named]
        self._exchange = Exchange(engine, named)
        self._weights = [parameter.detach().clone() for parameter in self._parameters] if has_copy else []
        self._rates = rates_of(optimizer)
        self.copies = int(has_copy)
        self.bytes = self._exchange.bytes + sum(weight.nbytes for weight in self._weights)

    def begin(self, gradients: Sequence[Optional["torch.Tensor"]]) -> None:
        self._rates = rates_of(self._optimizer)
        self._exchange.begin(gradients)

    def collect(self) -> None:
        self._exchange.collect()

    def take(self) -> bool:
        means = self._exchange.take()
        self.show(self._parameters)
        if means is not None:
            step_with(self._optimizer, self._parameters, means, self._rates)
            _copy(self._parameters, self._weights)
        return True

    def flush(self) -> None:
        self.take()
        warn_if_apart(self._parameters, self._exchange.engine.group)

    def close(self) -> None:
        """Its exchange has no thread."""

    def movement(self) -> Optional[Sequence["torch.Tensor"]]:
        return None

    def show(self, parameters: Sequence["torch.Tensor"]) -> None:
        _copy(self._weights, parameters)

    def distance(self) -> float:
        return _distance(self._parameters, self._weights)

    def state_dict(self, prefix: str) -> Dict[str, Any]:
        saved: Dict[str, Any] = self._exchange.state_dict(f"{prefix}means.")
        saved.update({f"{prefix}global.{name}": weight.clone() for name, weight in zip(self._names, self._weights)})
        saved[f"{prefix}rates"] = torch.tensor([float(rate) for rate in self._rates], dtype=torch.float64)
        return saved

    def load_state_dict(self, saved: Mapping[str, Any], prefix: str) -> None:
        self._exchange.load_state_dict(saved, f"{prefix}means.")
        for name, weight in zip(self._names, self._weights):
            copy_saved(weight, saved, f"{prefix}global.{name}")
        self._rates = found(saved, f"{prefix}rates").tolist()


class Owned:
    """Each rank owns a part of every tensor. It gets the mean of that part at every step, and moves the part by an optimizer of the kind that
    it is given; all ranks get the whole at every `pulls_every`-th step. Between two calls this goes on in a thread."""

    def __init__(self, named: Named, optimizer: "torch.optim.Optimizer", engine: Engine, ends: Sequence[Tuple[int, ...]], pulls_every: int) -> None:
        """`ends`: where each rank's part of each tensor ends. Errors: InvalidArgumentError (tensors of several types, see `owners_optimizer`)."""
        self._parameters, self._names = [parameter for _, parameter in named], [name for name, _ in named]
        self._optimizer, self._engine, self._ends, self._pulls_every = optimizer, engine, ends, pulls_every
        self._rank, self._world = engine.transport.rank, engine.transport.world
        self._parts = [torch.nn.Parameter(self._part(_in_memory(parameter.detach()), place, self._rank).clone()) for place, parameter in enumerate(self._parameters)]
        self._means = [torch.zeros_like(part) for part in self._parts]
        self._exchange = Exchange(engine, named, self._means)
        self._owners = owners_optimizer(optimizer, dict(zip(self._parameters, self._parts)))
        lengths = [sum(self._bounds(place, rank)[1] - self._bounds(place, rank)[0] for place in range(len(self._parts))) for rank in range(self._world)]
        self._room = max(lengths)
        dtype, device = self._parameters[0].dtype, self._parameters[0].device
        self._gathered = torch.zeros(self._world * self._room, dtype=dtype, device=device)
        self._weights = [parameter.detach().clone() for parameter in self._parameters]  # as this rank got them last
        self._moved: Optional[List["torch.Tensor"]] = None
        self._group = _own_group(engine) if self._world > 1 else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cinch-owner")
        self._under_way: Optional["Future[bool]"] = None
        self._rates = rates_of(optimizer)
        self._steps = 0  # that have begun
        self._has_pulled = False  # and nobody has taken it
        self.pulled_bytes = 0
        self.copies = 1
        self.bytes = self._exchange.bytes + sum(each.nbytes for each in [*self._weights, *self._parts, self._gathered])

    def _bounds(self, place: int, rank: int) -> Tuple[int, int]:
        return (self._ends[place][rank - 1] if rank > 0 else 0), self._ends[place][rank]

    def _part(self, flat: "torch.Tensor", place: int, rank: int) -> "torch.Tensor":
        begin, end = self._bounds(place, rank)
        return flat[begin:end]

    def begin(self, gradients: Sequence[Optional["torch.Tensor"]]) -> None:
        self._rates = rates_of(self._optimizer)
        for kept, group in zip(self._owners.param_groups, self._optimizer.param_groups):
            kept.update({name: value for name, value in group.items() if name not in ("params", "lr")})
        self._exchange.begin(gradients)
        self._steps += 1
        self._under_way = self._thread.submit(self._move, self._steps % self._pulls_every == 0)

    def _move(self, pulls: bool) -> bool:
        """Returns whether this rank has got the whole."""
        means = self._exchange.take()
        if means is not None:
            step_with(self._owners, self._parts, means, self._rates)
        return self._pull() if pulls else False

    @torch.no_grad()
    def _pull(self) -> bool:
        own = self._gathered[self._rank * self._room : (self._rank + 1) * self._room]
        parts = torch.cat([part.detach() for part in self._parts])
        own[: len(parts)] = parts
        if self._group is not None:
            dist.all_gather_into_tensor(self._gathered, own.clone(), group=self._group)
            self.pulled_bytes += own.nbytes * (self._world - 1)
        return True

    def collect(self) -> None:
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            self._has_pulled = self._told(under_way.result) or self._has_pulled

    def _told(self, act: Callable[[], bool]) -> bool:
        """The value of `act`; a pull that fails, which goes over PyTorch's connection, is a SyncError."""
        try:
            return act()
        except RuntimeError as failure:
            if not isinstance(failure, Error):
                self._engine.refuse(InvalidArgumentError(f"the weights of all ranks could not be pulled: {failure}"))
            raise

    def close(self) -> None:
        if self._under_way is not None:
            with contextlib.suppress(Exception):
                self._under_way.result()
            self._under_way = None
        self._thread.shutdown()

    def take(self) -> bool:
        self.collect()
        if not self._has_pulled:
            return False
        self._has_pulled = False
        self._get(self._pulls_every)
        return True

    @torch.no_grad()
    def _get(self, steps: int) -> None:
        """What was gathered becomes the parameters. `steps`: since the last time."""
        moved = []
        for place, (parameter, weight) in enumerate(zip(self._parameters, self._weights)):
            before = weight.clone()
            flat = torch.cat([self._of(rank, place) for rank in range(self._world)])
            _in_memory(weight).copy_(flat)
            parameter.copy_(weight)
            moved.append(weight.sub(before).div_(max(1, steps)))
        self._moved = moved

    def _of(self, rank: int, place: int) -> "torch.Tensor":
        begin = rank * self._room + sum(self._bounds(each, rank)[1] - self._bounds(each, rank)[0] for each in range(place))
        length = self._bounds(place, rank)[1] - self._bounds(place, rank)[0]
        return self._gathered[begin : begin + length]

    def flush(self) -> None:
        self.collect()
        steps = self._steps % self._pulls_every
        if not self._has_pulled:
            self._told(self._pull)
        self._has_pulled = False
        self._get(steps or self._pulls_every)
        self._steps = 0

    def movement(self) -> Optional[Sequence["torch.Tensor"]]:
        return self._moved

    def show(self, parameters: Sequence["torch.Tensor"]) -> None:
        _copy(self._weights, parameters)

    def distance(self) -> float:
        return _distance(self._parameters, self._weights)

    def state_dict(self, prefix: str) -> Dict[str, Any]:
        self.collect()
        kept: Dict[str, Any] = {f"{prefix}part.{name}": part.detach().clone() for name, part in zip(self._names, self._parts)}
        kept.update({f"{prefix}global.{name}": weight.clone() for name, weight in zip(self._names, self._weights)})
        moved = self._moved or [torch.zeros_like(weight) for weight in self._weights]
        kept.update({f"{prefix}moved.{name}": each.clone() for name, each in zip(self._names, moved)})
        kept[f"{prefix}gathered"] = self._gathered.clone()
        kept[f"{prefix}counts"] = torch.tensor([self._steps, int(self._has_pulled), int(self._moved is not None)])
        kept[f"{prefix}owner"] = self._owners.state_dict()
        return kept

    def load_state_dict(self, saved: Mapping[str, Any], prefix: str) -> None:
        self.collect()
        moved = [torch.zeros_like(weight) for weight in self._weights]
        with torch.no_grad():
            for name, part, weight, each in zip(self._names, self._parts, self._weights, moved):
                copy_saved(part, saved, f"{prefix}part.{name}")
                copy_saved(weight, saved, f"{prefix}global.{name}")
                copy_saved(each, saved, f"{prefix}moved.{name}")
            copy_saved(self._gathered, saved, f"{prefix}gathered")
        self._steps, has_pulled, has_moved = found(saved, f"{prefix}counts").tolist()
        self._has_pulled, self._moved = bool(has_pulled), moved if has_moved else None
        self._owners.load_state_dict(found(saved, f"{prefix}owner"))


@torch.no_grad()
def _copy(of: Sequence["torch.Tensor"], into: Sequence["torch.Tensor"]) -> None:
    for source, target in zip(of, into):
        target.copy_(source)


@torch.no_grad()
def _distance(parameters: Sequence["torch.Tensor"], weights: Sequence["torch.Tensor"]) -> float:
    apart = [torch.linalg.vector_norm(parameter - weight, dtype=torch.float32) for parameter, weight in zip(parameters, weights)]
    return float(torch.linalg.vector_norm(torch.stack(apart))) if apart else 0.0


@torch.no_grad()
def warn_if_apart(parameters: Sequence["torch.Tensor"], group: Any) -> None:
    """On rank 0, where these are not the same on all ranks: what moved them was not alike. All ranks call it."""
    sums = torch.stack([torch.stack([parameter.sum(dtype=torch.float64), torch.linalg.vector_norm(parameter, dtype=torch.float64)]) for parameter in parameters]).flatten()
    told = [torch.empty_like(sums) for _ in range(dist.get_world_size(group))]
    dist.all_gather(told, sums, group=group)
    apart = [rank for rank, each in enumerate(told) if not each.equal(told[0]) and bool(torch.isfinite(each).all())]
    if apart and dist.get_rank(group) == 0:
        warnings.warn(f"the global weights of ranks {', '.join(map(str, apart))} are not those of rank 0: optimizers or their rates have differed between ranks", stacklevel=4)


def even_ends(count: int, world: int) -> Tuple[int, ...]:
    """Where the ranks' parts of so many elements end; they differ by one element at most."""
    return tuple(count // world * (rank + 1) + count % world * (rank + 1) // world for rank in range(world))


def _in_memory(tensor: "torch.Tensor") -> "torch.Tensor":
    """Its elements as a vector, as they lie in memory: a view."""
    return tensor.permute(_tensors.memory_order(tensor)).reshape(-1)


def owners_optimizer(optimizer: "torch.optim.Optimizer", parts: Mapping["torch.Tensor", "torch.Tensor"]) -> "torch.optim.Optimizer":
    """One of the same kind and groups, for parts of the parameters. Errors: InvalidArgumentError (see `check_element_wise`)."""
    check_element_wise(optimizer)
    groups = [{**group, "params": [parts[parameter] for parameter in group["params"] if parameter in parts]} for group in optimizer.param_groups]
    # Defaults have what a class sets for its base, too.
    taken = inspect.signature(type(optimizer)).parameters
    return type(optimizer)(groups, **{name: value for name, value in optimizer.defaults.items() if name in taken})


def check_element_wise(optimizer: Any) -> None:
    """Errors: InvalidArgumentError (its step may need more than the element, or it has a state already)."""
    if type(optimizer).__module__.partition(".")[0] != "torch" or type(optimizer).__name__ not in _ELEMENT_WISE:
        raise InvalidArgumentError(f"ranks own parts of tensors, and {type(optimizer).__name__} may need whole ones: one of {', '.join(_ELEMENT_WISE)} is taken")
    if any(float(state.get("step", 1)) > 0 for state in optimizer.state.values()):  # some make states before the first step
        raise InvalidArgumentError("the optimizer has taken steps, and owners of parts begin anew: give one that has not")


def _own_group(engine: Engine) -> Any:
    """Of the same ranks, for collectives of a thread of its own: those of the script go on meanwhile."""
    ranks = dist.get_process_group_ranks(engine.group)
    timeout = timedelta(seconds=engine.settings.most_seconds(engine.group))
    return dist.new_group(ranks, timeout=timeout, use_local_synchronization=True)
