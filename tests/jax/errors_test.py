"""What is wrong is told by name: when a call is traced, or by XLA where only the values tell."""
import copy
import ctypes
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import made, normal, payload_of

import cinch
from cinch.jax import Compressor, _cores, _frame, _targets


def fails(match, function, *arguments):
    with pytest.raises(jax.errors.JaxRuntimeError, match=match):
        jax.block_until_ready(function(*arguments))


def test_programs():
    with pytest.raises(cinch.InvalidArgumentError, match="no program 'nowhere'"):
        Compressor("nowhere", 8)
    with pytest.raises(cinch.InvalidArgumentError, match="`sync` body"):
        Compressor("powersgd", (8, 8))
    with pytest.raises(cinch.InvalidArgumentError, match="takes the input lr"):
        Compressor("ef_lr(onebit)", 8)
    with pytest.raises(cinch.ProgramError):
        Compressor("topk", 8, ratio=5.0)
    with pytest.raises(cinch.InvalidArgumentError, match="bound by cinch.compile"):
        Compressor(cinch.compile("topk"), 8, ratio=0.5)
    with pytest.raises(cinch.InvalidArgumentError, match="one shape"):
        Compressor("topk", [(8,), (9,)])
    with pytest.raises(cinch.InvalidArgumentError, match="uint32"):
        Compressor("topk", 8, payload_bytes=0)
    with pytest.raises(cinch.InvalidArgumentError, match="world is 0"):
        Compressor("topk", 8, world=0)
    with pytest.raises(cinch.InvalidArgumentError, match="shape is 3.5"):
        Compressor("topk", 3.5)
    for copies in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="make another one"):
            copies(made("topk", (8,)))
    fails("has a length of 4294967295 bytes", made("topk", (8,)).decode, jnp.zeros(made("topk", (8,)).payload_bytes, jnp.uint8), (1 << 32) - 1, 0)


@pytest.mark.parametrize("is_traced", [False, True])
def test_arguments(is_traced):
    compressor = made("dgc", (4, 8))
    states, gradient = compressor.init(), normal(4, 8)
    payload, length, _ = compressor.encode(gradient, states, 0)
    wrong = {
        r"the gradient has shape \(8, 4\), not \(4, 8\)": lambda: compressor.encode(gradient.T, states, 0),
        "the gradient has elements of type int32": lambda: compressor.encode(gradient.astype(np.int32), states, 0),
        "the array of states has shape": lambda: compressor.encode(gradient, states[1:], 0),
        "the array of states has elements of type float32": lambda: compressor.encode(gradient, states.astype(jnp.float32), 0),
        "step is an array of float32": lambda: compressor.encode(gradient, states, 1.5),
        "worker is an array of int32 with shape": lambda: compressor.encode(gradient, states, 0, worker=jnp.arange(2)),
        "the payload has shape": lambda: compressor.decode(payload[1:], length, 0),
        "a payload's length is an array": lambda: compressor.decode(payload, payload, 0),
        "updates have elements of type int8": lambda: compressor.decode(payload, length, 0, dtype="int8"),
        "the sum has elements of type float16": lambda: compressor.finish(gradient.astype(np.float16), states, 0),
    }
    for match, call in wrong.items():
        with pytest.raises(cinch.InvalidArgumentError, match=match):
            (jax.jit(call) if is_traced else call)()
    with pytest.raises(cinch.OutOfRangeError, match="step is -1"):
        compressor.encode(gradient, states, -1)


def test_payloads():
    compressor = made("topk", 400, ratio=0.1)
    payload, length, _ = compressor.encode(normal(400), compressor.init(), 0)
    decode = jax.jit(compressor.decode)
    where = r"cinch.jax, decode of topk\(.*ratio: 0.1.*400"
    fails(rf"DATA_LOSS: {where}.*", decode, payload.at[0].set(0), length, 0)
    fails(f"{where}.*", decode, payload, length - 1, 0)
    fails(f"{where}.*", decode, payload.at[17].add(1), length, 0)
    fails(f"{where}.*field index", decode, payload.at[length - 1].set(255), length, 0)
    fails("length of 1000000 bytes, in an array of", decode, payload, 1000000, 0)
    fails("length of -1 bytes", decode, payload, jnp.int32(-1), 0)
    other = made("onebit", 400, payload_bytes=compressor.payload_bytes)
    fails("decode of onebit", other.decode, payload, length, 0)
    assert np.isfinite(decode(payload, length, 0)).all()  # sessions go on


def test_a_payload_of_one_rank():
    compressor = made("onebit", 40, world=2)

    def broken(gradient):
        rank = jax.lax.axis_index("d")
        payload, length, states = compressor.encode(gradient, compressor.init(), 0, worker=rank)
        payloads, lengths = jax.lax.all_gather((payload.at[0].add(jnp.uint8(rank)), length), "d")
        results = [((40,), jnp.float32), ((compressor.state_bytes,), jnp.uint8)]
        return compressor._call("average", results, payloads, lengths, states, states, 0, 0, 0)

    fails("payload of rank 1: ", jax.vmap(broken, axis_name="d"), normal(2, 40))


def test_numbers_and_states_at_run_time():
    compressor = made("dgc", 40, world=2)
    states = compressor.init()
    encode = jax.jit(lambda states, step, worker: compressor.encode(normal(40), states, step, worker=worker))
    fails("OUT_OF_RANGE.*step is -1", encode, states, -1, 0)
    fails("INVALID_ARGUMENT.*worker", encode, states, 0, 2)
    fails("encode of dgc", encode, states.at[70].add(1), 0, 0)
    fails("encode of dgc", encode, jnp.zeros_like(states), 0, 0)
    small = made("dgc", 40, payload_bytes=70)
    fails("encode of dgc", small.encode, normal(40), small.init(), 0)
    assert payload_of(encode(states, 0, 0))


def test_an_executable_of_another_process(monkeypatch):
    compressor = made("fp16", 11)
    encode = jax.jit(compressor.encode)
    encode(normal(11), compressor.init(), 0)
    monkeypatch.setattr(_cores, "_cores", {})
    fails("has made no such cinch.jax.Compressor", encode, normal(11), jnp.zeros(0, jnp.uint8), 0)


def test_another_version_of_the_ffi():
    api = _frame._Api(struct_size=400, version=_frame._Version(struct_size=24, major=1, minor=0))
    frame = _frame._Frame(struct_size=ctypes.sizeof(_frame._Frame), api=ctypes.pointer(api), stage=3)
    for part in (frame.arguments, frame.results, frame.attributes):
        part.struct_size = ctypes.sizeof(part)
    with pytest.raises(cinch.UnavailableError, match="version 1.0 of XLA's FFI"):
        _frame.read(frame)
    api.version.major = 0
    with pytest.raises(cinch.UnavailableError, match="no attribute key"):
        _frame.read(frame)
    frame.results.struct_size += 8
    with pytest.raises(cinch.UnavailableError, match="has 48 bytes, this package reads 40"):
        _frame.read(frame)


def test_a_fault_of_a_handler_is_told(monkeypatch):
    def fault(*_):
        raise RuntimeError("a planted fault")

    monkeypatch.setattr(_cores, "named", fault)
    compressor = made("fp16", 12)
    fails("INTERNAL: a planted fault", compressor.init)
    assert _targets._code_of(cinch.OutOfMemoryError("x")) == 8
