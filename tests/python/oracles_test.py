"""Programs of the library against numpy: written from the papers' rules, not from the programs."""
import unittest

import cinch
import numpy as np
from support import TestCase, normal

BLOCK = 4096


def decoded(expression, gradients):
    """What each step's payload decodes to."""
    n = gradients[0].size
    session = cinch.Session(cinch.compile(expression), [(n,)], threads=1)
    results = []
    for step, gradient in enumerate(gradients):
        out = np.zeros(n, np.float32)
        session.decode_add(step, session.encode(step, [gradient]), [out])
        results.append(out)
    return results


def gradients(n, steps=1):
    """Of several kinds; those with few values have ties."""
    for seed in range(2):
        yield [normal(n, seed=seed + 10 * step) for step in range(steps)]
    yield [np.round(normal(n, seed=20 + step)).astype(np.float32) for step in range(steps)]
    yield [normal(n, seed=30 + step) * (np.arange(n) % 97 == 0) for step in range(steps)]
    yield [np.full(n, -0.5, np.float32)] * steps


def largest(x, kept):
    """The places of the largest magnitudes of each block; of equal ones the first."""
    for begin in range(0, x.size, BLOCK):
        part = np.abs(x[begin:begin + BLOCK])
        yield begin + np.sort(np.argsort(-part, kind="stable")[:kept])


def two_bit(x, tau):
    return np.where(x >= tau, tau, np.where(x <= -tau, -tau, 0)).astype(np.float32)


class Oracles(TestCase):
    def test_long_blocks_keep_their_largest(self):
        for n in (1, 63, 4095, 4097, 20000):
            for kept in (1, 64):
                for gradient, in gradients(n):
                    expected = np.zeros_like(gradient)
                    for place in largest(gradient, kept):
                        expected[place] = gradient[place]
                    self.assertSameBits(decoded(f"block_topk(kept: {kept}, bits: 12)", [gradient])[0] + 0.0, expected + 0.0)

    def test_sparse_loco(self):
        for n in (1, 63, 4097, 9000):
            for steps in gradients(n, steps=4):
                residual = np.zeros(n, np.float64)
                for gradient, found in zip(steps, decoded("sparse_loco", steps)):
                    residual = 0.95 * residual + gradient
                    # In f64 another element may be the 64th: the places are those that were sent.
                    expected = np.zeros(n, np.float64)
                    for begin in range(0, n, BLOCK):
                        part = residual[begin:begin + BLOCK]
                        sent = np.flatnonzero(found[begin:begin + BLOCK])
                        least = np.sort(np.abs(part))[-64:][0]
                        self.assertEqual(sent.size, min(64, np.count_nonzero(np.abs(part) > 1e-5), part.size))
                        self.assertGreaterEqual(np.abs(part[sent]).min(initial=np.inf), least - 1e-5)
                        order = sent[np.argsort(-np.abs(found[begin + sent]), kind="stable")]
                        half = 32 if sent.size == 64 else sent.size
                        self.assertGreaterEqual(np.abs(part[order[:half]]).min(initial=np.inf), np.abs(part[order[half:]]).max(initial=0) - 1e-5)
                        for places in (order[:half], order[half:]):
                            if places.size:
                                expected[begin + places] = np.sign(part[places]) * np.abs(part[places]).mean()
                    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
                    residual -= found

    def test_two_bit(self):
        for tau in (0.01, 0.5):
            for gradient, in gradients(1001):
                self.assertSameBits(decoded(f"two_bit(tau: {tau})", [gradient])[0], two_bit(gradient, np.float32(tau)) + np.float32(0))

    def test_e3m0(self):
        grid = np.concatenate([[0], 2.0 ** np.arange(-6, 1)])
        for n in (1, 31, 1000):
            for gradient, in gradients(n):
                expected = np.zeros(n)
                for begin in range(0, n, 32):
                    part = np.abs(gradient[begin:begin + 32].astype(np.float64))
                    if part.max() == 0:
                        continue
                    low = 2.0 ** np.floor(np.log2(part.max()))
                    scale = 2 * low if part.max() >= 1.5 * low else low
                    distance = np.abs(part[:, None] - scale * grid)
                    nearest = grid.size - 1 - np.argmin(distance[:, ::-1], axis=1)
                    expected[begin:begin + 32] = np.sign(gradient[begin:begin + 32]) * scale * grid[nearest]
                self.assertSameBits(decoded("e3m0", [gradient])[0] + np.float32(0), expected.astype(np.float32) + np.float32(0))

    def test_correct_every(self):
        tau = np.float32(0.25)
        for every in (1, 3):
            for steps in gradients(1000, steps=7):
                residual, total = np.zeros(1000, np.float32), np.zeros(1000)
                for step, (gradient, found) in enumerate(zip(steps, decoded(f"correct_every(two_bit(tau: 0.25), every: {every})", steps))):
                    if (step + 1) % every == 0:
                        expected = gradient
                    else:
                        expected = two_bit(residual + gradient, tau)
                        residual = residual + gradient - expected
                    self.assertSameBits(found + np.float32(0), expected + np.float32(0))
                    total += found
                np.testing.assert_allclose(total + residual, np.sum(steps, axis=0, dtype=np.float64), atol=1e-5)


if __name__ == "__main__":
    unittest.main()
