"""Compresses the gradients of two tensors as a rank of data-parallel training would: each step encodes what the tensors'
gradients are, and adds what every rank's payloads decode to.

    python compress.py [PROGRAM]        for example: python compress.py onebit
"""
import sys

import numpy as np

import cinch

MISSPELLED = """compressor mean_of_all {
  wire { x: f32 }
  encode(g: [f32; n]) { wire { x: meen(g) } }
  decode(w) { fill(w.x, n) }
}
"""


def main() -> None:
    program = cinch.compile(sys.argv[1] if len(sys.argv) > 1 else "dgc")
    print(f"{program.name}: {program.doc.splitlines()[0]}")
    random = np.random.default_rng(1)
    shapes = [(300, 200), (300,)]  # a weight matrix and a bias, which one call compresses together

    with program.session(shapes) as session:
        for step in range(3):
            gradients = [random.standard_normal(shape, dtype=np.float32) for shape in shapes]
            payloads = session.encode(step, gradients)  # bytes, which would be sent now
            sums = [np.zeros(shape, np.float32) for shape in shapes]
            session.decode_add(step, payloads, sums)  # once for the payloads of each rank
            updates = session.finish(step, sums)
            sizes = " and ".join(f"{gradient.nbytes} B in {len(payload)} B" for gradient, payload in zip(gradients, payloads))
            print(f"step {step}: {sizes}, {sum(np.count_nonzero(update) for update in updates)} elements change")
        checkpoint = session.states_save()

    with program.session(shapes) as session:
        session.states_load(checkpoint)  # goes on where the other session ended
        print(f"{len(checkpoint)} B of states restored")

    try:
        cinch.compile("mine", text=MISSPELLED)
    except cinch.ProgramError as error:
        for each in error.diagnostics:
            print(f"{each.file}, line {each.line}, column {each.column}: {each.message}")


if __name__ == "__main__":
    main()
