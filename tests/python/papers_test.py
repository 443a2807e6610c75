"""Programs of newer papers against numpy on several ranks: written from the papers' algorithms, not from the programs. Of random draws, the tests take what they led to."""
import unittest
from concurrent.futures import ThreadPoolExecutor

import cinch
import numpy as np
from support import TestCase, normal

WORLDS = (1, 3)


def updates(expression, steps, machine_ranks=0):
    """The update of every step; all ranks must have the same."""
    world, shape = len(steps[0]), steps[0][0].shape
    program = cinch.compile(expression)
    transports = cinch.Transport.loopback(world)
    with ThreadPoolExecutor(world) as ranks:
        opened = list(ranks.map(lambda rank: cinch.Synchronizer(transports[rank], [cinch.SyncTensor("w", shape, program)], plan="allgather", threads=1, timeout=60, machine_ranks=machine_ranks), range(world)))
        results = []
        for step, arrays in enumerate(steps):
            own = [[array.copy()] for array in arrays]
            list(ranks.map(lambda rank: opened[rank].step(step, own[rank]), range(world)))
            for rank in own[1:]:
                assert rank[0].tobytes() == own[0][0].tobytes()
            results.append(own[0][0])
        for each in opened:
            each.close()
    return results


def sent(expression, steps):
    """What the payloads of one rank decode to, step by step."""
    session = cinch.Session(cinch.compile(expression), [steps[0].shape], threads=1)
    results = []
    for step, gradient in enumerate(steps):
        results.append(np.zeros_like(gradient))
        session.decode_add(step, session.encode(step, [gradient]), [results[-1]])
    return results


def steps_of(world, shape, number, seed=0):
    """Gradients that change slowly, as those of training, with magnitudes of several orders."""
    base = normal(*shape, seed=seed) * np.exp(normal(*shape, seed=seed + 1))
    return [[(base + 0.3 * normal(*shape, seed=seed + 100 * step + rank + 2)).astype(np.float32) for rank in range(world)] for step in range(number)]


def blocks(x, size):
    """Rows of `size`, the last one filled up with zeros."""
    return np.pad(x, (0, -x.size % size)).reshape(-1, size)


def largest_of(x, kept):
    """The places of the `kept` largest magnitudes of a vector."""
    return np.sort(np.argsort(-np.abs(x), kind="stable")[:kept])


def sign_bits(x):
    """The mean magnitude with the signs of x, zeros as positive."""
    return np.where(x < 0, -1, 1) * np.abs(x).mean()


class Quantised(TestCase):
    def test_loco(self):
        beta, reset = 0.25, 3
        for n in (1, 127, 1000):
            steps = [arrays[0] for arrays in steps_of(1, (n,), 8)]
            error = np.zeros(n)
            for step, (gradient, found) in enumerate(zip(steps, sent(f"loco(beta: {beta}, reset: {reset})", steps))):
                h = gradient + error
                scale = np.repeat(np.abs(blocks(h, 128)).max(axis=1) / 7, 128)[:n]
                # The nearest of 15 steps; which one a tie takes, rounding decides.
                self.assertLessEqual((np.abs(found - h) / scale).max(), 0.50001)
                np.testing.assert_allclose(found / scale, np.round(found / scale), atol=1e-5)
                error = (1 - beta) * error + beta * (h - found)
                unit = np.repeat(np.abs(blocks(error, 128)).max(axis=1) / 127, 128)[:n]
                error = np.round(np.divide(error, unit, out=np.zeros(n), where=unit > 0)) * unit
                if (step + 1) % reset == 0:
                    error = np.zeros(n)

    def test_sdp4bit(self):
        hadamard = np.array([[1.0]])
        while hadamard.shape[0] < 128:
            hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
        hadamard /= np.sqrt(128)
        for n in (128, 1024):
            gradient = steps_of(1, (n,), 1)[0][0]
            gradient[5] = 40  # An outlier.
            wanted, found = (blocks(x.astype(np.float64), 128) @ hadamard for x in (gradient, sent("sdp4bit", [gradient])[0]))
            unit = np.abs(wanted).max(axis=1, keepdims=True) / 7
            np.testing.assert_allclose(found / unit, np.round(found / unit), atol=1e-4)
            self.assertLess((np.abs(found - wanted) / unit).max(), 1.0001)

    def test_alq(self):
        """Levels stay in order, and their variance comes near to that of the best levels, which dynamic programming finds."""
        n = 4096
        gradient = steps_of(1, (n,), 1)[0][0]
        magnitude = blocks(np.abs(gradient), 64)
        share = np.sort((magnitude / magnitude.max(axis=1, keepdims=True)).ravel().astype(np.float64))
        session = cinch.Session(cinch.compile("alq"), [(n,)], threads=1)
        for step in range(10):
            payload = bytes(session.encode(step, [gradient])[0])
        levels = np.frombuffer(payload[64:96], np.float32).astype(np.float64)
        self.assertTrue((levels[0], levels[-1]) == (0, 1) and (np.diff(levels) > 0).all())

        def variance(low, high):
            inside = share[(share >= low) & (share <= high)]
            return ((inside - low) * (high - inside)).sum()

        grid = np.linspace(0, 1, 65)
        cost = np.array([[variance(a, b) if b > a else np.inf for b in grid] for a in grid])
        best = cost[0]
        for _ in range(6):
            best = (best[:, None] + cost).min(axis=0)
        self.assertLess(sum(variance(a, b) for a, b in zip(levels, levels[1:])), 1.05 * best[-1])
        self.assertLess(best[-1], 0.8 * sum(variance(a, b) for a, b in zip(np.arange(8) / 7, np.arange(1, 8) / 7)))

    def test_aq_sgd(self):
        for world in WORLDS:
            steps = steps_of(world, (1000,), 6)
            sessions = [cinch.Session(cinch.compile("aq_sgd"), [(1000,)], world=world, worker=rank, threads=1) for rank in range(world)]
            messages, found = np.zeros((world, 1000)), updates("aq_sgd", steps)
            for step, arrays in enumerate(steps):
                for rank, session in enumerate(sessions):
                    change = np.zeros(1000, np.float32)
                    session.decode_add(step, session.encode(step, [arrays[rank]]), [change])
                    wanted = arrays[rank] - messages[rank]
                    unit = np.repeat(np.abs(blocks(wanted, 64)).max(axis=1) / 7, 64)[:1000]
                    self.assertLess((np.abs(change - wanted) / unit).max(), 1.0001)
                    messages[rank] += change
                np.testing.assert_allclose(found[step], messages.mean(axis=0), atol=1e-5)

    def test_global_qsgd(self):
        for world in WORLDS:
            arrays = steps_of(world, (1000,), 1)[0]
            found = updates("global_qsgd", [arrays])[0]
            unit = np.repeat(np.max([np.abs(blocks(x, 64)).max(axis=1) for x in arrays], axis=0) / 7, 64)[:1000]
            np.testing.assert_allclose(found * world / unit, np.round(found * world / unit), atol=1e-4)
            self.assertLess((np.abs(found - np.mean(arrays, axis=0)) / unit).max(), 1.0001)

    def test_qgz(self):
        def in_bits(rows, levels):
            scale = np.abs(rows).max(axis=-1, keepdims=True) / np.float32(levels)
            return np.round(np.divide(rows, scale, out=np.zeros_like(rows), where=scale > 0)) * scale

        for world, near in ((1, 1), (2, 2), (2, 1), (4, 2), (6, 3)):
            for n in (1, 100, 999):
                arrays = steps_of(world, (n,), 1)[0]
                far, size = world // near, -(-n // (16 * world)) * world
                # [rank on the machine, machine, block, element], the ranks that own a part first
                x = [in_bits(np.pad(a / np.float32(world), (0, 16 * size - n)).reshape(near, far, -1, 16), 7) for a in arrays]
                here = [in_bits(sum(x[m * near : (m + 1) * near]), 7) for m in range(far)]
                mean = in_bits(sum(here), 127).reshape(-1)[:n]
                found = updates("qgz(block: 16)", [arrays], near)[0]
                np.testing.assert_allclose(found, mean, rtol=1e-5, atol=1e-7)

    def test_bf16_lossless(self):
        for n in (1, 31, 1000, 20000):
            wide = normal(n, seed=4) * np.exp(20 * normal(n, seed=5))
            for gradient in (normal(n, seed=6), wide.astype(np.float32), np.zeros(n, np.float32)):
                bits = gradient.view(np.uint32)
                rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
                self.assertSameBits(sent("bf16_lossless", [gradient])[0] + np.float32(0), rounded + np.float32(0))
        session = cinch.Session(cinch.compile("bf16_lossless"), [(20000,)], threads=1)
        self.assertLess(8 * len(session.encode(0, [normal(20000, seed=6)])[0]) / 20000, 10.9)


class Signs(TestCase):
    def test_zero_one_adam(self):
        """The paper's algorithm 1 with an exchange in every step, and DeepSpeed's exact momentum in steps of the variance."""
        period, beta1, beta2 = 2, np.float32(0.9), np.float32(0.999)
        in_variance, interval, step = set(), 1, 0
        while step < 30:
            for _ in range(period):
                in_variance.add(step)
                step += interval
            interval *= 2
        for world in WORLDS:
            for n in (60, 64):
                steps = steps_of(world, (n,), 30)
                part = -(-n // world)
                momentum, variance, residual, owed = np.zeros(n), np.zeros(n), np.zeros((world, n)), np.zeros((world, part))
                for step, (arrays, found) in enumerate(zip(steps, updates(f"zero_one_adam(period: {period})", steps))):
                    if step in in_variance:
                        mean = np.mean(arrays, axis=0, dtype=np.float64)
                        momentum = beta1 * momentum + (1 - beta1) * mean
                        variance = beta2 * variance + (1 - beta2) * mean * mean
                    else:
                        rows = []
                        for rank in range(world):
                            p = beta1 * momentum + (1 - beta1) * arrays[rank] + residual[rank]
                            residual[rank] = p - sign_bits(p)
                            rows.append(np.pad(sign_bits(p), (0, world * part - n), constant_values=np.abs(p).mean()).reshape(world, part))
                        q = np.mean(rows, axis=0) + owed
                        both = np.array([sign_bits(row) for row in q])
                        owed = q - both
                        momentum = both.ravel()[:n]
                    np.testing.assert_allclose(found, momentum / (np.sqrt(variance) + 1e-8), rtol=1e-3, atol=1e-3, err_msg=f"step {step}")

    def test_lion_mavo(self):
        for world in WORLDS:
            steps = steps_of(world, (500,), 5)
            momentum = np.zeros((world, 500))
            for arrays, found in zip(steps, updates("lion_mavo", steps)):
                votes = np.sign(0.9 * momentum + 0.1 * np.array(arrays)).sum(axis=0)
                momentum = 0.99 * momentum + 0.01 * np.array(arrays)
                np.testing.assert_array_equal(found, np.where(votes < 0, -1, 1))


class LowRank(TestCase):
    def test_acp_sgd(self):
        """The start is drawn, so the factor that is fixed in a step is read off the update before."""
        r, c, rank = 40, 25, 3
        for world in WORLDS:
            steps = steps_of(world, (r, c), 6)
            residual = np.zeros((world, r, c))
            last = None
            for step, (arrays, found) in enumerate(zip(steps, updates(f"acp_sgd(rank: {rank})", steps))):
                m = np.array(arrays, np.float64) + residual
                # Even steps fix the right factor and project rows; odd ones fix the left factor.
                space = found if last is None else last
                _, _, rows = np.linalg.svd(space if step % 2 == 0 else space.T)
                basis = rows[:rank].T
                own = m @ basis @ basis.T if step % 2 == 0 else basis @ basis.T @ m
                np.testing.assert_allclose(found, own.mean(axis=0), atol=2e-4)
                residual = m - own
                last = found.astype(np.float64)

    def test_lq_sgd(self):
        """Of many bits it is PowerSGD's power iteration; of few, the left factor lies on the logarithmic grid."""
        r, c, rank = 40, 25, 4
        left, right = normal(r, rank, seed=7).astype(np.float64), normal(c, rank, seed=8).astype(np.float64)
        exact = (left @ right.T).astype(np.float32)
        for world in WORLDS:
            found = updates("lq_sgd", [[exact] * world] * 12)
            total = np.sum(found, axis=0, dtype=np.float64)
            # What a step loses is sent later.
            self.assertLess(np.linalg.norm(total - 12 * exact) / np.linalg.norm(12 * exact), 0.01)
            self.assertLess(np.linalg.norm(found[0] - exact) / np.linalg.norm(exact), 0.2)

    def test_lq_sgd_of_a_column(self):
        """A matrix of one column has one factor of length 1, so the update shows the other's code: of the largest magnitude itself."""
        gradient = normal(500, 1, seed=9)
        found = updates("lq_sgd(rank: 1, bits: 8)", [[gradient]])[0].ravel()
        share = np.abs(gradient.ravel()) / np.abs(gradient).max()
        code = np.round(127 * np.log1p(10 * share) / np.log(11))
        wanted = np.sign(gradient.ravel()) * np.expm1(code * np.log(11) / 127) / 10
        wanted /= np.linalg.norm(wanted)
        # The right factor is one number, which is the largest and has the last code.
        np.testing.assert_allclose(found, wanted * (wanted @ gradient.ravel()), rtol=1e-3, atol=1e-5)


class Sparse(TestCase):
    def test_mstopk(self):
        for n in (1, 1000, 5000):
            for ratio in (0.01, 0.3, 0.7):
                k = min(max(int(np.ceil(ratio * n)), 1), n)
                for gradient in (normal(n, seed=1), np.round(normal(n, seed=2)).astype(np.float32) + np.float32(0.25)):
                    size = np.abs(gradient)
                    low, high, few, many = 0.0, 1.0, np.inf, 0.0
                    for _ in range(30):
                        middle = (low + high) / 2
                        threshold = size.mean(dtype=np.float64) + middle * (size.max() - size.mean(dtype=np.float64))
                        if (size >= threshold).sum() <= k:
                            high, few = middle, threshold
                        else:
                            low, many = middle, threshold
                    found = sent(f"mstopk(ratio: {ratio})", [gradient])[0]
                    places = np.flatnonzero(found)
                    self.assertSameBits(found[places], gradient[places])
                    self.assertEqual(places.size, k)
                    self.assertTrue(np.isin(np.flatnonzero(size >= few * (1 + 1e-6)), places).all())
                    self.assertGreaterEqual(size[places].min(), many * (1 - 1e-6))

    def test_microadam(self):
        for n in (1, 63, 9000):
            steps = [arrays[0] for arrays in steps_of(1, (n,), 5)]
            error = np.zeros(n, np.float32)
            for gradient, found in zip(steps, sent("microadam", steps)):
                all_of = gradient + error
                wanted = np.zeros(n, np.float32)
                for begin in range(0, n, 4096):
                    place = begin + largest_of(all_of[begin:begin + 4096], 40)
                    wanted[place] = all_of[place]
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
                rest = blocks(all_of - wanted, 4096)
                low = rest.min(axis=1, keepdims=True)
                gap = (rest.max(axis=1, keepdims=True) - low) / 15
                code = np.floor(np.divide(rest - low, gap, out=np.zeros_like(rest), where=gap > 0) + 0.5)
                error = (code * gap + low).ravel()[:n]

    def test_cocktail(self):
        n, sample, k = 2000, 200, 20
        gradient = steps_of(1, (n,), 1)[0][0]
        seen = []
        session = cinch.Session(cinch.compile("cocktail"), [(n,)], threads=1)
        for step in range(40):
            found = np.zeros(n, np.float32)
            session.decode_add(step, session.encode(step, [gradient]), [found])
            places = np.flatnonzero(found)
            unit = np.abs(found).max() / 7
            np.testing.assert_allclose(found[places] / unit, np.round(gradient[places] / unit), atol=1e-4)
            # Codes of 0 are sent, too, but cannot be seen.
            self.assertLessEqual(places.size, k)
            seen.append(np.abs(gradient[places]).min())
        # The k largest of `sample` elements begin where sample / n of the gradient's k * n / sample largest do.
        typical = np.sort(np.abs(gradient))[-k * n // sample]
        self.assertTrue(0.8 < np.median(seen) / typical < 1.25)

    def test_marina(self):
        n, k = 400, 8
        for world in WORLDS:
            steps = steps_of(world, (n,), 40)
            exact, estimate = 0, np.zeros(n)
            for step, (arrays, found) in enumerate(zip(steps, updates("marina(ratio: 0.02, exact: 0.2)", steps))):
                mean = np.mean(arrays, axis=0, dtype=np.float64)
                if np.allclose(found, mean, atol=1e-5):
                    exact += 1
                else:
                    change = found - estimate
                    places = np.flatnonzero(np.abs(change) > 1e-5)
                    self.assertLessEqual(places.size, k)
                    wanted = (mean - np.mean(steps[step - 1], axis=0, dtype=np.float64)) * (n / k)
                    np.testing.assert_allclose(change[places], wanted[places], rtol=1e-3, atol=1e-4)
                estimate = found.astype(np.float64)
            self.assertTrue(3 <= exact <= 20, exact)

    def test_scalecom(self):
        beta = 0.5
        for world in WORLDS:
            steps = steps_of(world, (1000,), 6)
            memory = np.zeros((world, 1000))
            for step, (arrays, found) in enumerate(zip(steps, updates(f"scalecom(ratio: 0.05, beta: {beta})", steps))):
                everything = memory + arrays
                place = largest_of(everything[step % world], 50)
                sent = np.zeros((world, 1000))
                sent[:, place] = everything[:, place]
                np.testing.assert_allclose(found, sent.mean(axis=0), atol=1e-5)
                memory = (1 - beta) * memory + beta * (everything - sent)

    def test_permk(self):
        for world, n in ((1, 50), (3, 100), (4, 3)):
            arrays = steps_of(world, (n,), 1)[0]
            found = [updates("permk", [arrays] * 2)[step] for step in range(2)]
            owners = [[int(np.flatnonzero(np.array(arrays)[:, i] == x[i])[0]) for i in range(n)] for x in found]
            part = -(-n // world)
            for owner in owners:
                self.assertEqual(sorted(np.bincount(owner, minlength=world))[::-1], sorted(min(part, max(n - rank * part, 0)) for rank in range(world))[::-1])
            if world == 3:
                self.assertNotEqual(*owners)


class Groups(TestCase):
    def test_a_rank_that_leaves_is_an_error_on_all_others(self):
        program = cinch.compile("qgz")
        transports = cinch.Transport.loopback(4)
        with ThreadPoolExecutor(4) as ranks:
            opened = list(ranks.map(lambda rank: cinch.Synchronizer(transports[rank], [cinch.SyncTensor("w", (500,), program)], threads=1, timeout=60, machine_ranks=2), range(4)))
            list(ranks.map(lambda each: each.step(0, [normal(500)]), opened))

            def second(rank):
                if rank == 3:
                    return opened[3].close() or transports[3].close()
                with self.assertRaisesRegex(cinch.CancelledError, "rank 3 has left"):
                    opened[rank].step(1, [normal(500)])

            list(ranks.map(second, range(4)))


class Wrappers(TestCase):
    def test_diana(self):
        rate = 0.25
        for world in WORLDS:
            steps = steps_of(world, (1000,), 6)
            memory, mean = np.zeros((world, 1000)), np.zeros(1000)
            for arrays, found in zip(steps, updates(f"diana(topk(ratio: 0.1), rate: {rate})", steps)):
                change = np.zeros((world, 1000))
                for rank in range(world):
                    difference = arrays[rank] - memory[rank]
                    place = largest_of(difference, 100)
                    change[rank, place] = difference[place]
                np.testing.assert_allclose(found, mean + change.mean(axis=0), atol=1e-5)
                memory += rate * change
                mean += rate * change.mean(axis=0)

    def test_econtrol(self):
        strength = 0.1
        for world in WORLDS:
            steps = steps_of(world, (1000,), 6)
            estimate, error = np.zeros((world, 1000)), np.zeros((world, 1000))
            for arrays, found in zip(steps, updates(f"econtrol(topk(ratio: 0.1), strength: {strength})", steps)):
                for rank in range(world):
                    wanted = strength * error[rank] + arrays[rank] - estimate[rank]
                    place = largest_of(wanted, 100)
                    estimate[rank, place] += wanted[place]
                    error[rank] += arrays[rank] - estimate[rank]
                np.testing.assert_allclose(found, estimate.mean(axis=0), atol=1e-5)


if __name__ == "__main__":
    unittest.main()
