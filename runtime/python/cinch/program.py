"""Programs: compressors that were compiled, or loaded from an image or a library."""
import contextlib
import ctypes
import os
import threading
import warnings
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _library
from .errors import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from .session import Session, Tensors

StrPath = Union[str, "os.PathLike[str]"]
Value = Union[float, str]  # of a parameter: a number, a truth, or a word where the parameter takes words
_here = threading.local()
_CPU_LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64")  # the highest first


@dataclass(frozen=True)
class Parameter:
    """A run-time parameter. `range` is text such as "(0, 1]", or "" where every value of the type is allowed. `words` are the names of
    its values 0, 1, …, where they have names: `("exponential", "gamma")`."""

    name: str
    type: str
    range: str
    default: float
    words: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Input:
    """What a step takes besides the gradient: a number, of `type` and within `range`, or a float32 array of the tensor's shape."""

    name: str
    type: str
    range: str
    is_array: bool


@dataclass(frozen=True)
class State:
    """An array that the program keeps for each tensor from step to step; `type` is that of an element."""

    name: str
    type: str


class Program:
    """A compiled compressor. Immutable: any number of threads and sessions may use it.

    Made by `cinch.compile`, `cinch.load`, `cinch.load_bytes` and `cinch.library`.

    Attributes:
        name, doc: of the compressor; `doc` is the comment above it.
        cpu: the level that the code needs, "x86-64-v3", or "cuda:sm_90" for GPU code.
        parameters: by name, those that `Session.set` changes. Their defaults include what was bound when compiling.
        states: by name.
        inputs: by name, what each step takes besides the gradient.
        aggregation: "gather" where every rank's payload must be decoded; "sum_proved" or "sum_to_test" where payloads
            add up field by field, as the compiler proved or as the program claims.
        carrier: what carries sums where a plan encodes them again: "itself", "exact" (as f32), a compressor such as
            "error_feedback(topk(ratio: 0.001))", perhaps with ", shared draws", or "none: " and why no such plan takes the program.
        is_matrix: the program works on matrices; a tensor's first dimension is the rows, the others are columns.
        has_finish: `Session.finish` runs code of the program.
        is_local: the program claims that each rank has an update of its own, so replicas would drift apart.
        warnings: what the compiler warns of, as `cinch check` shows it; "" where that is nothing, or the program was loaded.
        source: what was compiled, and its text where one was given: ("dgc", ""), ("", "compressor …"). Of an image both are empty.
        bindings: parameters that were bound when it was compiled, by name.
        fingerprint: 32 hexadecimal digits that identify the compressor and its constants. Payloads carry it.
    """

    def __copy__(self) -> "Program":
        return self  # immutable, and the handle is given back once

    def __deepcopy__(self, memo: Dict[int, object]) -> "Program":
        return self

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self.source: Tuple[str, str] = ("", "")
        self.bindings: Mapping[str, Value] = {}
        # At exit other threads may still be in calls; the process frees its memory anyway.
        weakref.finalize(self, _library.loaded().cinch_program_release, handle).atexit = False
        info = _abi.sized(_abi.ProgramInfo)
        _library.call("cinch_program_get_info", handle, ctypes.byref(info))
        self.name = _library.text_of(info.name)
        self.doc = _library.text_of(info.doc)
        self.cpu = _library.text_of(info.cpu)
        self.fingerprint = f"{info.fingerprint[1]:016x}{info.fingerprint[0]:016x}"
        self.is_matrix = bool(info.is_matrix)
        self.has_finish = bool(info.has_finish)
        self.is_local = bool(info.is_local)
        self.aggregation = _abi.AGGREGATIONS[info.aggregation]
        self.carrier = _library.text_of(info.carrier)
        self.warnings = _library.text_of(info.warnings)
        self.parameters: Dict[str, Parameter] = {each.name: each for each in map(self._parameter, range(info.num_parameters))}
        self.inputs: Dict[str, Input] = {each.name: each for each in map(self._input, range(info.num_inputs))}
        self.states: Dict[str, State] = {each.name: each for each in map(self._state, range(info.num_states))}

    def _parameter(self, index: int) -> Parameter:
        info = _abi.sized(_abi.ParameterInfo)
        _library.call("cinch_program_get_parameter", self._handle, index, ctypes.byref(info))
        words = _library.text_of(info.words)
        return Parameter(
            _library.text_of(info.name),
            _library.text_of(info.type),
            _library.text_of(info.range),
            info.default_value,
            tuple(words.split(", ")) if words else (),
        )

    def _value(self, parameter: str, value: Value) -> float:
        """Of a run-time parameter; a word is its number."""
        if not isinstance(value, str):
            return float(value)
        number = ctypes.c_double()
        _library.call("cinch_program_parameter_value", self._handle, _library.c_text(parameter), _library.c_text(value), ctypes.byref(number))
        return number.value

    def _input(self, index: int) -> Input:
        info = _abi.sized(_abi.InputInfo)
        _library.call("cinch_program_get_input", self._handle, index, ctypes.byref(info))
        return Input(_library.text_of(info.name), _library.text_of(info.type), _library.text_of(info.range), bool(info.is_array))

    def check_inputs(self, given: Mapping[str, Any], how: str = "inputs={{{0!r}: …}}") -> None:
        """Errors: InvalidArgumentError, where `given` lacks an input or has another one. `how` says how to pass what is missing."""
        for name, each in self.inputs.items():
            if given.get(name) is None:
                kind = "an array of the tensor's shape" if each.is_array else "a number"
                raise InvalidArgumentError(f"{self.name} takes the input {name}, {kind}, in every step: pass {how.format(name)}")
        for name in given:
            if name not in self.inputs:
                known = f"its inputs are {', '.join(self.inputs)}" if self.inputs else "it takes a gradient alone"
                raise InvalidArgumentError(f"{self.name} has no input {name}: {known}")

    def _state(self, index: int) -> State:
        info = _abi.sized(_abi.StateInfo)
        _library.call("cinch_program_get_state", self._handle, index, ctypes.byref(info))
        return State(_library.text_of(info.name), _library.text_of(info.type))

    def __repr__(self) -> str:
        return f"<cinch.Program {self.name} for {self.cpu}>"

    def session(
        self,
        tensors: "Tensors",
        *,
        threads: int = 0,
        world: int = 1,
        worker: int = 0,
        seed: int = 0,
        tensor_numbers: Optional[Sequence[int]] = None,
        only_decodes: bool = False,
    ) -> "Session":
        """Opens a `cinch.Session`, which has the description of the arguments and errors. Needs NumPy."""
        from .session import Session

        return Session(
            self, tensors, threads=threads, world=world, worker=worker, seed=seed, tensor_numbers=tensor_numbers, only_decodes=only_decodes
        )

    def save(self, path: StrPath) -> None:
        """Writes an image file for `cinch.load`, which then needs no compiler. Errors: IoError, UnavailableError (a library's)."""
        _library.call("cinch_program_save", self._handle, _library.c_text(path))


def compile(  # noqa: A001  (cinch.compile is never imported by itself)
    program: Optional[StrPath] = None,
    *,
    text: Optional[str] = None,
    states: str = "second_buffer",
    cpu: Optional[str] = None,
    bindings: Optional[Mapping[str, Value]] = None,
    include_folders: Sequence[StrPath] = (),
    compile_commands: Optional[StrPath] = None,
    confine: Optional[StrPath] = None,
    device: Optional[int] = None,
    **parameters: Value,
) -> Program:
    """Compiles a compressor, or takes it from the cache of compiled programs.

    Args:
        program: a path, "path:compressor", or a name of the standard library such as "dgc". With `text`: a name for
            messages and, behind a colon, the compressor to take.
        text: the program itself.
        states: "second_buffer", or "in_place", which saves a second buffer of each state; where a call on many
            tensors fails, some of them may then keep their new states.
        cpu: "x86-64", "x86-64-v3" or "x86-64-v4"; by default what this processor is.
        include_folders: where the C++ headers of `extern fn` are looked for, behind the folder of the program's file.
        compile_commands: a compile_commands.json, whose include paths are looked at, too.
        confine: for the text of a stranger: imports lie below this folder, and headers there, in `include_folders`, or
            among the system's.
        device: the number of a GPU, for which code is then made; None: for CPUs.
        bindings: parameters whose names are also arguments of this function.
        **parameters: values of constant and run-time parameters: `compile("dgc", ratio=0.001)`. Where a parameter takes words, one of
            them: `fit="gamma"`.

    Errors: ProgramError (with `diagnostics`), InvalidArgumentError (no such program), UnavailableError (no compiler
    library, `cpu` is beyond this machine), IoError, OutOfMemoryError.
    """
    if program is None and text is None:
        raise TypeError("compile() takes a program, or text=")
    if states not in _abi.STATES:
        raise InvalidArgumentError(f"states is {states!r}, not one of {', '.join(map(repr, _abi.STATES))}")
    words = [_binding(name, value) for name, value in {**(bindings or {}), **parameters}.items()]
    folders = [_library.c_text(folder) for folder in include_folders]
    options = _abi.sized(
        _abi.CompileOptions,
        program=None if program is None else _library.c_text(program),
        bindings=(ctypes.c_char_p * len(words))(*words),
        num_bindings=len(words),
        include_folders=(ctypes.c_char_p * len(folders))(*folders),
        num_include_folders=len(folders),
        compile_commands=None if compile_commands is None else _library.c_text(compile_commands),
        confine=None if confine is None else _library.c_text(confine),
        cpu=None if cpu is None else _library.c_text(cpu),
        states=_abi.STATES[states],
        device=0 if device is None else 1,
        device_number=device or 0,
    )
    if text is not None:
        options.text = encoded = text.encode(errors="surrogatepass")
        options.text_size = len(encoded)
    handle = ctypes.c_void_p()
    _library.call("cinch_program_compile", ctypes.byref(options), ctypes.byref(handle))
    made = Program(handle)
    made.source = ("" if program is None else os.fsdecode(program), text or "")
    made.bindings = {**(bindings or {}), **parameters}
    if made.warnings and not getattr(_here, "is_quiet", False):
        warnings.warn(made.warnings.rstrip(), stacklevel=2)
    return made


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Within, `compile` does not warn in this thread: the caller tells `Program.warnings` where it suits."""
    _here.is_quiet = True
    try:
        yield
    finally:
        _here.is_quiet = False


def _binding(name: str, value: Any) -> bytes:
    """`value` is a number or a truth, NumPy's among them, or a word."""
    if isinstance(value, str):
        if not value.isidentifier():
            raise TypeError(f"parameter {name} is bound to {value!r}, which is neither a number nor a word")
        return _library.c_text(f"{name}={value}")
    if not hasattr(value, "__float__"):
        raise TypeError(f"parameter {name} is bound to {value!r}, which is not a number")
    if value is True or value is False:
        return _library.c_text(f"{name}={str(value).lower()}")
    number = value if isinstance(value, int) else float(value)
    return _library.c_text(f"{name}={number!r}")


def load(path: StrPath) -> Program:
    """Loads a compiled program. Needs no compiler.

    `path` is an image file (`Program.save`, `cinch build --emit=image`), a shared library that `cinch build` made,
    or "library.so:compressor". A name without a slash, such as "topk", that is not a file is taken from the standard
    library's images, which lie beside libcinch.so in a wheel and in an installed tree, for each CPU level.

    An image is code: load only what you would also load as a library.

    Errors: IoError, FileError, VersionError, UnavailableError (made for another processor).
    """
    name = os.fspath(path)
    images = [] if os.sep in name or os.path.exists(name) else _library_images(name)
    for image in images:
        try:
            return _load_path(image)
        except UnavailableError:
            if image == images[-1]:
                raise
    return _load_path(name)


def _load_path(path: str) -> Program:
    handle = ctypes.c_void_p()
    _library.call("cinch_program_load", _library.c_text(path), ctypes.byref(handle))
    return Program(handle)


def _library_images(name: str) -> List[str]:
    named = os.environ.get("CINCH_LIBRARY")
    beside = Path(named).resolve().parent if named else _library.PACKAGE / "lib"
    folder = beside / "cinch" / "images"
    places = [folder / level / f"{name}.image" for level in _CPU_LEVELS]
    return [str(place) for place in places if place.exists()]


def load_bytes(image: Union[bytes, bytearray, memoryview]) -> Program:
    """Loads the bytes of an image file. Errors: FileError, VersionError, UnavailableError (made for another processor)."""
    content = bytes(image)
    handle = ctypes.c_void_p()
    _library.call("cinch_program_load_bytes", content, len(content), ctypes.byref(handle))
    return Program(handle)


class Library(Mapping[str, Program]):
    """The compressors of a shared library that `cinch build` made, by name. It stays in the process.

    Attributes:
        name: of the library.
        made_by: the version of Cinch that made it.
    """

    def __init__(self, path: StrPath) -> None:
        table = ctypes.POINTER(_abi.Library)()
        _library.call("cinch_library_load", _library.c_text(path), ctypes.byref(table))
        self.name = _library.text_of(table.contents.name)
        self.made_by = _library.text_of(table.contents.made_by)
        compressors = (table.contents.compressors[i] for i in range(table.contents.num_compressors))
        self._compressors = {_library.text_of(each.contents.name): each for each in compressors}

    def levels(self, name: str) -> Tuple[str, ...]:
        """The CPU levels that compressor `name` has code for, the lowest first. Errors: KeyError."""
        compressor = self._compressors[name].contents
        return tuple(_library.text_of(compressor.cpu[i].level) for i in range(compressor.num_cpu))

    def open(self, name: str, *, cpu: Optional[str] = None) -> Program:
        """The program of a compressor, by default with the best code that this machine runs.

        Errors: KeyError, UnavailableError (no code for this machine or for `cpu`), VersionError, FileError.
        """
        options = _abi.sized(_abi.OpenOptions, cpu=None if cpu is None else _library.c_text(cpu))
        handle = ctypes.c_void_p()
        _library.call("cinch_program_open", self._compressors[name], ctypes.byref(options), ctypes.byref(handle))
        return Program(handle)

    def __getitem__(self, name: str) -> Program:
        return self.open(name)

    def __iter__(self) -> Any:
        return iter(self._compressors)

    def __len__(self) -> int:
        return len(self._compressors)

    def __repr__(self) -> str:
        return f"<cinch.Library {self.name}: {', '.join(self._compressors)}>"


def library(path: StrPath) -> Library:
    """Opens a shared library that `cinch build` made. Errors: IoError, FileError (no such library), VersionError."""
    return Library(path)
