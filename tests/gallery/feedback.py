#!/usr/bin/env python3
"""The error of one step and of the sum of all steps so far, with and without error feedback: feedback.py BUILD [PROGRAM…].

Every step compresses the real gradient, each element times 1 and normal noise as large, as another batch would have it.
"""
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GRADIENT = ROOT / "examples" / "data" / "resnet-step40.npy"
STEPS = 50
PROGRAMS = ("topk", "onebit", "drive")


def import_cinch(build):
    os.environ.setdefault("CINCH_LIBRARY", str(Path(build).resolve() / "lib" / "libcinch.so"))
    os.environ.setdefault("CINCH_STDLIB", str(ROOT / "stdlib"))
    sys.path.insert(0, str(ROOT / "runtime" / "python"))
    import cinch
    return cinch


def gradients():
    import numpy
    gradient = numpy.load(GRADIENT)
    random = numpy.random.default_rng(0)
    for _ in range(STEPS):
        yield (gradient * (1 + random.standard_normal(gradient.size, dtype=numpy.float32))).astype(numpy.float32)


def errors(cinch, program):
    """{"step": […], "sum": […]}, relative."""
    import numpy
    norm = numpy.linalg.norm
    found = {"step": [], "sum": []}
    true = decoded = 0.0
    session = None
    for step, gradient in enumerate(gradients()):
        session = session or cinch.compile(program).session(gradient)
        output = session.decode(step, session.encode(step, gradient))
        true, decoded = true + gradient.astype(numpy.float64), decoded + output.astype(numpy.float64)
        found["step"].append(float(norm(gradient - output) / norm(gradient)))
        found["sum"].append(float(norm(true - decoded) / norm(true)))
    return found


def curves(build, programs=PROGRAMS):
    cinch = import_cinch(build)
    return {name: {"alone": errors(cinch, name), "fed": errors(cinch, f"error_feedback({name})")} for name in programs}


def main():
    for name, curve in curves(sys.argv[1], sys.argv[2:] or PROGRAMS).items():
        for side, label in (("alone", name), ("fed", f"error_feedback({name})")):
            step, total = curve[side]["step"], curve[side]["sum"]
            print(f"{label:28} one step: {step[0]:.3f} first, {step[-1]:.3f} last; sum: {total[0]:.3f} after 1 step, {total[-1]:.3f} after {STEPS}")


if __name__ == "__main__":
    main()
