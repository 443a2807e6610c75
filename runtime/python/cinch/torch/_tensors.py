"""Tensors of PyTorch as the C API takes them."""
from typing import Any, Dict, Iterable, Optional, Tuple

import torch

from .. import _abi
from ..errors import InvalidArgumentError

_DTYPES: Dict[Any, int] = {torch.float32: _abi.F32, torch.float16: _abi.F16, torch.bfloat16: _abi.BF16}


def check_gradient(name: str, tensor: "torch.Tensor") -> None:
    """Errors: InvalidArgumentError (a parameter whose gradients are sparse, complex, integers, or of an element type that
    is not taken, or that each rank has a part of)."""
    if hasattr(tensor, "device_mesh"):
        raise InvalidArgumentError(
            f"{name} is a DTensor, of which each rank has a part: compress_fsdp and compress_replicas take parameters of FSDP2; of others, "
            "a cinch.Synchronizer averages to_local()")
    if tensor.layout != torch.strided:
        raise InvalidArgumentError(f"{name}: gradients of layout {tensor.layout} are not taken, dense ones are")
    if tensor.dtype not in _DTYPES:
        raise InvalidArgumentError(f"{name}: gradients of {tensor.dtype} are not taken; float32, float16 and bfloat16 are: convert the parameter, or freeze it (requires_grad=False)")


def are_finite(tensors: Iterable[Optional["torch.Tensor"]]) -> bool:
    """All elements of all that are there. Waits for a GPU once."""
    told = [torch.isfinite(tensor).all() for tensor in tensors if tensor is not None]
    return not told or bool(torch.stack(told).all())


def memory_order(tensor: "torch.Tensor") -> Tuple[int, ...]:
    """Its dimensions as they lie in memory, the outermost first: DistributedDataParallel keeps a gradient as its parameter
    lies. As they are where the elements do not lie side by side."""
    order = tuple(sorted(range(tensor.dim()), key=lambda i: (-tensor.stride()[i], i)))
    return order if tensor.permute(order).is_contiguous() else tuple(range(tensor.dim()))


def dtype_of(tensor: "torch.Tensor") -> int:
    return _DTYPES[tensor.dtype]
