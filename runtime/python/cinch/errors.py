"""Exceptions: one class for each status of the C API, all of them below `cinch.Error`."""
import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple, Type


class Error(Exception):
    """A call failed and changed nothing.

    Attributes:
        message: what went wrong, as text.
        tensor: which entry of the call's lists is at fault, counted from 0, or None.
        native_code: the error number of a GPU's driver, else 0.
    """

    def __init__(self, message: str, *, tensor: Optional[int] = None, native_code: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.tensor = tensor
        self.native_code = native_code

    def __str__(self) -> str:
        return self.message if self.tensor is None else f"{self.message} (tensor {self.tensor})"


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong: an element type, a shape, a layout, an unknown name."""


class OutOfRangeError(Error, ValueError):
    """A parameter is outside its range, or there is no such tensor."""


class SizeOverflowError(Error):
    """A size does not fit into 64 bits."""


class PayloadError(Error):
    """A payload is cut, longer than it says, changed, or of another compressor.

    Attributes:
        field: the field of `wire` at fault, or the name of a count; None where the header is at fault.
    """

    def __init__(self, message: str, *, tensor: Optional[int] = None, native_code: int = 0) -> None:
        super().__init__(message, tensor=tensor, native_code=native_code)
        self.field = _field_in(message)


class FileError(Error):
    """An image, a library or saved states are not what they claim to be."""


class VersionError(Error):
    """A file or a payload was written by a version whose format this one does not read."""


class CheckError(Error):
    """A check of the program failed: `assert`, or a size that the program computes."""


class IoError(Error):
    """A file cannot be read or written."""


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory."""


class UnavailableError(Error):
    """This machine or this version lacks something: the compiler library, a CPU level, a device."""


class CancelledError(Error):
    """`Session.cancel` ended the call."""


class DeviceError(Error):
    """A GPU's driver reported an error; `native_code` has its number."""


class InternalError(Error):
    """A fault of Cinch itself."""


class TimedOutError(Error):
    """Other ranks made no progress for the time that was allowed."""


class SyncError(Error):
    """A step of training failed on all ranks: `str(error)` names rank, tensor and phase. No more steps are taken; training
    goes on from a checkpoint. `__cause__` is the error of the library."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler about a program.

    Attributes:
        severity: "error", "warning" or "note".
        message: what is wrong.
        file: the file, or the name that was given to a text; None where the message has no place.
        line, column: where the span begins, counted from 1; the column counts characters. Or None.
        length: characters of the span on its first line, or None.
        notes: further messages that explain this one.
        code: such as "S014", which `cinch help S014` explains; None for a note.
    """

    severity: str
    message: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    length: Optional[int] = None
    notes: Tuple["Diagnostic", ...] = ()
    code: Optional[str] = None


class ProgramError(Error):
    """The text of a program is wrong. `str(error)` shows the source lines as `cinch check` does.

    Attributes:
        diagnostics: the messages in the compiler's order.
        is_cut: True where the compiler said more than the 1023 bytes of an error hold: the last diagnostics are missing.
    """

    def __init__(self, message: str, *, tensor: Optional[int] = None, native_code: int = 0, is_cut: bool = False) -> None:
        super().__init__(message, tensor=tensor, native_code=native_code)
        self.is_cut = is_cut
        self.diagnostics = _diagnostics_in(message, is_cut)


_STATUS_CLASSES: Dict[int, Type[Error]] = {
    1: InvalidArgumentError,
    2: OutOfRangeError,
    3: SizeOverflowError,
    4: PayloadError,
    5: FileError,
    6: VersionError,
    7: CheckError,
    8: IoError,
    9: OutOfMemoryError,
    10: UnavailableError,
    11: CancelledError,
    12: DeviceError,
    13: InternalError,
    14: ProgramError,
    15: TimedOutError,
}


def error_of(status: int, message: str, *, tensor: Optional[int] = None, native_code: int = 0, is_cut: bool = False) -> Error:
    """The exception for a status of the C API; `Error` itself for one of a later version."""
    made_by = _STATUS_CLASSES.get(status, Error)
    # Compiled code checks packed indices, so libcinch reports them as a failed check.
    if made_by is CheckError and message.startswith(_OF_A_PAYLOAD):
        made_by = PayloadError
    if made_by is ProgramError:
        return ProgramError(message, tensor=tensor, native_code=native_code, is_cut=is_cut)
    return made_by(message, tensor=tensor, native_code=native_code)


_OF_A_PAYLOAD = "payload: "
_FIELD = re.compile(_OF_A_PAYLOAD + r"(?:field (\w+): |byte \d+ before field (\w+) |count (\w+) is )")
_MESSAGE = re.compile(
    r"^(?:(?P<file>.+):(?P<line>\d+):(?P<column>\d+): )?(?P<severity>error|warning|note)(?:\[(?P<code>\w+)\])?: (?P<message>.*)$"
)
_EXCERPT = re.compile(r"^[ \d]{5,} \| (?P<text>.*)$")


def _field_in(message: str) -> Optional[str]:
    found = _FIELD.match(message)
    return next(filter(None, found.groups()), None) if found else None


def _number(text: Optional[str]) -> Optional[int]:
    return None if text is None else int(text)


def _diagnostics_in(message: str, is_cut: bool) -> List[Diagnostic]:
    """Reads the compiler's text: a line per message, and below it the source line and a line of carets."""
    lines = message.splitlines()
    # The last diagnostic of a truncated message may lack its excerpt or a part of its text.
    heads = [i for i, line in enumerate(lines) if not _EXCERPT.match(line) and _MESSAGE.match(line)]
    if is_cut and heads and len(lines) - heads[-1] < 3:
        heads.pop()
    found: List[Diagnostic] = []
    for i in heads:
        read = _read_diagnostic(lines, i)
        if read.severity == "note" and found:
            owner = found[-1]
            found[-1] = Diagnostic(owner.severity, owner.message, owner.file, owner.line, owner.column, owner.length, owner.notes + (read,), owner.code)
        else:
            found.append(read)
    return found


def _read_diagnostic(lines: List[str], at: int) -> Diagnostic:
    head = _MESSAGE.match(lines[at])
    assert head is not None
    carets = _EXCERPT.match(lines[at + 2]) if at + 2 < len(lines) else None
    has_span = head["file"] is not None and carets is not None
    return Diagnostic(
        severity=head["severity"],
        code=head["code"],
        message=head["message"],
        file=head["file"],
        line=_number(head["line"]),
        column=_number(head["column"]),
        length=carets["text"].count("^") if has_span and carets else None,
    )
