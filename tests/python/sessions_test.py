"""Sessions of the Python package, compared with the command and the interpreter byte for byte."""
import copy
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest

import cinch
import numpy as np
from support import GRADIENT, ROW_SIGNS, TestCase, normal, read_bytes, run_command

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class Copies(TestCase):
    def test_programs_copy_to_themselves_and_sessions_do_not(self):
        program = cinch.compile("onebit")
        self.assertIs(copy.copy(program), program)
        self.assertIs(copy.deepcopy([program])[0], program)
        with program.session(8) as session:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaises(TypeError):
                    copied(session)


# Closes the library while its threads wait for work; python's own handle and those of the package are more than one.
UNLOADS = """
import ctypes, time
import numpy as np
import cinch
from cinch import _library
with cinch.compile("onebit").session(1 << 20, threads=2) as session:
    session.encode(0, np.ones(1 << 20, np.float32))
close = ctypes.CDLL(None).dlclose
for _ in range(10):
    close(ctypes.c_void_p(_library.loaded()._handle))
time.sleep(0.3)
with cinch.compile("onebit").session(1 << 20, threads=2) as session:
    session.encode(0, np.ones(1 << 20, np.float32))
print("alive")
"""


class Unloading(TestCase):
    def test_the_process_outlives_it(self):
        done = subprocess.run([sys.executable, "-c", UNLOADS], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "alive\n"), done.stderr)


def as_bfloat16(values):
    """The bits of the nearest bf16 of finite values."""
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class NarrowTensors(TestCase):
    """A call on f16 or bf16 gives the bits of one on the f32 of the same values, and takes no more memory beside than `cinch explain` says."""

    def test_bits_and_memory(self):
        programs = ["onebit", "topk", "qsgd", "fp16"]
        if os.environ.get("CINCH_LONG", "0") not in ("", "0"):
            programs = [each["example"]["program"] for each in json.loads(run_command("list", "--json"))]
        for name in programs:
            with self.subTest(name):
                self.check(name, 100_003)

    def check(self, name, count):
        threads = 3
        said = json.loads(run_command("explain", name, "--elements", count, "--json"))
        copies = said["narrow_copies"]
        if "sync" in [copy["call"] for copy in copies]:
            return
        most = sum(copy["bytes"] * (threads if copy["is_for_each_thread"] else 1) for copy in copies)
        program = cinch.compile(name)
        columns = said.get("columns", 1)
        for is_half in (True, False):
            wide = normal(count // columns, columns, seed=3) * np.float32(0.01)
            narrow = wide.astype(np.float16) if is_half else as_bfloat16(wide)
            wide = narrow.astype(np.float32) if is_half else (narrow.astype(np.uint32) << 16).view(np.float32)
            if columns == 1:
                narrow, wide = narrow.reshape(-1), wide.reshape(-1)
            with program.session(wide, threads=threads) as of_f32, program.session(narrow, threads=threads) as of_narrow:
                for step in range(2):
                    payload = of_f32.encode(step, wide)
                    self.assertEqual(of_narrow.encode(step, narrow), payload)
                    update, short = np.empty_like(wide), np.empty_like(narrow)
                    of_f32.decode(step, payload, out=update)
                    of_narrow.decode(step, payload, out=short)
                    self.assertSameBits(short, update.astype(np.float16) if is_half else as_bfloat16(update))
                self.assertLessEqual(of_narrow.workspace_bytes, of_f32.workspace_bytes + most)
        if name == "onebit":
            self.assertTrue(all(copy["is_for_each_thread"] for copy in copies))


class AgainstTheCommand(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def by_command(self, words, gradient, *more):
        """Payload and decoded array as the command makes them."""
        paths = [os.path.join(self.folder, name) for name in ("g.npy", "p", "x.npy")]
        np.save(paths[0], gradient)
        run_command("encode", *words, "--input", paths[0], "--payload", paths[1], *more)
        run_command("decode", *words, "--payload", paths[1], "--output", paths[2], *[each for each in more if each != "--interpret"])
        return read_bytes(paths[1]), np.load(paths[2])

    def compare(self, program, words, gradient, more=(), step=0, **options):
        with program.session(gradient, **options) as session:
            payload = session.encode(step, gradient)
            decoded = session.decode(step, payload)
        theirs, their_decoded = self.by_command(words, gradient, *more)
        self.assertEqual(payload, theirs)
        self.assertSameBits(decoded, their_decoded.astype(np.float32).reshape(gradient.shape))

    def test_payloads_are_the_same(self):
        gradient = np.load(GRADIENT)
        for interpret in ((), ("--interpret",)):
            self.compare(cinch.compile("dgc", ratio=0.01), ("dgc", "--set", "ratio=0.01"), gradient[:4096].copy(), interpret)

    def test_draws_are_the_same(self):
        more = ("--seed", 7, "--step", 5, "--worker", 2, "--world", 4)
        self.compare(cinch.compile("terngrad"), ("terngrad",), normal(3001), more, step=5, seed=7, worker=2, world=4)

    def test_halves_are_the_same(self):
        self.compare(cinch.compile("topk", ratio=0.1), ("topk", "--set", "ratio=0.1"), normal(1000, dtype=np.float16))

    def test_matrices_are_the_same(self):
        path = os.path.join(self.folder, "rows.cinch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ROW_SIGNS)
        self.compare(cinch.compile(text=ROW_SIGNS), (path,), normal(7, 33))

    def test_states_are_those_of_the_command(self):
        gradient, program = normal(2000), cinch.compile("ef_sign")
        path, state = os.path.join(self.folder, "g.npy"), os.path.join(self.folder, "state")
        np.save(path, gradient)
        run_command("run", "ef_sign", "--input", path, "--state-out", state)
        with program.session(2000) as session:
            session.decode(0, session.encode(0, gradient))
            self.assertEqual(session.states_save(), read_bytes(state))


class Calls(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ef_sign, cls.topk, cls.signsgd = cinch.compile("ef_sign"), cinch.compile("topk", ratio=0.1), cinch.compile("signsgd")

    def test_many_tensors_are_as_each_alone(self):
        gradients = [normal(*shape, seed=i) for i, shape in enumerate([(300, 200), (300,), (0,), (), (1, 1, 7)])]
        with self.topk.session(gradients) as session:
            payloads = session.encode(0, gradients)
            decoded = session.decode(0, payloads)
            bounds = session.payload_bounds(0)
        self.assertEqual(len(session), 5)
        for i, gradient in enumerate(gradients):
            with self.topk.session(gradient.shape, tensor_numbers=[i]) as alone:
                self.assertEqual(alone.encode(0, gradient), payloads[i])
                self.assertSameBits(alone.decode(0, payloads[i]), decoded[i])
            self.assertLessEqual(len(payloads[i]), bounds[i])
            self.assertEqual(decoded[i].shape, gradient.shape)

    def test_which_chooses_tensors(self):
        gradients = [normal(100, seed=i) for i in range(3)]
        with self.ef_sign.session([100, 100, 100]) as session, self.ef_sign.session([(100,)] * 3) as other:
            whole = session.encode(0, gradients)
            self.assertEqual(other.encode(0, [gradients[2], gradients[0]], which=[2, 0]), [whole[2], whole[0]])
            self.assertEqual(other.encode(0, gradients[1], which=1), whole[1])
            self.assertEqual(session.states_save(), other.states_save())
            self.fails(cinch.InvalidArgumentError, "which", other.encode, 1, gradients[1])
            self.fails(cinch.InvalidArgumentError, "2 entries for 3", other.encode, 1, gradients[:2])
            self.fails(cinch.OutOfRangeError, "tensor 3 of 3", other.encode, 1, gradients[1], which=3)
            self.fails(cinch.InvalidArgumentError, "", other.encode, 1, gradients[:2], which=[1, 1])

    def test_outputs_are_written_in_place(self):
        gradient = normal(1000)
        with self.topk.session(gradient) as session:
            expected = session.encode(0, gradient)
            room = bytearray(session.payload_bounds(0)[0] + 8)
            payload = session.encode(0, gradient, out=room)
            self.assertEqual((bytes(payload), bytes(room[: len(payload)])), (expected, expected))
            whole = session.decode(0, payload)
            for dtype in (np.float32, np.float16):
                out = np.full(1000, 7, dtype)
                self.assertIs(session.decode(0, payload, out=out), out)
                self.assertSameBits(out, whole.astype(dtype))
            self.fails(cinch.InvalidArgumentError, "takes 540 bytes", session.encode, 0, gradient, out=bytearray(10))
            self.fails(cinch.InvalidArgumentError, "no bytes", session.encode, 0, gradient, out=bytearray())

    def test_bfloat16_is_taken_as_bits(self):
        gradient = normal(512)
        bits = (gradient.view(np.uint32) >> 16).astype(np.uint16)
        as_f32 = (bits.astype(np.uint32) << 16).view(np.float32)
        with self.topk.session(512) as session:
            payload = session.encode(0, bits)
            self.assertEqual(payload, session.encode(0, as_f32))
            out = np.zeros(512, np.uint16)
            session.decode(0, payload, out=out)
            self.assertSameBits((out.astype(np.uint32) << 16).view(np.float32), session.decode(0, payload))
            if ml_dtypes is not None:
                self.assertEqual(session.encode(0, bits.view(ml_dtypes.bfloat16)), payload)

    def test_decode_add_sums(self):
        gradients = [normal(999, seed=i) for i in range(4)]
        sums = np.zeros(999, np.float32)
        expected = np.zeros(999, np.float32)
        with self.topk.session(999) as session:
            for gradient in gradients:
                payload = session.encode(0, gradient)
                session.decode_add(0, payload, sums)
                expected += session.decode(0, payload)
            self.assertSameBits(sums, expected)
            self.fails(cinch.InvalidArgumentError, "not float32", session.decode_add, 0, payload, sums.astype(np.float16))

    def test_finish_makes_updates(self):
        sums = np.array([3, -1, 0.5, -4], np.float32)
        with self.signsgd.session(4, world=5) as session:
            made = session.finish(0, sums)
            self.assertSameBits(np.sign(made), np.sign(sums))
            half = np.zeros(4, np.float16)
            self.assertIs(session.finish(0, sums, out=half), half)
            self.assertSameBits(session.finish(0, sums, out=sums), made)
            self.assertSameBits(sums, made)

    def test_those_that_only_decode_hold_no_states(self):
        gradient = normal(500)
        with self.ef_sign.session(500) as session, self.ef_sign.session(500, only_decodes=True) as decoder:
            payload = session.encode(0, gradient)
            self.assertSameBits(decoder.decode(0, payload), session.decode(0, payload))
            self.fails(cinch.InvalidArgumentError, "to decode only", decoder.encode, 1, gradient)
            self.fails(cinch.InvalidArgumentError, "holds no states", decoder.states_save)
            self.fails(cinch.InvalidArgumentError, "holds no states", decoder.states_load, session.states_save())

    def test_states_are_carried_over(self):
        gradients = [[normal(500, seed=i), normal(20, 30, seed=i + 10)] for i in range(3)]
        with self.ef_sign.session(gradients[0]) as session, self.ef_sign.session([500, (20, 30)]) as restored:
            session.encode(0, gradients[0])
            saved = session.states_save()
            self.assertEqual(saved, session.states_save(0) + session.states_save(1))
            restored.states_load(memoryview(saved))
            self.assertEqual(restored.encode(1, gradients[1]), session.encode(1, gradients[1]))
            now = restored.states_save()
            damaged = bytearray(saved)
            damaged[-1] ^= 1
            self.assertEqual(self.fails(cinch.FileError, "checksum", restored.states_load, damaged).tensor, 1)
            for wrong in (saved[:-1], saved + b"x", saved[:100], b""):
                self.fails(cinch.FileError, "", restored.states_load, wrong)
            self.assertEqual(restored.states_save(), now)
            restored.states_load(session.states_save(1), 1)
            self.assertEqual(restored.states_save(1), session.states_save(1))
            self.fails(cinch.InvalidArgumentError, "", restored.states_load, session.states_save(1), 0)
        self.assertEqual(session.shapes, ((500,), (20, 30)))

    def test_parameters_are_set(self):
        gradient = normal(1000)
        with self.topk.session(gradient) as session:
            before = session.encode(0, gradient)
            session.set("ratio", 0.5)
            self.assertGreater(len(session.encode(0, gradient)), len(before))
            self.fails(cinch.OutOfRangeError, "ratio", session.set, "ratio", 2)
            self.fails(cinch.InvalidArgumentError, "ratioo", session.set, "ratioo", 0.5)

    def test_memory_is_told(self):
        with self.ef_sign.session(1024) as session:
            self.assertGreaterEqual(session.state_bytes, 4096)
            session.encode(0, normal(1024))
            self.assertGreaterEqual(session.workspace_bytes, 0)


class Mistakes(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.topk = cinch.compile("topk", ratio=0.1)

    def setUp(self):
        self.session = self.topk.session([(4, 6), (10,)])
        self.addCleanup(self.session.close)
        self.gradients = [normal(4, 6), normal(10)]
        self.payloads = self.session.encode(0, self.gradients)

    def encode_with(self, second):
        return self.session.encode(0, [self.gradients[0], second])

    def decode_to(self, second):
        return self.session.decode(0, self.payloads, out=[np.zeros((4, 6), np.float32), second])

    def test_wrong_arrays_name_the_entry(self):
        wrong = {
            "float64": np.zeros(10),
            ">f4": np.zeros(10, ">f4"),
            "shape (11,)": np.zeros(11, np.float32),
            "shape (5, 2)": np.zeros((5, 2), np.float32),
            "not dense": np.zeros(20, np.float32)[::2],
        }
        for words, array in wrong.items():
            for call in (self.encode_with, self.decode_to):
                self.assertEqual(self.fails(cinch.InvalidArgumentError, words, call, array).tensor, 1)
        unaligned = np.zeros(41, np.uint8)[1:].view(np.float32)
        self.fails(cinch.InvalidArgumentError, "gradient 1 is not aligned: it begins at no multiple of 4, the bytes of an element; its copy() does", self.encode_with, unaligned)
        self.assertEqual(self.encode_with(unaligned.copy()), self.encode_with(np.zeros(10, np.float32)))
        self.fails(TypeError, "list", self.encode_with, [0.0] * 10)
        self.fails(TypeError, "float", self.session.encode, 0, 1.0)
        self.fails(TypeError, "int", self.session.decode, 0, [1, 2])

    def test_transposed_arrays_are_not_dense(self):
        self.fails(cinch.InvalidArgumentError, "gradient 0", self.session.encode, 0, [np.zeros((6, 4), np.float32).T, self.gradients[1]])

    def test_read_only_arrays_are_read(self):
        array = self.gradients[1].copy()
        array.flags.writeable = False
        self.assertEqual(self.encode_with(array), self.payloads)
        self.fails(cinch.InvalidArgumentError, "read-only", self.decode_to, array)
        self.fails(cinch.InvalidArgumentError, "read-only", self.session.encode, 0, self.gradients, out=[bytearray(900), memoryview(bytes(900))])

    def test_overlapping_memory_is_refused(self):
        memory = np.zeros(30, np.float32)
        whole, part = memory[:24].reshape(4, 6), memory[20:30]
        self.fails(cinch.InvalidArgumentError, "overlap", self.session.decode, 0, self.payloads, out=[whole, part])
        self.fails(cinch.InvalidArgumentError, "overlap", self.session.finish, 0, [whole, self.gradients[1]], out=[np.zeros((4, 6), np.float32), part])
        room = np.zeros(100, np.float32)
        self.fails(cinch.InvalidArgumentError, "reads", self.session.encode, 0, room[:10], which=1, out=room)

    def test_corrupt_payloads_name_the_field(self):
        damaged = bytearray(self.payloads[1])
        damaged[-4:] = b"\xff\xff\xff\xff"
        error = self.fails(cinch.PayloadError, "field", self.session.decode, 0, [self.payloads[0], damaged])
        self.assertEqual((error.field, error.tensor), ("index", 1))
        for cut in (self.payloads[1][:-1], self.payloads[1][:20], b""):
            error = self.fails(cinch.PayloadError, "bytes", self.session.decode, 0, cut, which=1)
            self.assertEqual((error.field, error.tensor), (None, 0))
        newer = bytearray(self.payloads[1])
        newer[4] ^= 0x40
        self.fails(cinch.VersionError, "format version", self.session.decode, 0, newer, which=1)
        self.fails(cinch.InvalidArgumentError, "not dense", self.session.decode, 0, memoryview(self.payloads[1])[::2], which=1)

    def test_numbers_do_not_wrap_around(self):
        for wrong in ({"seed": -1}, {"seed": 1 << 64}, {"world": 1 << 32}, {"threads": -1}, {"tensor_numbers": [1 << 32, 0]}):
            self.fails(cinch.OutOfRangeError, "", self.topk.session, [3, 4], **wrong)
        self.fails(cinch.OutOfRangeError, "step", self.session.encode, -1, self.gradients)
        self.fails(cinch.OutOfRangeError, "dimension", self.topk.session, (3, -1))
        self.fails(cinch.InvalidArgumentError, "worker", self.topk.session, 3, world=2, worker=2)
        self.fails(cinch.InvalidArgumentError, "tensor numbers", self.topk.session, 3, tensor_numbers=[1, 2])
        self.assertRaises(TypeError, self.topk.session, "abc")
        self.assertRaises(TypeError, self.session.encode, 0.5, self.gradients)

    def test_closed_sessions_are_closed(self):
        self.session.close()
        self.session.close()
        self.session.cancel()
        uses = [lambda: self.encode_with(self.gradients[1]), self.session.states_save, lambda: self.session.set("ratio", 0.5), lambda: self.session.state_bytes]
        for use in uses:
            self.fails(cinch.InvalidArgumentError, "closed", use)
        self.assertIn("closed", repr(self.session))

    def test_not_finite_gradients_decode_to_nan(self):
        gradient = self.gradients[1].copy()
        gradient[3] = np.inf
        payload = self.session.encode(0, gradient, which=1)
        self.assertTrue(np.isnan(self.session.decode(0, payload, which=1)).all())


class Threads(TestCase):
    def test_one_call_at_a_time(self):
        gradient = normal(1 << 20)
        session = cinch.compile("dgc", ratio=0.01).session(gradient, threads=1)
        stop, failed = threading.Event(), []

        def encode():
            step = 0
            while not stop.is_set():
                try:
                    session.encode(step, gradient)
                    step += 1
                except cinch.InvalidArgumentError:
                    pass  # the other thread's call was first
                except BaseException as error:  # noqa: B902  (shown by the main thread)
                    failed.append(error)

        thread = threading.Thread(target=encode)
        thread.start()
        try:
            # The main thread only gets here while the other one computes because the interpreter's lock is free.
            for _ in range(1000000):
                try:
                    session.set("ratio", 0.02)
                except cinch.InvalidArgumentError as error:
                    self.assertIn("it takes one call at a time", str(error))
                    break
            else:
                self.fail("no call met the running one")
        finally:
            stop.set()
            thread.join()
        self.assertEqual(failed, [])
        with session._in_use:  # as a call holds it
            self.fails(cinch.InvalidArgumentError, "in use", session.close)
        session.close()

    def test_cancel_ends_a_call(self):
        gradient = normal(1000)
        with cinch.compile("onebit").session(gradient) as session:
            expected = session.encode(0, gradient)
            session.cancel()
            self.fails(cinch.CancelledError, "", session.encode, 0, gradient)
            self.assertEqual(session.encode(0, gradient), expected)


if __name__ == "__main__":
    unittest.main()
