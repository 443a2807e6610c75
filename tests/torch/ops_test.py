"""`torch.ops.cinch.encode` and `decode` against sessions, eagerly and traced."""
import threading

import pytest
import torch
from support import assert_same

import cinch
import cinch.torch

ENCODE, DECODE = torch.ops.cinch.encode, torch.ops.cinch.decode


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["topk(ratio: 0.1)", "qsgd", "onebit", "fp16"])
def test_payloads_are_those_of_sessions(name, dtype):
    gradient = torch.randn(30, 20, generator=torch.Generator().manual_seed(0)).to(dtype)
    with cinch.compile(name).session([(30, 20)], world=3, worker=1, seed=7) as session:
        payload = ENCODE(gradient, name, 5, 3, 1, 7)
        assert payload.dtype == torch.uint8 and bytes(payload.numpy()) == session.encode(5, [gradient])[0]
        update = DECODE(payload, gradient.shape, name, 5, 3, 7)
        assert_same(update, torch.from_numpy(session.decode(5, [bytes(payload.numpy())])[0]))


def test_views_and_empty_tensors():
    gradient = torch.randn(40, 30)
    payload = ENCODE(gradient.t(), "topk(ratio: 0.1)", 0)
    assert_same(payload, ENCODE(gradient.t().contiguous(), "topk(ratio: 0.1)", 0))
    assert DECODE(ENCODE(torch.empty(0), "fp16", 0), [0], "fp16", 0).shape == (0,)
    padded = torch.cat([torch.zeros(5, dtype=torch.uint8), payload])[5:]
    assert_same(DECODE(padded, [30, 40], "topk(ratio: 0.1)", 0), DECODE(payload, [30, 40], "topk(ratio: 0.1)", 0))


def test_programs_with_states_are_told_what_to_do():
    for name in ("error_feedback(topk)", "dgc", "powersgd"):
        with pytest.raises(cinch.InvalidArgumentError, match="use a cinch.Session"):
            ENCODE(torch.zeros(8, 8), name, 0)
        with pytest.raises(cinch.InvalidArgumentError, match="from step to step"):
            DECODE(torch.zeros(8, dtype=torch.uint8), [8, 8], name, 0)


def test_errors_keep_their_types():
    with pytest.raises(cinch.InvalidArgumentError, match="no program 'nowhere'"):
        ENCODE(torch.zeros(8), "nowhere", 0)
    with pytest.raises(cinch.InvalidArgumentError, match="int32"):
        ENCODE(torch.zeros(8, dtype=torch.int32), "fp16", 0)
    with pytest.raises(cinch.PayloadError):
        DECODE(torch.zeros(3, dtype=torch.uint8), [8], "fp16", 0)


def through(gradient, step):
    payload = ENCODE(gradient * 2, "topk(ratio: 0.1)", step)
    return DECODE(payload, gradient.shape, "topk(ratio: 0.1)", step) + 1


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_compiled_functions_give_the_same(is_whole, is_dynamic):
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=is_whole):
        compiled = torch.compile(through, backend="aot_eager", fullgraph=is_whole, dynamic=is_dynamic)
        for step in range(3):
            gradient = torch.randn(30 + step, 20)
            assert_same(compiled(gradient, step), through(gradient, step))


def test_operators_keep_the_rules_of_pytorch():
    gradient = torch.randn(30, 20)
    payload = ENCODE(gradient, "qsgd", 0)
    torch.library.opcheck(ENCODE.default, (gradient, "qsgd", 0))
    torch.library.opcheck(DECODE.default, (payload, [30, 20], "qsgd", 0))


def test_threads_do_not_wait_for_each_other():
    gradient = torch.randn(3000)
    wanted, failures = ENCODE(gradient, "qsgd", 0), []

    def run():
        try:
            for _ in range(20):
                assert_same(ENCODE(gradient, "qsgd", 0), wanted)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
