"""The communication hook of DistributedDataParallel."""
import warnings
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from ..errors import InvalidArgumentError, SyncError
from ..program import Program
from ._engine import Engine
from ._exchange import Exchange
from ._group import group_of
from ._first_steps import FirstSteps
from ._momentum import as_in_memory, as_it_is, check_optimizer, fit, taken_in
from ._settings import settings_of
from ._told import warn_of_start


class _Step:
    """Buckets of the step that is under way, and the futures that DDP waits for."""

    def __init__(self) -> None:
        self.pending: List[Tuple[Any, "torch.Tensor"]] = []
        self.num_taken = 0  # parameters
        self.gradients: Dict[int, "torch.Tensor"] = {}  # by place, where updates come a step late
        self.failure: Optional[SyncError] = None


class LeftOver:
    """What a copy of a model, or one that was loaded, has in the place of the hook that `compress` made: PyTorch registers no hook
    for either."""

    def take(self, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
        raise InvalidArgumentError("a copied or loaded model has no hook of Cinch: call cinch.torch.compress with it")


class Hook:
    """What `run_hook` keeps: `model.register_comm_hook(hook, cinch.torch.run_hook)`, which `compress` does, or whatever
    takes a state and a hook, as Lightning's DDPStrategy on GPUs (docs/pytorch.md). It pickles: settings do, the connection is opened anew. That of `compress` does
    not, since its model has no hook when it is loaded.

    Without `bind` it learns the parameters from the first step's buckets, and names them by their place there. Of a static graph
    of several buckets that is the second step; the first one is exact.
    """

    def __init__(self, program: Any = "none", *, group: Optional[Any] = None, **settings: Any) -> None:
        self.settings = settings_of(program, settings)
        self.engine: Optional[Engine] = None
        self._group = group
        self.is_of_compress = False
        self._forget()

    def _forget(self) -> None:
        self.later: Optional[Exchange] = None  # where updates come a step late
        self._places: Dict[int, int] = {}  # by the parameter's identity
        self._parameters: List["torch.Tensor"] = []
        self._step: Optional[_Step] = None
        self._seen: List[Tuple["torch.Tensor", "torch.Tensor"]] = []  # of a first step that opens the engine
        self._used: Optional[Set[int]] = None
        self._first_steps: Optional[FirstSteps] = None

    def __deepcopy__(self, memo: Dict[int, object]) -> Union["Hook", LeftOver]:
        if self.is_of_compress:
            return LeftOver()
        copied = Hook(group=self._group)
        copied.settings = self.settings
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (LeftOver, ()) if self.is_of_compress else super().__reduce_ex__(protocol)

    def __getstate__(self) -> Dict[str, Any]:
        if self._group is not None:
            raise TypeError("a hook over a process group of its own is not pickled: groups are not")
        if isinstance(self.settings.program, Program):
            raise TypeError("a hook with a compiled program is not pickled: give the program's name or file")
        if taken_in(self.settings) is not None:
            raise TypeError("a hook with an optimizer's momentum is not pickled: the optimizer is not")
        return {"settings": self.settings}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.settings, self.engine, self._group, self.is_of_compress = state["settings"], None, None, False
        self._forget()

    def bind(
        self,
        named: Sequence[Tuple[str, "torch.Tensor"]],
        *,
        watches_use: bool = False,
        check: Callable[[], None] = lambda: None,
        optimizer: Optional["torch.optim.Optimizer"] = None,
        is_permuted: bool = False,
    ) -> None:
        """Opens it for these parameters. All ranks call it. `watches_use`: some may be left out by the model; a parameter
        that no rank has used keeps its states. What `check` raises on one rank is an error on all. `optimizer`: as of
        `compress`. `is_permuted`: gradients come with their dimensions as they lie in memory. Errors: those of `compress`."""
        is_late = self.settings.delay == 1

        def check_all() -> None:
            check_optimizer(optimizer)
            check()
            if is_late and taken_in(self.settings) is not None:
                raise InvalidArgumentError("take_momentum moves momentum within a step, and updates come a step late")

        self.engine = Engine(
            named, replace(self.settings, delay=0) if is_late else self.settings, self._group, check_all,
            optimizer=optimizer, are_parameters=True, is_late=is_late,
        )
        if is_late:
            self.later = Exchange(self.engine, named)
        else:
            self._first_steps = FirstSteps(self.engine)
        warn_of_start([self.engine])
        self._parameters = [parameter for _, parameter in named]
        self._places = {id(parameter): place for place, parameter in enumerate(self._parameters)}
        if all(tensor.program is None for tensor in self.engine.compressed.tensors) and self.engine.settings.program != "none" and self.engine.transport.rank == 0:
            warnings.warn("no parameter is compressed: all are exact, as those of one dimension or under 4096 elements are without other rules", stacklevel=4)
        fit(self.engine, self._parameters, optimizer, velocity_of=as_in_memory if is_permuted else as_it_is)
        if watches_use:
            self._used = set()
            for place, parameter in enumerate(self._parameters):
                _note_use(parameter, place, self._used)

    def opened(self) -> Engine:
        """Errors: InvalidArgumentError (nothing has opened it yet)."""
        if self.engine is None:
            raise InvalidArgumentError("the hook has taken no step yet")
        return self.engine

    # ---- buckets ----

    def take(self, bucket: Any) -> "torch.futures.Future[torch.Tensor]":
        """Hands the bucket's gradients over. The future has a value when the backward pass ends. Errors: SyncError where
        no backward pass runs (`Join`), else by the backward pass."""
        if self.engine is None and not bucket.is_last() and not _is_in_backward():
            return allreduce_hook(group_of(self._group), bucket)
        if self._step is None:
            self._step = _Step()
            if self._first_steps is not None:
                self._try(self._first_steps.begin)
        buffer = bucket.buffer()
        future: "torch.futures.Future[torch.Tensor]" = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        self._step.pending.append((future, buffer))
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
            self._take(parameter, gradient)
            self._step.num_taken += 1
        # In the first step of a static graph DDP calls hooks after the pass, marks no bucket as the last of several, and waits
        # at once. Otherwise it queues its own callback, which waits for the futures, after the last bucket's hook.
        is_last = bucket.is_last() or (self.engine is not None and self._step.num_taken == len(self._parameters))
        if is_last and not (_is_in_backward() and _at_end_of_backward(self._end)):
            self._raise(self._finish())
        return future

    def _take(self, parameter: "torch.Tensor", gradient: "torch.Tensor") -> None:
        if self.engine is None:
            self._seen.append((parameter, gradient))
            return
        engine, place = self.engine, self._places.get(id(parameter))
        if place is None:
            why = "a bucket has a parameter that the hook was not opened for: each model takes a hook of its own, made when requires_grad is set"
            return self._try(lambda: engine.refuse(InvalidArgumentError(why)))
        is_used = self._used is None or place in self._used
        if self.later is not None and self._step is not None:
            self._step.gradients[place] = gradient
        else:
            if self._first_steps is not None:
                self._first_steps.mark(place)
            self._try(lambda: engine.ready(place, gradient, is_used=is_used))

    def _try(self, act: Callable[[], None]) -> None:
        """Where a step has failed, what follows of it is left out: DDP's own book-keeping goes on."""
        step = self._step
        if step is None or step.failure is not None:
            return
        try:
            act()
        except SyncError as failure:
            step.failure = failure

    def _end(self) -> None:
        failure = self._finish()
        if failure is not None:
            # DDP's callback comes first, and leaves DDP in its usual state after a step.
            _at_end_of_backward(lambda: self._raise(failure))

    def _finish(self) -> Optional[SyncError]:
        if self.engine is None:
            self._open_from_buckets()
        step, self._step = self._step, None
        assert step is not None and self.engine is not None
        is_skipped = False
        try:
            is_skipped = self.engine.finish() if self.later is None else self._swap(self.later, step.gradients)
        except SyncError as failure:
            step.failure = step.failure or failure
        for future, buffer in step.pending:
            if is_skipped:
                buffer.fill_(float("nan"))  # what GradScaler looks for
            future.set_result(buffer)
        if self._used is not None:
            self._used.clear()
        return step.failure

    def _swap(self, later: Exchange, gradients: Dict[int, "torch.Tensor"]) -> bool:
        """The last step's means take the place of the gradients, which go on their way; in the first step zeros do. Returns whether the last
        step was skipped."""
        means = later.take()
        was_skipped, scale = later.was_skipped, later.engine.scale
        kept = None if means is None else [mean.clone() for mean in means]
        later.begin([gradients.get(place) if self._used is None or place in self._used else None for place in range(len(self._parameters))])
        for place, gradient in gradients.items():
            if kept is None:
                gradient.zero_()
            else:
                gradient.copy_(kept[place])
                if later.engine.scale != scale:
                    gradient.mul_(later.engine.scale / scale)  # the loss scale of this step, by which they are divided
        return was_skipped

    def _open_from_buckets(self) -> None:
        seen, self._seen = self._seen, []
        self.bind([(f"parameter{place}", parameter) for place, (parameter, _) in enumerate(seen)])
        if self._first_steps is not None:
            self._try(self._first_steps.begin)
        for parameter, gradient in seen:
            self._take(parameter, gradient)

    @staticmethod
    def _raise(failure: Optional[SyncError]) -> None:
        if failure is not None:
            raise failure


def _note_use(parameter: Any, place: int, used: Set[int]) -> None:
    parameter.register_hook(lambda gradient: used.add(place))


# DDP compares the annotations, so they must not be strings.
def run_hook(state: Hook, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
    """The hook of `register_comm_hook`; its state is a `Hook`."""
    return state.take(bucket)


def _is_in_backward() -> bool:
    """Is autograd evaluating a node? It is not while it calls what was queued for the end."""
    node = getattr(torch._C, "_current_autograd_node", None)
    return node is None or node() is not None


def _at_end_of_backward(act: Callable[[], None]) -> bool:
    """Has the autograd engine call `act` when the running backward pass ends; False: none runs."""
    engine: Any = torch.autograd.Variable._execution_engine
    try:
        engine.queue_callback(act)
    except RuntimeError:
        return False
    return True
