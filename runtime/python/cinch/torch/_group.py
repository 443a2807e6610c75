"""Ranks of a process group of PyTorch, and a transport of Cinch among them."""
import datetime
import itertools
from collections import defaultdict
from typing import Any, DefaultDict, Iterator, Optional

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError, UnavailableError
from ..transport import Transport, nccl_identity

_opened: DefaultDict[str, Iterator[int]] = defaultdict(itertools.count)


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
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgumentError("torch.distributed is not initialised: call torch.distributed.init_process_group first")
    found = dist.group.WORLD if group is None else group
    if dist.get_rank(found) < 0:
        raise InvalidArgumentError("this rank is not in the process group")
    return found


def open_transport(group: Any, device: "torch.device", *, timeout: float, secret: bytes, interface: Optional[str]) -> Transport:
    """Over UCX between CPUs and NCCL between GPUs, in a communicator of its own. All ranks of the group call it, as often
    as the others. Errors: those of `Transport.ucx` and `Transport.nccl`."""
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    if world == 1 and device.type == "cpu":
        return Transport.loopback(1)[0]
    name = getattr(group, "group_name", "default")
    store = TorchStore(_prefixed(f"cinch/{name}/{next(_opened[name])}"))
    if device.type == "cpu":
        return Transport.ucx(rank, world, store=store, timeout=timeout, secret=secret, interface=interface)
    if rank == 0:
        store.set("nccl", nccl_identity())
    identity = store.get("nccl", timeout)
    if identity is None:
        raise UnavailableError(f"rank 0 has given no NCCL identity within {timeout} s")
    return Transport.nccl(identity, rank, world, device=device.index or 0, timeout=timeout)


def _prefixed(prefix: str) -> Any:
    # There is no public way to the store that ranks have met at; every version of torch that has DDP has this one.
    from torch.distributed import distributed_c10d

    return distributed_c10d.PrefixStore(prefix, distributed_c10d._get_default_store())
