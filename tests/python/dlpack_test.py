"""Sessions on arrays of other frameworks, against the same sessions on NumPy arrays."""
import gc
import unittest
import weakref

import numpy as np
from support import ROW_SIGNS, TestCase, normal

import cinch

try:
    import torch
except ImportError:
    torch = None


class Wrapped:
    """An array that speaks DLPack and nothing else. `old`: of a version before 1.0, which does not say what may be written."""

    def __init__(self, array, old=False, device=(1, 0)):
        self.array, self.old, self.device = array, old, device
        self.shape = array.shape

    def __dlpack__(self, **named):
        if self.old and named:
            raise TypeError("an argument that is not known")
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.device


class NoCapsule(Wrapped):
    def __dlpack__(self, **_):
        return "a text"


class Dlpack(TestCase):
    def test_arrays_of_others_are_read(self):
        program = cinch.compile("topk", ratio=0.1)
        gradient = normal(30, 20)
        for old in (False, True):
            with program.session(Wrapped(gradient, old)) as session:
                self.assertEqual(session.shapes, ((30, 20),))
                payload = session.encode(0, Wrapped(gradient, old))
                self.assertEqual(payload, session.encode(0, gradient))
                update = session.decode(0, Wrapped(np.frombuffer(payload, np.uint8).copy(), old))
                self.assertSameBits(update, session.decode(0, payload))

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_negative_views_of_pytorch_are_refused(self):
        negative = torch._neg_view(torch.ones(4))
        with cinch.compile("fp16").session((4,)) as session:
            with self.assertRaisesRegex(cinch.InvalidArgumentError, r"is a negative view: give .*\.resolve_neg\(\)"):
                session.encode(0, negative)
            self.assertEqual(session.encode(0, negative.resolve_neg()), session.encode(0, -np.ones(4, np.float32)))

    def test_mistakes_are_told(self):
        program = cinch.compile("topk", ratio=0.1)
        gradient = normal(30, 20)
        with program.session((30, 20)) as session:
            for given, words in (
                (Wrapped(gradient, device=(2, 0)), "not in the CPU's memory: its DLPack device type is 2"),
                (Wrapped(gradient.astype(np.float64)), "elements of type float64"),
                (Wrapped(gradient.reshape(20, 30)), "has shape (20, 30)"),
                (Wrapped(gradient.reshape(20, 30).T), "not dense"),
                (Wrapped(np.zeros(2401, np.uint8)[1:].view(np.float32).reshape(30, 20)), "not aligned"),
                (NoCapsule(gradient), "no DLPack capsule, but a str"),
            ):
                self.fails(cinch.InvalidArgumentError, words, session.encode, 0, given)
            payload = session.encode(0, gradient)
            self.fails(cinch.InvalidArgumentError, "output is read-only", session.decode, 0, payload, out=Wrapped(gradient.copy(), old=True))
            self.fails(TypeError, "a call takes an array", session.encode, 0, 3.0)

    def test_memory_is_given_back(self):
        array = normal(300)
        with cinch.compile("topk", ratio=0.1).session(300) as session:
            wrapped = Wrapped(array.view())
            seen = weakref.ref(wrapped.array)
            session.encode(0, wrapped)
            del wrapped
            gc.collect()
            self.assertIsNone(seen())


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(TestCase):
    def test_all_calls_take_tensors_and_copy_nothing(self):
        program = cinch.compile("error_feedback(topk(ratio: 0.1))")
        for name in ("float32", "float16", "bfloat16"):
            dtype = getattr(torch, name)
            gradient = torch.from_numpy(normal(30, 20)).to(dtype)
            bits = gradient.view(torch.uint16).numpy() if name == "bfloat16" else gradient.numpy()
            with program.session(gradient) as session, program.session(bits) as wanted:
                payload = session.encode(0, gradient)
                self.assertEqual(payload, wanted.encode(0, bits))
                room = torch.zeros(session.payload_bounds(1)[0], dtype=torch.uint8)
                written = session.encode(1, gradient, out=room)
                self.assertEqual(bytes(written), wanted.encode(1, bits))
                self.assertEqual(bytes(room[: len(written)].numpy()), bytes(written))
                update, expected = torch.empty_like(gradient), np.empty_like(bits)
                self.assertIs(session.decode(1, room[: len(written)], out=update), update)
                wanted.decode(1, bytes(written), out=expected)
                self.assertSameBits(update.view(torch.uint16).numpy() if name == "bfloat16" else update.numpy(), expected)

    def test_sums_are_finished_in_place(self):
        program = cinch.compile(text=ROW_SIGNS)
        gradients = [torch.from_numpy(normal(3, 4, seed=seed)) for seed in range(2)]
        with program.session([(3, 4)] * 2) as session:
            payloads = session.encode(0, gradients)
            sums, wanted = [torch.zeros(3, 4) for _ in range(2)], [np.zeros((3, 4), np.float32) for _ in range(2)]
            session.decode_add(0, payloads, sums)
            session.decode_add(0, payloads, wanted)
            self.assertIs(session.finish(0, sums, out=sums)[1], sums[1])
            for update, expected in zip(sums, session.finish(0, wanted)):
                self.assertSameBits(update.numpy(), expected)

    def test_views_lie_where_they_lie(self):
        with cinch.compile("topk", ratio=0.1).session(300) as session:
            gradient = torch.from_numpy(normal(900))
            self.assertEqual(session.encode(0, gradient[300:600]), session.encode(0, gradient.numpy()[300:600].copy()))
            self.fails(cinch.InvalidArgumentError, "not dense", session.encode, 0, gradient[::3])
            self.fails(cinch.InvalidArgumentError, "overlap", session.decode, 0, gradient[:100].view(torch.uint8), out=gradient[:300])

    def test_mistakes_are_told(self):
        with cinch.compile("topk", ratio=0.1).session(4) as session:
            self.fails(cinch.InvalidArgumentError, "gives no DLPack capsule", session.encode, 0, torch.zeros(4, requires_grad=True))
            self.fails(cinch.InvalidArgumentError, "gives no DLPack capsule", session.encode, 0, torch.zeros(4, device="meta"))
            self.fails(cinch.InvalidArgumentError, "elements of type int32", session.encode, 0, torch.zeros(4, dtype=torch.int32))
            self.fails(cinch.InvalidArgumentError, "not float32", session.decode_add, 0, session.encode(0, torch.ones(4)), torch.zeros(4, dtype=torch.float16))

    def test_synchronizers_take_tensors(self):
        transport = cinch.Transport.loopback(1)[0]
        gradient = torch.from_numpy(normal(50))
        wanted = gradient.clone()
        cinch.Synchronizer(transport, [cinch.SyncTensor("w", (50,))]).step(0, [gradient])
        self.assertTrue(torch.equal(gradient, wanted))


if __name__ == "__main__":
    unittest.main()
