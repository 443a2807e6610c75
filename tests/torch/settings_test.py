"""Arguments of `compress`, hooks of one's own, and what is told of steps."""
import json
import pickle
import warnings

import pytest
import torch
from support import assert_all_same, assert_same, data_of, flat, gradients_of, loss_of, small_model, train, wrapped

import cinch
import cinch.torch


def scaled(rank, world, program, factor):
    """Gradients after steps whose losses are multiplied by `factor`, divided by it again."""
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, program, scale=lambda: factor)
    told = []
    for step in range(3):
        ddp.zero_grad()
        (loss_of(ddp, rank, step) * factor).backward()
        told += [gradient / factor for gradient in gradients_of(model)]
    return told


@pytest.mark.parametrize("program", ["none", "qsgd", "error_feedback(onebit)"])
def test_loss_scales(ranks, program):
    bare, large = ranks.run(2, scaled, program, 1.0), ranks.run(2, scaled, program, 1024.0)
    for a, b in zip(bare[0] + bare[1], large[0] + large[1]):
        assert_same(a, b)


def skipping(rank, world, program, has_bad_step, is_averager):
    """Gradients of two steps; between them there may be one with an infinite gradient on rank 1."""
    model = small_model()
    settings = {"skips_non_finite": True, "rules": [{"min_dims": 2}]}
    if is_averager:
        ddp, averager = model, cinch.torch.Averager(model.named_parameters(), program, **settings)
        compression = averager
    else:
        ddp = wrapped(model)
        compression = cinch.torch.compress(ddp, program, **settings)

    def step(which, factor=1.0):
        ddp.zero_grad()
        (loss_of(ddp, rank, which) * factor).backward()
        if is_averager:
            assert averager.average() == (factor != 1.0 and has_bad_step) or rank == 0
        return gradients_of(model)

    told = step(0)
    before = saved_states(compression, rank)
    if has_bad_step:
        for gradient in step(1, float("inf") if rank == 1 else 1.0):
            assert torch.isnan(gradient).all()
        assert saved_states(compression, rank) == before
    return told + step(2)


def saved_states(compression, rank):
    """Without the description, which has the step."""
    states = compression.state_dict()[f"rank{rank}.states"].numpy().tobytes()
    return states[40 + int.from_bytes(states[32:40], "little") :]


@pytest.mark.parametrize("is_averager", [False, True])
@pytest.mark.parametrize("program", ["error_feedback(onebit)", "dgc"])
def test_a_step_that_is_not_finite_is_skipped(ranks, program, is_averager):
    with_it, without = ranks.run(2, skipping, program, True, is_averager), ranks.run(2, skipping, program, False, is_averager)
    for a, b in zip(with_it[0] + with_it[1], without[0] + without[1]):
        assert_same(a, b)


def with_scaler(rank, world):
    model = small_model()
    ddp = wrapped(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=1000)
    cinch.torch.compress(ddp, "error_feedback(onebit)", scale=scaler.get_scale, skips_non_finite=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    told = []
    for step in range(3):
        optimizer.zero_grad()
        bad = float("inf") if (rank, step) == (0, 1) else 1.0
        scaler.scale(loss_of(ddp, rank, step) * bad).backward()
        scaler.step(optimizer)
        scaler.update()
        told.append(flat(model))
    return told, scaler.get_scale()


def test_grad_scaler(ranks):
    for told, scale in ranks.run(2, with_scaler):
        assert_same(told[0], told[1])
        assert not torch.equal(told[1], told[2])
        assert scale == 128.0


def pickled_hook(rank, world):
    told = []
    for hook in (cinch.torch.Hook("error_feedback(onebit)"), pickle.loads(pickle.dumps(cinch.torch.Hook("error_feedback(onebit)", timeout=20)))):
        model = small_model()
        ddp = wrapped(model)
        ddp.register_comm_hook(hook, cinch.torch.run_hook)
        train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 3)
        told.append(flat(model))
        again = pickle.loads(pickle.dumps(hook))
        assert again.engine is None and again.settings == hook.settings
    with pytest.raises(TypeError, match="compiled program"):
        pickle.dumps(cinch.torch.Hook(cinch.compile("qsgd")))
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 3)
    return told + [flat(model)]


def test_hooks_of_ones_own(ranks):
    told = ranks.run(2, pickled_hook)
    assert_all_same(told[0] + told[1])


def programs_by_rules(rank, world, rules):
    model = small_model()
    compression = cinch.torch.compress(wrapped(model), "qsgd", bits=3, rules=rules)
    return {each.name: None if each.program is None else each.program.name for each in compression.engine.compressed.tensors}


def by_name(name, shape):
    assert all(isinstance(size, int) for size in shape)
    return {"0.weight": {"use": "dgc", "set": {"ratio": 0.01}}, "0.bias": "exact", "2.weight": "onebit"}.get(name)


def test_rules(ranks):
    told = ranks.run(2, programs_by_rules, None)
    assert told[0] == {"0.weight": "qsgd", "0.bias": None, "2.weight": None, "2.bias": None}
    listed = [{"name": "*.bias", "use": "exact"}, {"max_elements": 1000, "use": "fp16"}, {}]
    wanted = {"0.weight": "qsgd", "0.bias": None, "2.weight": "fp16", "2.bias": None}
    assert ranks.run(2, programs_by_rules, listed)[1] == wanted
    assert ranks.run(2, programs_by_rules, json.dumps({"rules": listed}))[1] == wanted
    told = ranks.run(2, programs_by_rules, [by_name, {"name": "2.bias"}])
    assert told[0] == {"0.weight": "dgc", "0.bias": None, "2.weight": "onebit", "2.bias": "qsgd"}


WORDED = """compressor worded(fit: {whole, none} = whole) {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: if fit == whole { g } else { 0 * g } } }
  decode(w) { w.value }
}
"""


def bound_to_words(rank, world, path, fit, rules):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, path, rules=rules, **({} if fit is None else {"fit": fit}))
    loss_of(ddp, rank, 0).backward()
    return [bool(gradient.any()) for gradient in gradients_of(model)]


def test_parameters_take_words(ranks, tmp_path):
    path = str(tmp_path / "worded.cinch")
    with open(path, "w") as file:
        file.write(WORDED)
    assert all(ranks.run(2, bound_to_words, path, "whole", [{}])[0])
    assert not any(ranks.run(2, bound_to_words, path, "none", [{}])[1])
    assert not any(ranks.run(2, bound_to_words, path, None, [{"set": {"fit": "none"}}])[0])
    failed = ranks.fail(2, bound_to_words, path, "half", [{}])
    assert failed[0].kind == "ProgramError" and "{whole, none}" in failed[0].text


def first_dense(rank, world):
    model = small_model()
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, "onebit", dense_steps=2, first_step=5)
    told = []
    for step in range(4):
        ddp.zero_grad()
        loss_of(ddp, rank, step).backward()
        report = compression.report()
        told.append((report["is_dense"], gradients_of(model)[0].unique().numel()))
    return told


def test_dense_steps(ranks):
    for told in ranks.run(2, first_dense):
        assert [is_dense for is_dense, _ in told] == [True, True, False, False]
        assert all(values > 1000 for _, values in told[:2]) and all(values < 200 for _, values in told[2:])


def with_schedule(rank, world, values, settings):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "topk", plan="allgather", schedule={"ratio": lambda step: values[step]}, **settings)
    told = []
    for step in range(4):
        ddp.zero_grad()
        loss_of(ddp, rank, step).backward()
        told.append(int(gradients_of(model)[0].count_nonzero()))
    return told


def test_schedules(ranks):
    for told in ranks.run(2, with_schedule, [0.1, 0.1, 0.01, 0.01], {}):
        assert all(400 < count < 1000 for count in told[:2]), told
        assert all(40 < count < 100 for count in told[2:]), told
    for told in ranks.run(2, with_schedule, [0.01, 0.1, 0.01, 0.1], {"ratio": 0.1}):
        assert all(40 < count < 100 for count in told[::2]), told
        assert all(400 < count < 1000 for count in told[1::2]), told
    for failure in ranks.fail(2, with_schedule, [0.01, 0.1], {}):
        assert failure.kind == "SyncError" and "room" in failure.text


def compiled(rank, world, where):
    # Dynamo cuts what it compiles where DDP's buckets of 1 MB end.
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 3))
    inside = torch.compile(model, backend="aot_eager") if where == "inside" else model
    ddp = wrapped(inside, bucket_cap_mb=1)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    outside = torch.compile(ddp, backend="aot_eager") if where == "outside" else ddp
    train(outside, torch.optim.SGD(model.parameters(), lr=0.05), rank, 3)
    torch._dynamo.reset()
    return flat(model)


def test_torch_compile(ranks):
    told = [ranks.run(2, compiled, where, seconds=120) for where in ("nowhere", "inside", "outside")]
    for a, b in told:
        assert_same(a, b)
    for each in told[1:]:
        torch.testing.assert_close(each[0], told[0][0], rtol=0.02, atol=0.002)


def bare_types(rank, world):
    model = small_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compression = cinch.torch.compress(wrapped(model), cinch.compile("qsgd", bits=3))
    return compression.engine.compressed.programs[0].name, data_of(rank)[0].shape


def test_a_compiled_program(ranks):
    assert ranks.run(2, bare_types)[0][0] == "qsgd"
