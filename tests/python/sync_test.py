"""Synchronizers against means and sums that NumPy computes."""
import json
import logging
import os
import tempfile
import threading
import unittest
from dataclasses import replace

import numpy as np
from support import TestCase, normal

import cinch


def on_ranks(world, body, transports=None):
    """Runs body(rank, transport) on a thread for each rank; raises the first exception, by rank."""
    transports = transports or cinch.Transport.loopback(world)
    failures = [None] * world

    def run(rank):
        try:
            body(rank, transports[rank])
        except BaseException as failure:
            failures[rank] = failure
            transports[rank].close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        if failure is not None:
            raise failure


class Synchronizing(TestCase):
    def test_exact_tensors_become_means(self):
        shapes = [(3, 5), (700,), (0,), ()]

        def body(rank, transport):
            gradients = [normal(*shape, seed=10 * rank + i) for i, shape in enumerate(shapes)]
            gradients = [np.asarray(each, np.float32).reshape(shape) for each, shape in zip(gradients, shapes)]
            tensors = [cinch.SyncTensor(f"t{i}", shape) for i, shape in enumerate(shapes)]
            sync = cinch.Synchronizer(transport, tensors, threads=1)
            sync.step(0, gradients)
            for i, shape in enumerate(shapes):
                wanted = sum(np.asarray(normal(*shape, seed=10 * r + i), np.float32).reshape(shape) for r in range(3)) / np.float32(3)
                self.assertSameBits(gradients[i], wanted.astype(np.float32))

        on_ranks(3, body)

    def test_a_step_in_parts_sums_what_was_chosen(self):
        program = cinch.compile("topk", ratio=0.5)
        shape = (5000,)

        def largest_half(gradient):
            order = np.argsort(-np.abs(gradient), kind="stable")
            return np.where(np.isin(np.arange(gradient.size), order[: gradient.size // 2]), gradient, np.float32(0))

        def body(rank, transport):
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("a", shape, program), cinch.SyncTensor("b", (9,))], plan="allgather")
            for step in range(3):
                gradient, bias = normal(*shape, seed=rank + 2 * step), np.full(9, rank + 1, np.float32)
                sync.begin(step, scale=2.0, is_sum=True, measures_errors=True)
                for tensor in ([0, 1], [1, 0])[rank]:
                    sync.ready(tensor, (gradient, bias)[tensor])
                sync.wait(1)
                self.assertFalse(sync.finish())
                self.assertTrue(sync.is_done(0))
                np.testing.assert_array_equal(bias, np.full(9, 3, np.float32))
                exact = [normal(*shape, seed=each + 2 * step) for each in range(2)]
                self.assertSameBits(gradient, largest_half(exact[0]) + largest_half(exact[1]))
                error = np.linalg.norm((gradient - sum(exact)).astype(float)) / np.linalg.norm(sum(exact).astype(float))
                report = sync.report()
                self.assertAlmostEqual(report["tensors"][0]["error"], error, places=6)
                self.assertEqual(report["tensors"][1]["error"], 0)
            self.assertIn("traceEvents", sync.trace())
            self.assertGreater(transport.sent_bytes, 0)

        on_ranks(2, body)

    def test_tensors_have_plans_of_their_own(self):
        """Each has the bits that it has where its plan is that of all tensors, over several steps of programs with states."""
        programs = {"a": cinch.compile("error_feedback(onebit)"), "b": cinch.compile("topk", ratio=0.1), "c": None, "d": cinch.compile("qsgd")}
        shapes = {"a": (90, 70), "b": (8000,), "c": (33, 9), "d": (70, 60)}
        own = {"a": ("allgather", 0), "b": ("two_shot", 8192), "c": ("ring", 0), "d": (None, 4096)}

        def trained(rank, transport, tensors, **settings):
            told = []
            with cinch.Synchronizer(transport, tensors, threads=1, **settings) as sync:
                for step in range(3):
                    arrays = [normal(*tensor.shape, seed=100 * step + 10 * rank + i) for i, tensor in enumerate(tensors)]
                    arrays = [np.asarray(array, np.float32).reshape(tensor.shape) for array, tensor in zip(arrays, tensors)]
                    sync.step(step, arrays)
                    told.append(arrays)
            return told

        def body(rank, transport):
            tensors = [cinch.SyncTensor(name, shapes[name], programs[name]) for name in shapes]
            mixed = trained(rank, transport, [replace(each, plan=own[each.name][0], piece_bytes=own[each.name][1]) for each in tensors], plan="hierarchical")
            for place, tensor in enumerate(tensors):
                plan, piece_bytes = own[tensor.name]
                alone = trained(rank, transport, tensors, plan=plan or "hierarchical", piece_bytes=piece_bytes)
                for step in range(3):
                    self.assertSameBits(mixed[step][place], alone[step][place])

        on_ranks(3, body)

    def test_states_of_partial_sums_go_with_the_tensor_s_plan(self):
        program = cinch.compile("dgc", ratio=0.1)
        of_ranks, all_saved = [b""] * 4, threading.Barrier(4)

        def body(rank, transport):
            def opened(plan):
                return cinch.Synchronizer(transport, [cinch.SyncTensor("a", (600,), program, plan=plan), cinch.SyncTensor("b", (300,), program, plan="two_shot")], threads=1)

            def step(sync, number):
                arrays = [normal(size, seed=10 * number + rank) for size in (600, 300)]
                sync.step(number, arrays)
                return arrays

            with opened("ring") as sync:
                step(sync, 0)
                saved = sync.states_save()
                wanted = step(sync, 1)
            with opened("ring") as sync:
                self.assertEqual(sync.states_load(saved).notes, "")
                for array, other in zip(step(sync, 1), wanted):
                    self.assertSameBits(array, other)
            of_ranks[rank] = saved
            all_saved.wait()
            with opened("tree") as sync:
                self.assertIn("partial sums of routes" if rank == 2 else "", sync.states_load(of_ranks).notes)

        on_ranks(4, body)

    def test_plans_of_tensors_that_cannot_be(self):
        def body(rank, transport):
            for plan, wanted in (("auto", "one for all"), ("reduce_scatter", "one for all"), ("two_shot", "there is no plan rung")):
                tensors = [cinch.SyncTensor("a", (8,), plan="ring" if plan != "two_shot" else "rung"), cinch.SyncTensor("b", (8,))]
                self.fails(cinch.InvalidArgumentError, wanted, cinch.Synchronizer, transport, tensors, plan=plan)

        on_ranks(1, body)

    def test_auto_behind_a_backward_pass(self):
        """Tensors stand in the order of a forward pass, so the last is ready first."""

        def body(rank, transport):
            tensors = [cinch.SyncTensor(f"t{i}", (size,)) for i, size in enumerate((70000, 9, 5000))]
            with cinch.Synchronizer(transport, tensors, plan="auto", threads=1, ready_seconds=[0.003, 0.002, 0.001]) as sync:
                gradients = [np.full(size, rank + i, np.float32) for i, size in enumerate((70000, 9, 5000))]
                sync.step(0, gradients)
            for i, gradient in enumerate(gradients):
                self.assertSameBits(gradient, np.full(gradient.size, i + 0.5, np.float32))

        on_ranks(2, body)
        for wrong, why in (([], "0 times of 1 tensors"), ([-1.0], "0 to 3600 seconds"), ([float("nan")], "0 to 3600 seconds")):
            with self.assertRaisesRegex(cinch.InvalidArgumentError, why):
                cinch.Synchronizer(cinch.Transport.loopback(1)[0], [cinch.SyncTensor("t", (5,))], plan="auto", ready_seconds=wrong)

    def test_a_plan_file_is_followed_or_refused(self):
        program = cinch.compile("fp16")
        plan = {"file": "cinch plan", "format": 1, "ranks": 2, "ranks_per_machine": 1, "programs": [{"program": "fp16", "fingerprint": program.fingerprint}], "made_from": {},
                "routes": [{"plan": "two_shot", "piece_bytes": 4096, "lengths": "auto"}, {"plan": "tree", "piece_bytes": 64, "lengths": "auto"}], "predicted_seconds": 0,
                "tensors": [{"name": "b", "rows": 40, "columns": 1, "program": None, "route": 1}, {"name": "a", "rows": 50, "columns": 60, "program": 0, "route": 0}]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(plan, file)

            def body(rank, transport):
                tensors = [cinch.SyncTensor("a", (50, 60), program), cinch.SyncTensor("b", (40,))]
                with cinch.Synchronizer(transport, tensors, plan=path, threads=1) as sync:
                    self.assertIn("routes", sync.plan)
                    gradients = [np.full((50, 60), 2.0 * rank, np.float32), np.full(40, 4.0 + rank, np.float32)]
                    sync.step(0, gradients)
                self.assertSameBits(gradients[0], np.full((50, 60), 1, np.float32))
                self.assertSameBits(gradients[1], np.full(40, 4.5, np.float32))

            on_ranks(2, body)
            with self.assertRaisesRegex(cinch.InvalidArgumentError, r"plan.json: the plan is for something else \(3 differences\): 1 ranks, not 2; a is sent as f32, not fp16"):
                cinch.Synchronizer(cinch.Transport.loopback(1)[0], [cinch.SyncTensor("a", (50, 60))], plan=path)

    def test_auto_takes_a_program_that_one_rank_cannot_run(self):
        program = cinch.compile("second", text="compressor second { sync(g: [f32; n]) { allreduce(g, sum) + allgather(g)[1] } }")

        def body(rank, transport):
            with cinch.Synchronizer(transport, [cinch.SyncTensor("w", (300,), program)], plan="auto", threads=1) as sync:
                array = np.full(300, rank + 1, np.float32)
                sync.step(0, [array])
                self.assertSameBits(array, np.full(300, 5, np.float32))

        on_ranks(2, body)

    def test_updates_of_sync_bodies_in_parts_are_compared(self):
        # Ranks get one part each, which they take for the update.
        text = "compressor parts { sync(g: [f32; n]) { reduce_scatter(reshape(concat(g, 2 * g), world, n)) } }"
        program = cinch.compile("parts", text=text)

        def body(rank, transport):
            with cinch.Synchronizer(transport, [cinch.SyncTensor("w", (3000,), program)], plan="allgather", threads=1) as sync:
                self.fails(cinch.Error, "ranks have different updates", sync.step, 0, [np.ones(3000, np.float32)])

        on_ranks(2, body)

    def test_ranks_exchange_within_and_between_machines(self):
        text = """compressor near { sync(g: [f32; n]) {
            let here = allreduce(g, sum, group: machine_ranks)
            allreduce(here, max, group: world / machine_ranks, stride: machine_ranks) } }"""
        program = cinch.compile("near", text=text)
        gradients = [np.array([rank, 10.0 - rank, -rank], np.float32) for rank in range(4)]

        def body(rank, transport):
            tensors = [cinch.SyncTensor("w", (3,), program)]
            with cinch.Synchronizer(transport, tensors, machine_ranks=2, threads=1) as sync:
                update = gradients[rank].copy()
                sync.step(0, [update])
                np.testing.assert_array_equal(update, np.maximum(gradients[0] + gradients[1], gradients[2] + gradients[3]))
            with cinch.Synchronizer(transport, tensors, threads=1) as sync:
                update = gradients[rank].copy()
                sync.step(0, [update])
                np.testing.assert_array_equal(update, sum(gradients))

        on_ranks(4, body)

    def test_machines_that_do_not_hold_all_ranks(self):
        near = cinch.compile("near", text="compressor near { sync(g: [f32; n]) { allreduce(allreduce(g, sum, group: machine_ranks), mean) } }")
        threes = cinch.compile("threes", text="compressor threes { sync(g: [f32; n]) { allreduce(allreduce(g, sum, group: 3), mean) } }")

        def body(rank, transport):
            tensors = [cinch.SyncTensor("w", (3,), near)]
            self.fails(cinch.InvalidArgumentError, "4 ranks are not machines of 3 each", cinch.Synchronizer, transport, tensors, machine_ranks=3, threads=1)
            tensors = [cinch.SyncTensor("w", (3,), threes)]
            self.fails(cinch.Error, "groups of 3 ranks, 1 apart, do not have all of 4 ranks", cinch.Synchronizer, transport, tensors, threads=1)

        on_ranks(4, body)

    def test_reduce_scatter_gives_each_rank_its_part(self):
        feedback = cinch.compile("error_feedback(topk(ratio: 0.1))")
        shape, ends = (10, 7), (20, 20, 70)
        parts = [(0, 20), (20, 20), (20, 70)]

        def body(rank, transport):
            exact = [cinch.SyncTensor("cut", shape, None, 0, ends), cinch.SyncTensor("equal", (8,))]
            sync = cinch.Synchronizer(transport, exact, plan="reduce_scatter", threads=1)
            gradients = [[normal(*shape, seed=each), np.full(8, each, np.float32)] for each in range(3)]
            mean = sum(each[0] for each in gradients) / np.float32(3)
            begin, end = parts[rank]
            updates = [np.empty(end - begin, np.float32), np.empty((2, 3, 3)[rank], np.float32)]
            sync.step(0, gradients[rank], updates)
            self.assertSameBits(updates[0], mean.reshape(-1)[begin:end])
            self.assertTrue((updates[1] == 1).all())
            self.fails(cinch.InvalidArgumentError, "pass updates", sync.step, 1, gradients[rank])

            # Error feedback makes up for what is left out: updates of the same gradient add up to it.
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("cut", shape, feedback, 0, ends)], plan="reduce_scatter", threads=1)
            sums = np.zeros(end - begin)
            for step in range(400):
                sync.step(step, gradients[rank][:1], updates[:1])
                sums += updates[0]
            np.testing.assert_allclose(sums / 400, mean.reshape(-1)[begin:end], atol=0.1)
            sync.begin(400)
            self.fails(cinch.InvalidArgumentError, "has shape", sync.ready, 0, gradients[rank][0], gradients[rank][0])
            self.fails(cinch.InvalidArgumentError, "pass updates", sync.ready, 0, gradients[rank][0])
            with self.assertRaises(cinch.Error):
                sync.finish()

        on_ranks(3, body)

    def test_parts_that_do_not_fit_are_errors(self):
        transport = cinch.Transport.loopback(1)[0]
        for ends, plan, words in (((4,), "two_shot", "does not take"), ((3,), "reduce_scatter", "do not cut 4"), ((2, 4), "reduce_scatter", "parts of 1 ranks")):
            tensors = [cinch.SyncTensor("w", (4,), part_ends=ends)]
            self.fails(cinch.InvalidArgumentError, words, cinch.Synchronizer, transport, tensors, plan=plan)

    def test_states_go_on_where_they_were(self):
        program = cinch.compile("topk", ratio=0.1)
        feedback = cinch.compile("error_feedback(topk(ratio: 0.1))")
        shape = (1000,)
        results = {}

        def run(name, steps, saved=None):
            def body(rank, transport):
                sync = cinch.Synchronizer(transport, [cinch.SyncTensor("w", shape, feedback), cinch.SyncTensor("v", shape, program)])
                if saved:
                    sync.states_load(saved[rank])
                for step in steps:
                    tensors = [normal(*shape, seed=100 * step + rank), normal(*shape, seed=7 + step)]
                    sync.step(step, tensors)
                results[name, rank] = tensors, sync.states_save()

            on_ranks(2, body)
            return [results[name, rank][1] for rank in range(2)]

        run("whole", range(4))
        run("rest", range(2, 4), run("first", range(2)))
        for rank in range(2):
            self.assertEqual(results["whole", rank][1], results["rest", rank][1])
            for a, b in zip(results["whole", rank][0], results["rest", rank][0]):
                self.assertSameBits(a, b)

    def test_a_late_rank_is_told_of_in_the_log(self):
        has_told = threading.Event()

        class Lines(logging.Handler):
            def emit(self, record):
                lines.append(record.getMessage())
                has_told.set()

        def body(rank, transport):
            # Rank 0 tells after a tenth of the time-out.
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("a", (9,))], plan="allgather", timeout=4.0 if rank == 0 else 60.0)
            if rank == 1:
                self.assertTrue(has_told.wait(60))
            sync.step(5, [np.ones(9, np.float32)])

        lines, handler = [], Lines()
        logger = logging.getLogger("cinch")
        logger.addHandler(handler)
        try:
            on_ranks(2, body)
        finally:
            logger.removeHandler(handler)
        self.assertRegex(lines[0], r"rank 0 has waited [0-9.]+ s for rank 1 \(step 5, all_gather of a\), and gives up in [0-9.]+ s")

    def test_mistakes_are_told_on_all_ranks(self):
        def body(rank, transport):
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("w", (4,)), cinch.SyncTensor("v", (2,))], timeout=5)
            sync.begin(0)
            with self.assertRaises(cinch.InvalidArgumentError):
                sync.begin(0)
            sync.ready(0, np.ones(4, np.float32))
            if rank == 0:
                sync.ready(1, np.ones(2, np.float32))
            with self.assertRaisesRegex(cinch.Error, "tensor v is not ready"):
                sync.finish()
            sync.close()
            with self.assertRaisesRegex(cinch.InvalidArgumentError, "closed"):
                sync.begin(1)

        on_ranks(2, body)

    def test_arrays_are_held_until_the_step_ends(self):
        def body(rank, transport):
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor(f"t{i}", (1000,)) for i in range(20)])
            updates = [np.zeros(1000, np.float32) for _ in range(20)]
            sync.begin(0)
            for i in range(20):
                sync.ready(i, np.full(1000, i + rank, np.float32), updates[i])
            sync.finish()
            for i in range(20):
                self.assertSameBits(updates[i], np.full(1000, i + 0.5, np.float32))

        on_ranks(2, body)

    def test_what_is_set_during_a_step_holds_from_the_next_on(self):
        program = cinch.compile("topk", ratio=0.5)

        def body(rank, transport):
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("a", (1000,), program)], plan="allgather")
            counts = []
            for step in range(4):
                gradient = normal(1000, seed=3)
                sync.begin(step)
                if step == 1:
                    sync.set(program, "ratio", 0.1)
                sync.ready(0, gradient)
                sync.finish()
                counts.append(np.count_nonzero(gradient))
            self.assertEqual(counts, [500, 500, 100, 100])
            with self.assertRaisesRegex(cinch.InvalidArgumentError, "not a program"):
                sync.set(cinch.compile("onebit"), "ratio", 1)

        on_ranks(2, body)

    def test_a_context_closes_it(self):
        def body(rank, transport):
            with cinch.Synchronizer(transport, [cinch.SyncTensor("a", (100,))]) as sync:
                sync.step(0, [np.ones(100, np.float32)])
            sync.close()
            with self.assertRaisesRegex(cinch.InvalidArgumentError, "the synchronizer is closed"):
                sync.step(1, [np.ones(100, np.float32)])
            with self.assertRaises(ZeroDivisionError), cinch.Synchronizer(transport, [cinch.SyncTensor("a", (100,))]) as again:
                raise ZeroDivisionError
            with self.assertRaisesRegex(cinch.InvalidArgumentError, "the synchronizer is closed"):
                again.states_save()

        on_ranks(2, body)

    def test_a_tensor_that_is_refused_fails_the_step_at_once(self):
        def body(rank, transport):
            sync = cinch.Synchronizer(transport, [cinch.SyncTensor("a", (100,))], timeout=60)
            sync.begin(0)
            if rank == 0:
                with self.assertRaisesRegex(cinch.InvalidArgumentError, "not dense"):
                    sync.ready(0, np.zeros(200, np.float32)[::2])
            else:
                sync.ready(0, np.zeros(100, np.float32))
            with self.assertRaises(cinch.Error):
                sync.finish()

        on_ranks(2, body)

    def test_ranks_that_differ_all_get_an_error(self):
        def body(rank, transport):
            with self.assertRaisesRegex(cinch.InvalidArgumentError, "rank"):
                cinch.Synchronizer(transport, [cinch.SyncTensor("w", (4 + rank,))], timeout=5)

        on_ranks(2, body)


if __name__ == "__main__":
    unittest.main()
