"""Saved states as tensors whose size does not depend on the step: torch.distributed.checkpoint reads into tensors that are there."""
import json
import math
import struct
from typing import Any, Iterator, List, Mapping, NamedTuple, Tuple, Union

import torch

from ..errors import InvalidArgumentError

# runtime/sync/states/checkpoint.cpp: size of the whole, its hash, and size of the JSON after it, which has the next step.
_SIZES, _SIZES_AT = struct.Struct("<QQQ"), 16
_BEGIN = _SIZES_AT + _SIZES.size
_DIGITS = 20  # of the largest step
# runtime/call/state_file.h: number of states, at 12, and for each the bytes of its name, its type's name and its data, from 64 on.
_NUM_STATES, _NUM_STATES_AT, _STATE, _STATES_AT = struct.Struct("<I"), 12, struct.Struct("<IIQ"), 64
_RESIDUALS = ("residual", "error", "pending")  # what the library's programs call what they have not sent


def description_of(saved: bytes) -> Any:
    """The next step, and the sites with states: which elements of which tensor."""
    return json.loads(saved[_BEGIN : _BEGIN + _SIZES.unpack_from(saved, _SIZES_AT)[2]])


def to_tensor(saved: bytes) -> "torch.Tensor":
    return torch.frombuffer(bytearray(saved + bytes(_DIGITS - len(str(description_of(saved)["next_step"])))), dtype=torch.uint8)


def to_bytes(tensor: Union["torch.Tensor", bytes]) -> bytes:
    """What `to_tensor` was given, or bytes as they are; anything else is left to whoever reads it."""
    if isinstance(tensor, bytes):
        return tensor
    padded: bytes = tensor.detach().to(device="cpu", dtype=torch.uint8).numpy().tobytes()
    if len(padded) < _BEGIN:
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


def norm_of_residuals(saved: bytes) -> float:
    """The Euclidean norm of all residuals that this rank adds to what it is given; 0 without any."""
    at, total = _BEGIN + _SIZES.unpack_from(saved, _SIZES_AT)[2], 0.0
    for site in description_of(saved)["sites"]:
        if site["site"] == "worker":
            residuals = [data for name, dtype, data in _arrays(memoryview(saved)[at : at + site["bytes"]]) if dtype == "f32" and name.rpartition(".")[2] in _RESIDUALS]
            total += sum(float(torch.linalg.vector_norm(torch.frombuffer(bytearray(data), dtype=torch.float32), dtype=torch.float64)) ** 2 for data in residuals if data)
        at += site["bytes"]
    return math.sqrt(total)


def _arrays(states: memoryview) -> Iterator[Tuple[str, str, memoryview]]:
    """The name, the type's name and the data of each state of a site."""
    at = _STATES_AT
    for _ in range(_NUM_STATES.unpack_from(states, _NUM_STATES_AT)[0] if states else 0):
        name, dtype, data = _STATE.unpack_from(states, at)
        at += _STATE.size
        yield bytes(states[at : at + name]).decode(), bytes(states[at + name : at + name + dtype]).decode(), states[at + name + dtype : at + name + dtype + data]
        at += name + dtype + data
