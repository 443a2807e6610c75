"""What kernel IR says of the kernels: groups, sections of elements."""
import re
from dataclasses import dataclass, field

ROW, TILE = 128, 1024
BUFFER = re.compile(r"^buffers\[(\d+)\] \{.*\bstorage_bits=(\d+)")
NAME = re.compile(r'^  (symbol|role|group_kind)="?(\w+)')
NUMBER = re.compile(r"^  (group_len|group_multiple)=(\d+)$")
MEMBERS = {"symbol": "name", "group_kind": "group", "group_multiple": "multiple"}  # where a kernel's name for it is another
LINEAR = re.compile(r"^    (?:%\S+: \w+ = )?(load|store)_linear .*@(\d+)")
GROUP_STORE = re.compile(r"^    store_at \S+ \S+ @(\d+)")  # without a condition


@dataclass
class Kernel:
    name: str = ""
    role: str = ""  # sweep or finish
    group: str = ""  # tile, row or single
    group_len: int = None  # elements; None: known only when it runs
    multiple: int = 1  # groups that a warp takes in turn
    keeps_rows: bool = False  # does the text keep in registers what one section loaded for the next?
    is_counted: bool = False  # does the data say how many elements there are?
    sections: list = field(default_factory=list)  # those with accesses in turn: (is it one of elements?, [("ld" or "st", buffer)])


def kernels(text):
    """Kernels by name, and bits of an element by buffer."""
    made, bits, kernel, section, is_elements = {}, {}, None, None, False
    for line in text.splitlines():
        if found := BUFFER.match(line):
            bits[int(found[1])] = int(found[2])
        elif line == "kernel {":
            kernel, section = Kernel(), None
        elif line.startswith("}"):
            kernel = None
        elif kernel is None:
            continue
        elif found := NAME.match(line):
            setattr(kernel, MEMBERS.get(found[1], found[1]), found[2])
            made[kernel.name] = kernel
        elif found := NUMBER.match(line):
            setattr(kernel, MEMBERS.get(found[1], found[1]), int(found[2]))
        elif line.startswith("  extent_value="):
            kernel.is_counted = True
        elif found := re.match(r"  (kernel|group|elements):", line):
            is_elements, section = found[1] == "elements", []
            if found[1] != "kernel":
                kernel.sections.append((is_elements, section))
        elif section is not None and is_elements and (found := LINEAR.match(line)):
            section.append(("ld" if found[1] == "load" else "st", int(found[2])))
        elif section is not None and not is_elements and (found := GROUP_STORE.match(line)):
            section.append(("st", int(found[1])))
    return made, bits


def needed(kernel, bits, rows_a_store, has_groups):
    """Of each section in turn: how many accesses a whole group takes, by kind and bits. Four elements of a row are a
    lane's. Stores of narrow elements go by packed words, one for `rows_a_store` rows: ("st", 0); loads of those are
    asked for by what is done with them. `has_groups`: with what is stored once for the group, by one lane or all."""
    rows = -(-kernel.group_len // ROW)
    found = []
    for is_elements, section in kernel.sections:
        counts = {}
        for kind, buffer in section:
            width = 4 * bits[buffer]
            if not is_elements:
                if has_groups and bits[buffer] == 32:
                    counts["st", 0] = counts.get(("st", 0), 0) + 1
            elif width >= 64:
                key = (kind, min(width, 128))
                counts[key] = counts.get(key, 0) + rows * -(-width // 128)
            elif kind == "st":
                counts["st", 0] = counts.get(("st", 0), 0) + -(-rows // rows_a_store)
        if counts:
            found.append(counts)
    return found


def merged(sections):
    """As needed() where what an earlier section loaded is kept in registers."""
    if len(sections) < 2:
        return []
    counts = {}
    for section in sections:
        for key, count in section.items():
            counts[key] = max(counts.get(key, 0), count)
    return [counts]


def one_by_one(sections):
    """As needed() where elements are loaded and stored one at a time."""
    return [{(kind, width // 4): 4 * count if width else count for (kind, width), count in section.items()} for section in sections]


def element_bytes(kernel, bits):
    """Bytes that a sweep moves for each element: what it loads and stores side by side. None where the data say how many
    elements there are. What it gathers, scatters or selects is not counted."""
    if kernel.is_counted:
        return None
    return sum(bits[buffer] for _, buffer in {access for is_elements, section in kernel.sections if is_elements for access in section}) / 8
