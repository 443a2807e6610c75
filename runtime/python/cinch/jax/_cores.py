"""What the handlers need of each compressor: its program, and sessions that are idle.

An executable of XLA names its compressor by a text. The text says all that decides about results, so that an executable
which XLA keeps in a file finds the same compressor in another process, or none.
"""
import contextlib
import hashlib
import tempfile
import threading
import uuid
from collections import OrderedDict
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

from ..arrays import Shape
from ..errors import InvalidArgumentError, PayloadError, UnavailableError
from ..program import Program
from ..session import Session


class Use(NamedTuple):
    """Which session a call needs. `worker` is None where it only decodes, which no worker's number enters."""

    worker: Optional[int]
    seed: int


class Setting(NamedTuple):
    """What sessions of a core are opened with."""

    shape: Shape
    world: int
    tensor: int  # its number
    threads: int

    def __str__(self) -> str:
        dimensions = "x".join(map(str, self.shape)) or "a scalar"
        return f"{dimensions}, world {self.world}, tensor {self.tensor}, threads {self.threads}"


class Core:
    """A program for one shape, and its idle sessions. Handlers of any threads use it at once.

    Attributes:
        key: the text by which executables name it.
        payload_bytes: room for a payload: what it takes at most at the first step and at late ones.
        state_bytes: of `Session.states_save`; 0 where the program has no states.

    Errors: InvalidArgumentError (the program has a `sync` body), those of `Program.session`.
    """

    def __init__(self, key: str, program: Program, setting: Setting) -> None:
        self.key, self.program, self._setting = key, program, setting
        self._idle: "OrderedDict[Use, List[Session]]" = OrderedDict()
        self._guard = threading.Lock()
        self._most_idle = min(setting.world, 32) + 4
        with self.session(Use(None, 0)) as session:
            _check_decodes(session)
        with self.session(Use(0, 0)) as session:
            # A program's own schedule may change the bound. A ratio that only falls, or only rises, is largest at an end.
            self.payload_bytes = max(session.payload_bounds(step)[0] for step in (0, 1 << 40))
            self.state_bytes = len(session.states_save()) if program.states else 0

    @contextlib.contextmanager
    def session(self, use: Use) -> Iterator[Session]:
        """A session that nobody else uses meanwhile. Its states are left by another call."""
        session = self._taken(use) or self.opened(use)
        yield session
        # After an error the session is dropped: this is rare, and a new session is known to be sound.
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

    def opened(self, use: Use) -> Session:
        """A new session, whose states have their first values."""
        shape, world, tensor, threads = self._setting
        options = {"threads": threads, "world": world, "worker": use.worker or 0, "seed": use.seed}
        return self.program.session([shape], tensor_numbers=[tensor], only_decodes=use.worker is None, **options)

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


def _check_decodes(session: Session) -> None:
    try:
        session.decode(0, [b""])
    except PayloadError:
        pass  # it would decode
    except InvalidArgumentError as error:
        name = session.program.name
        raise InvalidArgumentError(f"{name} has a `sync` body, so it neither encodes nor decodes: use cinch.Synchronizer") from error


def _identity(program: Program) -> str:
    """A text that programs share only if they compute the same. A fingerprint will not do: it leaves the code out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        try:
            program.save(path)
        except UnavailableError:  # a program of a library: no image to save; identified by itself, in this process
            return uuid.uuid4().hex
        return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


_cores: Dict[str, Core] = {}
_guard = threading.Lock()


def kept(program: Program, setting: Setting) -> Core:
    """The core of such a program and setting. It stays in the process, as executables that name it may."""
    bound = ", ".join(f"{each.name}: {each.default!r}" for each in program.parameters.values())
    key = f"{program.name}({bound}) on {setting}, {_identity(program)}"
    with _guard:
        found = _cores.get(key)
    made = found or Core(key, program, setting)
    with _guard:
        return _cores.setdefault(key, made)


def named(key: str) -> Core:
    """Errors: InvalidArgumentError (this process made no such compressor)."""
    found = _cores.get(key)
    if found is None:
        raise InvalidArgumentError("this process has made no such cinch.jax.Compressor, which an executable from a file needs")
    return found
