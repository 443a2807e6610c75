"""What averages the gradients of one model: tensors with their programs, a transport, and synchronizers over it."""
import json
import logging
import time
import warnings
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from ..errors import CheckError, Error, InvalidArgumentError, SyncError
from ..program import Program, compile, quietly
from ..synchronizer import Restored, Synchronizer, SyncTensor
from ..transport import Transport
from . import _first_steps, _rules, _states, _tensors
from . import _told as told
from ._group import Meeting, check_transport, group_of, open_transport
from ._inputs import Inputs
from ._momentum import Handover
from ._phases import Clip, Phases
from ._policy import NONE, Named, choose, default_of, has_plan_file, idle_rules, planned
from ._settings import Settings

log = logging.getLogger("cinch")


class Engine:
    """Errors of opening, on all ranks where one has them: those of `check`, `choose`, `open_transport` and `Synchronizer`."""

    def __init__(
        self,
        named: Sequence[Tuple[str, "torch.Tensor"]],
        settings: Settings,
        group: Any,
        check: Callable[[], None] = lambda: None,
        *,
        transport: Optional[Transport] = None,
        part_ends: Optional[Sequence[Tuple[int, ...]]] = None,
        alike: Mapping[str, Any] = {},
        optimizer: Optional["torch.optim.Optimizer"] = None,
        are_parameters: bool = False,
        is_late: bool = False,
    ) -> None:
        """`are_parameters`: `named` are the model's own, whose weights programs may take; their learning rate is that of `optimizer`. `is_late`:
        the optimizer changes them while a step is under way. `transport`: one of the group's that is open already and that other engines use between steps of this one; None:
        a new one. `part_ends`: of each tensor, for plan "reduce_scatter". `alike`: what else is the same on all ranks, or an error."""
        self.settings, self.group = settings, group_of(group)
        meeting = Meeting(self.group, settings.most_seconds(self.group))
        self._is_reduced = part_ends is not None
        self._optimizer, self._are_parameters, self._is_late = optimizer, are_parameters, is_late
        tensors = meeting.agree(lambda: self._checked(named, check), lambda tensors: {**self._alike(tensors), **alike})
        if part_ends is not None:
            tensors = [replace(tensor, part_ends=ends) for tensor, ends in zip(tensors, part_ends)]
        # Cinch puts its work for the GPU on this stream. PyTorch's default stream does not work: its handle is NULL, which the
        # C API takes for no stream.
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.transport = transport or open_transport(meeting, self.device, settings.transport, secret=settings.secret, interface=settings.interface)
        self.ready_seconds: Optional[List[float]] = None  # by tensor, as plan "auto" has them; None: all are ready at once
        self.compressed = self._opened(tensors, self.settings.plan)
        self._tell_choice()
        if self.transport.rank == 0:
            told.tell_start(self.compressed, self.phases.dense_steps)
        self._dense: Optional[Synchronizer] = None
        if self.phases.has_dense_steps:
            self._open_dense()
        self.step = settings.first_step
        self.was_dense = True  # the last step, and training before this run
        self._has_states = False  # of a step
        self.handover: Optional[Handover] = None
        self._clip = None if settings.clip is None else Clip(settings.clip, self.transport.world)
        self.direction = _rules.direction_of(self.compressed.programs)
        if self.direction is not None:
            self.direction.open(self.compressed.tensors, self.transport.rank, self.device, has_exact_steps=self.phases.has_dense_steps)
        self._updates: Dict[int, "torch.Tensor"] = {}
        self.failure: Optional[SyncError] = None
        self._is_under_way, self._carries = False, False
        self.scale = 1.0  # of the losses of the step that began last
        self._last = self.compressed if self._dense is None or not self.is_dense_step else self._dense
        self.times = told.StepTimes()
        self._bytes = {name: t.numel() * t.element_size() for name, t in named}

    @property
    def _is_auto(self) -> bool:
        """May the plan change from run to run, and within one? States are then of other sizes, and may go to other ranks."""
        return self.settings.plan == "auto"

    @property
    def _gpu(self) -> Optional[int]:
        return (self.device.index or 0) if self.device.type == "cuda" else None

    def _alike(self, tensors: Sequence[SyncTensor]) -> Dict[str, Any]:
        """What ranks compare before they are connected. The other settings may differ, or are compared when synchronizers open."""
        names = ("dense_after", "clip", "first_step", "replan_after", "skips_non_finite", "measures_errors", "transport")
        alike = {name: getattr(self.settings, name) for name in names}
        alike["dense_steps"] = self.phases.dense_steps
        if all(tensor.program is None for tensor in tensors):
            default = self._default.program
            alike["program"] = "none" if default is None else f"{default.name} {default.fingerprint}"
        return alike

    def _checked(self, named: Sequence[Tuple[str, "torch.Tensor"]], check: Callable[[], None]) -> List[SyncTensor]:
        self.settings.check(is_reduced=self._is_reduced)
        check()
        if not named:
            raise InvalidArgumentError("no parameter has a gradient")
        for name, tensor in named:
            _tensors.check_gradient(name, tensor)
        self.device = named[0][1].device
        if self.device.type not in ("cpu", "cuda"):
            raise InvalidArgumentError(f"{named[0][0]} is on {self.device}: parameters on CPUs and CUDA's GPUs are taken")
        for name, tensor in named:
            if tensor.device != self.device:
                raise InvalidArgumentError(f"{name} is on {tensor.device}, {named[0][0]} on {self.device}: all are on one CPU or GPU")
        settings = self.settings
        check_transport(settings.transport, self.device)
        shapes = [Named(name, tuple(tensor.shape)) for name, tensor in named]
        tensors = self._choice(shapes, settings.dense_steps or 0)
        self.phases = Phases.of(settings, [each.program for each in tensors if each.program is not None])
        if self.phases.dense_steps > 0 and settings.dense_steps is None and settings.schedule:
            tensors = self._choice(shapes, self.phases.dense_steps)  # payloads have room for what the schedule begins with
        self.idle_rules = idle_rules(shapes, settings.rules)
        # Programs on matrices get dimensions in memory order, since that is the array that is passed.
        tensors = [replace(each, shape=tuple(tensor.shape[i] for i in _tensors.memory_order(tensor))) for each, (_, tensor) in zip(tensors, named)]
        for parameter in settings.schedule:
            if not any(each.program is not None and parameter in each.program.parameters for each in tensors):
                raise InvalidArgumentError(f"schedule: no program that a tensor has takes a run-time parameter {parameter}")
        for each in tensors:
            if each.program is not None and each.program.is_local:
                raise InvalidArgumentError(
                    f"{each.name}: {each.program.name} claims `local`, an update of its own for each rank, so replicas would drift apart; "
                    "cinch.Synchronizer takes it"
                )
            if self._is_reduced and each.program is not None and each.program.is_matrix:
                raise InvalidArgumentError(
                    f"{each.name} is a parameter of FSDP2, of which ranks send parts, and {each.program.name} compresses whole matrices: take another program, "
                    f'the rule {_exact_rule(each.name)}, or compress_replicas')
        self._inputs = Inputs(named, tensors, settings.inputs, self._optimizer, are_parameters=self._are_parameters, copies=self._is_late)
        self._plain = self._plain_of(tensors)
        return tensors

    def _choice(self, shapes: Sequence[Named], dense_steps: int) -> List[SyncTensor]:
        settings = self.settings
        starts = {parameter: float(value_at(settings.first_step + dense_steps)) for parameter, value_at in settings.schedule.items()}
        # Checked even if no tensor uses the program: its name may be wrong.
        with quietly():
            self._default = default_of(self._given, settings.bindings, self._gpu, starts)
            if has_plan_file(settings.plan):
                return planned(shapes, str(settings.plan), self._given, self._gpu, starts)
            return choose(shapes, self._default, settings.rules, self._gpu, starts)

    @property
    def _given(self) -> Union[str, Program]:
        return NONE if self.settings.program is None else self.settings.program

    def _plain_of(self, tensors: Sequence[SyncTensor]) -> Optional[Program]:
        """Any program for the GPU. Its image also has the code that adds exact tensors there, so that steps which compress
        nothing need one, too."""
        if self._gpu is None:
            return None
        given = self.settings.program
        programs = [each.program for each in tensors if each.program is not None]
        return programs[0] if programs else given if isinstance(given, Program) else compile("fp16", device=self._gpu)

    def _opened(self, tensors: Sequence[SyncTensor], plan: Optional[str]) -> Synchronizer:
        threads = self.settings.threads
        return Synchronizer(
            self.transport,
            tensors,
            plan=plan,
            piece_bytes=self.settings.piece_bytes,
            first_step=self.settings.first_step,
            seed=self.settings.seed,
            threads=torch.get_num_threads() if threads is None else threads,
            timeout=self.settings.most_seconds(self.group),
            device=self._gpu,
            stream=0 if self._stream is None else self._stream.cuda_stream,
            plain=self._plain,
            ready_seconds=self.ready_seconds,
        )

    def _open_dense(self) -> None:
        plan = None if has_plan_file(self.settings.plan) else self.settings.plan
        self._dense = self._opened([replace(each, program=None) for each in self.compressed.tensors], plan)

    def plan_again(self, ready_seconds: Callable[[], Sequence[float]]) -> None:
        """Plan "auto" once more, of what `ready_seconds` gives: when this rank's tensors become ready in a step. All ranks call it between the same
        steps. The old plan stays where states would not all go over to the new one. Errors: SyncError, on all ranks."""
        with self._failing():
            try:
                self.ready_seconds = _first_steps.slowest(self, ready_seconds())
                if self._dense is not None:
                    self._dense.close()
                    self._open_dense()
                old, choice = self.compressed, self.compressed.choice
                if self._has_states:
                    self.compressed = _first_steps.with_states_of(self, old, lambda: self._opened(old.tensors, self.settings.plan))
                else:
                    old.close()  # first: its memory is free for the other
                    self.compressed = self._opened(old.tensors, self.settings.plan)
            except Exception:
                self.close()  # the others need not wait
                raise
        self._last = self.sync
        if self.compressed is not old:
            self._tell_choice(choice)
        elif self.transport.rank == 0:
            log.info("cinch: the plan stays as it is, since some states of tensors would begin anew under the one of measured times")

    # ---- a step ----

    @property
    def is_dense_step(self) -> bool:
        return self._dense is not None and self.phases.is_dense(self.step)

    def check_pause(self) -> None:
        """Errors: InvalidArgumentError (a step is under way, or programs that exact steps would break)."""
        if self._is_under_way:
            raise InvalidArgumentError("a step is under way: compression pauses between steps")
        alone = _rules.begins_alone(self.compressed.programs)
        if alone is not None:
            raise InvalidArgumentError(f"{alone.name} cannot pause: exact steps would leave its states behind")

    @property
    def warnings(self) -> List[str]:
        """Of the compiler, beside those that `cinch.compile` has told already."""
        return [each.warnings.rstrip() for each in self.compressed.programs if each.warnings and each is not self.settings.program]

    def set_pause(self, is_paused: bool) -> None:
        """All ranks call it between the same steps, which `pause` sees to."""
        if is_paused and self._dense is None:
            self._open_dense()
        self.phases.is_paused = is_paused

    @property
    def sync(self) -> Synchronizer:
        """What takes the step that is next, or under way."""
        return self._dense if self._dense is not None and self.is_dense_step else self.compressed

    def begin(self) -> None:
        """Errors: SyncError (this step, or an earlier one, cannot be taken)."""
        if self.failure is not None:
            raise self.failure
        with self._failing():
            try:
                self._follow_schedule()
                scale = 1.0 if self.settings.scale is None else float(self.settings.scale())
                if not self.is_dense_step:
                    self._inputs.begin(self.compressed)
            except Exception:
                self.close()  # the others need not wait
                raise
            self.scale = scale
            self._carries = self.handover is not None and self.was_dense and not self.is_dense_step
            if self.handover is not None and self._carries and self._has_states:
                self._reset_states(self.handover.places)
            self.sync.begin(self.step, scale=scale, skips_non_finite=self.settings.skips_non_finite, measures_errors=self.settings.measures_errors)
        self._is_under_way = True

    def _reset_states(self, places: Iterable[int]) -> None:
        """Of programs that get the optimizer's velocity: theirs is of the time before exact steps."""
        for place in places:
            self.compressed.states_reset(place)

    def _follow_schedule(self) -> None:
        for parameter, value_at in self.settings.schedule.items():
            value = value_at(self.step)
            for program in self.compressed.programs:
                if parameter in program.parameters:
                    self.compressed.set(program, parameter, value)

    def check(self, name: str, gradient: "torch.Tensor") -> None:
        """Errors: SyncError, on all ranks (what `ready` does not take)."""
        with self._failing():
            try:
                _tensors.check_gradient(name, gradient)
            except InvalidArgumentError as error:
                self.refuse(error)

    def refuse(self, why: InvalidArgumentError) -> None:
        """Takes no more steps, on any rank. Errors: SyncError."""
        with self._failing():
            self.close()  # the others need not wait
            raise why

    def ready(self, tensor: int, gradient: "torch.Tensor", update: Optional["torch.Tensor"] = None, *, is_used: bool = True) -> None:
        """The gradient is there, dense. Its mean over ranks is in `update`, or in its place, when `finish` returns. Errors:
        SyncError, by `finish`, too."""
        with self._failing():
            if self._clip is not None:
                self._clip.add(tensor, gradient, update, is_used)
            else:
                self._give(tensor, gradient, update, is_used)

    def _give(self, tensor: int, gradient: "torch.Tensor", update: Optional["torch.Tensor"], is_used: bool) -> None:
        if self._carries and self.handover is not None:
            is_used = self.handover.add(tensor, gradient, self.scale) or is_used
        if self.direction is not None and (self.is_dense_step or self.compressed.tensors[tensor].program is None):
            self._updates[tensor] = gradient if update is None else update
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
        if not self.is_dense_step:
            for name, array in self._inputs.arrays(tensor, self.compressed.tensors[tensor]).items():
                if self._stream is not None:
                    self._stream.wait_stream(torch.cuda.current_stream(self.device))
                self.compressed.give_at(tensor, name, self._described(tensor, array))
        read = self._described(tensor, gradient)
        written = read if update is None else self._described(tensor, update, is_update=True)
        self.sync.ready_at(tensor, read, written, is_used=is_used)

    def _described(self, tensor: int, memory: "torch.Tensor", *, is_update: bool = False) -> Any:
        described = self.sync.descriptor(tensor, memory.data_ptr(), _tensors.dtype_of(memory), is_update=is_update)
        if self._stream is not None and memory.device.type == "cuda":
            described.stream = self._stream.cuda_stream
            described.device, described.device_number = 1, memory.device.index or 0
        return described

    def all_ready(self) -> None:
        """No gradient of the step is to come: clipped ones, which wait for all, are sent. `finish` calls it where nobody has."""
        if self._clip is not None:
            with self._failing():
                for given in self._clip.clipped(self.scale):
                    self._give(*given)

    def finish(self) -> bool:
        """Waits for all ranks. Returns whether the step was skipped, as `skips_non_finite` says. Errors: SyncError."""
        if self.failure is not None and not self._is_under_way:
            raise self.failure
        self._is_under_way = False
        begun = time.perf_counter()
        is_dense = self.is_dense_step
        with self._failing():
            self.all_ready()
            is_skipped = self.sync.finish()
            self._turn_exact_ones(is_skipped)
        self.times.note((time.perf_counter() - begun) * 1e3, is_dense=is_dense, warns=self.transport.rank == 0)
        self.step += 1
        self._last = self.compressed if not is_dense or self._dense is None else self._dense
        if not is_skipped:
            self.was_dense = is_dense
            self._has_states = self._has_states or not is_dense
        every = self.settings.report_every
        if every > 0 and self.step % every == 0 and self.transport.rank == 0:
            log.warning(self.line())
        return is_skipped

    def _turn_exact_ones(self, is_skipped: bool) -> None:
        """Exact tensors beside a program whose update is a direction get one, too."""
        updates, self._updates = self._updates, {}
        if self.direction is None or is_skipped:
            return
        for place, update in updates.items():
            self.direction.apply(self.step, place, update, self.scale)

    def _failing(self) -> "_Failing":
        return _Failing(self)

    # ---- told ----

    def _tell_choice(self, before: str = "") -> None:
        """Why plan "auto" chose its plan, on rank 0; a warning where it is not to compress, or where it is and an earlier choice was not."""
        choice = self.compressed.choice
        if self.transport.rank != 0 or not choice:
            return
        is_dense, was_dense = (each.startswith("do not compress") for each in (choice, before))
        if is_dense and not was_dense:
            warnings.warn(f"{choice}. Gradients are sent as they are", stacklevel=5)
        elif was_dense and not is_dense:
            warnings.warn(f"{choice}. Gradients are compressed from now on", stacklevel=5)
        else:
            log.info("cinch: %s", choice)

    def report(self) -> Dict[str, Any]:
        """Of the last step on this rank: what `Synchronizer.report` says, with bytes before compression and exposed times."""
        found = self._last.report()
        was_dense = self._last is self._dense
        programs = {each.name: "exact" if each.program is None or was_dense else each.program.name for each in self.compressed.tensors}
        for tensor in found["tensors"]:
            tensor["gradient_bytes"] = self._bytes[tensor["name"]]
            tensor["program"] = programs[tensor["name"]]
        found["gradient_bytes"] = sum(self._bytes.values())
        found["is_dense"] = was_dense
        found["exposed_ms"] = self.times.last(is_dense=was_dense)
        return found

    def line(self) -> str:
        """A step in one line."""
        return told.line_of(self.step - 1, self.report())

    # ---- states ----

    def state_dict(self) -> Dict[str, Any]:
        """This rank's states, under keys that no other rank has."""
        rank, world = self.transport.rank, self.transport.world
        saved: Dict[str, Any] = {f"rank{rank}.step": torch.tensor(self.step), f"rank{rank}.world": torch.tensor(world)}
        states = self.compressed.states_save()
        # Where the size may differ in the run that reads them, torch.distributed.checkpoint takes no tensors.
        saved[f"rank{rank}.states"] = states if self._is_auto else _states.to_tensor(states)
        if self.direction is not None:
            saved.update({f"rank{rank}.exact.{name}": state.clone() for name, state in self.direction.named_states().items()})
        return saved

    def load_state_dict(self, saved: Mapping[str, Any]) -> str:
        """Takes over states of this rank in a run of as many, or, where `saved` has the keys of all ranks of a run, of that
        one. All ranks call it between the same steps, and go on with the step of the states. Returns what could not be taken
        over, a line each. Errors, after which all ranks have what they had: InvalidArgumentError (a step is under way, too),
        FileError, VersionError, or SyncError of an earlier step, on the rank that is at fault; CancelledError on the others,
        TimedOutError."""
        return self.take_over(saved)[0]

    def take_over(self, saved: Mapping[str, Any]) -> Tuple[str, Callable[[], None]]:
        """As `load_state_dict`. Also returns what gives this rank back the states that it had."""
        undo: List[Callable[[], None]] = []

        def act() -> Tuple[_states.Found, Optional[Restored]]:
            undo.append(self._kept())
            found = _states.find(saved, self.transport.rank, self.transport.world)
            return found, self.compressed.states_load(found.states[0]) if found.is_own and not self._is_auto else None

        try:
            of, restored = Meeting(self.group, self.settings.most_seconds(self.group)).agree(act, _about_states)
            if restored is None:
                restored = self.compressed.states_load(_first_steps.of_all_ranks(of.states[0], self.group) if of.is_own else of.states)
        except Exception:
            for each in undo:
                each()
            raise
        self.step, self.was_dense, self._has_states = of.step, self.phases.is_dense(of.step - 1), True
        notes = [restored.notes] if restored.notes else []
        if self.direction is not None:
            # Of this rank, or of rank 0, which has the same unless ranks own parts of tensors.
            found = [_rules.states_in(saved, f"rank{rank}.exact.") for rank in (self.transport.rank, 0)]
            notes += self.direction.load(found[0] or found[1])
        return "\n".join(notes), undo[0]

    def _kept(self) -> Callable[[], None]:
        if self.failure is not None:
            raise self.failure
        if self._is_under_way:
            raise InvalidArgumentError("a step is under way: states are loaded between steps")
        states, place = self.compressed.states_save(), (self.step, self.was_dense, self._has_states)
        exact = {} if self.direction is None else {name: state.clone() for name, state in self.direction.named_states().items()}

        def undo() -> None:
            self.compressed.states_load(states)
            self.step, self.was_dense, self._has_states = place
            if self.direction is not None:
                self.direction.load(exact)

        return undo

    def remedy(self, text: str) -> str:
        """Where a condition of a program does not hold for a parameter, which `text` names."""
        tensor = next((each for each in self.compressed.tensors if each.program is not None and f", tensor {each.name}: " in text), None)
        return "" if tensor is None else f". {tensor.name} has the shape {tensor.shape}; the rule {_exact_rule(tensor.name)} keeps it out"

    def close(self) -> None:
        """Gives up: ranks that wait for this one get an error."""
        for sync in (self._dense, self.compressed):
            if sync is not None:
                sync.close()
        self.transport.close()


def _about_states(made: Tuple[_states.Found, Optional[Restored]]) -> Dict[str, Any]:
    of = made[0]
    return {"the step of the states": of.step, "what is loaded": "a rank's own states" if of.is_own else "the states of all ranks"}


def _exact_rule(name: str) -> str:
    return json.dumps({"name": name, "use": "exact"})


class _Failing:
    """An exception within becomes the engine's failure, and a SyncError."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: Any, error: Optional[BaseException], __: Any) -> None:
        if not isinstance(error, Exception) or isinstance(error, SyncError):
            return
        # Later failures follow from the first one.
        if self._engine.failure is None:
            text = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            self._engine.failure = SyncError(text + (self._engine.remedy(text) if isinstance(error, CheckError) else ""))
        raise self._engine.failure from error
