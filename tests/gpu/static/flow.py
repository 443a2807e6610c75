"""The control flow of a kernel with the functions that it calls, and its loops."""
import heapq
from dataclasses import dataclass, field


@dataclass
class Node:
    instrs: list
    follows: list = field(default_factory=list)
    is_exit: bool = False


class Functions:
    """All code of a cubin by label; what a function costs at least."""

    def __init__(self, sections, is_counted):
        self.sections = sections
        self.is_counted = is_counted  # instruction -> bool: does a walk count it as an access of elements?
        self.home = {label: section for section in sections.values() for label in section.block_of}
        self.least = {}

    def blocks(self, label):
        """Numbers of the blocks of a function: what its entry reaches."""
        section = self.home[label]
        reached, waiting = set(), [section.block_of[label]]
        while waiting:
            number = waiting.pop()
            if number not in reached:
                reached.add(number)
                waiting += section.blocks[number].follows
        return section, sorted(reached)

    def callees(self, label):
        """All functions that a function calls, and those that these call; with itself."""
        found, waiting = set(), [label]
        while waiting:
            one = waiting.pop()
            if one in found or one not in self.home:
                continue
            found.add(one)
            section, numbers = self.blocks(one)
            waiting += [section.blocks[n].calls for n in numbers if section.blocks[n].calls]
        return found

    def has_accesses(self, label):
        for one in self.callees(label):
            section, numbers = self.blocks(one)
            if any(self.is_counted(i) for n in numbers for i in section.blocks[n].instrs):
                return True
        return False

    def shortest(self, label):
        """Instructions of the shortest way through a function, with what it calls."""
        if label not in self.least:
            nodes, entry = inline(self, label, returns_end=True)
            self.least[label] = shortest_path(nodes, entry)
        return self.least[label]


def inline(functions, label, returns_end=False):
    """Nodes of a function and of what it calls; the entry's number. A callee without accesses of elements is the
    shortest way through it. `returns_end`: RET of the function itself ends a walk as EXIT does."""
    nodes = []

    def add(one):
        section, numbers = functions.blocks(one)
        place = {n: len(nodes) + k for k, n in enumerate(numbers)}
        nodes.extend(Node(list(section.blocks[n].instrs)) for n in numbers)
        ends = []
        for n in numbers:
            block, node = section.blocks[n], nodes[place[n]]
            node.follows = [place[f] for f in block.follows]
            node.is_exit = block.leaves
            if block.returns:
                ends.append(place[n])
            called = block.calls
            if called is None or called not in functions.home:
                continue
            behind = list(node.follows)
            if not functions.has_accesses(called):
                way = functions.shortest(called)
                if not block.instrs[-1].guard:
                    node.instrs += way or []
                continue
            entry, returning = add(called)
            node.follows = [entry] + (behind if block.instrs[-1].guard else [])
            for r in returning:
                nodes[r].follows = nodes[r].follows + behind
        return place[section.block_of[one]], ends

    entry, ends = add(label)
    if returns_end:
        for e in ends:
            nodes[e].is_exit = True
    return nodes, entry


def shortest_path(nodes, entry):
    """Instructions of the shortest way from the entry to an exit; None if there is none."""
    best, come_from, heap = {entry: len(nodes[entry].instrs)}, {}, [(len(nodes[entry].instrs), entry)]
    while heap:
        cost, number = heapq.heappop(heap)
        if cost > best[number]:
            continue
        if nodes[number].is_exit:
            way = [number]
            while way[-1] in come_from:
                way.append(come_from[way[-1]])
            return [instr for n in reversed(way) for instr in nodes[n].instrs]
        for after in nodes[number].follows:
            there = cost + len(nodes[after].instrs)
            if there < best.get(after, 1 << 60):
                best[after], come_from[after] = there, number
                heapq.heappush(heap, (there, after))
    return None


def dominators(nodes, entry):
    """The immediate dominator of each node that the entry reaches, and these nodes, each behind those it needs."""
    order, state, stack = [], {entry}, [(entry, iter(nodes[entry].follows))]
    while stack:
        number, rest = stack[-1]
        after = next((f for f in rest if f not in state), None)
        if after is None:
            order.append(number)
            stack.pop()
        else:
            state.add(after)
            stack.append((after, iter(nodes[after].follows)))
    rank = {n: k for k, n in enumerate(order)}
    before = {n: [] for n in order}
    for n in order:
        for f in nodes[n].follows:
            before[f].append(n)
    above = {entry: entry}
    changed = True
    while changed:
        changed = False
        for n in reversed(order):
            if n == entry:
                continue
            meet = None
            for b in before[n]:
                if b in above:
                    meet = b if meet is None else common(above, rank, meet, b)
            if meet is not None and above.get(n) != meet:
                above[n] = meet
                changed = True
    return above, before


def common(above, rank, a, b):
    while a != b:
        while rank[a] < rank[b]:
            a = above[a]
        while rank[b] < rank[a]:
            b = above[b]
    return a


@dataclass
class Loop:
    header: int
    nodes: set


def natural_loops(nodes, entry):
    """Largest first."""
    above, before = dominators(nodes, entry)

    def stands_above(a, n):
        while n != a and above[n] != n:
            n = above[n]
        return n == a

    loops = {}
    for n in above:
        for f in nodes[n].follows:
            if not stands_above(f, n):
                continue
            loop = loops.setdefault(f, Loop(f, {f}))
            waiting = [n]
            while waiting:
                inside = waiting.pop()
                if inside not in loop.nodes:
                    loop.nodes.add(inside)
                    waiting += before[inside]
    return sorted(loops.values(), key=lambda loop: -len(loop.nodes))
