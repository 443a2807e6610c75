"""How FSDP2 lays gradients out in the buffers of its collectives."""
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import torch

from ..arrays import Shape
from ..errors import InvalidArgumentError
from ._names import plain_names


@dataclass(frozen=True)
class Shard:
    """A parameter in the input buffer of a reduce-scatter, which is a row for each rank.

    A row holds a chunk of each parameter, one behind the other. Chunks have the same number of elements on all ranks: the
    last rows of a parameter may be padding.

    Attributes:
        name: of the parameter in the model.
        shape: of the whole gradient. A parameter that is sharded over a dimension other than 0 is described as FSDP sends
            it: the ranks' chunks one below the other.
        begin, chunk: where its chunk begins in a row, and the chunk's elements, padding included.
        part_ends: where the parts of the ranks end, in elements of the gradient.
    """

    name: str
    shape: Shape
    begin: int
    chunk: int
    part_ends: Tuple[int, ...]

    @property
    def elements(self) -> int:
        return self.part_ends[-1]

    def part(self, rank: int) -> int:
        """The number of elements that `rank` owns."""
        return self.part_ends[rank] - (self.part_ends[rank - 1] if rank > 0 else 0)

    def local_shape(self, rank: int) -> Shape:
        """The shape of what `rank` owns."""
        row = self.elements // self.shape[0] if self.elements else 0
        return (self.part(rank) // row if row else 0, *self.shape[1:])

    def gradient(self, rows: "torch.Tensor") -> "torch.Tensor":
        """The whole gradient, as a dense vector: a view of `rows`, which has a row for each rank, or a copy."""
        return rows[:, self.begin : self.begin + self.chunk].reshape(-1)[: self.elements]


@dataclass(frozen=True)
class Unit:
    """The parameters of one FSDP module that have gradients, which FSDP reduces in one collective.

    Attributes:
        name: of the module in the model; "" for the model itself.
        module: the first one that shares the parameter group.
        group: FSDP's parameter group, which is not public.
        mesh: over which parameters are sharded; it has one dimension.
    """

    name: str
    module: Any
    group: Any
    mesh: Any
    device: "torch.device"
    shards: List[Shard]

    @property
    def row(self) -> int:
        """The elements of a rank's row."""
        return sum(shard.chunk for shard in self.shards)

    def stand_ins(self) -> List[Tuple[str, "torch.Tensor"]]:
        """A tensor of each gradient's shape, without memory of that size."""
        return [(shard.name, torch.empty(1, device=self.device).expand(shard.shape)) for shard in self.shards]


def units_of(model: "torch.nn.Module") -> List[Unit]:
    """The FSDP modules in `model`, in its order; without those that have no parameters of their own to train. Names are those
    in `model` without wrappers.

    Errors: InvalidArgumentError (no FSDP2 module, a mesh that has several dimensions, several parameter groups in one
    module, a version of PyTorch whose FSDP2 is unknown).
    """
    found: List[Unit] = []
    seen = set()
    plain = plain_names(model)
    names = {id(module): plain(name) for name, module in model.named_modules()}
    modules = [module for module in model.modules() if hasattr(module, "_get_fsdp_state")]
    if not modules:
        raise InvalidArgumentError("the model has no FSDP2 module: call torch.distributed.fsdp.fully_shard first")
    for module in modules:
        groups = _groups_of(module)
        if len(groups) > 1:
            raise InvalidArgumentError(f"{_named(names, module)} has {len(groups)} parameter groups, and PyTorch sets no reduce-scatter for one of several")
        if groups and id(groups[0]) not in seen:
            seen.add(id(groups[0]))
            shards = _shards_of(groups[0], names)
            if shards:
                found.append(Unit(names[id(module)], module, groups[0], _mesh_of(groups[0]), groups[0].device, shards))
    return found


def trainable(model: "torch.nn.Module") -> List[Unit]:
    """`units_of`, of which there must be one. Errors also: InvalidArgumentError (no parameter has a gradient)."""
    units = units_of(model)
    if not units:
        raise InvalidArgumentError("no parameter has a gradient")
    return units


def _named(names: Dict[int, str], module: Any) -> str:
    return names.get(id(module), "") or type(module).__name__


def _groups_of(module: Any) -> List[Any]:
    # Nothing public tells in which order FSDP sends parameters. Since PyTorch 2.11 it is a list; before, one group.
    state = module._get_fsdp_state()
    if hasattr(state, "_fsdp_param_groups"):
        return list(state._fsdp_param_groups)
    if hasattr(state, "_fsdp_param_group"):
        return [] if state._fsdp_param_group is None else [state._fsdp_param_group]
    raise InvalidArgumentError(f"the FSDP2 of PyTorch {torch.__version__} is not known")


def _trained(group: Any) -> List[Any]:
    return [each for each in group.fsdp_params if each.sharded_param.requires_grad]


def _mesh_of(group: Any) -> Any:
    return _trained(group)[0].sharded_param.device_mesh


def _shards_of(group: Any, names: Dict[int, str]) -> List[Shard]:
    shards: List[Shard] = []
    begin = 0
    for each in _trained(group):
        parameter, owner = each.sharded_param, each._module_info
        of = names.get(id(owner.module), "")
        name = f"{of}.{owner.param_name}" if of else owner.param_name
        mesh, placements = parameter.device_mesh, parameter.placements
        if mesh.ndim != 1 or not placements[0].is_shard():
            raise InvalidArgumentError(
                f"{name} is on a mesh of {mesh.ndim} dimensions, {placements}; FSDP over a mesh of one dimension is taken. PyTorch's own HSDP is not, "
                "since its all-reduce leaves nothing to compress: call fully_shard with the mesh of a machine's ranks, and cinch.torch.compress_replicas "
                "with the group of the ranks that have the same shard"
            )
        shard = _shard(name, tuple(parameter.shape), placements[0].dim, mesh.size(), begin)
        begin += shard.chunk
        shards.append(shard)
    return shards


def _shard(name: str, shape: Shape, dim: int, world: int, begin: int) -> Shard:
    if dim != 0:  # even, says PyTorch
        shape = tuple(size * world if i == 0 else size // world if i == dim else size for i, size in enumerate(shape))
    row = 1
    for size in shape[1:]:
        row *= size
    rows = -(-shape[0] // world)  # of a chunk
    ends = tuple(min(rows * (rank + 1), shape[0]) * row for rank in range(world))
    return Shard(name, shape, begin, rows * row, ends)
