"""`all_reduce` within shard_map and vmap against sessions, one for each rank."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from support import assert_same, made, mesh, normal, session_of

import cinch


def by_sessions(sessions, step, gradients):
    """The update of each rank by sessions, whose states a step of a non-finite gradient leaves."""
    before = [session.states_save() for session in sessions]
    payloads = [session.encode(step, gradient) for session, gradient in zip(sessions, gradients)]
    if not np.isfinite(gradients).all():
        for session, states in zip(sessions, before):
            session.states_load(states)
    updates = []
    for session in sessions:
        total = session.decode(step, payloads[0])
        for payload in payloads[1:]:
            session.decode_add(step, payload, total)
        updates.append(session.finish(step, total))
    return updates


def over_devices(compressor, checks):
    """(states, a step) over a mesh with a device for each rank."""
    ranks = mesh(compressor.world)
    options = {} if checks is None else {"check_vma": checks}
    first = jax.shard_map(lambda: compressor.init(worker=jax.lax.axis_index("d")), mesh=ranks, in_specs=(), out_specs=P("d"), **options)

    def body(gradients, states, step):
        return compressor.all_reduce(gradients[0], states, step, "d")

    step = jax.shard_map(body, mesh=ranks, in_specs=(P("d"), P("d"), P()), out_specs=(P(), P("d")), **options)
    return jax.jit(first)(), jax.jit(step, donate_argnums=1)


@pytest.mark.parametrize("name", ["dgc", "qsgd", "randomk", "two_way(onebit)", "signsgd", "ef21(topk)"])
@pytest.mark.parametrize("ranks, checks", [(2, True), (4, False), (3, None), (1, True)])
def test_shard_map_gives_the_bits_of_sessions(name, ranks, checks):
    compressor = made(name, (30, 20), world=ranks, seed=3)
    states, step_of = over_devices(compressor, checks)
    assert states.shape == (ranks * compressor.state_bytes,)
    sessions = [session_of(compressor, worker=rank, seed=3) for rank in range(ranks)]
    for step in range(4):
        gradients = normal(ranks, 30, 20, seed=step)
        if step == 2:
            gradients[-1, 0, 0] = np.inf
        update, states = step_of(gradients, states, jnp.int32(step))
        wanted = by_sessions(sessions, step, gradients)
        assert np.isnan(wanted[0]).all() == (step == 2)
        for shard in update.addressable_shards:
            assert_same(shard.data, wanted[0])
        told = b"".join(session.states_save() for session in sessions) if compressor.state_bytes else b""
        assert np.asarray(states).tobytes() == told


def test_ranks_of_vmap():
    compressor = made("two_way(onebit)", 300, world=3)
    states = jax.vmap(lambda worker: compressor.init(worker=worker))(jnp.arange(3))
    sessions = [session_of(compressor, worker=rank) for rank in range(3)]
    step_of = jax.jit(jax.vmap(lambda *arrays: compressor.all_reduce(*arrays, "d"), in_axes=(0, 0, None), axis_name="d"))
    for step in range(3):
        gradients = normal(3, 300, seed=step)
        updates, states = step_of(gradients, states, step)
        for update, wanted in zip(updates, by_sessions(sessions, step, gradients)):
            assert_same(update, wanted)


def test_payloads_gathered_by_hand():
    compressor = made("topk", 200, ratio=0.1, world=2)

    def body(gradient):
        payload, length, _ = compressor.encode(gradient[0], compressor.init(), 0, worker=jax.lax.axis_index("d"))
        payloads, lengths = jax.lax.all_gather((payload, length), "d")
        return jax.vmap(lambda *each: compressor.decode(*each, 0))(payloads, lengths).mean(0)[None]

    gradients = normal(2, 200)
    means = jax.jit(jax.shard_map(body, mesh=mesh(2), in_specs=P("d"), out_specs=P("d")))(gradients)
    with session_of(compressor) as session:
        decoded = [session.decode(0, session.encode(0, gradient)) for gradient in gradients]
    assert_same(means[0], np.asarray(jnp.stack(decoded).mean(0)))
    assert_same(means[1], means[0])


def test_an_axis_of_another_size():
    compressor = made("topk", 200, world=4)
    with pytest.raises(cinch.InvalidArgumentError, match="'d' has 2 ranks, the compressor is for world=4"):
        over_devices(made("topk", 200, world=2), True)
        jax.vmap(lambda g: compressor.all_reduce(g, compressor.init(), 0, "d"), axis_name="d")(normal(2, 200))
