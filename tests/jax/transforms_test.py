"""JAX's transformations, donated states, threads, and the end of a process."""
import os
import subprocess
import sys
import textwrap
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import assert_same, made, normal, payload_of, session_of

import cinch.jax


def there_and_back(compressor, gradient, states, step):
    payload, length, states = compressor.encode(gradient, states, step)
    return compressor.decode(payload, length, step), states


def by_session(compressor, gradients):
    with session_of(compressor) as session:
        return np.stack([session.decode(step, session.encode(step, gradient)) for step, gradient in enumerate(gradients)])


def test_scan_keeps_states():
    compressor, gradients = made("dgc", 300), normal(5, 300)

    def body(states, now):
        update, states = there_and_back(compressor, now[0], states, now[1])
        return states, update

    _, updates = jax.jit(lambda g: jax.lax.scan(body, compressor.init(), (g, jnp.arange(5))))(gradients)
    assert_same(updates, by_session(compressor, gradients))


def test_vmap_over_gradients_states_and_steps():
    compressor, gradients = made("dgc", 300), normal(3, 300)
    states = jnp.stack([compressor.init()] * 3)
    updates, after = jax.vmap(lambda *arrays: there_and_back(compressor, *arrays))(gradients, states, jnp.arange(3))
    for step in range(3):
        update, one = there_and_back(compressor, gradients[step], states[step], step)
        assert_same(updates[step], update)
        assert_same(after[step], one)


def test_donated_states_are_written_in_place():
    compressor, gradients = cinch.jax.Compressor("dgc", 300), normal(3, 300)  # whose sessions write states in place, too
    step_of = jax.jit(lambda g, states, step: there_and_back(compressor, g, states, step), donate_argnums=1)
    states, updates = compressor.init(), []
    for step, gradient in enumerate(gradients):
        given = states
        update, states = step_of(gradient, given, step)
        assert given.is_deleted()
        updates.append(update)
    assert_same(np.stack(updates), by_session(compressor, gradients))


def test_states_that_are_kept_do_not_change():
    compressor = made("dgc", 300)
    states = compressor.init()
    before = np.array(states)
    first = there_and_back(compressor, normal(300), states, 0)
    second = jax.jit(lambda s: there_and_back(compressor, normal(300), s, 0))(states)
    assert_same(states, before)
    assert_same(first[1], second[1])
    assert not np.array_equal(first[1], before)


def test_not_differentiable():
    compressor = made("dgc", 30)
    with pytest.raises(ValueError, match="cinch_encode_on_cpu` cannot be differentiated"):
        jax.grad(lambda g: there_and_back(compressor, g, compressor.init(), 0)[0].sum())(normal(30))
    stopped = jax.grad(lambda g: (there_and_back(compressor, jax.lax.stop_gradient(g), compressor.init(), 0)[0] * g).sum())
    assert stopped(normal(30)).shape == (30,)


def test_threads_share_a_compressor():
    compressor, failures = made("qsgd", 3000), []
    wanted = payload_of(compressor.encode(normal(3000), compressor.init(), 0))
    encode = jax.jit(compressor.encode)

    def run():
        try:
            for _ in range(20):
                assert payload_of(encode(normal(3000), compressor.init(), 0)) == wanted
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def python(code):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([os.environ["PYTHONPATH"], os.path.dirname(__file__)]))
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def test_a_process_ends_while_calls_run():
    done = python("""
        import jax, jax.numpy as jnp
        from support import made
        compressor = made("topk", 300000)
        f = jax.jit(lambda x: [compressor.encode(x + i, compressor.init(), i)[1] for i in range(30)])
        f(jnp.ones(300000))
    """)
    assert done.returncode == 0, done.stderr


def test_jax_is_optional():
    assert python("import sys, cinch, cinch.session; sys.exit('jax' in sys.modules)").returncode == 0
    missing = python("import sys; sys.modules['jax'] = None; import cinch; import cinch.jax")
    assert "ImportError: cinch.jax needs JAX" in missing.stderr
    old = python("import sys, types; sys.modules['jax'] = types.ModuleType('jax'); import cinch.jax")
    assert "ImportError: this JAX is too old for cinch.jax" in old.stderr
