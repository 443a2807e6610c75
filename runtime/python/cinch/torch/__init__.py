"""Compressed data-parallel training with PyTorch.

    import cinch.torch
    cinch.torch.compress(ddp_model, "dgc", ratio=0.001)

docs/pytorch.md is a tour.
"""
from ..errors import SyncError
from . import _ops
from ._averager import Averager
from ._ddp import Compression, compress
from ._delayed import Delayed
from ._diloco import DiLoCo
from ._fsdp import ReduceScatter, ShardedCompression, compress_fsdp
from ._hook import Hook, run_hook
from ._momentum import take_momentum
from ._profile import ProfileRecorder, record_profile
from ._recipes import RECIPES, Recipe, recipe
from ._replicas import ReplicaAverage, compress_replicas

__all__ = [
    "Averager",
    "Compression",
    "Delayed",
    "DiLoCo",
    "Hook",
    "ProfileRecorder",
    "RECIPES",
    "Recipe",
    "ReduceScatter",
    "ReplicaAverage",
    "ShardedCompression",
    "SyncError",
    "compress",
    "compress_fsdp",
    "compress_replicas",
    "recipe",
    "record_profile",
    "run_hook",
    "take_momentum",
]

_ops.register()
