"""Methods that use what ranks exchange a step late, without DistributedDataParallel."""
import math
import time
from dataclasses import dataclass
from typing import Any, ContextManager, Dict, Mapping, Optional, Sequence, Tuple, Union

import torch

from ..errors import InvalidArgumentError
from ..program import Program
from ._engine import Engine
from ._exchange import check_saved, padded
from ._global_weights import GlobalWeights, Owned, Replicated, check_element_wise, even_ends
from ._group import Meeting, group_of
from ._momentum import taken_in
from ._optimizer_steps import trial_step
from ._settings import settings_of
from ._told import Drift, warn_of_needless_delay, warn_of_start
from ._tensors import are_finite
from ._trained import trained_by


_STEPS_TO_JUDGE = 20  # then is known how long an exchange takes


@dataclass(frozen=True)
class Method:
    """Attributes:
    delay: steps between the one that begins an exchange and the one that uses it.
    moves: does a rank move the global weights by its own gradient meanwhile?
    pulls: are parts of the global weights owned by ranks, which pull the whole now and then?
    """

    delay: int
    moves: bool
    pulls: bool = False


METHODS: Mapping[str, Method] = {
    "sync": Method(0, False),
    "stale": Method(1, False),
    "od_sgd": Method(1, True),
    "cd_sgd": Method(1, True),
    "ssd_sgd": Method(1, True, True),
}


class Delayed:
    """Trains with gradients of all ranks that are used a step late, so that an exchange has the next forward and backward pass to end in.

        trainer = cinch.torch.Delayed(model, optimizer, "od_sgd")
        for batch in batches:
            optimizer.zero_grad()
            loss(model, batch).backward()
            trainer.step()                      # in the place of optimizer.step()
        trainer.flush()                         # the model has the global weights

    All ranks make it alike, before the first step, and begin with the weights of the group's first rank. Between two steps the weights of
    ranks differ: each has moved the global ones by its own gradient.

    Args:
        model: not in DistributedDataParallel. Buffers, such as running means, are each rank's own.
        optimizer: of the model's parameters; it moves the global weights, by the mean gradient, under the rates of the step of that gradient.
        method: "sync"; "stale": ranks wait for nothing, and gradients are those of weights a step old; "od_sgd": the newest global weights,
            moved by the optimizer's own step for a part of the rank's own gradient, with a copy of its state that is thrown away; "cd_sgd": the
            same, with a program that compresses; "ssd_sgd": ranks own parts of the weights, push gradients at every step, and pull the
            weights at every `pull_every`-th. Between pulls their own weights go on.
        program: as of `compress`, but for "auto".
        own_share: that part, from 0 to 1; None: 1 / ranks, the part of the mean that a rank knows. 1 is what the papers have; where curvatures
            differ between ranks it bears smaller rates than "stale" (docs/pytorch.md).
        pull_every: of "ssd_sgd"; None: 5.
        global_share: of "ssd_sgd": between pulls ranks also move by this part of the mean movement of the global weights in a step, between the last
            two pulls. None: what `own_share` leaves.
        group: a process group; None: all ranks.
        **settings: as of `compress`, but for `momentum=take_momentum(…)`. Over "ssd_sgd" there is no `plan`.

    Errors, on all ranks: InvalidArgumentError, and those of `compress`. Later, from all methods but `report`: SyncError, which names rank, tensor and
    phase.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer",
        method: str,
        *,
        program: Union[str, Program] = "none",
        own_share: Optional[float] = None,
        pull_every: Optional[int] = None,
        global_share: Optional[float] = None,
        group: Optional[Any] = None,
        **settings: Any,
    ) -> None:
        self._group = group_of(group)
        self._optimizer, self._name = optimizer, method
        self._method = METHODS.get(method, METHODS["sync"]) if isinstance(method, str) else METHODS["sync"]
        trained = trained_by(optimizer, model, may_be_wrapped=False)
        self._parameters = trained.tensors

        def check() -> None:
            self._check(method, own_share, pull_every, global_share, settings)
            trained.check()
            if self._method.pulls:
                check_element_wise(optimizer)
                _check_one_type(trained.named)

        of = settings_of(program, settings)
        self._about = {"method": method, "own_share": own_share, "pull_every": pull_every, "global_share": global_share, "ranks": torch.distributed.get_world_size(self._group)}
        alike = {"the parameters' types": trained.types(), "the optimizer": _described(optimizer), "method": method, "own_share": own_share, "pull_every": pull_every, "global_share": global_share}
        ends = None
        if self._method.pulls:
            of.plan = "reduce_scatter" if of.plan is None else of.plan
            world = torch.distributed.get_world_size(self._group)
            ends = [even_ends(parameter.numel(), world) for parameter in self._parameters]
        self.engine = Engine(trained.named, of, self._group, check, part_ends=ends, alike=alike)
        warn_of_start([self.engine])
        trained.begin_alike(self._group)
        world = self.engine.transport.world
        self.own_share = (1.0 / world if own_share is None else float(own_share)) if self._method.moves else 0.0
        self.global_share = 1.0 - self.own_share if global_share is None else float(global_share)
        self._global: GlobalWeights
        if ends is not None:
            self._global = Owned(trained.named, optimizer, self.engine, ends, 5 if pull_every is None else pull_every)
        else:
            self._global = Replicated(trained.named, optimizer, self.engine, has_copy=self.own_share > 0)
        self._names = [name for name, _ in trained.named]
        self._drift, self._begun = Drift(), 0.0
        self._trained = trained
        self._steps = 0

    def _check(self, method: Any, own_share: Any, pull_every: Any, global_share: Any, settings: Mapping[str, Any]) -> None:
        if method not in METHODS:
            raise InvalidArgumentError(f"method is {method!r}; there are {', '.join(METHODS)}")
        for name, share in (("own_share", own_share), ("global_share", global_share)):
            if share is not None and not (isinstance(share, (int, float)) and math.isfinite(share) and 0 <= share <= 1):
                raise InvalidArgumentError(f"{name} is {share!r}: a part from 0 to 1 is taken")
        if own_share and not self._method.moves:
            raise InvalidArgumentError(f"own_share is {own_share}, and {method} moves by no gradient of a rank's own; od_sgd does")
        if not self._method.pulls and (pull_every, global_share) != (None, None):
            raise InvalidArgumentError(f"{'global_share' if pull_every is None else 'pull_every'} is a setting of ssd_sgd, and not of {method}")
        if pull_every is not None and not (isinstance(pull_every, int) and pull_every > 0):
            raise InvalidArgumentError(f"pull_every is {pull_every!r}: integers from 1 on are taken")
        if taken_in(settings_of("none", settings)) is not None:
            raise InvalidArgumentError("take_momentum moves momentum within a step: a method that uses gradients later keeps the optimizer's")

    @property
    def step_number(self) -> int:
        """Of the step that is next."""
        return self._steps

    def step(self) -> None:
        """Behind `backward`, in the place of the optimizer's step. A parameter without a gradient counts as one of zeros: weight decay and momentum
        move it. Errors: SyncError, InvalidArgumentError (closed, or within `global_weights`)."""
        self._check_open()
        setattr(self._optimizer, "_opt_called", True)  # schedulers of rates warn where the first step has not called it
        own = [parameter.grad for parameter in self._parameters]
        if self._method.delay == 0:
            self._global.begin(own)
            self._global.take()
        else:
            self._global.take()
            self._warn_of_room(time.perf_counter())
            self._global.begin(own)
            self._move()
        self._steps += 1

    def _warn_of_room(self, now: float) -> None:
        """Once, on rank 0, where exchanges take next to nothing of a step."""
        begun, self._begun = self._begun, now
        if self._steps != _STEPS_TO_JUDGE or self.engine.transport.rank != 0:
            return
        warn_of_needless_delay(self.engine.report()["phases"], (now - begun) * 1e3, "a step", "method sync has newer gradients")

    @torch.no_grad()
    def _move(self) -> None:
        """By the rank's own gradient, and by the global movement."""
        # A gradient that is not finite is left out by all ranks. This one would have weights that are not finite, and gradients of those.
        if self.own_share > 0 and (not self.engine.settings.skips_non_finite or are_finite(parameter.grad for parameter in self._parameters)):
            for parameter in self._parameters:
                if parameter.grad is not None and self.own_share != 1:
                    parameter.grad.mul_(self.own_share)
            trial_step(self._optimizer)
        moved = self._global.movement() if self.global_share > 0 else None
        if moved is not None:
            for parameter, by in zip(self._parameters, moved):
                parameter.add_(by, alpha=self.global_share)
        if self.engine.transport.rank == 0:
            self._drift.note(self._steps, self._global.distance, self.own_share)

    def flush(self) -> None:
        """Ends what is under way. The model then has the global weights, the same on all ranks; training may go on. All ranks call it."""
        self._check_open()
        self._global.flush()

    def _check_open(self) -> None:
        if self.engine.failure is not None:
            raise self.engine.failure
        self._trained.check_open()

    def global_weights(self) -> ContextManager[None]:
        """Within it the model has the newest global weights that this rank has, without what is under way: to evaluate between steps."""
        return self._trained.shown(lambda: self._global.show(self._parameters))

    def report(self) -> Dict[str, Any]:
        """Of the last exchange that ended on this rank: as `Compression.report`, with the method, its shares, the bytes of weights that were pulled so
        far, and those of copies: of weights beside the model's, and of gradients under way. `exposed_ms` is how long the rank waited. What is under way is
        waited for, but not used before its time."""
        self._global.collect()
        told = self.engine.report()
        pulled = getattr(self._global, "pulled_bytes", 0)
        return {**told, "method": self._name, "own_share": self.own_share, "weight_copies": self._global.copies, "copies_bytes": self._global.bytes, "pulled_bytes": pulled}

    def state_dict(self) -> Dict[str, Any]:
        """This rank's states: what `Compression.state_dict` has, the weights of this rank, the global ones, and what was under way, which is waited for but not
        used before its time. All ranks call it between the same steps, and save the optimizer's state beside it. Errors: SyncError."""
        if self.engine.failure is not None:
            raise self.engine.failure
        prefix = self._prefix
        kept = self._global.state_dict(prefix)  # first: nothing is under way behind it
        own = {f"{prefix}own.{name}": parameter.detach().clone() for name, parameter in zip(self._names, self._parameters)}
        return {**self.engine.state_dict(), **kept, **own, f"{prefix}steps": torch.tensor(self._steps), f"{prefix}about": padded(self._about)}

    def load_state_dict(self, saved: Any) -> str:
        """All ranks call it between the same steps, with what they saved themselves in a run of as many ranks, and load the optimizer's state.
        Training then gives the bits of a run that was not interrupted. Returns what could not be taken over. Errors: InvalidArgumentError, and those of
        `Compression.load_state_dict`."""
        prefix = self._prefix
        expected = self.state_dict()
        # What is wrong on one rank is an error on all, before anything has changed.
        meeting = Meeting(self._group, self.engine.settings.most_seconds(self._group))
        told = meeting.agree(lambda: check_saved(saved, expected, f"{prefix}about", "method"), lambda _: {"the step": int(saved[f"{prefix}steps"])})
        notes = self.engine.load_state_dict({name: saved[name] for name in (f"{prefix}states", f"{prefix}step", f"{prefix}world")})
        self._global.load_state_dict(saved, prefix)
        with torch.no_grad():
            for name, parameter in zip(self._names, self._parameters):
                parameter.copy_(saved[f"{prefix}own.{name}"])
        self._steps = int(saved[f"{prefix}steps"])
        return "\n".join([*filter(None, [notes]), *told])

    @property
    def _prefix(self) -> str:
        return f"rank{self.engine.transport.rank}."

    def close(self) -> None:
        """No more steps are taken. What is under way under "ssd_sgd" is waited for; otherwise other ranks that wait for this one get an error."""
        self._trained.is_closed = True
        self._global.close()
        self.engine.close()

    def __enter__(self) -> "Delayed":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _described(optimizer: Any) -> str:
    """Its kind and rates, which are the same on all ranks."""
    return f"{type(optimizer).__name__} of rates {[float(group['lr']) for group in getattr(optimizer, 'param_groups', []) if 'lr' in group]}"


def _check_one_type(named: Sequence[Tuple[str, "torch.Tensor"]]) -> None:
    for name, parameter in named:
        if parameter.dtype != named[0][1].dtype:
            raise InvalidArgumentError(f"{name} is {parameter.dtype}, and {named[0][0]} {named[0][1].dtype}: parameters whose parts ranks own have one type")
