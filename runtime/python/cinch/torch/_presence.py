"""Which ranks of a group are there: they meet by its store before each exchange, wait for who is late, and go on without who does not come."""
import json
import time
from statistics import median
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch.distributed as dist

from ..errors import InvalidArgumentError, TimedOutError
from ._group import Party, store_of

_DEVIATIONS = 4
_LEAST_GRACE = 0.5  # seconds
_PAUSE = 0.01  # seconds between two looks at the store
_KEPT_ROUNDS = 32


class Round(NamedTuple):
    """Attributes:
    number: of the meeting, from 0 on.
    party: who exchanges.
    current: ranks of the group with the global weights; the others of the party get them first.
    turns: what those with the global weights have come to exchange: one thing, unless they are out of step.
    """

    number: int
    party: Party
    current: Tuple[int, ...]
    turns: Tuple[int, ...] = (0,)


class Presence:
    """All ranks of the group make it alike."""

    def __init__(self, group: Any, min_ranks: int, grace: Optional[float], timeout: float) -> None:
        """`grace`: seconds that the first who comes waits for those who came to the last meeting. None: by what meetings took, the median and four
        deviations more; the first ones are given the time-out."""
        self._rank, self._world = dist.get_rank(group), dist.get_world_size(group)
        self._min_ranks, self._grace, self._timeout = min_ranks, grace, timeout
        self._store, self._name = store_of(group, "presence"), getattr(group, "group_name", "default")
        self._waits: List[float] = []
        self._expected: Sequence[int] = range(self._world)
        self.next = 0
        self.is_current = True  # has this rank the global weights of the last round?

    @property
    def grace(self) -> float:
        if self._grace is not None:
            return self._grace
        if len(self._waits) < 3:
            return self._timeout
        middle = median(self._waits)
        return max(_LEAST_GRACE, middle + _DEVIATIONS * median(abs(wait - middle) for wait in self._waits))

    def meet(self, turn: int = 0) -> Round:
        """`turn`: what this rank has come to exchange. Waits until the next round has its members, this rank among them; a rank that is late waits for the round behind it. Errors: TimedOutError (fewer than `min_ranks`
        have come)."""
        while True:
            number, self.next = self.next, self.next + 1
            members = self._members(number, turn)
            self._expected = list(members)
            if self._rank in self._expected:
                current = tuple(rank for rank, of in members.items() if of >= 0)
                self.is_current = True
                party = Party(tuple(self._expected), self._rank, f"{self._name}/round{number}")
                return Round(number, party, current, tuple(sorted({members[rank] for rank in current})))
            self.is_current = False

    def _members(self, number: int, turn: int) -> Dict[int, int]:
        """Ranks, with their turns; -1: without the global weights."""
        store, begun = self._store, time.monotonic()
        store.set(f"{number}/{self._rank}", str(turn) if self.is_current else "-1")
        came: Dict[int, int] = {}
        while not store.check([f"{number}/members"]):
            waited = time.monotonic() - begun
            for rank in range(self._world):
                if rank not in came and store.check([f"{number}/{rank}"]):
                    came[rank] = int(store.get(f"{number}/{rank}"))
            have_all = all(rank in came for rank in self._expected)
            if len(came) >= self._min_ranks and max(came.values()) >= 0 and (have_all or waited >= self.grace):
                if have_all:
                    self._waits = [*self._waits, waited][-_KEPT_ROUNDS:]
                store.compare_set(f"{number}/members", "", json.dumps(sorted(came.items())))
                break
            if waited >= self._timeout:
                raise TimedOutError(f"{len(came)} of at least {self._min_ranks} ranks have come to exchange {number} within {self._timeout:g} s: {', '.join(map(str, sorted(came)))}")
            time.sleep(_PAUSE)
        self._forget(number - _KEPT_ROUNDS)
        return dict(json.loads(store.get(f"{number}/members")))

    def agree(self, of: Round, is_well: bool) -> bool:
        """Has the exchange ended well on all of the party? The same answer on all of them: a rank may have its result when another fails."""
        store, begun, key = self._store, time.monotonic(), f"{of.number}/verdict"
        store.set(f"{of.number}/end{self._rank}", "1" if is_well else "0")
        while not store.check([key]):
            ended = [rank for rank in of.party.ranks if store.check([f"{of.number}/end{rank}"])]
            if not is_well or time.monotonic() - begun >= self._timeout:
                store.compare_set(key, "", "0")
            elif len(ended) == len(of.party.ranks):
                store.compare_set(key, "", "1" if all(store.get(f"{of.number}/end{rank}") == b"1" for rank in ended) else "0")
            else:
                time.sleep(_PAUSE)
        return bool(store.get(key) == b"1")

    def _forget(self, number: int) -> None:
        """So that the store does not grow. Each rank takes away its own."""
        if number >= 0:
            for key in (f"{number}/{self._rank}", f"{number}/end{self._rank}"):
                self._store.delete_key(key)


def check_presence(min_ranks: Any, grace: Any, world: int) -> None:
    """Errors: InvalidArgumentError."""
    if min_ranks is not None and not (isinstance(min_ranks, int) and 1 <= min_ranks <= world):
        raise InvalidArgumentError(f"min_ranks is {min_ranks!r}: 1 to {world}, the number of ranks, is taken")
    if grace is not None and not (isinstance(grace, (int, float)) and grace > 0):
        raise InvalidArgumentError(f"grace is {grace!r}: seconds above 0 are taken")
    if grace is not None and min_ranks is None:
        raise InvalidArgumentError(f"grace is {grace}, and without min_ranks all ranks are waited for")
