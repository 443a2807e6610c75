"""What a kernel's machine code says of it.

How instructions per element are counted. A group is what kernel IR gives a warp at once: a tile of 1024 elements (32
of a thread), or a row. `walk` finds the shortest way, in instructions, through one round of the loop over groups on
which the group's elements are loaded and stored by wide accesses, as many as kernel IR says (so loops over rows are gone through
as often as rows need); slow paths and masked copies are never on it. Where a compiler made no wide accesses, single ones are
asked for. That is `loop`. The same from the kernel's entry
to its exit, with one round, less that is spent once for all groups that a warp takes: `around`. Both count every instruction that is
issued, with a guard or not, of the kernel and of what it calls, and are divided by the elements of a thread. They are
lower bounds: loops that wait (look-back) are gone through once, and what depends on data is not done where it need not be.
"""
import re
from dataclasses import asdict, dataclass

import facts
import flow
import model
import walk

# Half as many of these are issued in a cycle as of others.
ALU = {"LOP3", "LOP", "IADD3", "IADD", "VIADD", "VIADDMNMX", "SEL", "FSEL", "ISETP", "FSETP", "SHF", "SHL", "SHR", "PRMT", "IMNMX",
       "VIMNMX", "VIMNMX3", "FMNMX", "FMNMX3", "LEA", "PLOP3", "IABS", "P2R", "R2P", "BMSK", "SGXT", "VABSDIFF", "CS2R", "MOV", "VOTE",
       "FCHK", "DSETP", "VOTEU", "ISCADD", "FSWZADD"}
# An eighth: conversions, bit counts, roots and inverses.
XU = {"MUFU", "F2I", "I2F", "F2F", "POPC", "FLO", "BREV", "I2I", "FRND"}
REGISTER = re.compile(r"\bR(\d+)\b")
SPILLS = {"STL", "LDL"}


@dataclass
class Count:
    program: str
    kernel: str
    role: str
    registers: int
    stack_bytes: int
    stack_accesses: int  # STL and LDL
    spills_in_loop: int  # of these, in a loop
    warps_a_block: int
    blocks: int  # that a multiprocessor holds
    vector_share: float = None  # of loads from global memory in the round, those of 16 bytes
    loads_in_flight: int = None  # bytes of a multiprocessor
    stores_in_flight: int = None
    loop: float = None  # instructions per element
    around: float = None
    total: float = None
    alu: float = None  # of `total`, those of the half-rate pipe
    xu: float = None
    round_cycles: float = None  # of a round of one warp by itself, with its waits for memory
    group_len: int = None
    groups_a_warp: float = None
    bytes: float = None  # per element

    def as_dict(self):
        return {name: round(v, 3) if isinstance(v, float) else v for name, v in asdict(self).items()}


def in_loops(functions, label, takes_steps):
    """Instructions of a kernel and of what it calls; of these, those in a loop or called from one. `takes_steps`: the kernel's
    own loop is over steps, each of which is as a launch."""
    everything, looped, waiting = {}, {}, [(label, False)]
    done = set()
    while waiting:
        one, is_looped = waiting.pop()
        if (one, is_looped) in done or one not in functions.home:
            continue
        done.add((one, is_looped))
        section, numbers = functions.blocks(one)
        place = {n: k for k, n in enumerate(numbers)}
        nodes = [flow.Node(section.blocks[n].instrs, [place[f] for f in section.blocks[n].follows]) for n in numbers]
        inside = set().union(*(loop.nodes for loop in flow.natural_loops(nodes, place[section.block_of[one]])), set())
        for n in numbers:
            block = section.blocks[n]
            within = is_looped or place[n] in inside and not (takes_steps and one == label)
            for instr in block.instrs:
                everything[id(instr)] = instr
                if within:
                    looped[id(instr)] = instr
            if block.calls:
                waiting.append((block.calls, within))
    return list(everything.values()), list(looped.values())


def asked_for(kernel, bits):
    """What a group's walk may be asked for, in stages of [(sections, is_exact)], the likeliest first. Packed codes of
    several rows may be stored together; what one section loaded may be kept for the next; results of a group may be stored
    otherwise than one by one."""
    rows = -(-kernel.group_len // facts.ROW)
    stages = []
    for has_groups in (True, False):
        found = [facts.needed(kernel, bits, r, has_groups) for r in (1, 2, 4, 8) if r == 1 or r <= rows]
        apart, kept = [(asked, True) for asked in found if asked], [(facts.merged(asked), True) for asked in found if len(asked) > 1]
        stages += [kept, apart] if kernel.keeps_rows else [apart, kept]
    least = facts.needed(kernel, bits, rows, False)
    return [*stages, *([[(least, False)], [(facts.one_by_one(least), False)]] if least else [])]


def find_walks(functions, kernel, bits):
    """Instructions of the round and of the whole walk, either None where there is no such walk: the shortest round of those that
    can be asked for, and none that leaves out in one turn of a loop over rows what it stores in another."""
    nodes, entry = flow.inline(functions, kernel.name)
    loops = flow.natural_loops(nodes, entry)
    by_whole = None
    for asks in asked_for(kernel, bits):
        made = []
        for asked, is_exact in asks:
            walker = walk.Walker(nodes, entry, loops, asked, is_exact)
            k, round_nodes = walker.group_loop()
            if k is None and (by_whole is not None or made):
                continue
            if k is not None and is_exact and not walker.is_even(k, round_nodes):
                continue
            whole = walker.whole(k)
            ways = tuple(None if way is None else [i for n in way for i in nodes[n].instrs] for way in (round_nodes, whole))
            if k is not None and whole:
                made.append(ways)
            elif whole and by_whole is None:
                by_whole = ways
        if made:
            return min(made, key=lambda ways: len(ways[0]))
    return by_whole or (None, None)


def latency_of(width):
    """Cycles until a load of so many bits has come."""
    return model.CLOCK * (model.LATENCY if width >= 64 else model.NEAR_LATENCY)


def memory_of(instrs):
    """Of a round, gone through twice: the most bytes that a thread has asked for and not got, the most that it stores
    between two waits, and how many cycles the second round takes one warp by itself."""
    now, started, stored, most, most_stored, coming = 0, 0, 0, 0, 0, []
    for _ in range(2):
        started = now
        for instr in instrs:
            now += model.PACE
            used = {int(n) for n in REGISTER.findall(instr.operands)}
            is_fence = instr.name in ("LDGDEPBAR", "DEPBAR")
            asked = [load for load in coming if is_fence or any(load[1] <= r < load[2] for r in used)]
            if asked and max(load[0] for load in asked) > now:
                now, stored = max(load[0] for load in asked), 0
            coming = [load for load in coming if load[0] > now]
            found = walk.access(instr)
            if found is None:
                continue
            if found[0] == "st":
                stored += found[1] // 8
                most_stored = max(most_stored, stored)
            else:
                low = int(REGISTER.search(instr.operands)[1]) if REGISTER.search(instr.operands) else 0
                coming.append((now + latency_of(found[1]), low, low + max(1, found[1] // 32), found[1] // 8))
                most = max(most, sum(load[3] for load in coming))
    return most, most_stored, now - started


def measure(count, kernel, bits, functions, groups_a_visit):
    """Fills in what the walks say. `groups_a_visit`: groups that a warp takes in one launch."""
    one_round, whole = find_walks(functions, kernel, bits)
    if whole is None:
        return
    elements = kernel.group_len / 32
    body = one_round or whole
    count.group_len = kernel.group_len
    count.groups_a_warp = groups_a_visit
    count.loop = len(body) / elements
    count.around = (len(whole) - len(body)) / elements / groups_a_visit
    count.total = count.loop + count.around

    def part(names):
        inside = sum(i.name in names for i in body)
        return (inside + (sum(i.name in names for i in whole) - inside) / groups_a_visit) / elements

    count.alu, count.xu = part(ALU), part(XU)
    loads = [walk.access(i) for i in body if walk.access(i) and walk.access(i)[0] == "ld"]
    count.vector_share = sum(width == 128 for _, width in loads) / len(loads) if loads else None
    loaded, stored, count.round_cycles = memory_of(body)
    threads = 32 * count.warps_a_block * count.blocks
    count.loads_in_flight, count.stores_in_flight = loaded * threads, stored * threads
