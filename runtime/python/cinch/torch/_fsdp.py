"""Compressed gradient reduction for FSDP2 (`torch.distributed.fsdp.fully_shard`)."""
import logging
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from ..errors import InvalidArgumentError
from ..program import Program
from ..transport import Transport
from ._engine import Engine
from ._momentum import Velocity, check_optimizer, fit
from ._names import plain_names
from ._phases import agree_on_pause
from ._settings import settings_of
from ._shards import Unit, trainable, units_of
from ._told import warn_of_start

log = logging.getLogger("cinch")


class ReduceScatter:
    """Reduces the gradients of one FSDP module: what `FSDPModule.set_custom_reduce_scatter` takes. `compress_fsdp` makes and
    installs one for each module of a model.

    Each rank gets the mean of its shard, or, with a divide factor, the sum over that factor. FSDP must not divide: set its
    gradient divide factor to 1 and force sums, as `compress_fsdp` does.

    Args:
        module: an FSDP module. It has one parameter group over a mesh of one dimension. States are kept under the names of
            its parameters within it.
        program: as of `compress_fsdp`.
        transport: one between the ranks of the mesh that is open already; None: a new one. Modules that share it take
            steps one after the other, as FSDP calls them.
        divide_factor: gradients are sums over ranks divided by it; None: by the number of ranks.
        check: what it raises on one rank is an error on all.
        **settings: as of `compress_fsdp`.

    All ranks of the mesh make it, in the same order. Errors of making: those of `compress_fsdp`. Calls raise SyncError,
    which names rank, tensor and phase; no later call then succeeds.
    """

    def __init__(
        self,
        module: Any,
        program: Union[str, Program],
        *,
        transport: Optional[Transport] = None,
        divide_factor: Optional[float] = None,
        check: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> None:
        self.unit = module if isinstance(module, Unit) else _only_unit(module)  # compress_fsdp gives units
        self.engine = Engine(
            self.unit.stand_ins(),
            settings_of(program, {**settings, "plan": _plan_of(settings)}),
            self.unit.mesh.get_group(),
            check,
            transport=transport,
            part_ends=[shard.part_ends for shard in self.unit.shards],
        )
        self._factor, self._has_warned = divide_factor, False
        self.after_step: Callable[[], None] = lambda: None

    def allocate(self, size: Sequence[int], *, dtype: "torch.dtype", device: "torch.device") -> "torch.Tensor":
        """Memory for FSDP's input or output buffer."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: "torch.Tensor", input_tensor: "torch.Tensor", group: Any, op: Any, async_op: bool = False) -> Any:
        """Fills `output_tensor` before it returns. `input_tensor` has a row for each rank. Errors: SyncError,
        InvalidArgumentError (`op` is neither a sum nor an average)."""
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise InvalidArgumentError(f"FSDP asks for {op}: set_gradient_divide_factor was called after compress_fsdp, which takes divide_factor")
        if self._fits(output_tensor, input_tensor):
            self._reduce(output_tensor, input_tensor)
        else:
            self._reduce_exactly(output_tensor, input_tensor, group)
        world = self.engine.transport.world
        if self._factor is not None and self._factor != world and op == dist.ReduceOp.SUM:
            output_tensor.mul_(world / self._factor)
        return _Done() if async_op else None

    @property
    def mean_factor(self) -> float:
        """The mean over ranks, over what the optimizer gets."""
        return 1.0 if self._factor is None else self._factor / self.engine.transport.world

    @staticmethod
    def whole_velocity(buffer: "torch.Tensor", parameter: "torch.Tensor") -> "torch.Tensor":
        """Of the whole parameter, as its gradient comes: ranks gather it, once for each time that compression begins."""
        sharded: Any = buffer
        whole: "torch.Tensor" = sharded.full_tensor()
        dim = sharded.placements[0].dim
        if dim != 0:  # FSDP sends the ranks' chunks one below the other
            whole = torch.cat(whole.chunk(sharded.device_mesh.size(), dim))
        return whole.reshape(-1)

    def _fits(self, output: "torch.Tensor", given: "torch.Tensor") -> bool:
        row, world = self.unit.row, self.engine.transport.world
        if given.numel() == row * world and output.numel() == row:
            return True
        if not self._has_warned:
            self._has_warned = True
            warn_of_misfit(self.unit, given.numel(), row * world)
        return False

    def _reduce_exactly(self, output: "torch.Tensor", given: "torch.Tensor", group: Any) -> None:
        dist.reduce_scatter_tensor(output, given, group=group, op=dist.ReduceOp.SUM)
        output.div_(self.engine.transport.world)

    def _reduce(self, output: "torch.Tensor", given: "torch.Tensor") -> None:
        engine, rank = self.engine, self.engine.transport.rank
        rows = given.view(engine.transport.world, -1)
        engine.begin()
        held = []  # copies stay until the step ends
        for place, shard in enumerate(self.unit.shards):
            gradient, end = shard.gradient(rows), shard.begin + shard.part(rank)
            held.append(gradient)
            output[end : shard.begin + shard.chunk].zero_()
            engine.ready(place, gradient, output[shard.begin : end])
        if engine.finish():
            output.fill_(float("nan"))  # what GradScaler looks for
        self.after_step()


def warn_of_misfit(unit: Unit, found: int, expected: int) -> None:
    """Of a buffer of FSDP's that has `found` elements."""
    warnings.warn(
        f"{unit.name or 'the model'}: FSDP has {found} elements where the module's parameters have {expected}, and they are averaged exactly. "
        "Parameters without a gradient are left out unless set_reduce_scatter_unused_params(True) was called",
        stacklevel=4,
    )


class _Done:
    """The work of a call that has ended."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def _plan_of(settings: Mapping[str, Any]) -> str:
    plan = settings.get("plan", "reduce_scatter")
    if plan != "reduce_scatter":
        raise InvalidArgumentError(f'plan is "{plan}", and FSDP takes "reduce_scatter" alone')
    return "reduce_scatter"


def _only_unit(module: Any) -> Unit:
    units = [unit for unit in units_of(module) if unit.module is module]
    if not units:
        raise InvalidArgumentError(f"{type(module).__name__} is not an FSDP2 module with parameters of its own to train")
    return units[0]


class ShardedCompression:
    """What `compress_fsdp` and `compress_replicas` return: states, reports, and the end of it. A context manager, as `Compression` is.

    Attributes:
        engines: by name of the FSDP module; "" is the model itself.
    """

    def __init__(self, engines: Dict[str, Engine], report_every: int = 0) -> None:
        self.engines = engines
        self._calls, self._every = 0, report_every
        warn_of_start(list(engines.values()))
        if self.state_bytes:
            log.warning("cinch: %.3f MB of states on rank %d, in %d FSDP modules", self.state_bytes / 1e6, self._transport.rank, len(engines))

    def __enter__(self) -> "ShardedCompression":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def _transport(self) -> Transport:
        return next(iter(self.engines.values())).transport

    @property
    def state_bytes(self) -> int:
        """Bytes of all states on this rank."""
        return sum(engine.report()["memory_bytes"]["states"] for engine in self.engines.values())

    def report(self) -> Dict[str, Any]:
        """Of the last step of each module on this rank, by the module's name: as `Compression.report` of DDP."""
        return {name: engine.report() for name, engine in self.engines.items()}

    def note_step(self) -> None:
        self._calls += 1
        if self._every > 0 and self._calls % (self._every * len(self.engines)) == 0 and self._transport.rank == 0:
            for name, engine in self.engines.items():
                log.warning("%s: %s", name or "model", engine.line())

    def state_dict(self) -> Dict[str, Any]:
        """This rank's states. Keys carry the rank, so that torch.distributed.checkpoint keeps those of all ranks."""
        return {f"{name}/{key}": value for name, engine in self.engines.items() for key, value in engine.state_dict().items()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> str:
        """All ranks call it between the same steps: docs/pytorch.md, Checkpoints. Returns what could not be taken over, a
        line each. Errors, after which all ranks have what they had: InvalidArgumentError (a module has no states in `saved`),
        FileError, VersionError."""
        if not isinstance(saved, Mapping):
            raise InvalidArgumentError(f"states are a mapping, as state_dict gives, and not of type {type(saved).__name__}")
        notes = []
        undo: List[Callable[[], None]] = []
        try:
            for name, engine in self.engines.items():
                of = {key.rpartition("/")[2]: value for key, value in saved.items() if key.rpartition("/")[0] == name}
                note, before = engine.take_over(of)
                notes.append(note)
                undo.append(before)
        except Exception:
            for each in undo:
                each()
            raise
        return "\n".join(each for each in notes if each)

    def pause(self) -> None:
        """As `Compression.pause`."""
        agree_on_pause(list(self.engines.values()), True)

    def resume(self) -> None:
        """As `Compression.resume`."""
        agree_on_pause(list(self.engines.values()), False)

    def close(self) -> None:
        """As `Compression.close`."""
        for engine in self.engines.values():
            engine.close()


def compress_fsdp(
    model: "torch.nn.Module",
    program: Union[str, Program],
    *,
    divide_factor: Optional[float] = None,
    optimizer: Optional["torch.optim.Optimizer"] = None,
    **settings: Any,
) -> ShardedCompression:
    """Has the gradients of `model` reduced by Cinch, FSDP module by FSDP module. All ranks call it alike, after all calls of
    `fully_shard` and before the first step.

        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
        cinch.torch.compress_fsdp(model, "dgc", ratio=0.001)

    Every rank compresses the gradient of the whole module, since what it sends is its share of all shards. So states, such
    as residuals, are as large as the model on each rank, in float32. Their size is logged (logger "cinch").

    A parameter without a gradient has FSDP send less than the module's parameters: that call is exact, with one warning.
    With one rank FSDP reduces nothing, and gradients are not compressed.

    Args:
        model: with FSDP2 modules over meshes of one dimension. HSDP is not taken: `compress_replicas` is in its place.
        program: as of `compress`, but for "auto".
        optimizer, rules, dense_steps, total_steps, dense_after, clip, schedule, scale, skips_non_finite, measures_errors, report_every, first_step, seed,
            piece_bytes, threads, timeout, interface, secret: as of `compress`. A step is a call of a module's reduce-scatter,
            and `clip` is of the module's gradient.
        divide_factor: gradients are sums over ranks divided by it. None: what `set_gradient_divide_factor` has set, else the
            number of ranks.
        **settings: all others are parameters of the program: ratio=0.001.

    Errors, on all ranks: InvalidArgumentError (no FSDP2 module, a mesh of two dimensions, compressed already, ranks that
    differ), ProgramError, FileError (rules), UnavailableError (no UCX), TimedOutError (names ranks that have not come).
    Later, from `backward`: SyncError, which names rank, tensor and phase.
    """
    if divide_factor is not None and not divide_factor > 0:
        raise InvalidArgumentError(f"divide_factor is {divide_factor}: numbers above 0 are taken")
    units = trainable(model)
    for unit in units:
        if isinstance(getattr(unit.group, "_reduce_scatter_comm", None), ReduceScatter):
            raise InvalidArgumentError(f"{unit.name or 'the model'} is compressed already")
        if not hasattr(unit.module, "set_custom_reduce_scatter"):
            raise InvalidArgumentError(f"FSDPModule of PyTorch {torch.__version__} has no set_custom_reduce_scatter, which newer versions have")
    settings = {**settings, "plan": _plan_of(settings)}
    report_every = settings.pop("report_every", 0)
    made: List[Tuple[Unit, ReduceScatter]] = []
    transports: Dict[Any, Transport] = {}
    for unit in units:
        factor = getattr(unit.group, "gradient_divide_factor", None) if divide_factor is None else divide_factor
        group = unit.mesh.get_group()
        comm = ReduceScatter(
            unit, program, transport=transports.get(group), divide_factor=factor, check=lambda: check_optimizer(optimizer), **settings)
        transports[group] = comm.engine.transport
        made.append((unit, comm))
    compression = ShardedCompression({unit.name: comm.engine for unit, comm in made}, report_every)
    for unit, comm in made:
        comm.after_step = compression.note_step
        fit_module(model, comm.engine, optimizer, comm.whole_velocity, comm.mean_factor)
        _install(unit.module, comm)
    return compression


def fit_module(
    model: "torch.nn.Module", engine: Engine, optimizer: Optional["torch.optim.Optimizer"], velocity_of: Velocity, factor: float = 1.0
) -> None:
    """`fit` for parameters whose optimizer has shards."""
    plain = plain_names(model)
    named = {plain(name): parameter for name, parameter in model.named_parameters(remove_duplicate=False)}
    fit(engine, [named[tensor.name] for tensor in engine.compressed.tensors], optimizer, velocity_of=velocity_of, factor=factor)


def _install(module: Any, comm: ReduceScatter) -> None:
    module.set_custom_reduce_scatter(comm)
    if hasattr(module, "set_force_sum_reduction_for_comms"):
        module.set_force_sum_reduction_for_comms(True)
    divides = getattr(module, "set_gradient_divide_factor", None) or module.set_reduce_scatter_divide_factor
    divides(1.0)
