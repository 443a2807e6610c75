"""A model of an H200, for what it predicts of a kernel at 2^27 elements. Constants are those that docs/benchmarks/gpu-static.md gives
the sources of. It knows no contention, so shares are upper bounds."""
ELEMENTS = 1 << 27
MULTIPROCESSORS, CLOCK = 132, 1.83e9
COPY_BYTES = 4.3e12  # a second
SLOTS = 4  # warp instructions a multiprocessor issues in a cycle
ALU_SHARE, XU_SHARE = 0.5, 0.125  # of these, on the pipes
LATENCY = 0.7e-6  # of memory, under load
NEAR_LATENCY = 0.3e-6  # of a narrow load, whose line a neighbour mostly asked for: the second-level cache
PACE = 2  # cycles between two instructions of a warp that has a slot to itself
PROLOGUE = 0.9e-6  # of a block
NODE = 1.5e-6  # of a graph
# What a multiprocessor holds: sm_90 and sm_100 alike.
REGISTERS, WARPS, BLOCKS, SHARED, SHARED_OF_BLOCK = 65536, 64, 32, 228 * 1024, 1024


def blocks(registers, shared_bytes, warps):
    """Blocks that a multiprocessor holds at once."""
    of_warp = -(-registers * 32 // 256) * 256 if registers else 256
    held = REGISTERS // of_warp // 4 * 4  # warps, spread over four parts
    return min(held // warps, WARPS // warps, BLOCKS, SHARED // (shared_bytes + SHARED_OF_BLOCK))


def times(count):
    """Seconds at 2^27 elements, by what bounds them."""
    thread_instrs = ELEMENTS / (MULTIPROCESSORS * SLOTS * 32 * CLOCK)
    warps = MULTIPROCESSORS * count.blocks * count.warps_a_block
    groups = ELEMENTS / count.group_len / warps
    chain = count.round_cycles / CLOCK + PROLOGUE / count.groups_a_warp
    return {"issue": count.total * thread_instrs, "alu": count.alu * thread_instrs / ALU_SHARE,
            "xu": count.xu * thread_instrs / XU_SHARE, "memory": (count.bytes or 0) * ELEMENTS / COPY_BYTES,
            "latency": groups * chain}


def predicted(count):
    """Seconds, and what bounds them."""
    found = times(count)
    limit = max(found, key=found.get)
    return found[limit] + NODE + PROLOGUE + LATENCY, limit


def share(count):
    """Of the kernel's own floor: its bytes at the speed of a copy, over what is predicted."""
    if count.total is None or not count.bytes:
        return None
    return times(count)["memory"] / predicted(count)[0]
