"""Saved states as tensors whose size does not depend on the step: torch.distributed.checkpoint reads into tensors that are there."""
import json
import struct

import torch

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
