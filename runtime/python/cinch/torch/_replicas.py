"""Compressed averaging between machines, for FSDP2 whose shards lie within a machine."""
from typing import Any, Callable, Dict, List, Optional, Union

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..program import Program
from ..transport import Transport
from ._engine import Engine
from ._fsdp import ShardedCompression, fit_module, warn_of_misfit
from ._group import Meeting, group_of
from ._momentum import check_optimizer
from ._settings import settings_of
from ._shards import Shard, Unit, trainable


class ReplicaAverage:
    """Averages a module's gradient shard over the ranks that have the same shard: a hook for `FSDPModule.set_all_reduce_hook`.
    `compress_replicas` makes and installs one for each module."""

    def __init__(self, unit: Unit, shards: List[Shard], engine: Engine, group: Any) -> None:
        self.unit, self.engine = unit, engine
        self._shards, self._group, self._has_warned = shards, group, False
        self._rank = unit.mesh.get_local_rank()
        self.after_step: Callable[[], None] = lambda: None

    def __call__(self, reduce_output: "torch.Tensor") -> None:
        """`reduce_output` is what FSDP's reduce-scatter has left on this rank; it becomes the mean over replicas. Errors:
        SyncError."""
        if reduce_output.numel() != self.unit.row:
            self._average_exactly(reduce_output)
            return
        self.engine.begin()
        for place, shard in enumerate(self._shards):
            self.engine.ready(place, reduce_output[shard.begin : shard.begin + shard.part(self._rank)])
        if self.engine.finish():
            reduce_output.fill_(float("nan"))  # what GradScaler looks for
        self.after_step()

    def _average_exactly(self, reduce_output: "torch.Tensor") -> None:
        if not self._has_warned:
            self._has_warned = True
            warn_of_misfit(self.unit, reduce_output.numel(), self.unit.row)
        dist.all_reduce(reduce_output, group=self._group)
        reduce_output.div_(dist.get_world_size(self._group))


def shard_velocity(buffer: "torch.Tensor", parameter: "torch.Tensor") -> "torch.Tensor":
    """Of this rank's shard, which its replicas have alike."""
    sharded: Any = buffer
    local: "torch.Tensor" = sharded.to_local()
    return local.reshape(-1)


def compress_replicas(
    model: "torch.nn.Module", program: Union[str, Program], group: Any, *, optimizer: Optional["torch.optim.Optimizer"] = None, **settings: Any
) -> ShardedCompression:
    """Has gradients averaged over replicas of shards by Cinch, behind FSDP's reduce-scatter. Ranks of a machine share a model,
    machines are replicas of each other, and what travels between machines is compressed:

        mesh = init_device_mesh("cuda", (machines, ranks), mesh_dim_names=("machines", "ranks"))
        for block in model.blocks:
            fully_shard(block, mesh=mesh["ranks"])
        fully_shard(model, mesh=mesh["ranks"])
        cinch.torch.compress_replicas(model, "dgc", mesh["machines"].get_group(), ratio=0.001)

    All ranks call it alike, before the first step. They begin with the same parameters: FSDP does not spread them between
    machines. States, such as residuals, are of this rank's shards alone; their size is logged (logger "cinch").

    Args:
        model: with FSDP2 modules over meshes of one dimension. Native HSDP, which is a mesh of two dimensions, is not taken:
            PyTorch calls the hook behind its own all-reduce there, when nothing is left to compress.
        program: as of `compress`, but for "auto".
        optimizer, plan and other settings: as of `compress`; rules see the shapes of shards. A step is a call of a module's
            hook.
        group: a process group of the ranks that have the same shard as this one.

    Errors, on all ranks of the group: InvalidArgumentError (no FSDP2 module, native HSDP, a hook is there, ranks of the group
    that have other shards), and those of `compress`. Later, from `backward`: SyncError.
    """
    units, group = trainable(model), group_of(group)
    for unit in units:
        if not hasattr(unit.module, "set_all_reduce_hook"):
            raise InvalidArgumentError(f"FSDPModule of PyTorch {torch.__version__} has no set_all_reduce_hook, which newer versions have")
        if getattr(unit.group, "_all_reduce_hook", None) is not None:
            raise InvalidArgumentError(f"{unit.name or 'the model'} has an all-reduce hook already")
    report_every = settings.pop("report_every", 0)
    chosen = settings_of(program, settings)
    Meeting(group, chosen.most_seconds(group)).agree(lambda: check_optimizer(optimizer), lambda _: {"the shard's number": units[0].mesh.get_local_rank()})
    hooks: Dict[str, ReplicaAverage] = {}
    transport: Optional[Transport] = None
    for unit in units:
        rank = unit.mesh.get_local_rank()
        shards = [shard for shard in unit.shards if shard.part(rank) > 0]
        if not shards:
            continue  # nor have the other replicas of this shard
        named = [(shard.name, torch.empty(1, device=unit.device).expand(shard.local_shape(rank))) for shard in shards]
        engine = Engine(named, chosen, group, transport=transport)
        transport = engine.transport
        hooks[unit.name] = ReplicaAverage(unit, shards, engine, group)
    compression = ShardedCompression({name: hook.engine for name, hook in hooks.items()}, report_every)
    for hook in hooks.values():
        hook.after_step = compression.note_step
        fit_module(model, hook.engine, optimizer, shard_velocity)
        hook.unit.module.set_all_reduce_hook(hook)
    return compression
