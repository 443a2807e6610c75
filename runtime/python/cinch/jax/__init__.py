"""Compression as functions of JAX arrays, on CPUs, under jit, vmap and shard_map.

    import cinch.jax

    compressor = cinch.jax.Compressor("dgc", (300, 200), ratio=0.001)
    states = compressor.init()
    payload, length, states = compressor.encode(gradient, states, step)
    update = compressor.decode(payload, length, step)

docs/jax.md is a tour.
"""
try:
    import jax
except ImportError as missing:
    raise ImportError(f"cinch.jax needs JAX, which cannot be imported: {missing}") from missing

try:
    import jax.ffi
except ImportError as missing:
    raise ImportError("this JAX is too old for cinch.jax: it has no jax.ffi") from missing

from ._compressor import Compressor

__all__ = ["Compressor"]
