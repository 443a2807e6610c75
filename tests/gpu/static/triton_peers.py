"""triton_peers.py TOOLS: what Triton makes of four encoders for sm_90, counted as run.py counts ours. Needs Triton 3.9, and no GPU; TOOLS as
run.py's. Kernels have no loops, so all instructions count; each program takes 4 warps' elements once."""
import pathlib
import re
import subprocess
import sys
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import count  # noqa: E402
import run  # noqa: E402
import sass  # noqa: E402

THREADS = 128


@triton.jit
def onebit(g, out, sums, n, BLOCK: tl.constexpr):
    """Codes, sums and counts of either side, in one pass."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(g + at)
    negative = x < 0
    word = tl.sum(tl.reshape(negative.to(tl.int32), (BLOCK // 32, 32)) << tl.arange(0, 32)[None, :], 1)
    tl.store(out + tl.program_id(0) * (BLOCK // 32) + tl.arange(0, BLOCK // 32), word)
    to = sums + 3 * tl.program_id(0)
    tl.store(to, tl.sum(tl.where(negative, x, 0.0), 0))
    tl.store(to + 1, tl.sum(tl.where(negative, 0.0, x), 0))
    tl.store(to + 2, tl.sum(negative.to(tl.int32), 0).to(tl.float32))


@triton.jit
def rounded_codes(x, low, inverse, draw):
    v = tl.minimum(tl.maximum((x - low) * inverse, 0.0), 3.0)
    return tl.minimum(tl.floor(v + draw), 3.0).to(tl.int32)


@triton.jit
def minmax(g, out, low, inverse, seed, n, BLOCK: tl.constexpr):
    """Codes of 2 bits, a draw for each element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    code = rounded_codes(tl.load(g + at), low, inverse, tl.rand(seed, at))
    word = tl.sum(tl.reshape(code, (BLOCK // 16, 16)) << (2 * tl.arange(0, 16))[None, :], 1)
    tl.store(out + tl.program_id(0) * (BLOCK // 16) + tl.arange(0, BLOCK // 16), word)


@triton.jit
def minmax_four(g, out, low, inverse, seed, n, BLOCK: tl.constexpr):
    """The same, one draw for four elements."""
    part = tl.arange(0, BLOCK // 4)
    at = tl.program_id(0) * BLOCK + 4 * part[:, None] + tl.arange(0, 4)[None, :]
    a, b, c, d = tl.rand4x(seed, tl.program_id(0) * (BLOCK // 4) + part)
    x = tl.load(g + at)
    draws = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BLOCK // 4, 4))
    code = rounded_codes(x, low, inverse, draws)
    byte = tl.sum(code << (2 * tl.arange(0, 4))[None, :], 1)
    tl.store(out + tl.program_id(0) * (BLOCK // 4) + part, byte.to(tl.int8))


@triton.jit
def qsgd(g, out, norms, seed, n, BLOCK: tl.constexpr):
    """Rows of 512, codes of 4 bits, a draw for each element."""
    rows: tl.constexpr = BLOCK // 512
    at = tl.program_id(0) * BLOCK + 512 * tl.arange(0, rows)[:, None] + tl.arange(0, 512)[None, :]
    x = tl.load(g + at)
    norm = tl.sqrt(tl.sum(x * x, 1))
    tl.store(norms + tl.program_id(0) * rows + tl.arange(0, rows), norm)
    v = x * tl.where(norm > 0, 7.0 / norm, 0.0)[:, None]
    code = tl.floor(tl.minimum(tl.maximum(v, -7.0), 7.0) + tl.rand(seed, at)).to(tl.int32) & 15
    word = tl.sum(tl.reshape(code, (BLOCK // 8, 8)) << (4 * tl.arange(0, 8))[None, :], 1)
    tl.store(out + tl.program_id(0) * (BLOCK // 8) + tl.arange(0, BLOCK // 8), word)


@triton.jit
def threshold_count(g, counts, tau, n, BLOCK: tl.constexpr):
    """First of two passes; a scan of the counts stands between them."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(counts + tl.program_id(0), tl.sum((tl.abs(tl.load(g + at)) >= tau).to(tl.int32), 0))


@triton.jit
def threshold_select(g, index, value, firsts, tau, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(g + at)
    kept = tl.abs(x) >= tau
    to = tl.load(firsts + tl.program_id(0)) + tl.cumsum(kept.to(tl.int32), 0) - 1
    tl.store(index + to, at, mask=kept)
    tl.store(value + to, x, mask=kept)


POINTERS = {"g": "*fp32", "out": "*i32", "sums": "*fp32", "norms": "*fp32", "counts": "*i32", "firsts": "*i32", "index": "*i32", "value": "*fp32"}
SCALARS = {"low": "fp32", "inverse": "fp32", "tau": "fp32", "seed": "i32", "n": "i32"}


def cubin_of(kernel, block, out):
    names = kernel.arg_names
    signature = {name: {**POINTERS, **SCALARS, "out": out}.get(name, "constexpr") for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in names if name in POINTERS}
    source = ASTSource(fn=kernel, signature=signature, constexprs={(names.index("BLOCK"),): block}, attrs=aligned)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": THREADS // 32}).asm["cubin"]


def instructions(section):
    """All but what pads the section behind its end."""
    found = [instr for block in section.blocks for instr in block.instrs]
    last = max(k for k, instr in enumerate(found) if instr.name in ("EXIT", "RET"))
    return [instr for instr in found[:last + 1]]


def main():
    tools = sys.argv[1]
    print("| kernel | elements of a thread | registers | instructions per element | ALU | loads in flight of a thread, B |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for kernel, block, out in ((onebit, 2048, "*i32"), (minmax, 2048, "*i32"), (minmax_four, 2048, "*i8"), (qsgd, 2048, "*i32"),
                               (threshold_count, 2048, "*i32"), (threshold_select, 2048, "*i32")):
        with tempfile.TemporaryDirectory() as made:
            path = pathlib.Path(made) / "cubin"
            path.write_bytes(cubin_of(kernel, block, out))
            sections = sass.parse(run.output(run.tool(tools, "nvdisasm"), "-c", path))
            registers = re.search(r"REG:(\d+)", run.output(run.tool(tools, "cuobjdump"), "-res-usage", path))[1]
        code = instructions(next(iter(sections.values())))
        of_thread = block // THREADS
        loads, _, _ = count.memory_of(code)
        half_rate = sum(instr.name in count.ALU for instr in code)
        print(f"| {kernel.__name__} | {of_thread} | {registers} | {len(code) / of_thread:.1f} | {half_rate / of_thread:.1f} | {loads} |")


if __name__ == "__main__":
    main()
