"""Saved states as tensors whose size does not depend on the step: torch.distributed.checkpoint reads into tensors that are there."""
import json
import struct
from typing import Any, List, Mapping, NamedTuple

import torch

from ..errors import InvalidArgumentError

# runtime/sync/states/checkpoint.cpp: size of the whole, its hash, and size of the JSON after it, which has the next step.
_SIZES, _SIZES_AT = struct.Struct("<QQQ"), 16
_DIGITS = 20  # of the largest step


def to_tensor(saved: bytes) -> "torch.Tensor":
    begin = _SIZES_AT + _SIZES.size
    description = json.loads(saved[begin : begin + _SIZES.unpack_from(saved, _SIZES_AT)[2]])
    return torch.frombuffer(bytearray(saved + bytes(_DIGITS - len(str(description["next_step"])))), dtype=torch.uint8)


def to_bytes(tensor: "torch.Tensor") -> bytes:
    """What `to_tensor` was given; anything else is left to whoever reads it."""
    padded: bytes = tensor.detach().to(device="cpu", dtype=torch.uint8).numpy().tobytes()
    if len(padded) < _SIZES_AT + _SIZES.size:
        return padded
    return padded[: _SIZES.unpack_from(padded, _SIZES_AT)[0]]


class Found(NamedTuple):
    """What a dictionary holds: the step that is next, and the states of this rank alone (`is_own`), or of all ranks of a run."""

    step: int
    states: List[bytes]
    is_own: bool


def find(saved: Any, rank: int, world: int) -> Found:
    """For this rank of so many. Errors: InvalidArgumentError (no dictionary of `state_dict`, states of other ranks)."""
    if not isinstance(saved, Mapping):
        raise InvalidArgumentError(f"states are a mapping, as state_dict gives, and not of type {type(saved).__name__}")
    ranks = sorted(int(key[len("rank") : -len(".states")]) for key in saved if key.endswith(".states"))
    if not ranks:
        raise InvalidArgumentError("there are no states of Cinch in it")
    of = int(saved[f"rank{ranks[0]}.world"])
    is_own = ranks == [rank] and of == world
    if not is_own and ranks != list(range(of)):
        raise InvalidArgumentError(f"states of ranks {ranks} of {of}: rank {rank} of {world} takes its own of as many ranks, or those of all ranks")
    return Found(int(saved[f"rank{ranks[0]}.step"]), [to_bytes(saved[f"rank{each}.states"]) for each in ranks], is_own)
