"""Inputs of programs besides the gradient: sessions, ranks and plans, and what goes wrong, against numpy."""
import json
import os
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import cinch
import numpy as np
from support import TestCase, normal, run_command

# A state that follows the inputs, and a finish that sees them.
FED = """compressor fed {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  state seen: [f32; n] = 0
  wire { v: [f32; n] }
  encode(g: [f32; n]) {
    seen += lr * weights
    wire { v: g * weights + seen }
  }
  decode(w) { w.v }
  finish(sum) { sum / world + lr * weights }
}
"""
# Of gradients and weights of the same signs it is the mean, and the learning rate on top, where every rank, piece and sum has its own part of the
# weights. `finish` is no linear function of the sum; without it partial sums travel, too.
SIGNS = """compressor signs {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  wire { v: [f32; n] }
  encode(g: [f32; n]) { wire { v: abs(g) * weights } }
  decode(w) { w.v }
  finish(sum) { abs(sum / world) * weights + lr }
}
"""
PARTS = SIGNS.replace("  finish(sum) { abs(sum / world) * weights + lr }\n", "").replace("  input lr: f32 in (0, inf)\n", "")
# Where every payload is decoded and added, this is the mean.
WEIGHTED = """compressor weighted {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  wire { v: [f32; n] }
  encode(g: [f32; n]) { wire { v: g * weights * lr } }
  decode(w) { w.v }
  finish(sum) { sum / weights / (lr * world) }
}
"""
ROWS = SIGNS.replace("n]", "r, c]")
MET = """compressor met {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  sync(g: [f32; n]) { abs(allreduce(g * weights, mean)) * weights + lr }
}
"""


def weights_of(*shape, seed=7):
    """Far from zero and from one another, so that those of another place are noticed."""
    return (np.exp2(np.random.default_rng(seed).integers(-8, 9, shape)) * np.where(normal(*shape, seed=seed) < 0, -1, 1)).astype(np.float32)


def signs_of(shape, step):
    return np.where(normal(*shape, seed=step) < 0, -1, 1).astype(np.float32)


def gradient_of(shape, step, rank):
    """Of these signs, and at least 1 in magnitude."""
    return signs_of(shape, step) * (1 + np.abs(normal(*shape, seed=100 * step + rank + 50)))


def on_ranks(world, act):
    """act(rank, transport) on a thread for each rank; exceptions are results."""
    transports = cinch.Transport.loopback(world)

    def run(rank):
        try:
            return act(rank, transports[rank])
        except cinch.Error as error:
            transports[rank].close()
            return error

    with ThreadPoolExecutor(world) as ranks:
        return list(ranks.map(run, range(world)))


class Sessions(TestCase):
    def test_every_call_takes_what_it_is_given(self):
        session = cinch.compile(text=FED).session((300,), world=2, threads=1)
        seen = np.zeros(300, np.float32)
        for step in range(4):
            gradient, weights, lr = normal(300, seed=step), weights_of(300, seed=step), np.float32(0.5 / (step + 1))
            payload = session.encode(step, gradient, inputs={"lr": float(lr), "weights": weights})
            seen += lr * weights
            decoded = session.decode(step, payload)
            np.testing.assert_allclose(decoded, gradient * weights + seen, rtol=1e-6)
            np.testing.assert_allclose(session.finish(step, decoded), decoded / 2 + lr * weights, rtol=1e-6)

    def test_what_inputs_a_program_has(self):
        program = cinch.compile(text=FED)
        self.assertEqual(program.inputs["lr"], cinch.Input("lr", "f32", "(0, inf)", False))
        self.assertTrue(program.inputs["weights"].is_array)
        self.assertEqual((program.parameters, list(program.states)), ({}, ["seen"]))

    def test_weights_of_other_types(self):
        for program, size in ((FED, 65), (WEIGHTED, 65)):
            halves, whole = (cinch.compile(text=program).session(size, threads=1) for _ in range(2))
            weights = weights_of(size).astype(np.float16)
            gradient = normal(size)
            self.assertEqual(
                halves.encode(0, gradient, inputs={"lr": 1, "weights": weights}), whole.encode(0, gradient, inputs={"lr": 1, "weights": weights.astype(np.float32)})
            )

    def test_a_list_of_tensors_has_a_list_of_weights(self):
        sizes = [5, 1, 700]
        session = cinch.compile(text=FED).session(sizes, threads=2)
        gradients, weights = [normal(n, seed=n) for n in sizes], [weights_of(n, seed=n) for n in sizes]
        payloads = session.encode(0, gradients, inputs={"lr": 2, "weights": weights})
        for gradient, weight, decoded in zip(gradients, weights, session.decode(0, payloads)):
            np.testing.assert_allclose(decoded, gradient * weight + 2 * weight, rtol=1e-6)
        self.fails(cinch.InvalidArgumentError, "2 arrays of the input weights for 3 tensors", session.encode, 1, gradients, inputs={"lr": 1, "weights": weights[:2]})

    def test_mistakes_name_the_input_and_change_nothing(self):
        session = cinch.compile(text=FED).session(6, threads=1)
        good = {"lr": 0.5, "weights": weights_of(6)}
        session.encode(0, normal(6), inputs=good)
        states = session.states_save()
        invalid, range_ = cinch.InvalidArgumentError, cinch.OutOfRangeError
        for kind, words, inputs in (
            (invalid, "fed takes the input lr, a number, in every step: pass inputs={'lr': …}", None),
            (invalid, "fed takes the input weights, an array of the tensor's shape", {"lr": 1}),
            (invalid, "fed has no input wd: its inputs are lr, weights", {**good, "wd": 1}),
            (range_, "input lr = 0 is outside (0, inf)", {**good, "lr": 0}),
            (range_, "input lr = -1 is outside (0, inf)", {**good, "lr": -1}),
            (range_, "input lr = nan is not finite", {**good, "lr": float("nan")}),
            (range_, "input lr = inf is not finite", {**good, "lr": float("inf")}),
            (invalid, "input weights has shape (5,)", {**good, "weights": weights_of(5)}),
            (invalid, "input weights has elements of type float64", {**good, "weights": weights_of(6).astype(np.float64)}),
        ):
            with self.subTest(words):
                self.fails(kind, words, session.encode, 1, normal(6), inputs=inputs)
                self.assertEqual(session.states_save(), states)
        self.fails(invalid, "takes a gradient alone", cinch.compile("onebit").session(6).encode, 0, normal(6), inputs={"lr": 1})
        session.encode(1, normal(6), inputs=good)
        self.assertNotEqual(session.states_save(), states)

    def test_values_are_of_one_step(self):
        """A finish of another step than that of encode would take old weights."""
        session = cinch.compile(text=FED).session(6, threads=1)
        session.encode(0, normal(6), inputs={"lr": 1, "weights": weights_of(6)})
        session.finish(0, normal(6))
        self.fails(cinch.InvalidArgumentError, "the input lr has no value in step 1", session.finish, 1, normal(6))
        session.finish(1, normal(6), inputs={"lr": 1, "weights": weights_of(6)})

    def test_weights_that_are_not_finite_go_where_arithmetic_takes_them(self):
        session = cinch.compile(text=WEIGHTED).session(3, threads=1)
        weights = np.array([1, np.nan, np.inf], np.float32)
        payload = session.encode(0, np.ones(3, np.float32), inputs={"lr": 1, "weights": weights})
        np.testing.assert_array_equal(session.decode(0, payload), weights)

    def test_inputs_are_no_states(self):
        session = cinch.compile(text=WEIGHTED).session(1000, threads=1)
        session.encode(0, normal(1000), inputs={"lr": 1, "weights": weights_of(1000)})
        self.assertEqual(session.state_bytes, 0)
        self.assertLess(len(session.states_save()), 100)


class Devices(TestCase):
    def test_interpreter_cpu_and_gpu_agree(self):
        """By the command, which takes files."""
        with tempfile.TemporaryDirectory() as folder:
            def put(name, array):
                path = os.path.join(folder, name)
                np.save(path, array)
                return path

            file = os.path.join(folder, "fed.cinch")
            with open(file, "w", encoding="utf-8") as text:
                text.write(FED)
            gradients = [put(f"g{i}.npy", normal(777, seed=i)) for i in range(2)]
            weights = ",".join(put(f"w{i}.npy", weights_of(777, seed=i)) for i in range(2))
            payloads = []
            for where in (["--interpret"], ["--threads", 1], ["--device", "emulated"]):
                payload = os.path.join(folder, "payload")
                run_command("run", file, "--input", *gradients, "--with", "lr=0.5,0.25", f"weights={weights}", "--payload", payload, *where)
                with open(payload, "rb") as read:
                    payloads.append(read.read())
            self.assertEqual(payloads[0], payloads[1])
            self.assertEqual(payloads[0], payloads[2])
            values = np.frombuffer(payloads[0][-777 * 4 :], np.float32)
            w = [weights_of(777, seed=i) for i in range(2)]
            np.testing.assert_allclose(values, normal(777, seed=1) * w[1] + np.float32(0.5) * w[0] + np.float32(0.25) * w[1], rtol=1e-6)


class Plans(TestCase):
    def run_plan(self, world, plan, text, shapes, steps=3, **options):
        def act(rank, transport):
            program = cinch.compile(text=text)
            tensors = [cinch.SyncTensor(f"w{i}", shape, program) for i, shape in enumerate(shapes)]
            with cinch.Synchronizer(transport, tensors, plan=plan, threads=1, timeout=60, **options) as sync:
                found = []
                for step in range(steps):
                    arrays = [gradient_of(shape, step, rank) for shape in shapes]
                    weights = [signs_of(shape, step) for shape in shapes]
                    inputs = {"weights": weights}
                    if "lr" in program.inputs:
                        inputs["lr"] = 0.25 / (step + 1 + rank)  # that of rank 0 holds
                    sync.step(step, arrays, inputs=inputs)
                    found.append(arrays)
                return found

        found = on_ranks(world, act)
        for each in found:
            self.assertNotIsInstance(each, Exception, each)
        for step in range(steps):
            for i, shape in enumerate(shapes):
                mean = np.mean([gradient_of(shape, step, rank) for rank in range(world)], axis=0)
                on_top = 0.25 / (step + 1) if "input lr" in text else 0
                np.testing.assert_allclose(found[0][step][i], mean + on_top, rtol=1e-5)
                for rank in range(1, world):
                    self.assertSameBits(found[rank][step][i], found[0][step][i])

    def test_every_piece_and_sum_has_its_own_part(self):
        for world, plan in ((1, "allgather"), (2, "two_shot"), (3, "two_shot"), (4, "hierarchical"), (2, "allgather"), (3, "ring"), (4, "tree"), (2, "ps")):
            with self.subTest(world=world, plan=plan):
                options = {"machine_ranks": 2} if plan == "hierarchical" else {}
                text = PARTS if plan in ("ring", "tree", "hierarchical") else SIGNS
                self.run_plan(world, plan, text, [(3000,), (1,), (17, 30)], piece_bytes=1024, **options)

    def test_matrices_and_protocols(self):
        for world in (1, 3):
            self.run_plan(world, "allgather", ROWS, [(17, 30), (4, 5)], piece_bytes=1024)
            self.run_plan(world, "two_shot", ROWS, [(17, 30)], piece_bytes=1024)
            self.run_plan(world, None, MET, [(500,), (3,)])

    def test_the_emulated_gpu(self):
        """The command makes weights up, the same on all ranks; what it compares with is the mean."""
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(2):
                np.save(os.path.join(folder, f"g{rank}.npy"), normal(900, seed=rank))
            for name, text, plan in (("weighted", WEIGHTED, "allgather"), ("mean", MET.replace("abs(", "(").replace("* weights + lr", "/ weights"), "auto")):
                file = os.path.join(folder, f"{name}.cinch")
                with open(file, "w", encoding="utf-8") as to:
                    to.write(text)
                plans = [] if plan == "auto" else ["--plan", plan]
                told = json.loads(run_command("sync", file, "--input", os.path.join(folder, "g%r.npy"), "--device", "emulated", "--steps", 2, "--json", *plans))
                self.assertTrue(told["same_bits"])
                self.assertLess(told["relative_error"], 1e-3)

    def test_one_rank_without_an_input_fails_on_all(self):
        good = {"lr": 1, "weights": [weights_of(50)]}
        for words, bad in (
            ("the input lr has no value", {"weights": [weights_of(50)]}),
            ("weighted takes the input weights, an array of the tensor's shape: hand it over in every step", {"lr": 1}),
        ):
            def act(rank, transport):
                program = cinch.compile(text=WEIGHTED)
                sync = cinch.Synchronizer(transport, [cinch.SyncTensor("w", (50,), program)], plan="allgather", threads=1, timeout=20)
                sync.step(0, [normal(50)], inputs=good)
                sync.step(1, [normal(50)], inputs=bad if rank == 1 else good)

            with self.subTest(words):
                failed = on_ranks(3, act)
                self.assertTrue(all(isinstance(each, cinch.Error) for each in failed))
                self.assertIn(words, str(failed[1]))

    def test_values_are_checked_before_a_step(self):
        def act(rank, transport):
            program = cinch.compile(text=WEIGHTED)
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("w", (50,), program)], plan="allgather", threads=1, timeout=20)
            for inputs, kind, words in (
                ({"lr": 0}, cinch.OutOfRangeError, "input lr = 0 is outside (0, inf)"),
                ({"lr": float("nan")}, cinch.OutOfRangeError, "input lr = nan is not finite"),
                ({"weights": [weights_of(49)]}, cinch.InvalidArgumentError, "input weights of w has shape (49,)"),
                ({"wd": 1}, cinch.InvalidArgumentError, "no program of this synchronizer has an input wd"),
            ):
                self.fails(kind, words, sync.give, inputs)
            array = normal(50, seed=rank)
            sync.step(0, [array], inputs={"lr": 1, "weights": [weights_of(50)]})
            return array

        found = on_ranks(2, act)
        np.testing.assert_allclose(found[0], (normal(50, seed=0) + normal(50, seed=1)) / 2, rtol=1e-3, atol=1e-4)

    def test_exact_tensors_need_none(self):
        def act(rank, transport):
            program = cinch.compile(text=WEIGHTED)
            tensors = [cinch.SyncTensor("w", (50,), program), cinch.SyncTensor("b", (3,))]
            sync = cinch.Synchronizer(transport, tensors, plan="allgather", threads=1, timeout=20)
            arrays = [normal(50, seed=rank), normal(3, seed=rank)]
            sync.step(0, arrays, inputs={"lr": 1, "weights": [weights_of(50), None]})
            return arrays

        found = on_ranks(2, act)
        np.testing.assert_allclose(found[0][1], (normal(3, seed=0) + normal(3, seed=1)) / 2, rtol=1e-6)


class Papers(TestCase):
    """Over ranks and steps, beside the recurrence of the paper; and how far training gets."""

    def train(self, expression, world, steps, rate_of, update_of=None, n=64, **options):
        """A least-squares problem whose data the ranks share. Returns the loss after each step, and what `update_of` is shown."""
        design = normal(world, 40, n, seed=3) / np.sqrt(n)
        goal = normal(world, 40, seed=4)
        program = cinch.compile(expression)
        transports = cinch.Transport.loopback(world)
        with ThreadPoolExecutor(world) as ranks:
            def opened_on(rank):
                return cinch.Synchronizer(transports[rank], [cinch.SyncTensor("w", (n,), program)], threads=1, timeout=60, **options)

            opened = list(ranks.map(opened_on, range(world)))
            weights, losses = np.zeros(n, np.float32), []
            for step in range(steps):
                gradients = [(design[r].T @ (design[r] @ weights - goal[r]) / 40).astype(np.float32) for r in range(world)]
                arrays, lr = [gradient.copy() for gradient in gradients], rate_of(step)
                given = {name: lr if name == "lr" else [weights.copy()] for name in program.inputs}
                list(ranks.map(lambda rank: opened[rank].step(step, [arrays[rank]], inputs=given), range(world)))
                for array in arrays[1:]:
                    self.assertSameBits(array, arrays[0])
                if update_of is not None:
                    update_of(step, lr, weights, gradients, arrays[0])
                weights = weights - np.float32(lr) * arrays[0]
                losses.append(sum(np.square(design[r] @ weights - goal[r]).mean() for r in range(world)) / world)
            for each in opened:
                each.close()
        return losses

    def dense(self, world, steps, rate_of):
        return self.train("none", world, steps, rate_of, plan="allgather")

    def test_intsgd(self):
        beta, epsilon, n = 0.9, 1e-8, 64
        for world in (1, 3):
            r, before = None, None

            def shown(step, lr, weights, gradients, update):
                nonlocal r, before
                if step == 0:
                    np.testing.assert_allclose(update, np.mean(gradients, axis=0), rtol=1e-5, atol=1e-7)
                else:
                    moved = np.square(weights.astype(np.float64) - before).sum()
                    r = moved if step == 1 else beta * r + (1 - beta) * moved
                    alpha = np.sqrt(n) / np.sqrt(2 * world * r / lr**2 + epsilon**2)
                    units = update.astype(np.float64) * alpha * world
                    np.testing.assert_allclose(units, np.round(units), atol=2e-3)  # a sum of integers
                    most = sum(np.abs(np.clip(alpha * gradient, -127, 127)) for gradient in gradients).max()
                    wanted = sum(np.clip(alpha * gradient.astype(np.float64), -127, 127) for gradient in gradients)
                    self.assertLess(np.abs(units - wanted).max(), world + 1e-4 * most)
                before = weights.astype(np.float64)

            def rate(step):
                return 0.5 if step < 20 else 0.25

            losses = self.train("intsgd", world, 60, rate, shown)
            dense = self.dense(world, 60, rate)
            self.assertLess(losses[-1], dense[-1] * 1.05)

    def test_error_feedback_that_follows_the_learning_rate(self):
        """dist-EF-SGDM without momentum: p = g + (lr before / lr) e."""
        kept = 8
        for world in (1, 3):
            errors, last = [np.zeros(64) for _ in range(world)], [None]

            def shown(step, lr, weights, gradients, update):
                total = np.zeros(64)
                for rank, gradient in enumerate(gradients):
                    p = gradient + (0 if last[0] is None else last[0] / lr) * errors[rank]
                    places = np.argsort(-np.abs(p), kind="stable")[:kept]
                    sent = np.zeros(64)
                    sent[places] = p[places]
                    total += sent
                    errors[rank] = p - sent
                last[0] = lr
                np.testing.assert_allclose(update, total / world, rtol=1e-3, atol=1e-5)

            def rate(step):
                return 0.4 if step < 30 else 0.04

            losses = self.train("ef_lr(topk(ratio: 0.125))", world, 80, rate, shown, plan="allgather")
            dense = self.dense(world, 80, rate)
            self.assertLess(losses[-1], dense[-1] * 1.25)

    def test_onebit_lamb(self):
        freeze, b1, b2, b3, eps, n = 8, 0.9, 0.999, 0.9, 1e-8, 64
        for world in (1, 2):
            m, v, fresh = np.zeros(n), np.zeros(n), np.zeros(n)
            residual, owed = [np.zeros(n) for _ in range(world)], [np.zeros(n // world) for _ in range(world)]
            trust, factor = 0.0, 1.0

            def signs(x):
                return np.where(x < 0, -1, 1) * np.abs(x).mean()

            def shown(step, lr, weights, gradients, update):
                nonlocal m, v, fresh, trust, factor
                if step < freeze:
                    mean = np.mean(gradients, axis=0, dtype=np.float64)
                    m, v = b1 * m + (1 - b1) * mean, b2 * v + (1 - b2) * mean**2
                    fresh = v
                    direction = m / (np.sqrt(v) + eps)
                    size, length = np.linalg.norm(weights.astype(np.float64)), np.linalg.norm(direction)
                    ratio = np.clip(size / length, 0, 10) if length > 0 else 0.0
                    trust = b3 * trust + (1 - b3) * max(ratio, 0.01)
                    wanted = (max(ratio, 0.01) if ratio > 0 else 1) * direction
                else:
                    sent = []
                    for rank, gradient in enumerate(gradients):
                        p = b1 * m + (1 - b1) * gradient.astype(np.float64) + residual[rank]
                        sent.append(signs(p))
                        residual[rank] = p - sent[-1]
                    whole = np.mean(sent, axis=0).reshape(world, -1)
                    parts = []
                    for owner in range(world):
                        q = whole[owner] + owed[owner]
                        parts.append(signs(q))
                        owed[owner] = q - parts[-1]
                    new = np.concatenate(parts)
                    seen = (new - b1 * m) / (1 - b1)
                    fresh = b2 * fresh + (1 - b2) * seen**2
                    m = new
                    change = np.clip(((np.sqrt(v) + eps) / (np.sqrt(fresh) + eps)).max(), 0.5, 4)
                    factor = np.clip(change, 0.9 * factor, 1.1 * factor)
                    wanted = trust * factor * m / (np.sqrt(v) + eps)
                np.testing.assert_allclose(update, wanted, rtol=2e-2, atol=1e-4)

            def rate(step):
                return 0.02

            losses = self.train(f"onebit_lamb(freeze: {freeze})", world, 40, rate, shown)
            self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    unittest.main()
