"""What a program is composed of, as far as its text says it: the library tells the states of a compiled program and what carries its sums,
and neither the compressor within wrappers nor what its parameters were fixed to."""
import os
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..program import Program

_TOKEN = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[^\W\d][\w.]*|\S")
_COMMENT = re.compile(r"//[^\n]*")
_OPENING, _CLOSING = "([{", ")]}"  # ranges mix them: (0, 1]


@dataclass(frozen=True)
class Call:
    """`name(inner, argument: value)`; values are single words."""

    name: str
    inner: Optional["Call"]
    arguments: Mapping[str, str]


class _Definition(NamedTuple):
    """`compressor name(parameter: type = default) = call`."""

    defaults: Mapping[str, str]
    call: Call


class Innermost(NamedTuple):
    """The compressor within all wrappers, and what the text fixes of its parameters."""

    name: str
    fixed: Mapping[str, float]


def innermost(program: Program) -> Innermost:
    """The program itself where nothing says of what it is made, as of an image."""
    definitions, call = _read(program)
    bound = {name: str(value).lower() for name, value in program.bindings.items()}
    words: Dict[str, str] = {}
    while True:
        if call.name in definitions:
            definition = definitions.pop(call.name)
            given = {**bound, **{name: words.get(word, word) for name, word in call.arguments.items()}}
            bound = {}
            # What is left to be bound later is the program's own parameter.
            words = {name: given.get(name, name if name in program.parameters else default) for name, default in definition.defaults.items()}
            call = definition.call
        elif call.inner is not None:
            call = call.inner
        else:
            numbers = {name: _number(words.get(word, word), program) for name, word in call.arguments.items()}
            return Innermost(call.name.rpartition(".")[2], {name: number for name, number in numbers.items() if number is not None})


def _number(word: str, program: Program) -> Optional[float]:
    if word in program.parameters:
        return program.parameters[word].default
    try:
        return float(word)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(word)


def _read(program: Program) -> Tuple[Dict[str, _Definition], Call]:
    given, text = program.source
    path, _, _ = given.rpartition(":") if not os.path.isfile(given) else (given, "", "")
    if not text and not os.path.isfile(path):
        return {}, _call(_tokens(given)) if given else Call(program.name, None, {})
    if not text:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    return dict(_definitions(_tokens(_COMMENT.sub("", text)))), Call(program.name, None, {})


def _tokens(text: str) -> List[str]:
    return _TOKEN.findall(text)


def _definitions(tokens: List[str]) -> Iterator[Tuple[str, _Definition]]:
    for at, token in enumerate(tokens):
        if token != "compressor" or at + 2 >= len(tokens):
            continue
        end = at + 2
        parameters: List[List[str]] = []
        if tokens[end] == "(":
            parameters, end = _listed(tokens, end)
        if end < len(tokens) and tokens[end] == "=":
            defaults = {each[0]: each[each.index("=") + 1] for each in parameters if "=" in each[:-1]}
            yield tokens[at + 1], _Definition(defaults, _call(tokens[end + 1 :]))


def _call(tokens: List[str]) -> Call:
    """What the tokens begin with."""
    listed = _listed(tokens, 1)[0] if tokens[1:2] == ["("] else []
    inner = next((each for each in listed if each[1:2] != [":"]), None)
    named = {each[0]: each[2:] for each in listed if each[1:2] == [":"]}
    inner = named.pop("inner", inner)
    return Call(tokens[0], _call(inner) if inner else None, {name: value[0] for name, value in named.items() if len(value) == 1})


def _listed(tokens: List[str], at: int) -> Tuple[List[List[str]], int]:
    """What stands between the bracket there and its end, by commas, and the place behind."""
    listed: List[List[str]] = [[]]
    depth = 0
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0:
            return [each for each in listed if each], place + 1
        if depth == 1 and token == ",":
            listed.append([])
        elif place > at:
            listed[-1].append(token)
    return [each for each in listed if each], len(tokens)
