"""Which parameter is compressed by which program."""
import ctypes
import fnmatch
import json
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .. import _abi, _library
from .. import _sync_abi as sync_abi
from ..arrays import Shape, described
from ..errors import FileError, InvalidArgumentError
from ..program import Program, Value, compile
from ..synchronizer import SyncTensor

Use = Union[str, Mapping[str, Any], None]
Rule = Union[Mapping[str, Any], Callable[[str, Shape], Use]]
Rules = Union[str, Sequence[Rule], Mapping[str, Sequence[Rule]], None]

NONE = "none"  # the program that compresses nothing
_BOUND = "parameters of a compiled program are bound when it is compiled: pass its name, or cinch.compile(..., name=value)"


class Named(NamedTuple):
    name: str
    shape: Shape


class Default(NamedTuple):
    """What rules take that name no program: as it was given, and compiled; None: nothing is compressed."""

    given: Union[str, Program]
    bindings: Mapping[str, Value]
    program: Optional[Program]


def default_of(program: Union[str, Program], bindings: Mapping[str, Value], device: Optional[int], starts: Mapping[str, float]) -> Default:
    """`starts`: what run-time parameters begin with that neither `bindings` nor a rule binds. Payloads are given room for that.
    Errors: InvalidArgumentError, those of `cinch.compile`."""
    if isinstance(program, Program):
        if bindings:
            raise InvalidArgumentError(_BOUND)
        return Default(program, bindings, program)
    if program == NONE and bindings:
        raise InvalidArgumentError(f'program "none" has no parameter {next(iter(bindings))}, and there is no setting of this name')
    return Default(program, bindings, None if program == NONE else _started(program, bindings, device, starts))


def choose(tensors: Sequence[Named], default: Default, rules: Rules, device: Optional[int], starts: Mapping[str, float]) -> List[SyncTensor]:
    """The tensors with their programs, compiled.

    `rules`: None, where tensors of one dimension or under 4096 elements are exact and others compressed; JSON, or a list
    of rules as docs/sync_reference.md has them under Policies; a function of name and shape among them gives the rest of a
    rule, such as "exact", "dgc" or {"use": "dgc", "set": {"ratio": 0.001}}, or None where it has nothing to say.

    Errors: FileError (names rule and entry), InvalidArgumentError, those of `cinch.compile`.
    """
    policy = _apply(tensors, _as_json(tensors, rules))
    try:
        programs = [_compiled(spec, default, device, starts) for spec in _programs(policy)]
        return [_chosen(policy, i, tensor, programs) for i, tensor in enumerate(tensors)]
    finally:
        _library.loaded().cinch_policy_release(policy)


def has_plan_file(plan: Optional[str]) -> bool:
    """Is the plan a file of `cinch plan`, not a name? Names have neither a dot nor a slash."""
    return isinstance(plan, str) and ("." in plan or "/" in plan)


def planned(tensors: Sequence[Named], path: str, given: Union[str, Program], device: Optional[int], starts: Mapping[str, float]) -> List[SyncTensor]:
    """The tensors with the programs of a plan file, compiled. What does not fit is told when the synchronizer opens.
    `given`: a program that is named beside the file.
    Errors: FileError (no file, or no plan), InvalidArgumentError (the file has no such program), those of `cinch.compile`."""
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        texts = [str(each["program"]) for each in plan["programs"]]
        chosen = {str(each["name"]): each["program"] for each in plan["tensors"]}
        uses = [None if chosen.get(tensor.name) is None else texts[chosen[tensor.name]] for tensor in tensors]
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise FileError(f"{path}: no plan that `cinch plan` wrote") from error
    if given != NONE and given not in texts:
        raise InvalidArgumentError(f"program is {given!r}, and the plan {path} has {', '.join(texts) or 'none'}: leave the program out")
    programs = {text: _started(text, {}, device, starts) for text in texts}
    return [SyncTensor(tensor.name, tensor.shape, None if use is None else programs[use]) for tensor, use in zip(tensors, uses)]


def idle_rules(tensors: Sequence[Named], rules: Rules) -> List[str]:
    """The rules that would fit none of the tensors even if they came first, as they are given; functions are left out."""
    given = json.loads(rules) if isinstance(rules, str) else rules
    listed = given.get("rules", []) if isinstance(given, Mapping) else given or []
    return [f"{number} ({json.dumps(rule)})" for number, rule in enumerate(listed, 1) if isinstance(rule, Mapping) and not _fits_any(tensors, rule)]


def _fits_any(tensors: Sequence[Named], rule: Mapping[str, Any]) -> bool:
    # "off" is what no tensor has without a rule that says it.
    asked = {**{key: value for key, value in rule.items() if key not in ("use", "set", "plan", "piece_bytes")}, "use": "off"}
    policy = _apply(tensors, json.dumps({"rules": [asked]}))
    try:
        return any(_choice(policy, place).program == sync_abi.OFF for place in range(len(tensors)))
    finally:
        _library.loaded().cinch_policy_release(policy)


def _choice(policy: ctypes.c_void_p, place: int) -> sync_abi.PolicyChoice:
    choice = _abi.sized(sync_abi.PolicyChoice)
    _library.call("cinch_policy_get_choice", policy, place, ctypes.byref(choice))
    return choice


def _as_json(tensors: Sequence[Named], rules: Rules) -> Optional[str]:
    if rules is None or isinstance(rules, str):
        return rules
    # Also accepts JSON's object as a dictionary.
    given = rules["rules"] if isinstance(rules, Mapping) and list(rules) == ["rules"] else rules
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise InvalidArgumentError(f"rules are of type {type(given).__name__}: JSON, or a list of rules and functions, is taken")
    listed: List[Mapping[str, Any]] = []
    for number, rule in enumerate(given, 1):
        if isinstance(rule, Mapping):
            listed.append(rule)
        elif callable(rule):
            listed.extend(_said(number, rule, tensors))
        else:
            raise InvalidArgumentError(f"rule {number} is {rule!r}: a dictionary or a function is taken")
    return json.dumps({"rules": listed})


def _said(number: int, rule: Callable[[str, Shape], Use], tensors: Sequence[Named]) -> Iterator[Mapping[str, Any]]:
    """What a function says of each tensor, as rules."""
    for tensor in tensors:
        said = rule(tensor.name, tensor.shape)
        if said is None:
            continue
        if not isinstance(said, (str, Mapping)):
            raise InvalidArgumentError(f"rule {number} says {said!r} of {tensor.name}: a name, a dictionary or None is taken")
        yield {"name": _exactly(tensor.name), **({"use": said} if isinstance(said, str) else said)}


def _exactly(name: str) -> str:
    """A shell's pattern that fits the name alone."""
    pattern = re.sub(r"([\[*?])", r"[\1]", name)
    assert fnmatch.fnmatchcase(name, pattern)
    return pattern


def _apply(tensors: Sequence[Named], rules: Optional[str]) -> ctypes.c_void_p:
    shapes = [described(tensor.shape) for tensor in tensors]
    listed = (sync_abi.PolicyTensor * len(tensors))(
        *(
            _abi.sized(sync_abi.PolicyTensor, name=_library.c_text(tensor.name), shape=shape.pointer, num_dims=len(tensor.shape))
            for tensor, shape in zip(tensors, shapes)
        )
    )
    handle = ctypes.c_void_p()
    _library.call("cinch_policy_apply", None if rules is None else rules.encode(), listed, len(listed), ctypes.byref(handle))
    return handle


def _programs(policy: ctypes.c_void_p) -> List[Tuple[str, Dict[str, Value]]]:
    found = []
    for i in range(_library.loaded().cinch_policy_num_programs(policy)):
        spec = _abi.sized(sync_abi.PolicyProgram)
        _library.call("cinch_policy_get_program", policy, i, ctypes.byref(spec))
        words = [_library.text_of(spec.bindings[k]).split("=", 1) for k in range(spec.num_bindings)]
        found.append((_library.text_of(spec.program), {name: _value(value) for name, value in words}))
    return found


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if text.isidentifier():
        return text
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _compiled(spec: Tuple[str, Dict[str, Value]], default: Default, device: Optional[int], starts: Mapping[str, float]) -> Optional[Program]:
    name, own = spec
    if not name and not own:
        return default.program
    text = name or default.given
    if text == NONE:
        return None
    if isinstance(text, Program):
        raise InvalidArgumentError(_BOUND)
    return _started(text, own if name else {**default.bindings, **own}, device, starts)


def _started(text: str, bound: Mapping[str, Value], device: Optional[int], starts: Mapping[str, float]) -> Program:
    """With room for what run-time parameters begin with."""
    compiled = compile(text, bindings=bound, device=device)
    begins = {parameter: value for parameter, value in starts.items() if parameter in compiled.parameters and parameter not in bound}
    return compile(text, bindings={**bound, **begins}, device=device) if begins else compiled


def _chosen(policy: ctypes.c_void_p, i: int, tensor: Named, programs: Sequence[Optional[Program]]) -> SyncTensor:
    choice = _choice(policy, i)
    if choice.program == sync_abi.OFF:
        raise InvalidArgumentError(f"{tensor.name}: a rule says \"off\", and ranks would drift apart; freeze the parameter (requires_grad=False) instead")
    return SyncTensor(tensor.name, tensor.shape, None if choice.program < 0 else programs[choice.program], choice.priority, None, choice.plan and choice.plan.decode(), choice.piece_bytes)
