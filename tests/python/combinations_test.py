"""Program x plan x device x element type x ranks, against sessions of one CPU rank each. CINCH_LONG=1: all programs and plans; otherwise a sample."""
import itertools
import json
import os
import random
import subprocess
import tempfile
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor

import cinch
import numpy as np
from support import COMMAND, TestCase, normal, run_command

IS_LONG = os.environ.get("CINCH_LONG", "") not in ("", "0")
PLANS = ("allgather", "allreduce", "two_shot", "ring", "ps", "tree")
SHAPE = (60, 50)
STEPS = 12
WRAPPED = ["error_feedback(topk)", "momentum(topk)", "nesterov(randomk)", "ef21(topk)", "ef21_sgdm(topk)", "ef14(topk)", "clip(qsgd)", "scaled(onebit)",
           "two_way(onebit)", "two_way(topk)", "warmup(topk)", "local_steps(topk)", "exact_below(topk)", "chunked(onebit)", "scale_unbiased(randomk)",
           "error_feedback(fp16)", "momentum(fp16)", "correct_every(topk)", "diana(natural)", "econtrol(topk)", "ef_lr(topk)"]
# What one program keeps of the sum, a plan that encodes it again loses for a while: least cosine and largest factor of lengths, measured over twelve
# steps. A program's momentum that counts twice has a factor above 3; shared draws without their partner have a cosine below 0.1.
LEAST_COSINE, LARGEST_FACTOR = 0.15, 2.4


def programs():
    return [each["name"] for each in json.loads(run_command("list", "--json")) if each["family"] != "wrap"] + WRAPPED


def handed(program):
    """What a program takes beside gradients."""
    return {name: [normal(*SHAPE, seed=9)] if about.is_array else 0.1 for name, about in program.inputs.items()}


def gradients(world, step):
    """Of all ranks: mostly alike, and much the same in each step."""
    base = normal(*SHAPE, seed=5) + 0.3 * normal(*SHAPE, seed=100 + step)
    return [(base + 0.15 * normal(*SHAPE, seed=1000 * (rank + 1) + step)).astype(np.float32) for rank in range(world)]


def gathered(program, steps):
    """The mean of what all ranks decode, as sessions of one rank each give it, or None: a `sync` body has no payloads."""
    sessions = [cinch.Session(program, [SHAPE], world=len(steps[0]), worker=rank, threads=1) for rank in range(len(steps[0]))]
    updates = []
    for step, arrays in enumerate(steps):
        total = np.zeros(SHAPE, np.float32)
        try:
            payloads = [session.encode(step, [array], inputs=handed(program))[0] for session, array in zip(sessions, arrays)]
        except cinch.InvalidArgumentError:
            return None
        for payload in payloads:
            sessions[0].decode_add(step, [payload], [total])
        updates.append([np.asarray(session.finish(step, [total.copy()], inputs=handed(program))[0]) for session in sessions][0])
    return updates


def synchronised(program, plan, steps):
    """Updates of all steps, or None where the plan does not take the program."""
    world = len(steps[0])
    transports = cinch.Transport.loopback(world)
    tensors = [cinch.SyncTensor("w", SHAPE, program)]
    with ThreadPoolExecutor(world) as ranks:
        try:
            opened = list(ranks.map(lambda rank: cinch.Synchronizer(transports[rank], tensors, plan=plan, threads=1, timeout=60), range(world)))
        except (cinch.InvalidArgumentError, cinch.CancelledError):
            return None
        updates = []
        for step, arrays in enumerate(steps):
            own = [[array.copy()] for array in arrays]
            list(ranks.map(lambda rank: opened[rank].step(step, own[rank], inputs=handed(program)), range(world)))
            updates.append(own[0][0])
        for each in opened:
            each.close()
    return updates


def narrowed(array, dtype):
    """(values, what a file of `dtype` holds of them)"""
    if dtype == "f16":
        return array.astype(np.float16).astype(np.float32), array.astype(np.float16)
    if dtype == "bf16":
        upper = array.view(np.uint32) >> 16
        return (upper << 16).astype(np.uint32).view(np.float32), upper.astype(np.uint16)
    return array, array


def by_command(expression, plan, device, dtype, arrays, *words):
    """The update of the last of three steps with the same gradients, or None where the plan does not take the program."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, f"{rank}.npy") for rank in range(len(arrays))]
        for file, array in zip(files, arrays):
            np.save(file, narrowed(array, dtype)[1])
        command = [COMMAND, "sync", expression, "--input", *files, "--plan", plan, "--steps", "3", "--output", os.path.join(folder, "u.npy"), *words]
        command += ["--device", device, *(["--dtype", "bf16"] if dtype == "bf16" else []), *(["--servers", "0"] if plan == "ps" else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 1 and "does not take the plan" in done.stderr:
            return None
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
        return np.load(os.path.join(folder, "u.npy"))


class Combinations(TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.programs = programs()

    def chosen(self, number):
        return self.programs if IS_LONG else random.Random(3).sample(self.programs, number)

    def test_plans_give_what_sessions_give(self):
        num_compared = 0
        for expression in self.chosen(16):
            program = cinch.compile(expression)
            for world in (2, 4) if IS_LONG else (3,):
                steps = [gradients(world, step) for step in range(STEPS)]
                wanted = gathered(program, steps) or synchronised(program, "allgather", steps)
                total = np.sum(np.asarray(wanted, np.float64), axis=0)
                for plan in PLANS:
                    updates = synchronised(program, plan, steps)
                    with self.subTest(program=expression, plan=plan, world=world):
                        if plan == "allgather":
                            self.assertSameBits(np.asarray(updates), np.asarray(wanted))
                        if updates is None or expression == "variance_based" and plan != "allreduce":  # whose sums take one percent of top-k
                            continue
                        found = np.sum(np.asarray(updates, np.float64), axis=0)
                        lengths = np.linalg.norm(found), np.linalg.norm(total)
                        self.assertGreater(np.vdot(found, total), LEAST_COSINE * lengths[0] * lengths[1])
                        self.assertTrue(1 / LARGEST_FACTOR < lengths[0] / lengths[1] < LARGEST_FACTOR, lengths)
                        num_compared += 1
        self.assertGreater(num_compared, 70)

    def test_the_command_gives_the_bits_of_the_interface(self):
        axes = ([each for each in self.programs if not cinch.compile(each).inputs], PLANS, ("cpu", "emulated"), ("f32", "f16", "bf16"), (1, 2, 3, 4, 5))
        draw = random.Random(7)
        rows = [(program, plan, *(draw.choice(axis) for axis in axes[2:])) for program, plan in itertools.product(*axes[:2])]
        for expression, plan, device, dtype, world in rows if IS_LONG else draw.sample(rows, 20):
            with self.subTest(program=expression, plan=plan, device=device, dtype=dtype, world=world):
                arrays = gradients(world, 0)
                found = by_command(expression, plan, device, dtype, arrays)
                wanted = synchronised(cinch.compile(expression), plan, [[narrowed(array, dtype)[0] for array in arrays]] * 3)
                self.assertEqual(found is None, wanted is None)
                if found is not None:
                    self.assertSameBits(found, wanted[-1])

    def test_sums_of_machines_have_the_elements_that_ranks_draw(self):
        for expression in ("randomk", "randomk_block", "scale_unbiased(randomk)"):
            for world in (2, 4):
                with self.subTest(program=expression, world=world):
                    arrays = gradients(world, 0)
                    wanted = gathered(cinch.compile(expression), [arrays] * 3)[-1]
                    found = by_command(expression, "hierarchical", "cpu", "f32", arrays, "--machine-ranks", "2")
                    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


if __name__ == "__main__":
    unittest.main()
