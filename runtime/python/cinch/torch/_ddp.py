"""`compress`: two lines in a training script over DistributedDataParallel."""
from typing import Any, Collection, Dict, Optional, Union

import torch
from torch.nn.parallel import DistributedDataParallel

from ..errors import InvalidArgumentError
from ..program import Program
from ._engine import Engine
from ._exchange import check_tensors
from ._group import Meeting
from ._hook import Hook, LeftOver, run_hook
from ._names import plain_names, without_compile
from ._phases import agree_on_pause
from ._recipes import Chosen, chosen


class Compression:
    """What `compress` returns: states, reports, and the end of it. Use it as a context manager, or `close` it, where training ends before
    the process does."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook

    def __enter__(self) -> "Compression":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        return self.hook.opened()

    def report(self) -> Any:
        """Of the last step on this rank: bytes by tensor before and after, times by phase, exposed time in milliseconds,
        memory, and errors where they are measured (docs/pytorch.md)."""
        self._collect()
        return self.engine.report()

    def trace(self) -> str:
        """The last step as a timeline that opens in Perfetto."""
        self._collect()
        return self.engine.sync.trace()

    def _collect(self) -> None:
        """What is under way where updates come a step late is waited for, and used in its time."""
        if self.hook.later is not None:
            self.hook.later.collect()

    @property
    def choice(self) -> str:
        """Why plan="auto" chose its plan, on rank 0; else empty."""
        return self.engine.compressed.choice

    @property
    def ready_seconds(self) -> Optional[Dict[str, float]]:
        """By tensor, when gradients become ready in a step, as the first steps measured it for plan="auto"; None: not yet, or never."""
        times = self.engine.ready_seconds
        return None if times is None else {tensor.name: each for tensor, each in zip(self.engine.compressed.tensors, times)}

    def state_dict(self) -> Any:
        """This rank's states, with what is under way where updates come a step late, which is waited for. Keys carry the rank, so that
        torch.distributed.checkpoint keeps those of all ranks."""
        later = self.hook.later
        under_way = {} if later is None else later.state_dict(f"rank{self.engine.transport.rank}.late.")  # first: it waits
        return {**self.engine.state_dict(), **under_way}

    def load_state_dict(self, saved: Any) -> str:
        """All ranks call it between the same steps: docs/pytorch.md, Checkpoints. Returns what could not be taken over."""
        later = self.hook.later
        if later is None:
            return self.engine.load_state_dict(saved)
        prefix = f"rank{self.engine.transport.rank}.late."
        expected = later.state_dict(prefix)
        # What is missing on one rank is an error on all.
        Meeting(self.engine.group, self.engine.settings.most_seconds(self.engine.group)).agree(lambda: check_tensors(saved, expected), lambda _: {})
        notes = self.engine.load_state_dict(saved)
        later.load_state_dict(saved, prefix)
        return notes

    def pause(self) -> None:
        """Steps are exact from now on, and programs keep their states. All ranks call it between the same steps. Errors, on all ranks: see
        docs/pytorch.md, Exact steps."""
        self._collect()
        agree_on_pause([self.engine], True)

    def resume(self) -> None:
        """Steps are compressed again, unless dense_steps or dense_after say otherwise. All ranks call it as `pause`."""
        self._collect()
        agree_on_pause([self.engine], False)

    def close(self) -> None:
        """No more steps are taken. Other ranks that wait for this one get an error."""
        self.engine.close()


def compress(
    model: "torch.nn.Module",
    program: Union[str, Program, None] = None,
    *,
    optimizer: Optional["torch.optim.Optimizer"] = None,
    **settings: Any,
) -> Compression:
    """Has the gradients of `model` averaged by Cinch. All ranks call it alike, before the first step.

    Args:
        model: in DistributedDataParallel, without a communication hook; torch.compile may be around it.
        program: a name of the library ("dgc"), a file ("mine.cinch"), an expression ("error_feedback(onebit)"), or what
            `cinch.compile` gave. "auto": what `recipe` chooses for the model and its `optimizer`, which must be given, with `link` and
            `budget` as there.
        optimizer: one that does not suit the program, such as one with momentum that the program has, too, is warned of;
            `momentum=take_momentum(optimizer)` moves it.
        rules: which parameters are compressed, by which program; by default tensors of one dimension or under 4096
            elements are exact. JSON or a list, as docs/sync_reference.md has it under Policies; a function of name and shape in
            the list returns "exact", a program, {"use": …, "set": {…}}, or None.
        plan: "two_shot", "allreduce", "allgather", "ring", "tree", "auto", which measures first, or a file of
            `cinch plan`; `program` is then left out, or one of the file's. Under two_shot the rank that has summed a piece compresses it once more; under allgather updates are the mean of what all ranks sent. None:
            that of `cinch.Synchronizer`.
        replan_after: with plan="auto", so many steps measure when gradients become ready; then it is planned again behind such a backward pass. 0:
            never. Over a `Hook` and `compress` alone, without `clip` and `delay`.
        dense_steps: the first so many steps are exact. None: 0 for programs without states, else a tenth of `total_steps`, or 50.
        total_steps: of the training.
        dense_after: the step from which on steps are exact again.
        clip: before compression a rank's gradient, of all tensors, is shortened to a norm of clip / sqrt(ranks). Nothing is
            sent before the backward pass ends.
        delay: 1: a step gets the mean of the last step's gradients, zeros at first, and its own exchange has the next forward and backward pass to
            end in. `Delayed` has more of this kind. Over a `Hook` and `compress` alone.
        schedule: by run-time parameter a function of the step: {"ratio": lambda step: 0.1 if step < 500 else 0.001}.
            Payloads have room for the value that the call binds (ratio=0.2), else for the schedule's first.
        inputs: what a program takes besides gradients, by name: {"lr": scheduler.get_last_lr()[0]}, or a function that gives a number in each
            step; for an array of each parameter, a function of its name or a mapping. By default `weights` are the parameters, and `lr` is
            that of `optimizer`.
        scale: a function that gives the loss scale, such as `scaler.get_scale`: states then hold unscaled values.
        skips_non_finite: where a gradient of some rank is not finite no state changes, and all gradients become NaN,
            which GradScaler skips.
        measures_errors: `report` has errors by tensor, for an all-reduce more in each step.
        report_every: rank 0 logs a line every so many steps (logger "cinch").
        first_step, seed, piece_bytes: of `cinch.Synchronizer`.
        threads: of this rank; by default torch.get_num_threads().
        timeout: seconds in which something must move; 2 more, and ranks give up. By default the process group's time-out.
        transport: "ucx" or "nccl"; by default UCX between CPUs and NCCL between GPUs. Over UCX messages of GPUs go through
            the host's memory, and ranks may share a GPU.
        interface, secret: of `cinch.Transport.ucx`.
        **settings: all others are parameters of the program: ratio=0.001.

    Errors, on all ranks: InvalidArgumentError (no DDP model, a hook is there, gradients that are sparse, complex or
    integers, ranks that differ), ProgramError, FileError (rules), UnavailableError (no UCX), TimedOutError (names ranks
    that have not come). Later, from `backward`: SyncError, which names rank, tensor and phase.
    """
    model = without_compile(model)
    if not isinstance(model, DistributedDataParallel):
        raise InvalidArgumentError(f"compress takes a DistributedDataParallel model, not a {type(model).__name__}; cinch.torch.Averager does without")
    found = chosen(program, model.module.parameters(), optimizer, settings, model.process_group)
    hook = Hook(found.program, group=model.process_group, **found.settings)
    hook.is_of_compress = True
    named = [(name, parameter) for name, parameter in model.module.named_parameters() if parameter.requires_grad]
    ignored: Collection[str] = getattr(model, "parameters_to_ignore", ())
    plain = plain_names(model.module)
    hook.bind(
        [(plain(name), parameter) for name, parameter in named if name not in ignored],
        watches_use=bool(getattr(model, "find_unused_parameters", False) or getattr(model, "static_graph", False)),
        check=lambda: _check_model(model, found),
        optimizer=optimizer,
    )
    model._comm_hooks.clear()  # of what was left over
    model.register_comm_hook(hook, run_hook)
    return Compression(hook)


def _check_model(model: DistributedDataParallel, found: Chosen) -> None:
    if found.failure is not None:
        raise found.failure
    if found.settings.get("delay") == 1 and getattr(model, "find_unused_parameters", False):
        raise InvalidArgumentError("delay=1 with find_unused_parameters: DDP drops the late update of a parameter that no rank uses in a step; Delayed keeps it")
    if any(not isinstance(state, LeftOver) for _, state in model._comm_hooks):
        raise InvalidArgumentError("the model has a communication hook already: DDP takes one")
    plain = plain_names(model.module)
    for name, module in model.module.named_modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse:
            raise InvalidArgumentError(f"{plain(name) or 'the model'}: gradients of an embedding with sparse=True are not taken; dense ones are")
    dynamo = getattr(torch, "_dynamo", None)
    if dynamo is not None and getattr(dynamo.config, "optimize_ddp", None) == "python_reducer":
        raise InvalidArgumentError('torch._dynamo.config.optimize_ddp is "python_reducer", which runs no communication hooks of Python\'s own: set it to True')
