"""Training by itself for many steps, and an outer optimizer on what ranks have moved since they met: DiLoCo, local SGD, SparseLoCo."""
import logging
import math
import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from ..errors import Error, InvalidArgumentError, SyncError
from ..program import Program
from ..synchronizer import Synchronizer, SyncTensor
from ._engine import Engine
from ._exchange import Exchange, check_saved, copy_saved, found, padded
from ._group import Meeting, group_of
from ._presence import Presence, Round, check_presence
from ._settings import Settings, settings_of
from ._told import warn_of_needless_delay, warn_of_start
from ._trained import trained_by

log = logging.getLogger("cinch")
_TOKENS = "cinch.tokens"  # the name of the tensor by which weighted means are divided
_LITTLE = 0.1  # of an exchange: a rank that waits for more has no room for it
_EXCHANGES_TO_JUDGE = 6  # then is known how long one takes
Named = Tuple[str, "torch.Tensor"]
Fragments = Union[int, Callable[[str], int]]


@dataclass
class _Fragment:
    """Tensors that are exchanged together.

    Attributes:
        named, weights, momentum: the model's parameters, the global weights, and the outer momentum (empty without one).
        begun, at: when the last exchange did, of `time.perf_counter`, and behind which step.
        tokens: that this rank has seen since then.
        told: what its engine reports of the last exchange.
    """

    exchange: Exchange
    named: List[Tuple[str, "torch.Tensor"]]
    weights: List["torch.Tensor"]
    momentum: List["torch.Tensor"]
    begun: float = 0.0
    at: int = 0
    tokens: float = 0.0
    told: Dict[str, Any] = field(default_factory=dict)


@dataclass
class _Room:
    """What the exchanges under way took, in milliseconds: all, and that of which a rank waited."""

    whole: List[float] = field(default_factory=list)
    waits: List[float] = field(default_factory=list)

    def note(self, whole: float, waited: float) -> None:
        self.whole.append(whole)
        self.waits.append(waited)
        del self.whole[:-100], self.waits[:-100]


class DiLoCo:
    """Each rank trains with its own optimizer. At every `every`-th step ranks exchange what they have moved by, and an outer optimizer (SGD with
    Nesterov momentum) moves the global weights, with which all go on.

        inner = torch.optim.AdamW(model.parameters(), lr=3e-3)
        trainer = cinch.torch.DiLoCo(model, inner, every=100, outer_lr=0.7, outer_momentum=0.5, program="qsgd(bits: 4)")
        for batch in batches:
            inner.zero_grad()
            loss(model, batch).backward()
            trainer.step()                      # in the place of inner.step()
        trainer.flush()                         # the model has the global weights

    All ranks of the group make it alike, before the first step, and begin with the weights of its first rank. `outer_lr=1, outer_momentum=0` is the mean of
    weights (local SGD); with `program="sparse_loco"`, or another with error feedback, it is SparseLoCo, whose residual takes the momentum's place.
    Douillard et al., DiLoCo (2023), and Streaming DiLoCo (2025) for fragments, delay and mix.

    Args:
        model: within a site it may be in DistributedDataParallel, or sharded by FSDP2.
        inner: the optimizer of its parameters.
        every: steps between two exchanges of a tensor.
        outer_lr, outer_momentum: of the outer optimizer. (0.7, 0.9) is what the paper has; on small tasks less momentum does better
            (docs/benchmarks/training.md).
        group: of the ranks that exchange: within a site, where ranks train alike or have other shards, none. None: all ranks.
        fragments: tensors are exchanged in so many turns, or in those of a function of the parameter's name, numbered from 0 on. Turns are spread
            evenly over `every` steps.
        delay: steps between the one that begins an exchange and the one that uses it. Below every // fragments: one exchange is under way at a time.
        mix: with a delay, the part of its own weights that a rank keeps, from 0 to 1. None: 0.5, and 0 without a delay.
        backup: "cpu" keeps the global weights and the outer momentum in the host's memory.
        min_ranks: exchanges go on without ranks that are late or have ended, as long as so many come. None: all of them are waited for.
        grace: with `min_ranks`, the seconds for which ranks that come to an exchange wait for the others. None: the median of what was measured and four
            deviations more. Who is left out waits for the next exchange, and joins it with the global weights; `step_number` is that of the others
            then, so loops ask it. States of programs begin anew where the ranks change. `timeout` bounds how long ranks wait for one that does not go on
            within an exchange; there is no plan "auto".
        weighted: means are weighted by the tokens that ranks have seen since the last exchange, which `count` is told.
        program: as of `compress`, but for "auto"; no exchange is exact unless `dense_steps` says how many are.
        **settings: as of `compress`, for exchanges: `schedule` is by their number. `skips_non_finite` is always on.

    Errors, on all ranks: InvalidArgumentError, and those of `compress`. Later: SyncError, also where weights of a rank are not finite, which with `min_ranks` leaves
    the rank out of that mean; with `min_ranks`, TimedOutError where fewer come.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        inner: "torch.optim.Optimizer",
        *,
        every: int,
        outer_lr: float = 0.7,
        outer_momentum: float = 0.5,
        group: Optional[Any] = None,
        fragments: Fragments = 1,
        delay: int = 0,
        mix: Optional[float] = None,
        backup: Optional[str] = None,
        min_ranks: Optional[int] = None,
        grace: Optional[float] = None,
        weighted: bool = False,
        program: Union[str, Program] = "none",
        **settings: Any,
    ) -> None:
        self._group, self._inner = group_of(group), inner
        self._every, self._delay, self._weighted = every, delay, weighted
        self._lr, self._momentum = outer_lr, outer_momentum
        self._mix = (0.5 if delay else 0.0) if mix is None else mix
        self._host = torch.device("cpu") if backup == "cpu" else None
        trained = trained_by(inner, model, may_be_wrapped=True)
        chosen = settings_of(program, {"dense_steps": 0, **settings, "skips_non_finite": True})
        chosen.rules = _with_exact_tokens(chosen.rules)

        def turns() -> List[List[Named]]:
            _check(every, outer_lr, outer_momentum, delay, mix, backup)
            check_presence(min_ranks, grace, dist.get_world_size(self._group))
            if min_ranks is not None and chosen.plan == "auto":
                raise InvalidArgumentError('plan="auto" measures anew whenever ranks change: with min_ranks, name a plan')
            trained.check()
            return _turns(trained.named, fragments, every, delay)

        def alike(made: Sequence[Sequence[Named]]) -> Dict[str, Any]:
            numbers = {"every": every, "outer_lr": outer_lr, "outer_momentum": outer_momentum, "delay": delay, "mix": self._mix, "weighted": weighted, "min_ranks": min_ranks}
            self._about = {"every": every, "fragments": len(made), "delay": delay, "outer_lr": outer_lr, "outer_momentum": outer_momentum, "program": str(program)}
            return {**numbers, "the parameters' types": trained.types(), "the fragments' tensors": [[name for name, _ in turn] for turn in made]}

        found = Meeting(self._group, chosen.most_seconds(self._group)).agree(turns, alike)
        trained.begin_alike(self._group)
        self._trained = trained
        chosen.timeout = chosen.most_seconds(self._group)
        self._settings = chosen
        self._presence = None if min_ranks is None else Presence(self._group, min_ranks, grace, chosen.timeout)
        self._is_divided = weighted or min_ranks is not None  # are sums divided by tokens?
        self._fragments: List[_Fragment] = []
        for turn, exchange in zip(found, self._exchanges(found, chosen, self._group)):
            weights = [self._kept(tensor.detach().float().clone()) for _, tensor in turn]
            momentum = [torch.zeros_like(weight) for weight in weights] if outer_momentum > 0 else []
            self._fragments.append(_Fragment(exchange, turn, weights, momentum))
        warn_of_start([fragment.exchange.engine for fragment in self._fragments])
        self._under_way: Optional[_Fragment] = None
        self._steps = 0
        self._usual_tokens = 0.0  # of a rank between two exchanges of a tensor; 0: not known yet
        self._room, self._applied = _Room(), 0.0
        self._members: Optional[Tuple[int, ...]] = tuple(range(dist.get_world_size(self._group)))  # None: their connection has ended
        self._round: Optional[Round] = None
        self._wrong = ""  # which weights of this rank are not finite in the exchange under way

    def _exchanges(self, turns: Sequence[Sequence[Named]], settings: Settings, group: Any) -> List[Exchange]:
        """Of all fragments, over one connection."""
        made: List[Exchange] = []
        for turn in turns:
            moved = [(name, torch.zeros_like(tensor, dtype=torch.float32)) for name, tensor in turn]
            if self._is_divided:
                moved.append((_TOKENS, torch.zeros(1, device=moved[0][1].device)))
            made.append(Exchange(Engine(moved, settings, group, transport=made[0].engine.transport if made else None), moved))
        return made

    def _kept(self, tensor: "torch.Tensor") -> "torch.Tensor":
        if self._host is None or tensor.device == self._host:
            return tensor
        return torch.empty_like(tensor, device=self._host, pin_memory=True).copy_(tensor)

    # ---- steps ----

    def step(self) -> None:
        """Behind `backward`: the inner optimizer's step, and what is due of exchanges. Errors: SyncError, InvalidArgumentError (closed, or within
        `global_weights`)."""
        self._trained.check_open()
        self._inner.step()
        self._steps += 1
        fragment = self._due(self._steps)
        if fragment is not None and self._delay > 0:
            self._apply()
        begins = self._due(self._steps + self._delay)
        if begins is not None:
            self._begin(begins)
            if self._delay == 0:
                self._apply()

    def count(self, tokens: float) -> None:
        """So many tokens, or samples, have gone into this rank's gradient of the step that is next. Errors: InvalidArgumentError."""
        if not (isinstance(tokens, (int, float)) and math.isfinite(tokens) and tokens >= 0):
            raise InvalidArgumentError(f"tokens are {tokens!r}: a number from 0 on is taken")
        if not self._weighted:
            raise InvalidArgumentError("tokens are counted, and means are not weighted by them: weighted=True does")
        for fragment in self._fragments:
            fragment.tokens += tokens

    @property
    def step_number(self) -> int:
        """Steps that have been taken: those of the ranks that this one has joined, where it was left out."""
        return self._steps

    def _due(self, step: int) -> Optional[_Fragment]:
        """Whose exchange ends behind this step, counted from 1 on."""
        count = len(self._fragments)
        return next((each for turn, each in enumerate(self._fragments) if step % self._every == (turn + 1) * self._every // count % self._every), None)

    @torch.no_grad()
    def _begin(self, fragment: _Fragment) -> None:
        """What its tensors have moved by goes on its way."""
        is_new = False  # has this rank got the global weights just now?
        if self._presence is not None:
            met = self._meet(self._presence, fragment)
            if met is None:
                return
            fragment, is_new = met
        moved = [weight.to(tensor.device) - tensor.float() for weight, (_, tensor) in zip(fragment.weights, fragment.named)]
        wrong = next((name for (name, _), by in zip(fragment.named, moved) if not bool(torch.isfinite(by).all())), None)
        self._wrong = "" if wrong is None else f"the weights of {wrong} are not finite on this rank"
        if wrong is not None and self._presence is not None:
            log.warning("step %d: the weights of %s are not finite on this rank, which takes no part in the mean and goes on with the global weights", self._steps, wrong)
            self._begin_anew()
        seen, fragment.tokens = fragment.tokens, 0.0
        fragment.begun, fragment.at = time.perf_counter(), self._steps
        self._under_way = fragment
        try:
            if self._is_divided:
                is_left_out = is_new or (wrong is not None and self._presence is not None)
                share = self._share_of(seen, fragment)
                share = 0.0 if is_left_out else share
                moved = [by.zero_() if is_left_out else by.mul_(share) for by in moved] + [torch.tensor([share], device=moved[0].device)]
            fragment.exchange.begin(moved)
        except SyncError:
            if self._presence is None:
                raise
            self._members = None  # `_apply` tells the others

    def _begin_anew(self) -> None:
        """With the global weights. What is not finite in the inner optimizer's state becomes zeros: it would make weights like itself."""
        for each in self._fragments:
            for weight, (_, tensor) in zip(each.weights, each.named):
                tensor.copy_(weight)
        self._trained.reshard()
        for state in self._inner.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    value.copy_(torch.nan_to_num(value, 0.0, 0.0, 0.0))

    def _share_of(self, tokens: float, fragment: _Fragment) -> float:
        """Of what ranks have usually seen: near 1, so that programs get movements and not multiples of them. Before the first exchange ranks add up. Errors:
        SyncError."""
        if not self._weighted:
            return 1.0
        if self._usual_tokens == 0:
            seen = torch.tensor([tokens])
            with Synchronizer(fragment.exchange.engine.transport, [SyncTensor("tokens", (1,))], plan="allreduce", timeout=self._settings.timeout or 300.0) as sync:
                sync.begin(0)
                sync.ready(0, seen)
                sync.finish()
            self._usual_tokens = float(seen) or 1.0
        return tokens / self._usual_tokens

    def _meet(self, presence: Presence, fragment: _Fragment) -> Optional[Tuple[_Fragment, bool]]:
        """Who is there, connected. Returns the fragment that they exchange, and whether this rank joins them; None: they could not be connected, and this exchange is
        left out. Errors: TimedOutError."""
        self._round = of = presence.meet(self._fragments.index(fragment))
        if len(of.turns) > 1:
            self._fail(f"step {self._steps}: ranks are at exchanges of different fragments: flush is called by all behind the same step")
        try:
            if of.party.ranks != self._members or of.party.rank not in of.current:
                self._connect(of)
            if of.current != of.party.ranks:
                return self._share(of, fragment)
            return fragment, False
        except Error as failure:
            log.warning("step %d: ranks %s could not be connected, so nothing is exchanged: %s", self._steps, ", ".join(map(str, of.party.ranks)), failure)
            self._members = None
            presence.is_current = of.party.rank in of.current
            presence.agree(of, False)
            return None

    def _connect(self, of: Round) -> None:
        """Opens exchanges among these ranks. States of programs begin anew."""
        if self._members is not None:
            log.warning("step %d: ranks %s exchange from now on", self._steps, ", ".join(map(str, of.party.ranks)))
        self._disconnect()
        settings = replace(self._settings, first_step=of.number)
        for fragment, exchange in zip(self._fragments, self._exchanges([each.named for each in self._fragments], settings, of.party)):
            fragment.exchange = exchange
        self._members = of.party.ranks

    def _share(self, of: Round, fragment: _Fragment) -> Tuple[_Fragment, bool]:
        """Ranks that join get the global weights, the outer momentum and the place in the schedule of the first rank that has them."""
        gives = of.party.rank == min(of.current)
        joins = of.party.rank not in of.current
        kept = [tensor for each in self._fragments for tensor in [*each.weights, *each.momentum]]
        high, low = divmod(self._steps, 1 << 20)  # each has room in float32
        place = torch.tensor([float(high), float(low), float(self._fragments.index(fragment)), self._usual_tokens])
        sent = [(tensor.cpu() if gives else torch.zeros_like(tensor, device="cpu")).clone() for tensor in kept] + [place if gives else torch.zeros(4)]
        tensors = [SyncTensor(f"shared{number}", (tensor.numel(),)) for number, tensor in enumerate(sent)]
        with Synchronizer(fragment.exchange.engine.transport, tensors, plan="allreduce", timeout=self._settings.timeout or 300.0) as sync:
            sync.begin(0, is_sum=True)
            for number, tensor in enumerate(sent):
                sync.ready(number, tensor.reshape(-1))
            sync.finish()
        for tensor, given in zip(kept, sent):
            tensor.copy_(given)
        if joins:
            high, low, turn = map(int, sent[-1][:3])
            self._usual_tokens = float(sent[-1][3])
            self._steps, fragment = (high << 20) + low, self._fragments[turn]
            for each in self._fragments:
                for weight, (_, tensor) in zip(each.weights, each.named):
                    tensor.copy_(weight)
        return fragment, joins

    def _taken(self, fragment: _Fragment) -> Optional[Sequence["torch.Tensor"]]:
        """The means; None: an exchange without which ranks go on has failed. Errors: SyncError."""
        try:
            means = None if self._members is None else fragment.exchange.take()
        except SyncError as failure:
            if self._presence is None:
                raise
            log.warning("step %d: an exchange is left out: %s", self._steps, failure)
            self._members, means = None, None
        if self._presence is not None and self._round is not None and not self._presence.agree(self._round, means is not None):
            self._members = None
            return None
        if means is None:
            raise SyncError(f"step {self._steps}: {self._wrong or 'the weights of some rank are not finite'}; no rank has taken them")
        fragment.told = fragment.exchange.engine.report()
        return means

    @torch.no_grad()
    def _apply(self) -> None:
        """The exchange under way ends; the outer optimizer moves the global weights, and this rank goes on with them."""
        fragment, self._under_way = self._under_way, None
        if fragment is None:
            return
        asked = time.perf_counter()
        means = self._taken(fragment)
        ended = time.perf_counter()
        self._room.note((ended - fragment.begun) * 1e3, (ended - asked) * 1e3)
        if means is None:
            return
        self._warn_of_room(fragment, ended)
        if self._is_divided:
            *means, tokens = means
            if float(tokens) <= 0:
                why = "no rank has seen tokens since the last exchange; count says how many" if self._weighted else "the weights of no rank are finite"
                self._fail(f"step {self._steps}: {why}")
            means = [mean.div_(tokens) for mean in means]
            self._usual_tokens *= float(tokens)
        for place, (mean, weight, (_, tensor)) in enumerate(zip(means, fragment.weights, fragment.named)):
            by = mean.to(weight.device)
            if fragment.momentum:
                by = by.add(fragment.momentum[place].mul_(self._momentum).add_(by), alpha=self._momentum)
            weight.sub_(by, alpha=self._lr)
            mixes = self._mix > 0 and bool(torch.isfinite(tensor).all())
            own = tensor.float().mul_(self._mix) if mixes else None
            tensor.copy_(weight.to(tensor.device) if own is None else own.add_(weight.to(tensor.device), alpha=1 - self._mix))
        self._trained.reshard()

    def _warn_of_room(self, fragment: _Fragment, now: float) -> None:
        """Once, on rank 0, where a delay hides next to nothing."""
        before, self._applied = self._applied, now
        if self._delay > 0 and len(self._room.whole) == _EXCHANGES_TO_JUDGE and dist.get_rank(self._group) == 0:
            warn_of_needless_delay(fragment.told["phases"], (now - before) * 1e3, "the steps between two exchanges", "delay=0 has newer weights")

    def _fail(self, text: str) -> None:
        for fragment in self._fragments:
            fragment.exchange.engine.refuse(InvalidArgumentError(text))

    def flush(self) -> None:
        """Ends what is under way, exchanges what fragments have moved by since their last exchange, and gives the model the global weights. All ranks call
        it. Errors: those of `step`."""
        self._trained.check_open()
        mix = self._mix
        try:
            # Steps since the exchange under way began are part of the next one.
            self._mix = 1.0 if self._under_way is not None and self._under_way.at < self._steps else 0.0
            self._apply()
            self._mix = 0.0
            for fragment in self._fragments:
                if fragment.at < self._steps:
                    self._begin(fragment)
                    self._apply()
        finally:
            self._mix = mix

    def global_weights(self) -> ContextManager[None]:
        """Within it the model has the global weights, as of the last exchange of each fragment: to evaluate between steps."""

        def show() -> None:
            for fragment in self._fragments:
                for (_, tensor), weight in zip(fragment.named, fragment.weights):
                    tensor.copy_(weight)

        return self._trained.shown(show)

    # ---- told ----

    def report(self) -> Dict[str, Any]:
        """Of the last exchanges on this rank.

        Keys: `steps`; `fragments`, for each that has been exchanged as `Compression.report`; `sent_bytes` of their last exchanges; `copies_bytes`: of the global weights, the outer
        momentum and what is under way; `exchange_ms` and `waits_ms`: medians, of an exchange and of what a rank waits for it; `has_room`: do
        exchanges end before they are used? If not, `every_with_room` is the least `every` under which they would, with a `delay` of `delay_with_room`.
        """
        fragments = [fragment.told for fragment in self._fragments if fragment.told]
        whole, waits = (median(times) if times else 0.0 for times in (self._room.whole, self._room.waits))
        told = {
            "steps": self._steps,
            "fragments": fragments,
            "sent_bytes": sum(each["sent_bytes"] for each in fragments),
            "copies_bytes": sum(sum(each.nbytes for each in [*fragment.weights, *fragment.momentum]) + fragment.exchange.bytes for fragment in self._fragments),
            "exchange_ms": whole,
            "waits_ms": waits,
            "has_room": waits <= _LITTLE * max(whole, 1e-9) or self._delay == 0,
        }
        if not told["has_room"]:
            step = max(1e-9, (whole - waits) / self._delay)
            delay = math.ceil(whole / step)
            told.update(delay_with_room=delay, every_with_room=(delay + 1) * len(self._fragments))
        return told

    # ---- states ----

    def state_dict(self) -> Dict[str, Any]:
        """This rank's states: of programs, the global weights, the outer momentum, this rank's own weights, and what was under way, which is waited for but not
        used before its time. Keys carry the number of the rank among all. All ranks of the group call it between the same steps, and each saves its own
        inner optimizer's state. Errors: SyncError."""
        saved: Dict[str, Any] = {}
        if self._under_way is not None:
            self._under_way.exchange.collect()  # first: fragments share a connection
        for turn, fragment in enumerate(self._fragments):
            prefix = f"{self._prefix}{turn}/"
            saved.update(fragment.exchange.state_dict(f"{prefix}moved."))
            saved.update({f"{prefix}{key}": value for key, value in fragment.exchange.engine.state_dict().items()})
            for kind, name, tensor in _states(fragment):
                saved[f"{prefix}{kind}.{name}"] = tensor.detach().clone()
        under_way = -1 if self._under_way is None else self._fragments.index(self._under_way)
        of_fragments = [number for fragment in self._fragments for number in (fragment.at, fragment.tokens)]
        saved[f"{self._prefix}place"] = torch.tensor([self._steps, under_way, self._usual_tokens, *of_fragments], dtype=torch.float64)
        saved[f"{self._prefix}about"] = padded(self._about)
        return saved

    def load_state_dict(self, saved: Any) -> str:
        """All ranks of the group call it between the same steps, with what they saved themselves in a run of as many ranks, and load their inner optimizer's
        state. Training then gives the bits of a run that was not interrupted. Returns what could not be taken over. Errors: InvalidArgumentError, and
        those of `Compression.load_state_dict`."""
        expected = self.state_dict()
        # What is wrong on one rank is an error on all, before anything has changed.
        meeting = Meeting(self._group, self._settings.most_seconds(self._group))
        notes = meeting.agree(lambda: check_saved(saved, expected, f"{self._prefix}about", "fragments"), lambda _: {"the step": float(saved[f"{self._prefix}place"][0])})
        for turn, fragment in enumerate(self._fragments):
            prefix = f"{self._prefix}{turn}/"
            rank = fragment.exchange.engine.transport.rank
            keys = (f"rank{rank}.states", f"rank{rank}.step", f"rank{rank}.world")
            notes.append(fragment.exchange.engine.load_state_dict({key: found(saved, f"{prefix}{key}") for key in keys}))
            fragment.exchange.load_state_dict(saved, f"{prefix}moved.")
            with torch.no_grad():
                for kind, name, tensor in _states(fragment):
                    copy_saved(tensor, saved, f"{prefix}{kind}.{name}")
        steps, under_way, self._usual_tokens, *of_fragments = saved[f"{self._prefix}place"].tolist()
        for fragment, at, tokens in zip(self._fragments, of_fragments[::2], of_fragments[1::2]):
            fragment.at, fragment.tokens = int(at), tokens
        self._steps, self._under_way = int(steps), None if under_way < 0 else self._fragments[int(under_way)]
        return "\n".join(note for note in notes if note)

    @property
    def _prefix(self) -> str:
        return f"of{dist.get_rank()}/"

    def close(self) -> None:
        """No more exchanges are made. Other ranks that wait for this one get an error."""
        self._trained.is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        for fragment in self._fragments:
            fragment.exchange.engine.close()

    def __enter__(self) -> "DiLoCo":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _states(fragment: _Fragment) -> Iterator[Tuple[str, str, "torch.Tensor"]]:
    for place, (name, tensor) in enumerate(fragment.named):
        yield "own", name, tensor
        yield "global", name, fragment.weights[place]
        if fragment.momentum:
            yield "momentum", name, fragment.momentum[place]


def _check(every: Any, outer_lr: Any, outer_momentum: Any, delay: Any, mix: Any, backup: Any) -> None:
    if not (isinstance(every, int) and every > 0):
        raise InvalidArgumentError(f"every is {every!r}: steps from 1 on are taken")
    if not (isinstance(delay, int) and delay >= 0):
        raise InvalidArgumentError(f"delay is {delay!r}: steps from 0 on are taken")
    if not (isinstance(outer_lr, (int, float)) and 0 < outer_lr < math.inf):
        raise InvalidArgumentError(f"outer_lr is {outer_lr!r}: a rate above 0 is taken")
    if not (isinstance(outer_momentum, (int, float)) and 0 <= outer_momentum < 1):
        raise InvalidArgumentError(f"outer_momentum is {outer_momentum!r}: a number from 0 on and below 1 is taken")
    if mix is not None and not (isinstance(mix, (int, float)) and 0 <= mix <= 1):
        raise InvalidArgumentError(f"mix is {mix!r}: a part from 0 to 1 is taken")
    if mix and delay == 0:
        raise InvalidArgumentError(f"mix is {mix}, and without a delay all ranks go on with the global weights")
    if backup not in (None, "cpu"):
        raise InvalidArgumentError(f'backup is {backup!r}: "cpu", or None for the model\'s device, is taken')


def _turns(named: Sequence[Named], fragments: Any, every: int, delay: int) -> List[List[Named]]:
    """The tensors of each fragment. Errors: InvalidArgumentError."""
    if callable(fragments):
        places = [fragments(name) for name, _ in named]
        wrong = next(((name, place) for (name, _), place in zip(named, places) if not isinstance(place, int) or place < 0), None)
        if wrong is not None:
            raise InvalidArgumentError(f"fragments gives {wrong[1]!r} for {wrong[0]}: numbers from 0 on are taken")
        made = [[each for each, of in zip(named, places) if of == turn] for turn in range(max(places) + 1)]
        if not all(made):
            raise InvalidArgumentError(f"fragments gives no tensor to {next(turn for turn, tensors in enumerate(made) if not tensors)}, and some to {len(made) - 1}")
    else:
        if not (isinstance(fragments, int) and fragments > 0):
            raise InvalidArgumentError(f"fragments is {fragments!r}: a number from 1 on, or a function of a name, is taken")
        if fragments > len(named):
            raise InvalidArgumentError(f"{fragments} fragments of {len(named)} tensors: each has one at least")
        made = _in_order(named, fragments)
    if len(made) > every:
        raise InvalidArgumentError(f"{len(made)} fragments in {every} steps: one a step is exchanged at most")
    if delay > 0 and delay >= every // len(made):
        raise InvalidArgumentError(f"delay is {delay}, and an exchange ends every {every // len(made)} steps: less is taken, since one is under way at a time")
    return made


def _in_order(named: Sequence[Named], count: int) -> List[List[Named]]:
    """In the model's order, so that fragments have about as many elements each, and each has a tensor."""
    total, done = sum(tensor.numel() for _, tensor in named), 0
    made: List[List[Named]] = [[] for _ in range(count)]
    turn = 0
    for place, each in enumerate(named):
        left, wanting = len(named) - place, count - turn
        if made[turn] and turn + 1 < count and (done * count >= (turn + 1) * total or left < wanting):
            turn += 1
        made[turn].append(each)
        done += each[1].numel()
    return made


def _with_exact_tokens(rules: Any) -> Any:
    """The rules, behind one that keeps the tokens out. Text is left to whoever reads it, where tensors of one element are exact unless it says otherwise."""
    exact = {"name": _TOKENS, "use": "exact"}
    return [exact, *rules] if isinstance(rules, Sequence) and not isinstance(rules, str) else rules
