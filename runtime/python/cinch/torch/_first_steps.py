"""Plan "auto" once more, behind the backward pass that the first steps had: when gradients became ready, on which all ranks agree, and states
that go over to the new plan."""
from statistics import median
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple

import torch
import torch.distributed as dist

from ..synchronizer import Synchronizer, SyncTensor
from ._profile import clock_of
from ._states import description_of

if TYPE_CHECKING:
    from ._engine import Engine

_SITES = ("worker", "hop", "owner", "return")  # of a checkpoint's states: runtime/plan/plan.h
_MOST_SECONDS = 3600.0  # that plans take


class FirstSteps:
    """When the gradients of a hook were handed over in the first steps of a run. Times count from the first bucket, where a step of Cinch
    begins. What has no backward pass to hide behind is not planned again: other plans than "auto", one rank, and clipped gradients, which
    wait for each other."""

    def __init__(self, engine: "Engine") -> None:
        settings = engine.settings
        is_planned_again = settings.plan == "auto" and settings.clip is None and engine.transport.world > 1
        self._engine, self._clock = engine, clock_of(engine.device)
        self._most = settings.replan_after if is_planned_again else 0
        self._steps: List[Tuple[Any, Dict[int, Any]]] = []  # the begin, and moments by tensor

    def begin(self) -> None:
        """Begins a step of the engine; all ranks have taken as many before, so all plan again before the same one. Errors: SyncError."""
        if 0 < self._most == len(self._steps):
            steps, self._most, self._steps = self._steps, 0, []
            self._engine.plan_again(lambda: self._seconds(steps))
        self._engine.begin()
        if self._most > 0:
            self._steps.append((self._clock.now(), {}))

    def mark(self, place: int) -> None:
        """The gradient of this tensor is there."""
        if self._steps:
            self._steps[-1][1][place] = self._clock.now()

    def _seconds(self, steps: List[Tuple[Any, Dict[int, Any]]]) -> List[float]:
        """By tensor, medians. The first step is left out if there are others: DDP has other buckets in it, and memory is used for the first time."""
        kept = steps[1:] or steps
        tensors = range(len(self._engine.compressed.tensors))
        return [min(1e-6 * median(self._clock.between(begun, moments[place]) for begun, moments in kept), _MOST_SECONDS) for place in tensors]


def slowest(engine: "Engine", seconds: Sequence[float]) -> List[float]:
    """Of all ranks' times, by tensor, the same bits on all ranks: an exchange begins when the last rank has its gradient."""
    rank, world, count = engine.transport.rank, engine.transport.world, len(seconds)
    by_rank = [0.0] * (world * count)
    by_rank[rank * count : (rank + 1) * count] = seconds
    of_all = _added(engine, by_rank)  # zeros are added to each, which changes none
    return [max(of_all[place::count]) for place in range(count)]


def _added(engine: "Engine", values: Sequence[float]) -> List[float]:
    """Sums over ranks, in f32. Errors: those of `Synchronizer`, on all ranks."""
    held = torch.tensor(values, dtype=torch.float32)
    timeout = engine.settings.most_seconds(engine.group)
    with Synchronizer(engine.transport, [SyncTensor("what ranks tell each other", (len(values),))], threads=1, timeout=timeout) as sync:
        sync.begin(0, is_sum=True)
        sync.ready(0, held)
        sync.finish()
    return [float(value) for value in held.tolist()]


def with_states_of(engine: "Engine", old: Synchronizer, opened: Callable[[], Synchronizer]) -> Synchronizer:
    """What `opened` opens under another plan, with the states of `old`, which is closed then; `old`, where some state of some rank would have no place
    there. The same on all ranks. Errors: those of `Synchronizer`, of which one rank's is one on all."""
    saved = old.states_save()
    before = _counts(saved, old.tensors)
    all_before = _added(engine, before)
    if not any(all_before):
        old.close()  # first: its memory is free for the other
        return opened()
    new = opened()
    after = _counts(new.states_save(), new.tensors)
    is_lost = any(was > 0 and now == 0 for was, now in zip(all_before, _added(engine, after)))
    if not is_lost:
        restored = new.states_load(of_all_ranks(saved, engine.group))
        # Sites that no rank had before have nothing to lose.
        own_lost = restored.num_left + restored.num_reset - sum(now for was, now in zip(all_before, after) if was == 0)
        is_lost = _added(engine, [own_lost])[0] > 0
    (new if is_lost else old).close()
    return old if is_lost else new


def of_all_ranks(saved: bytes, group: Any) -> List[bytes]:
    """This rank's states with those of the others, of which every rank then has a copy: under another plan they may move to other ranks."""
    states: List[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(states, saved, group=group)
    return states


def _counts(saved: bytes, tensors: Sequence[SyncTensor]) -> List[int]:
    """This rank's pieces with states, by tensor and site."""
    places = {tensor.name: place for place, tensor in enumerate(tensors)}
    counts = [0] * (len(places) * len(_SITES))
    for site in description_of(saved)["sites"]:
        counts[places[site["tensor"]] * len(_SITES) + _SITES.index(site["site"])] += 1
    return counts
