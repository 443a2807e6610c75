"""What the tests of cinch.jax share."""
import functools
import json
import os
import subprocess

import jax
import numpy as np

import cinch
import cinch.jax


def library():
    """Programs of the standard library that encode and decode gradients alone; what wraps others wraps one."""
    told = subprocess.run([os.environ["CINCH_COMMAND"], "list", "--json"], capture_output=True, text=True, check=True).stdout
    inner = {"warmup": "topk"}  # it sets a ratio
    return [f"{row['name']}({inner.get(row['name'], 'onebit')})" if row["family"] == "wrap" else row["name"]
            for row in json.loads(told) if row["aggregation"] != "sync" and not row["inputs"]]


OPTIONS = {"world", "seed", "tensor", "payload_bytes"}
compiled = functools.lru_cache(maxsize=None)(cinch.compile)


def made(program, shape, **options):
    """A compressor. Tests compile a program once, while `cinch.jax.Compressor("topk", …)` compiles it for states in place."""
    parameters = {name: options.pop(name) for name in set(options) - OPTIONS}
    if isinstance(program, str):
        program = compiled(program, **parameters)
    return cinch.jax.Compressor(program, shape, threads=1, **options)


def session_of(compressor, worker=0, seed=0):
    options = {"world": compressor.world, "worker": worker, "seed": seed}
    return compressor.program.session([compressor.shape], threads=1, **options)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def payload_of(encoded):
    """The bytes of a payload, behind which there are only zeros."""
    payload, length = np.asarray(encoded[0]), int(encoded[1])
    assert not payload[length:].any()
    return payload[:length].tobytes()


def assert_same(a, b):
    """The same type, shape and bits."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_states_are(states, session):
    assert np.asarray(states).tobytes() == (session.states_save() if session.program.states else b"")


def mesh(ranks):
    return jax.sharding.Mesh(np.array(jax.devices()[:ranks]), ("d",))
