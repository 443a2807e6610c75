"""What `decode` may see and do: `worker` is the rank that encoded the payload, whoever reads it; what a check rejects writes nothing. Against numpy."""
import os
import struct
import tempfile

import cinch
import numpy as np
from combinations_test import PLANS, by_command
from support import TestCase, normal

WORLD, SHAPE = 5, (103,)
TIMES = """compressor times {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: g } }
  decode(w) { w.value * (1.0 + worker as f32) }
}
"""
# Each rank sends its own share of a shared permutation, and nobody sends places.
SHARE = """compressor share {
  size k = ceil_div(n, world)
  wire { value: [f32; k] }
  encode(g: [f32; n]) {
    let i = iota(k) * world + worker
    wire { value: select(i < n, g[random_index(n, size: n, shared: true)[min(i, n - 1)]], 0.0) }
  }
  decode(w) { scatter_add(w.value, at: random_index(n, size: n, shared: true)[min(iota(k) * world + worker, n - 1)], size: n) }
}
"""
AROUND = """import std.wrap
compressor rows() = chunked(times, size: 10)
compressor kept() = error_feedback(times)
"""


class DecodeKnowsWorker(TestCase):
    def setUp(self):
        self.gradients = [normal(*SHAPE, seed=rank) for rank in range(WORLD)]

    def sessions(self, text, name=""):
        program = cinch.compile(f"p:{name}" if name else "p", text=text)
        return [program.session([SHAPE], world=WORLD, worker=rank, threads=1, seed=3) for rank in range(WORLD)]

    def payloads(self, sessions):
        return [session.encode(0, [gradient])[0] for session, gradient in zip(sessions, self.gradients)]

    def test_every_reader_takes_the_rank_of_the_sender(self):
        for name in ("times", "rows", "kept"):
            sessions = self.sessions(AROUND + TIMES, name)
            for rank, payload in enumerate(self.payloads(sessions)):
                for reader in sessions:
                    self.assertSameBits(np.asarray(reader.decode(0, [payload])[0]), self.gradients[rank] * np.float32(1 + rank))

    def test_a_payload_may_name_a_rank_that_is_not_there(self):
        session = self.sessions(TIMES)[0]
        payload = bytearray(self.payloads([session])[0])
        self.assertEqual(payload[-4:], bytes(4))
        payload[-4:] = struct.pack("<I", 2**32 - 1)
        self.assertSameBits(np.asarray(session.decode(0, [bytes(payload)])[0]), self.gradients[0] * np.float32(2**32))

    def test_shares_of_a_permutation_meet_once(self):
        sessions = self.sessions(SHARE)
        total = np.zeros(SHAPE, np.float32)
        for payload in self.payloads(sessions):
            sessions[2].decode_add(0, [payload], [total])
        is_of = np.stack(self.gradients) == total
        self.assertEqual(is_of.sum(axis=1).tolist(), [len(range(rank, SHAPE[0], WORLD)) for rank in range(WORLD)])

    def test_every_plan_gives_the_mean_of_what_was_sent_or_does_not_take_the_program(self):
        wanted = sum(g * np.float32(1 + rank) for rank, g in enumerate(self.gradients)) / np.float32(WORLD)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "times.cinch")
            with open(file, "w") as written:
                written.write(TIMES)
            for plan in (*PLANS, "auto"):  # auto: the default
                for device in ("cpu", "emulated"):
                    found = by_command(file, plan, device, "f32", self.gradients)
                    self.assertEqual(found is not None, plan in ("allgather", "allreduce", "auto"), plan)
                    if found is not None:
                        self.assertSameBits(found, wanted)

    def test_it_has_no_carrier(self):
        self.assertTrue(cinch.compile("p", text=TIMES).carrier.startswith("none: `decode` of `times` depends on the rank"))


REJECTED = {
    "codes": """import std.huffman
compressor codes {
  wire { length: [u4; 256], code: [u32; n] huffman(length) }
  encode(g: [f32; n]) {
    let code = bitcast<u8>(clamp(round(g * 16), -127, 127) as i8) as u32
    wire { length: code_lengths(histogram(code, bins: 256)), code }
  }
  decode(w) { bitcast<i8>(w.code as u8) as f32 / 16 }
}
""",
    "table": """const t = [1.0, 2.0, 3.0, 4.0, 5.0]
compressor table {
  wire { code: [u4; n] }
  encode(g: [f32; n]) { wire { code: clamp(g + 2, 0, 4) as u4 } }
  decode(w) { t[w.code] }
}
""",
    "condition": """compressor condition {
  wire { code: [u4; n], at: [u32; 2] }
  encode(g: [f32; n]) { wire { code: clamp(g + 2, 0, 4) as u4, at: [0 as u32, 1 as u32] } }
  decode(w) {
    let mut x = w.code as f32
    x[w.at[0]] = 7.0
    assert max(w.code) < 5, "small"
    if max(w.at) > 5 { x * 2 } else { x }
  }
}
""",
}


class Rejected(TestCase):
    def test_what_a_check_of_decode_rejects_writes_nothing(self):
        draw = np.random.default_rng(1)
        for name, text in REJECTED.items():
            for threads in (1, 2):
                session = cinch.compile(f"p:{name}", text=text).session([(3000,)], threads=threads)
                payload = session.encode(0, [normal(3000)])[0]
                num_rejected = 0
                for _ in range(60):
                    changed = bytearray(payload)
                    changed[draw.integers(64, len(payload))] ^= 1 << int(draw.integers(8))
                    out = np.full(3000, 7, np.float32)
                    for call in (lambda: session.decode(0, [bytes(changed)], out=[out]), lambda: session.decode_add(0, [bytes(changed)], [out])):
                        try:
                            call()
                            out[:] = 7
                        except cinch.Error:
                            num_rejected += 1
                            self.assertTrue(np.all(out == 7), name)
                self.assertGreater(num_rejected, 10, name)
