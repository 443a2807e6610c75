"""What carries sums of a program: as text, compiled on demand, saved with images and libraries, and set with the program's parameters."""
import os
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import cinch
import numpy as np

WORLD, ELEMENTS = 2, 40000
VELOCITY = """compressor velocity {
  state v: [f32; n] = 0
  wire { x: [f32; n] }
  encode(g: [f32; n]) {
    v = 0.9 * v + g
    wire { x: v }
  }
  decode(w) { w.x }
}
"""


def updates_of(program, plan, parameters=()):
    """Of rank 0 in three steps. `parameters` are set after the first one."""
    transports = cinch.Transport.loopback(WORLD)
    tensors = [cinch.SyncTensor("w", (ELEMENTS,), program)]
    with ThreadPoolExecutor(WORLD) as ranks:
        opened = list(ranks.map(lambda r: cinch.Synchronizer(transports[r], tensors, plan=plan, threads=1, timeout=60), range(WORLD)))
        found = []
        for step in range(3):
            arrays = [[np.random.default_rng(10 * step + r).standard_normal(ELEMENTS).astype(np.float32)] for r in range(WORLD)]
            list(ranks.map(lambda r: opened[r].step(step, arrays[r]), range(WORLD)))
            found.append(arrays[0][0])
            for name, value in parameters if step == 0 else ():
                for each in opened:
                    each.set(program, name, value)
        plan_name = opened[0].plan.split(",")[0]
        for each in opened:
            each.close()
    return found, plan_name


class Carriers(unittest.TestCase):
    def test_are_told(self):
        for expression, carrier in [
            ("topk", "itself"),
            ("momentum(topk(ratio: 0.1))", "topk(ratio: 0.1)"),
            ("dgc(ratio: 0.05)", "error_feedback(topk(ratio: 0.05))"),
            ("randomk", "randomk(ratio: 0.01), shared draws"),
        ]:
            self.assertEqual(cinch.compile(expression).carrier, carrier)

    def test_decide_the_usual_plan(self):
        for expression, plan in [("dgc", "plan two_shot"), ("randomk", "plan allreduce"), ("qsgd", "plan two_shot"), ("fp16", "plan allreduce")]:
            self.assertEqual(updates_of(cinch.compile(expression), None)[1], plan)
        velocity = cinch.compile("velocity", text=VELOCITY)
        self.assertTrue(velocity.carrier.startswith("none: the state `v`"), velocity.carrier)
        self.assertEqual(updates_of(velocity, None)[1], "plan allgather")
        with self.assertRaisesRegex(cinch.InvalidArgumentError, "velocity does not take the plan two_shot: .*; it takes allreduce, allgather"):
            updates_of(velocity, "two_shot")

    def test_are_saved_with_images_and_libraries(self):
        program = cinch.compile("dgc", bindings={"ratio": 0.05})
        wanted, _ = updates_of(program, "two_shot")
        with tempfile.TemporaryDirectory() as folder:
            image = os.path.join(folder, "dgc.image")
            program.save(image)
            command = [os.environ["CINCH_COMMAND"], "build", "dgc", "--set", "ratio=0.05", "--target", "cpu:x86-64-v2"]
            subprocess.run([*command, "--name", "few", "--output", folder], check=True, stdout=subprocess.DEVNULL)
            for path in (image, os.path.join(folder, "libfew.so")):
                loaded = cinch.load(path)
                self.assertEqual(loaded.carrier, program.carrier)
                for update, other in zip(wanted, updates_of(loaded, "two_shot")[0]):
                    self.assertTrue((update == other).all(), path)

    def test_follow_the_parameters_of_the_program(self):
        # The owner sends twenty times as many elements as before.
        found, _ = updates_of(cinch.compile("dgc(masking: false)", bindings={"ratio": 0.05}), "two_shot", [("ratio", 0.001)])
        few, many = np.count_nonzero(found[2]), np.count_nonzero(found[0])
        self.assertLessEqual(few, WORLD * (0.001 * ELEMENTS / WORLD + 1))
        self.assertGreater(many, 20 * few)


if __name__ == "__main__":
    unittest.main()
