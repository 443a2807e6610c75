"""parted_lanes.py CINCH PROGRAMS: gathers have the interpreter's bits on each processor that this machine has, and in the machine
code of all x86-64 levels no register that holds two lanes of 32 bits is an index."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

cinch, programs = sys.argv[1:]
NAMES = {f"r{n}{end}": f"r{n}" for n in range(8, 16) for end in ("", "d", "w", "b")}
for each in "abcd":
    NAMES.update({f"r{each}x": f"r{each}x", f"e{each}x": f"r{each}x", f"{each}x": f"r{each}x", f"{each}l": f"r{each}x"})
for each in ("si", "di", "bp", "sp"):
    NAMES.update({f"r{each}": f"r{each}", f"e{each}": f"r{each}", each: f"r{each}", f"{each}l": f"r{each}"})


def of_two_lanes(text):
    """The instructions that use a register of two lanes as an index."""
    pairs, found = set(), []
    for line in text.split("\n"):
        code = re.match(r"\s+([a-z]\S*)\s+(.*)", line.split("#")[0])
        if code is None:
            if line.rstrip().endswith(":"):
                pairs.clear()
            continue
        operation, arguments = code.groups()
        operands = re.split(r",\s*(?![^()]*\))", arguments.strip())
        uses = any(NAMES.get(index) in pairs for index in re.findall(r"\((?:%\w+)?,\s*%(\w+)", arguments))
        to = NAMES.get(operands[-1].lstrip("%"))
        if uses and operation != "leaq":
            found.append(line.strip())
        if to is None or operation.startswith(("cmp", "test", "bt")):
            continue
        from_vector = re.fullmatch(r"v?(movq|pextrq)", operation) and any("mm" in each for each in operands[:-1])
        is_copy = operation == "movq" and NAMES.get(operands[0].lstrip("%")) in pairs
        if from_vector or is_copy or (uses and operation == "leaq"):
            pairs.add(to)
        else:
            pairs.discard(to)
    return found


# The scanner sees what LLVM made before.
assert of_two_lanes("\tmovq\t%xmm8, %rdx\n\tmovss\t(%r15,%rdx,4), %xmm8\n")
assert not of_two_lanes("\tmovq\t%xmm8, %rdx\n\tmovl\t%edx, %ecx\n\tmovss\t(%r15,%rcx,4), %xmm8\n")

with tempfile.TemporaryDirectory() as folder:
    gradient, decoded, listing = (os.path.join(folder, each) for each in ("g.npy", "out.npy", "code.s"))
    np.save(gradient, (np.arange(5000) * 37.7 % 1000 - 300).astype(np.float32))
    for name in ("masked", "divided", "chosen"):
        program, results = f"{programs}:{name}", []
        for options in (["--interpret"], ["--cpu", "x86-64"], []):
            subprocess.run([cinch, "run", program, "--input", gradient, "--output", decoded, *options], check=True, capture_output=True)
            results.append(np.load(decoded).tobytes())
        assert results[0] == results[1] == results[2], name
        for level in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"):
            subprocess.run([cinch, "build", program, "--emit", "asm", "--target", level, "--output", listing], check=True, capture_output=True)
            with open(listing, encoding="utf-8") as code:
                text = code.read()
            assert "movss" in text and re.search(r"movq\s+%[xy]mm\d+, %r", text), (name, level)
            assert not of_two_lanes(text), (name, level, of_two_lanes(text))
