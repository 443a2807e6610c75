"""The shortest walk through a kernel that moves the elements of a whole group."""
import heapq

ACCESSES = {"LDG": "ld", "STG": "st", "LDGSTS": "ld", "LD": "ld", "ST": "st"}
WIDTHS = {"128": 128, "64": 64, "U8": 8, "S8": 8, "U16": 16, "S16": 16}


def access(instr):
    """("ld" or "st", bits) of an access to global memory by LDG or STG; None for other instructions."""
    kind = ACCESSES.get(instr.name)
    if kind is None or instr.name in ("LD", "ST"):
        return None
    return kind, next((WIDTHS[part] for part in instr.opcode.split(".") if part in WIDTHS), 32)


def key_of(instr, kinds):
    """Which of `kinds` an access is: its own, or ("st", 0), a store of packed words; None where it is none of them.
    Bytes are stored only where words do not fit."""
    found = access(instr)
    if found is None or found in kinds:
        return found
    packed = (found[0], 0)
    return packed if packed in kinds and found[1] >= 32 else None


class Walker:
    """`sections`: of each section of elements in turn, how many accesses of each kind a whole group takes. `is_exact`:
    a walk with more wide ones is none."""

    def __init__(self, nodes, entry, loops, sections, is_exact=True):
        self.nodes, self.entry, self.loops, self.is_exact = nodes, entry, loops, is_exact
        self.kinds = sorted({kind for section in sections for kind in section})
        self.needed = [tuple(section.get(kind, 0) for kind in self.kinds) for section in sections]
        self.tokens = [[self.kinds.index(key) for i in node.instrs if (key := key_of(i, self.kinds))] for node in nodes]
        self.innermost = {}
        for k, loop in enumerate(loops):  # largest first
            for n in loop.nodes:
                self.innermost[n] = k

    def take(self, node, state, inner):
        """The state behind a node: how far the group's accesses are; None where there are too many of them. Within
        a loop over rows, one section only."""
        section, counts, held = state
        if held is not None and node not in self.loops[held].nodes:
            held = None
        for token in self.tokens[node]:
            if counts == self.needed[section] and held is None and section + 1 < len(self.needed):
                section, counts = section + 1, (0,) * len(self.kinds)
            if counts[token] < self.needed[section][token]:
                counts = counts[:token] + (counts[token] + 1,) + counts[token + 1:]
                if counts == self.needed[section] and self.innermost.get(node) in inner:
                    held = self.innermost[node]
            elif self.is_exact and self.kinds[token][1]:
                return None
        return section, counts, held

    def is_done(self, state):
        return state[0] == len(self.needed) - 1 and state[1] == self.needed[-1]

    def search(self, start, inner, may_follow, is_end):
        begin = (start, self.take(start, (0, (0,) * len(self.kinds), None), inner))
        if begin[1] is None:
            return None
        best, come_from = {begin: len(self.nodes[start].instrs)}, {}
        heap, count = [(best[begin], 0, begin)], 0
        while heap:
            cost, _, here = heapq.heappop(heap)
            if cost > best[here]:
                continue
            node, state = here
            if self.is_done(state) and is_end(node):
                way = [here]
                while way[-1] in come_from:
                    way.append(come_from[way[-1]])
                return [n for n, _ in reversed(way)]
            for after in self.nodes[node].follows:
                if not may_follow(node, after, self.is_done(state)):
                    continue
                there = (after, self.take(after, state, inner))
                if there[1] is None:
                    continue
                total = cost + len(self.nodes[after].instrs)
                if total < best.get(there, 1 << 60):
                    best[there], come_from[there] = total, here
                    count += 1
                    heapq.heappush(heap, (total, count, there))
        return None

    def inside(self, k):
        """Numbers of the loops within loop k, without it; of all, where k is None."""
        if k is None:
            return set(range(len(self.loops)))
        return {j for j, loop in enumerate(self.loops) if j != k and loop.nodes < self.loops[k].nodes}

    def round_of(self, k):
        """Nodes of the shortest round of loop k that does a whole group; None if no round does."""
        loop = self.loops[k]
        return self.search(loop.header, self.inside(k), lambda a, b, is_done: b != loop.header and b in loop.nodes,
                           lambda n: loop.header in self.nodes[n].follows)

    def is_even(self, k, way):
        """Does each turn of a loop over rows that moves elements store as many words of packed codes as the others?"""
        packed = self.kinds.index(("st", 0)) if ("st", 0) in self.kinds else None
        if packed is None:
            return True
        turns, turn, last = {}, None, None
        for node in way:
            loop = self.innermost.get(node)
            if loop in self.inside(k):
                if loop != last or node == self.loops[loop].header:
                    turn = []
                    turns.setdefault(loop, []).append(turn)
                turn += self.tokens[node]
            last = loop
        for found in turns.values():
            counts = {turn.count(packed) for turn in found if any(token != packed for token in turn)}
            if len(counts) > 1:
                return False
        return True

    def group_loop(self):
        """The smallest loop of which one round does a whole group, and that round."""
        for k in reversed(range(len(self.loops))):
            if not any(self.tokens[n] for n in self.loops[k].nodes):
                continue
            nodes = self.round_of(k)
            if nodes:
                return k, nodes
        return None, None

    def whole(self, k):
        """Nodes of the shortest walk from entry to exit that does one group, in one round of loop k. Behind that, it
        may have to ask at the loop's head that there is no other."""
        outer = [] if k is None else [loop for loop in self.loops if self.loops[k].nodes <= loop.nodes]

        def may_follow(a, b, is_done):
            return is_done or not any(b == loop.header and a in loop.nodes for loop in outer)
        return self.search(self.entry, self.inside(k), may_follow, lambda n: self.nodes[n].is_exit)
