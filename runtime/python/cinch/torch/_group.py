"""Ranks of a process group of PyTorch, and a transport of Cinch among them."""
import datetime
import itertools
import json
import time
from typing import Any, Callable, Iterator, List, Mapping, MutableMapping, Optional, Tuple, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from ..errors import CancelledError, InvalidArgumentError, TimedOutError, UnavailableError
from ..transport import Transport, nccl_identity

_SECONDS_TO_CONNECT = 60.0
# By group: a process may have been in earlier ones without the ranks of this one.
_opened: MutableMapping[Any, Iterator[int]] = WeakKeyDictionary()
Made = TypeVar("Made")


class TorchStore:
    """The store of `torch.distributed`, under a prefix that no other transport has."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def get(self, key: str, timeout: float) -> Optional[bytes]:
        try:
            self._store.wait([key], datetime.timedelta(seconds=timeout))
        except RuntimeError:
            if self._store.check([key]):
                return bytes(self._store.get(key))
            return None
        return bytes(self._store.get(key))


def group_of(group: Optional[Any]) -> Any:
    """`group`, or the default one. Errors: InvalidArgumentError (there is none)."""
    if isinstance(group, Party):
        return group
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgumentError("torch.distributed is not initialised: call torch.distributed.init_process_group first")
    found = dist.group.WORLD if group is None else group
    if dist.get_rank(found) < 0:
        raise InvalidArgumentError("this rank is not in the process group")
    return found


class Party:
    """A part of a group's ranks.

    Attributes:
        ranks: by their numbers in the group, ascending.
        rank: this one's.
        name: that no other party of the group has.
    """

    def __init__(self, ranks: Tuple[int, ...], rank: int, name: str) -> None:
        self.ranks, self.rank, self.name = ranks, rank, name


class Meeting:
    """What the ranks of a group, or of a party, tell each other before they are connected. All of them make it, as often as the others."""

    def __init__(self, group: Any, timeout: float) -> None:
        self.timeout = timeout
        count = next(_opened.setdefault(group, itertools.count()))
        if isinstance(group, Party):
            self.rank, self.world = group.ranks.index(group.rank), len(group.ranks)
            self.store = TorchStore(_prefixed(f"cinch/party/{group.name}/{count}"))
        else:
            self.rank, self.world = dist.get_rank(group), dist.get_world_size(group)
            self.store = TorchStore(store_of(group, count))

    def agree(self, act: Callable[[], Made], alike: Callable[[Made], Mapping[str, Any]]) -> Made:
        """The value of `act`; where it fails on some rank, all ranks raise: none waits for one that does not come. Errors:
        those of `act`, CancelledError, TimedOutError (names ranks that have not come), InvalidArgumentError (what `alike`
        gives differs)."""
        try:
            made = act()
            own = alike(made)
        except Exception as failure:
            self.store.set(f"rank{self.rank}", json.dumps({"failure": f"{type(failure).__name__}: {failure}"}).encode())
            raise
        self.store.set(f"rank{self.rank}", json.dumps({"alike": dict(own)}).encode())
        told: List[Mapping[str, Any]] = []
        absent: List[str] = []
        ends = time.monotonic() + self.timeout
        for rank in range(self.world):
            said = self.store.get(f"rank{rank}", max(0.01, ends - time.monotonic()))
            if said is None:
                absent.append(str(rank))
                continue
            told.append(json.loads(said))
            if "failure" in told[-1]:
                raise CancelledError(f"rank {rank} has failed: {told[-1]['failure']}")
        if absent:
            raise TimedOutError(f"{'rank' if len(absent) == 1 else 'ranks'} {', '.join(absent)} had not come within {self.timeout} s")
        for rank, each in enumerate(told):
            for name, value in told[0]["alike"].items():
                if name in each["alike"] and each["alike"][name] != value:
                    raise InvalidArgumentError(f"{name} is {value} on rank 0 and {each['alike'][name]} on rank {rank}")
        return made


def check_transport(name: Optional[str], device: "torch.device") -> None:
    """Errors: InvalidArgumentError (there is no such transport between these devices)."""
    if name not in (None, "ucx", "nccl"):
        raise InvalidArgumentError(f'transport is {name!r}; "ucx" and "nccl" are there, and None chooses')
    if name == "nccl" and device.type == "cpu":
        raise InvalidArgumentError('transport "nccl" connects GPUs, and the parameters are on the CPU')


def open_transport(meeting: Meeting, device: "torch.device", name: Optional[str] = None, *, secret: bytes, interface: Optional[str]) -> Transport:
    """Over UCX between CPUs and NCCL between GPUs unless `name` says which, in a communicator of its own. All ranks of the
    group call it. Errors: those of `Transport.ucx` and `Transport.nccl`."""
    # All ranks have come, so one that is not there soon cannot be reached.
    rank, world, store, timeout = meeting.rank, meeting.world, meeting.store, min(meeting.timeout, _SECONDS_TO_CONNECT)
    if name == "ucx" or (name is None and device.type == "cpu"):
        if world == 1:
            return Transport.loopback(1)[0]
        return Transport.ucx(rank, world, store=store, timeout=timeout, secret=secret, interface=interface)
    if rank == 0:
        store.set("nccl", nccl_identity())
    identity = store.get("nccl", timeout)
    if identity is None:
        raise UnavailableError(f"rank 0 has given no NCCL identity within {timeout} s")
    return Transport.nccl(identity, rank, world, device=device.index or 0, timeout=timeout)


def store_of(group: Any, name: Any) -> Any:
    """The store of `torch.distributed`, under a prefix of the group's."""
    return _prefixed(f"cinch/{getattr(group, 'group_name', 'default')}/{name}")


def _prefixed(prefix: str) -> Any:
    # There is no public access to the store at which ranks have met; every version of torch that has DDP has this one.
    from torch.distributed import distributed_c10d

    return distributed_c10d.PrefixStore(prefix, distributed_c10d._get_default_store())
