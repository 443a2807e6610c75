"""Payloads, updates and states are those of `cinch.Session`, and of NumPy."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from support import assert_same, assert_states_are, library, made, normal, payload_of, session_of

import cinch
import cinch.jax


@pytest.mark.parametrize("name", library())
def test_every_program_of_the_library(name):
    compressor = made(name, (30, 20), world=3, seed=7)
    encode = jax.jit(lambda gradient, states, step, worker: compressor.encode(gradient, states, step, worker=worker))
    states = compressor.init(worker=1)
    with session_of(compressor, worker=1, seed=7) as session:
        assert_states_are(states, session)
        for step in range(3):
            gradient = normal(30, 20, seed=step)
            *encoded, states = encode(gradient, states, step, jnp.uint32(1))
            payload = session.encode(step, gradient)
            assert payload_of(encoded) == payload
            update = compressor.decode(*encoded, step)
            decoded = session.decode(step, payload)
            assert_same(update, decoded)
            update, states = compressor.finish(update, states, step, worker=1)
            assert_same(update, session.finish(step, decoded))
            assert_states_are(states, session)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["dgc", "onebit", "signsgd"])
def test_narrow_gradients_and_updates(name, dtype):
    compressor = made(name, (30, 20))
    gradient = normal(30, 20).astype(dtype)
    *encoded, states = compressor.encode(gradient, compressor.init(), 0)
    with session_of(compressor) as session:
        payload = session.encode(0, gradient)
        assert payload_of(encoded) == payload
        assert_same(compressor.decode(*encoded, 0, dtype=dtype), session.decode(0, payload, out=np.empty((30, 20), dtype)))
        total = session.decode(0, payload)
        assert_same(compressor.finish(total, states, 0, dtype=dtype)[0], session.finish(0, total, out=np.empty((30, 20), dtype)))


@pytest.mark.parametrize("shape", [(), 1, 0, (0, 3), 7, (3, 5, 7), 1025])
@pytest.mark.parametrize("name", ["dgc", "qsgd"])
def test_odd_and_empty_shapes(name, shape):
    compressor = made(name, shape)
    gradient = normal(*compressor.shape)
    *encoded, states = jax.jit(compressor.encode)(gradient, compressor.init(), 0)
    with session_of(compressor) as session:
        assert payload_of(encoded) == session.encode(0, [gradient])[0]
        assert_same(jax.jit(compressor.decode)(*encoded, 0), session.decode(0, [payload_of(encoded)])[0])
        assert_states_are(states, session)


def test_numbers_beyond_32_bits_and_traced_seeds():
    compressor = made("qsgd", 600, seed=1 << 40)
    gradient, step = normal(600), (1 << 35) + 3
    for seed in (None, 5, 1 << 63):
        with session_of(compressor, seed=compressor.seed if seed is None else seed) as session:
            assert payload_of(compressor.encode(gradient, compressor.init(), step, seed=seed)) == session.encode(step, gradient)
    encode = jax.jit(lambda seed: compressor.encode(gradient, compressor.init(), 0, seed=seed))
    told = {payload_of(encode(seed)) for seed in range(12)}  # more than are kept idle
    assert len(told) == 12 and payload_of(encode(0)) in told


def test_a_schedule_of_the_program_has_room():
    compressor = made("dgc", 1000, ratio=0.01, warmup=4, epoch=1)
    states = compressor.init()
    with session_of(compressor) as session:
        for step in range(6):
            *encoded, states = compressor.encode(normal(1000), states, step)
            assert payload_of(encoded) == session.encode(step, normal(1000))


SCALED = """compressor mine {
  wire { x: [f32; n] }
  encode(g: [f32; n]) { wire { x: g * FACTOR } }
  decode(w) { w.x }
}
"""


def test_programs_that_differ_in_code_alone_are_told_apart():
    programs = [cinch.compile("mine", text=SCALED.replace("FACTOR", factor)) for factor in "23"]
    assert programs[0].fingerprint == programs[1].fingerprint
    for factor, program in zip((2, 3), programs):
        compressor = made(program, 10)
        payload, length, _ = jax.jit(compressor.encode)(normal(10), compressor.init(), 0)
        assert_same(compressor.decode(payload, length, 0), normal(10) * np.float32(factor))


def test_topk_against_numpy():
    gradient = normal(1000)
    compressor = cinch.jax.Compressor("topk", 1000, ratio=0.05)
    payload, length, _ = compressor.encode(gradient, compressor.init(), 0)
    wanted = np.zeros_like(gradient)
    kept = np.argsort(-np.abs(gradient), kind="stable")[:50]
    wanted[kept] = gradient[kept]
    assert_same(compressor.decode(payload, length, 0), wanted)


def test_error_feedback_against_numpy():
    compressor = made("error_feedback(topk(ratio: 0.1))", 500)
    states, residual = compressor.init(), np.zeros(500, np.float32)
    for step in range(5):
        gradient = normal(500, seed=step)
        payload, length, states = compressor.encode(gradient, states, step)
        corrected = gradient + residual
        kept = np.argsort(-np.abs(corrected), kind="stable")[:50]
        wanted = np.zeros_like(gradient)
        wanted[kept] = corrected[kept]
        residual = corrected - wanted
        assert_same(compressor.decode(payload, length, step), wanted)


def test_sessions_take_the_states_over():
    compressor = made("dgc", 400)
    states = compressor.encode(normal(400), compressor.init(), 0)[2]
    with session_of(compressor) as session:
        session.states_load(np.asarray(states).tobytes())
        payload = session.encode(1, normal(400, seed=1))
    assert payload_of(compressor.encode(normal(400, seed=1), states, 1)) == payload
