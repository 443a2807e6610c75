"""What nvdisasm prints, as functions of basic blocks."""
import re
from dataclasses import dataclass, field

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);(.*)$")
LABEL = re.compile(r"^([.$\w]+):\s*$")
SECTION = re.compile(r'^\s*\.section\s+\.text\.([^,]+),')
OTHER_SECTION = re.compile(r"^\s*\.section\s+")
TARGET = re.compile(r"`\(([^)]+)\)")
TARGETS_OF_TABLE = re.compile(r'BRANCH_TARGETS ([^"]*)"')


@dataclass
class Instr:
    address: int
    guard: str  # "@!P0", or empty
    opcode: str  # with its parts: LDG.E.128
    operands: str
    note: str = ""

    @property
    def name(self):
        return self.opcode.split(".")[0]

    @property
    def target(self):
        found = TARGET.search(self.operands)
        return found[1] if found else None


@dataclass
class Block:
    instrs: list = field(default_factory=list)
    labels: list = field(default_factory=list)
    follows: list = field(default_factory=list)  # numbers of the blocks that may come next
    calls: str = None  # the label of what its last instruction calls
    leaves: bool = False  # EXIT
    returns: bool = False  # RET


class Section:
    """A .text section: a kernel or a function, and slow paths behind it that have labels of their own."""

    def __init__(self, name):
        self.name = name
        self.blocks = []
        self.block_of = {}


ENDS = {"BRA", "BRX", "JMP", "JMX", "EXIT", "RET", "CALL", "BRXU", "JMXU"}


def parse(text):
    """Sections by name. Labels are known over all of them: `calls` may name one of another section."""
    sections, section, block = {}, None, None
    for line in text.splitlines():
        found = SECTION.match(line)
        if found:
            section = sections[found[1]] = Section(found[1])
            block = None
            continue
        if OTHER_SECTION.match(line):
            section = None
        if section is None:
            continue
        found = LABEL.match(line)
        if found:
            if block is None or block.instrs:
                block = open_block(section)
            block.labels.append(found[1])
            section.block_of[found[1]] = len(section.blocks) - 1
            continue
        found = INSTRUCTION.match(line)
        if not found:
            continue
        if block is None:
            block = open_block(section)
        block.instrs.append(Instr(int(found[1], 16), found[2] or "", found[3], found[4].strip(), found[5]))
        if block.instrs[-1].name in ENDS:
            block = None
    for made in sections.values():
        link(made)
    return sections


def open_block(section):
    section.blocks.append(Block())
    return section.blocks[-1]


def is_always_taken(instr):
    """Of a branch: no guard, and no further condition as its first operand."""
    if instr.guard:
        return False
    first = instr.operands.split(",")[0].strip().lstrip("!")
    return not (instr.opcode.endswith((".DIV", ".CONV")) or re.fullmatch(r"U?P\d", first))


def link(section):
    last = len(section.blocks) - 1
    for number, block in enumerate(section.blocks):
        following = [number + 1] if number < last else []
        end = block.instrs[-1] if block.instrs else None
        if end is None or end.name not in ENDS:
            block.follows = following
        elif end.name in ("BRA", "JMP"):
            block.follows = [section.block_of[end.target]] if end.target in section.block_of else []
            if not is_always_taken(end):
                block.follows = following + block.follows
        elif end.name in ("BRX", "JMX", "BRXU", "JMXU"):
            table = TARGETS_OF_TABLE.search(end.note + end.operands)
            names = table[1].split(",") if table else []
            block.follows = [section.block_of[name] for name in names if name in section.block_of]
            if end.guard:
                block.follows = following + block.follows
        elif end.name == "CALL":
            block.calls, block.follows = end.target, following
        else:
            block.leaves, block.returns = end.name == "EXIT", end.name == "RET"
            block.follows = following if end.guard else []
