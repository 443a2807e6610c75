"""What the handlers need of each compressor: its program, and sessions that are idle.

An executable of XLA names its compressor by a text. The text says all that decides about results, so that an executable
which XLA keeps in a file finds the same compressor in another process, or none.
"""
import contextlib
import threading
from collections import OrderedDict
from typing import Dict, Iterator, NamedTuple, Optional

from ..arrays import Shape
from ..errors import InvalidArgumentError
from ..program import Program
from ..session import Session


class Use(NamedTuple):
    """Which session a call needs. `worker` is None where it only decodes, which no worker's number enters."""

    worker: Optional[int]
    seed: int


class Core:
    """A program for one shape, and its idle sessions. Handlers of any threads use it at once.

    Attributes:
        key: the text by which executables name it.
        payload_bytes: room for a payload: what it takes at most at the first step and at late ones.
        state_bytes: of `Session.states_save`; 0 where the program has no states.
    """

    def __init__(self, program: Program, shape: Shape, world: int, tensor: int, threads: int) -> None:
        self.program, self.shape, self.world = program, shape, world
        self._tensor, self._threads = tensor, threads
        bound = ", ".join(f"{each.name}: {each.default!r}" for each in program.parameters.values())
        dimensions = "x".join(map(str, shape)) or "scalar"
        self.key = f"{program.name}({bound}) on {dimensions}, world {world}, tensor {tensor}, threads {threads}, {program.fingerprint}"
        self._idle: "OrderedDict[Use, list[Session]]" = OrderedDict()
        self._guard = threading.Lock()
        self._most_idle = min(world, 32) + 4
        with self.session(Use(0, 0)) as session:
            # A schedule of the program may change the bound; a ratio that falls or rises has its largest value at an end.
            self.payload_bytes = max(session.payload_bounds(step)[0] for step in (0, 1 << 40))
            self.state_bytes = len(session.states_save()) if program.states else 0

    @contextlib.contextmanager
    def session(self, use: Use) -> Iterator[Session]:
        """A session that nobody else uses meanwhile. Its states are left by another call."""
        session = self._taken(use) or self._opened(use)
        yield session
        # After an error the session is dropped: it is rare, and a fresh session is known to be whole.
        self._give_back(use, session)

    def _taken(self, use: Use) -> Optional[Session]:
        with self._guard:
            kept = self._idle.pop(use, None)
            if not kept:
                return None
            session = kept.pop()
            if kept:
                self._idle[use] = kept
            return session

    def _opened(self, use: Use) -> Session:
        return self.program.session(
            [self.shape],
            threads=self._threads,
            world=self.world,
            worker=use.worker or 0,
            seed=use.seed,
            tensor_numbers=[self._tensor],
            only_decodes=use.worker is None,
        )

    def _give_back(self, use: Use, session: Session) -> None:
        dropped = []
        with self._guard:
            self._idle.setdefault(use, []).append(session)
            self._idle.move_to_end(use)
            while sum(map(len, self._idle.values())) > self._most_idle:
                oldest = next(iter(self._idle))
                dropped.append(self._idle[oldest].pop(0))
                if not self._idle[oldest]:
                    del self._idle[oldest]
        for each in dropped:
            each.close()


_cores: Dict[str, Core] = {}
_guard = threading.Lock()


def kept(core: Core) -> Core:
    """The first core with the same key. It stays in the process, as executables that name it may."""
    with _guard:
        return _cores.setdefault(core.key, core)


def named(key: str) -> Core:
    """Errors: InvalidArgumentError (this process made no such compressor)."""
    found = _cores.get(key)
    if found is None:
        raise InvalidArgumentError(
            f"this process has made no cinch.jax.Compressor for {key}: an executable from a file needs it before it runs"
        )
    return found
