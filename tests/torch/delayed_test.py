"""`Delayed`, against recurrences in PyTorch without Cinch, and methods against each other."""
import copy
import os
import signal
import warnings

import numpy as np
import pytest
import torch
from support import TIMEOUT, assert_all_same, assert_same, flat, loss_of, small_model, wrapped

import cinch
import cinch.torch
from cinch.torch import _states, _told

STEPS = 7


def optimizer_of(kind, model):
    if kind == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9 if kind == "momentum" else 0.0)


def train(rank, world, method, kind="sgd", alike=False, steps=STEPS, **settings):
    """Own weights after each step, and the global ones at the end."""
    model = small_model()
    optimizer = optimizer_of(kind, model)
    trainer = cinch.torch.Delayed(model, optimizer, method, **settings)
    weights = []
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, 0 if alike else rank, step).backward()
        trainer.step()
        assert trainer.report()["method"] == method  # while an exchange is under way
        weights.append(flat(model))
    trainer.flush()
    return [*weights, flat(model)]


def recurrence(world, method, kind="sgd", share=0.0, steps=STEPS):
    """The same in one process: global weights, and each rank's own weights."""
    model = small_model()
    optimizer = optimizer_of(kind, model)
    parameters = list(model.parameters())
    own = [[p.detach().clone() for p in parameters] for _ in range(world)]
    told, waiting = [[] for _ in range(world)], None

    def write(values):
        with torch.no_grad():
            for parameter, value in zip(parameters, values):
                parameter.copy_(value)

    def apply(gradients):
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        optimizer.step()

    base = [p.detach().clone() for p in parameters]
    for step in range(steps):
        gradients = []
        for rank in range(world):
            write(own[rank])
            optimizer.zero_grad()
            loss_of(model, rank, step).backward()
            gradients.append([p.grad.clone() for p in parameters])
        mean = [sum(each) / world for each in zip(*gradients)]
        use = mean if method == "sync" else waiting
        waiting = mean
        write(base)
        if use is not None:
            apply(use)
        base = [p.detach().clone() for p in parameters]
        state = optimizer.state_dict()
        for rank in range(world):
            write(base)
            if share:
                optimizer.load_state_dict(copy.deepcopy(state))
                apply([gradient * share for gradient in gradients[rank]])
            own[rank] = [p.detach().clone() for p in parameters]
            told[rank].append(flat(model))
        optimizer.load_state_dict(state)
    write(base)
    if method != "sync":
        apply(waiting)
    return [[*each, flat(model)] for each in told]


@pytest.mark.parametrize("method, share, settings", [
    ("sync", 0.0, {}),
    ("stale", 0.0, {}),
    ("od_sgd", 0.5, {}),
    ("od_sgd", 1.0, {"own_share": 1}),
    ("cd_sgd", 0.25, {"own_share": 0.25}),
])
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adamw"])
def test_weights_are_those_of_the_recurrence(ranks, method, share, settings, kind):
    for own, wanted in zip(ranks.run(2, plain, method, settings, kind), recurrence(2, method, kind, share)):
        for a, b in zip(own, wanted):
            assert_same(a, b)


def plain(rank, world, method, settings, kind="sgd"):
    return train(rank, world, method, kind, **settings)


def alike(rank, world, method, settings):
    return train(rank, world, method, alike=True, **settings)


def test_without_own_share_od_sgd_is_stale(ranks):
    assert_all_same([torch.cat(each) for each in ranks.run(2, plain, "od_sgd", {"own_share": 0}) + ranks.run(2, plain, "stale", {})])


@pytest.mark.parametrize("share", [0.5, 1])
def test_owners_that_are_pulled_from_at_every_step_are_od_sgd(ranks, share):
    owned = ranks.run(2, plain, "ssd_sgd", {"pull_every": 1, "global_share": 0, "own_share": share})
    whole = ranks.run(2, plain, "od_sgd", {"own_share": share})
    for a, b in zip(owned, whole):
        assert_same(torch.cat(a), torch.cat(b))


@pytest.mark.parametrize("world", [2, 4])
def test_with_equal_data_own_gradients_are_sync(ranks, world):
    """A rank then knows the whole mean: weights behind step t are those of `sync`, which has taken the step that is under way here."""
    for late, sync in zip(ranks.run(world, alike, "od_sgd", {"own_share": 1}), ranks.run(world, alike, "sync", {})):
        assert_same(torch.cat(late), torch.cat(sync))


def opened_again(compression, model, program, **settings):
    """A new hook with the states of the one before; DDP around the model, and the hook."""
    saved = compression.state_dict()
    compression.close()
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, program, **settings)
    assert compression.load_state_dict(saved) == ""
    return ddp, compression


def under_ddp(rank, world, delay, resume=None, paused=()):
    """Updates of each step, under plain SGD with a rate of 1. Steps `paused` are exact."""
    model = small_model()
    ddp = wrapped(model)
    settings = {"delay": 1} if delay else {}
    compression = cinch.torch.compress(ddp, "error_feedback(onebit)", **settings)
    updates = []
    for step in range(4):
        if resume == step:
            ddp, compression = opened_again(compression, model, "error_feedback(onebit)", **settings)
        if paused and step in (paused[0], paused[-1] + 1):
            (compression.pause if step in paused else compression.resume)()
        model.zero_grad()
        (loss_of(ddp, rank, step) * (step + 1)).backward()
        updates.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert compression.report()["sent_bytes"] > 0 and compression.trace()
    return updates


@pytest.mark.parametrize("resume, paused", [(None, ()), (2, ()), (None, (1, 2))])
def test_under_ddp_updates_come_a_step_late(ranks, resume, paused):
    for late, now in zip(ranks.run(2, under_ddp, True, resume, paused), ranks.run(2, under_ddp, False, None, paused)):
        assert_same(late[0], torch.zeros_like(late[0]))
        for a, b in zip(late[1:], now):
            assert_same(a, b)


def resumed(rank, world, method, settings, kind, at):
    """Weights behind each step of a run that is saved, thrown away and loaded into new objects behind step `at`."""
    model = small_model()
    optimizer = optimizer_of(kind, model)
    trainer = cinch.torch.Delayed(model, optimizer, method, **settings)
    told = []
    for step in range(STEPS):
        if step == at:
            saved, of_optimizer = trainer.state_dict(), copy.deepcopy(optimizer.state_dict())
            trainer.close()
            model = small_model()
            optimizer = optimizer_of(kind, model)
            trainer = cinch.torch.Delayed(model, optimizer, method, **settings)
            optimizer.load_state_dict(of_optimizer)
            assert trainer.load_state_dict(saved) == ""
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
        told.append(flat(model))
    trainer.flush()
    return [*told, flat(model)]


@pytest.mark.parametrize("method, settings, kind", [
    ("od_sgd", {"program": "error_feedback(onebit)"}, "adamw"),
    ("ssd_sgd", {"pull_every": 3}, "momentum"),
    ("ssd_sgd", {"pull_every": 2}, "adamw"),
    ("stale", {}, "momentum"),
])
@pytest.mark.parametrize("at", [1, 4])
def test_a_resumed_run_is_an_uninterrupted_one(ranks, method, settings, kind, at):
    for a, b in zip(ranks.run(2, resumed, method, settings, kind, at), ranks.run(2, plain, method, settings, kind)):
        assert_same(torch.cat(a), torch.cat(b))


def scalar(rank, world, curvatures, share, rate, steps):
    """Rank r has the loss curvature[r] / 2 * w^2; weights behind each step."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float32))
    model = torch.nn.Module()
    model.weight = weight
    optimizer = torch.optim.SGD([weight], lr=rate)
    trainer = cinch.torch.Delayed(model, optimizer, "od_sgd", own_share=share)
    told = []
    for _ in range(steps):
        weight.grad = curvatures[rank] * weight.detach().clone()
        trainer.step()
        told.append(float(weight.detach()))
    return told


def moments(curvatures, share, rate, start, steps):
    """The recurrence on quadratics: W and each w_i behind each step. `start`: of each w_i."""
    base, own, late = 1.0, np.array(start, dtype=np.float64), None
    told = []
    for _ in range(steps):
        gradients = curvatures * own
        base = base if late is None else base - rate * late
        late = gradients.mean()
        own = base - rate * share * gradients
        told.append(own.copy())
    return np.array(told)


CURVES = {
    "alike": (np.array([1.0, 1.0, 1.0, 1.0]), [1, 4 / 3, 2, 1]),
    "near": (np.array([0.5, 1.0, 1.0, 1.5]), [1, 1.392, 1.478, 0.719]),
    "one": (np.array([0.1, 0.1, 0.1, 3.7]), [1, 2.014, 0.714, 0.308]),
}


@pytest.mark.parametrize("curve", CURVES)
def test_quadratics_go_as_the_recurrence_says(ranks, curve):
    curvatures = CURVES[curve][0]
    told = np.array(ranks.run(4, scalar, curvatures.tolist(), 0.25, 0.3, 20)).T
    np.testing.assert_allclose(told, moments(curvatures, 0.25, 0.3, np.ones(4), 20), rtol=1e-5, atol=1e-6)


def grows(curvatures, share, rate):
    """The spectral radius of a step of (W, w_1, …, the mean under way) is above 1."""
    count = len(curvatures)
    # (W, late, own): W' = W - rate late; late' = mean(curvature own); own' = W' - rate share curvature own
    step = np.zeros((count + 2, count + 2))
    step[0, 0], step[0, 1] = 1, -rate
    step[1, 2:] = curvatures / count
    step[2:, 0], step[2:, 1] = 1, -rate
    step[2:, 2:] = -rate * share * np.diag(curvatures)
    return max(abs(np.linalg.eigvals(step))) > 1 + 1e-9


@pytest.mark.parametrize("curve", CURVES)
def test_largest_stable_rates(curve):
    """Of four workers that start apart, with own shares of 0, 1/4, 1/2 and 1."""
    curvatures, wanted = CURVES[curve]
    for share, rate in zip((0, 0.25, 0.5, 1), wanted):
        assert not grows(curvatures, share, rate * 0.99) and grows(curvatures, share, rate * 1.01)
        apart = moments(curvatures, share, rate * 0.99, [1, 2, -1, 0.5], 4000)
        away = moments(curvatures, share, rate * 1.01, [1, 2, -1, 0.5], 4000)
        assert abs(apart[-1]).max() < 1e-2 < 1e2 < abs(away[-1]).max()


def test_own_shares_of_what_a_rank_knows_bear_the_rates_of_staleness():
    random = np.random.default_rng(1)
    own, full = 0, 0
    for _ in range(400):
        curvatures = random.exponential(1, random.integers(2, 17)) ** random.choice([0.3, 1, 3])
        curvatures /= curvatures.mean()
        own += any(grows(curvatures, 1 / len(curvatures), rate) for rate in np.linspace(0.02, 0.999, 25))
        full += any(grows(curvatures, 1, rate) for rate in np.linspace(0.02, 0.999, 25))
    assert own == 0 and full > 350


def refused(rank, world, method, settings):
    model = small_model()
    optimizer = torch.optim.Adafactor(model.parameters()) if settings.pop("whole", False) else optimizer_of("sgd", model)
    if settings.pop("ddp", False):
        model = wrapped(model)
    with pytest.raises(cinch.Error) as caught:
        cinch.torch.Delayed(model, optimizer, method, timeout=5, **settings)
    return f"{caught.typename}: {caught.value}"


@pytest.mark.parametrize("method, settings, text", [
    ("asgd", {}, "method is 'asgd'; there are sync, stale"),
    ("od_sgd", {"own_share": 1.5}, "own_share is 1.5"),
    ("od_sgd", {"own_share": float("nan")}, "own_share is nan"),
    ("stale", {"own_share": 0.5}, "stale moves by no gradient"),
    ("od_sgd", {"pull_every": 5}, "pull_every is a setting of ssd_sgd"),
    ("ssd_sgd", {"pull_every": 0}, "pull_every is 0"),
    ("ssd_sgd", {"global_share": -1}, "global_share is -1"),
    ("ssd_sgd", {"plan": "two_shot"}, "plan is 'two_shot'"),
    ("ssd_sgd", {"whole": True}, "Adafactor may need whole ones"),
    ("od_sgd", {"delay": 1}, "delay is 1"),
    ("od_sgd", {"ddp": True}, "DistributedDataParallel"),
    ("cd_sgd", {"program": "topk(ratio: 2.0)"}, "ratio"),
    ("cd_sgd", {"program": "auto"}, "auto"),
])
def test_bad_input_is_an_error_on_all_ranks(ranks, method, settings, text):
    told = ranks.run(2, refused, method, settings)
    assert any(text in each for each in told), told


def of_other_methods(rank, world):
    return refused(rank, world, ("stale", "od_sgd")[rank], {})


def test_ranks_of_other_methods_are_told(ranks):
    for text in ranks.run(2, of_other_methods):
        assert "method is stale on rank 0 and od_sgd on rank 1" in text


def pushed(rank, world, pull_every, steps):
    weight = torch.nn.Parameter(torch.randn(256, 256))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.Delayed(model, torch.optim.SGD([weight], lr=0.1), "ssd_sgd", pull_every=pull_every)
    before = trainer.engine.transport.sent_bytes
    for _ in range(steps):
        weight.grad = torch.randn(256, 256)
        trainer.step()
    trainer._global.collect()
    sent = trainer.engine.transport.sent_bytes - before + trainer.report()["pulled_bytes"]
    return sent / (steps * 2 * (world - 1) / world * weight.nbytes)


def test_bytes_of_pushes_and_pulls(ranks):
    """Of f32 at every step, both ways."""
    for part in ranks.run(4, pushed, 5, 20):
        assert abs(part / 0.6 - 1) < 0.02


def corrected(rank, world, every):
    """Bytes of cd_sgd over a period, of f32 at every step."""
    weight = torch.nn.Parameter(torch.randn(512, 512))
    model = torch.nn.Module()
    model.weight = weight
    program = f"correct_every(two_bit(tau: 0.5), every: {every})"
    trainer = cinch.torch.Delayed(model, torch.optim.SGD([weight], lr=0.1), "cd_sgd", program=program, plan="two_shot", dense_steps=0)
    sent = 0
    for _ in range(2 * every):
        weight.grad = torch.randn(512, 512)
        trainer.step()
        sent += trainer.report()["sent_bytes"]
    return sent / (2 * every * 2 * (world - 1) / world * weight.nbytes)


@pytest.mark.parametrize("every, part", [(5, 0.25), (10, 0.15625)])
def test_bytes_of_corrections(ranks, every, part):
    """Of two bits both ways, and f32 at every k-th step."""
    for found in ranks.run(4, corrected, every):
        assert abs(found / part - 1) < 0.02


def moved(rank, world):
    """Under gradients that are all 1, and a share of the global movement alone: weights fall between pulls, too."""
    weight = torch.nn.Parameter(torch.zeros(8, 8))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.Delayed(model, torch.optim.SGD([weight], lr=1.0), "ssd_sgd", pull_every=4, own_share=0, global_share=1)
    told = []
    for _ in range(16):
        weight.grad = torch.ones(8, 8)
        trainer.step()
        told.append(float(weight.detach()[0, 0]))
    return told


def test_the_global_share_points_downhill(ranks):
    for told in ranks.run(2, moved):
        assert told == [0.0] * 4 + [-5.0, -6.0, -7.0, -8.0, -9.0, -10.0, -11.0, -12.0, -13.0, -14.0, -15.0, -16.0]


def diverging(rank, world):
    """Own steps of a rate that is far too large for the rank's own curvature."""
    weight = torch.nn.Parameter(torch.ones(8, 8))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.Delayed(model, torch.optim.SGD([weight], lr=0.8), "od_sgd", own_share=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(300):
            weight.grad = (3.7 if rank == 0 else 0.1) * weight.detach().clone()
            trainer.step()
    return [str(each.message) for each in told if "lead away" in str(each.message)]


def test_own_steps_that_lead_away_are_warned_of(ranks):
    told = ranks.run(2, diverging)
    assert len(told[0]) == 1 and "own_share" in told[0][0] and not told[1]


THRICE = """compressor thrice() {
  wire { value: [f32; n] }
  encode(g: [f32; n]) { wire { value: 3 * g } }
  decode(w) { w.value }
}
"""


def with_feedback(rank, world, folder, program, steps):
    """Warnings of residuals, and the norm of this rank's by its states and by the recurrence of what it was given."""
    weight = torch.nn.Parameter(torch.zeros(64, 64))
    model = torch.nn.Module()
    model.weight = weight
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trainer = cinch.torch.Delayed(model, torch.optim.SGD([weight], lr=0.1), "sync", program=program if folder is None else _written(folder), plan="allgather", dense_steps=0)
        residual = torch.zeros(64, 64)
        for step in range(steps):
            weight.grad = torch.randn(64, 64, generator=torch.Generator().manual_seed(100 * step + rank))
            residual = -2 * (residual + weight.grad)
            trainer.step()
    norm = _states.norm_of_residuals(trainer.engine.compressed.states_save())
    return [str(each.message) for each in told if "has not sent" in str(each.message)], norm, float(residual.norm())


def _written(folder):
    path = os.path.join(folder, "thrice.cinch")
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("import std.wrap.error_feedback\n\n" + THRICE + "\ncompressor fed() = error_feedback(thrice)\n")
    return f"{path}:fed"


def test_residuals_that_grow_are_warned_of(ranks, tmp_path):
    """What is sent is three times what there is, so each residual is twice the last one."""
    _written(str(tmp_path))
    (first, norm, wanted), (second, *_) = ranks.run(2, with_feedback, str(tmp_path), "", 20)
    assert len(first) == 1 and "behind 16 exchanges" in first[0] and not second
    assert abs(norm / wanted - 1) < 1e-5


def test_residuals_at_rest_are_not_warned_of(ranks):
    (first, norm, _), _ = ranks.run(2, with_feedback, None, "error_feedback(topk(ratio: 0.05))", 300)
    assert not first and norm > 0


@pytest.mark.parametrize("program", ["error_feedback(topk)", "momentum(error_feedback(topk))", "dgc", "qsgd"])
def test_residuals_are_found_by_their_names_in_wrappers(program):
    tensors = [cinch.SyncTensor("w", (4096,), cinch.compile(program))]
    with cinch.Synchronizer(cinch.Transport.loopback(1)[0], tensors, plan="allgather", threads=1) as sync:
        sync.step(0, [np.random.default_rng(0).standard_normal(4096).astype(np.float32)])
        assert (_states.norm_of_residuals(sync.states_save()) > 0) == (program != "qsgd")


@pytest.mark.parametrize("grows", [True, False])
def test_residuals_that_double_without_end_are_warned_of(grows):
    residuals = _told.Residuals()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for count in range(1, 2000):
            residuals.note(lambda count=count: float(count if grows else min(count, 300)))
    assert [str(each.message).split(" behind ")[1] for each in told] == (["512 exchanges, and of 256"] if grows else [])


def with_rates(rank, world, method, rates):
    """Warnings of a run in which ranks' rates may change, each by itself."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trainer = cinch.torch.Delayed(model, optimizer, method)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rates[rank] ** step)
        for step in range(4):
            optimizer.zero_grad()
            loss_of(model, rank, step).backward()
            trainer.step()
            schedule.step()
        trainer.flush()
    return [str(each.message) for each in told]


@pytest.mark.parametrize("method", ["stale", "od_sgd", "sync"])
def test_rates_that_drift_apart_are_warned_of(ranks, method):
    assert ranks.run(2, with_rates, method, (0.9, 0.9)) == [[], []]
    first, second = ranks.run(2, with_rates, method, (0.9, 0.8))
    assert len(first) == 1 and "ranks 1 are not those of rank 0" in first[0] and not second


def overflowing(rank, world, method, scaled):
    """Rank 1 has a gradient once that is not finite. The loss at the end, and how many steps moved the global weights."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=4.0, growth_interval=1000)
    trainer = cinch.torch.Delayed(model, optimizer, method, skips_non_finite=True, **({"own_share": 1} if method == "od_sgd" else {}))
    moved, before = 0, None
    for step in range(20):
        optimizer.zero_grad()
        loss = loss_of(model, rank, 0)
        scaler.scale(loss * float("inf") if (rank, step) == (1, 5) else loss).backward()
        scaler.unscale_(optimizer)
        trainer.step()
        scaler.update()
        with trainer.global_weights():
            now = flat(model)
        moved += before is not None and not now.equal(before)
        before = now
    trainer.flush()
    with torch.no_grad():
        return float(loss_of(model, rank, 0)), moved


@pytest.mark.parametrize("method, scaled", [("od_sgd", True), ("stale", False), ("ssd_sgd", False), ("cd_sgd", True)])
def test_a_gradient_that_is_not_finite_costs_one_step(ranks, method, scaled):
    for loss, moved in ranks.run(2, overflowing, method, scaled):
        assert loss < 1 and moved == (3 if method == "ssd_sgd" else 18)


def rescaled(rank, world, scale_of_step, resume=None):
    """Gradients of each step, divided by its loss scale, under delay=1."""
    model = small_model()
    ddp = wrapped(model)
    scale = {"now": 1.0}
    compression = cinch.torch.compress(ddp, "none", delay=1, scale=lambda: scale["now"])
    told = []
    for step in range(4):
        if step == resume:
            ddp, compression = opened_again(compression, model, "none", delay=1, scale=lambda: scale["now"])
        scale["now"] = scale_of_step[step]
        model.zero_grad()
        (loss_of(ddp, rank, step) * scale["now"]).backward()
        told.append(torch.cat([p.grad.flatten() for p in model.parameters()]) / scale["now"])
    return told


@pytest.mark.parametrize("resume", [None, 2])
def test_updates_that_come_late_have_the_scale_of_their_step(ranks, resume):
    for plain, grown in zip(ranks.run(2, rescaled, (1.0,) * 4), ranks.run(2, rescaled, (2.0, 2.0, 4.0, 1.0), resume)):
        for a, b in zip(plain, grown):
            assert_same(a, b)


def with_unused(rank, world):
    cinch.torch.compress(torch.nn.parallel.DistributedDataParallel(small_model(), find_unused_parameters=True), "none", delay=1)


def test_unused_parameters_under_ddp_are_refused(ranks):
    for failed in ranks.fail(2, with_unused):
        assert "find_unused_parameters" in failed.text


def left_alone(rank, world, method, ending, settings):
    model = small_model()
    optimizer = optimizer_of("sgd", model)
    trainer = cinch.torch.Delayed(model, optimizer, method, timeout=TIMEOUT, **settings)
    for step in range(8):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        if rank == 1 and step == 3:
            os._exit(1) if ending == "ends" else os.kill(os.getpid(), signal.SIGSTOP)
        trainer.step()


@pytest.mark.parametrize("method, ending, settings", [
    ("od_sgd", "ends", {}),
    ("od_sgd", "stops", {"program": "error_feedback(onebit)"}),
    ("ssd_sgd", "ends", {"pull_every": 1}),
    ("ssd_sgd", "stops", {"pull_every": 2}),
])
def test_a_rank_that_is_lost_is_an_error_on_the_others(ranks, method, ending, settings):
    for answer in ranks.fail(3, left_alone, method, ending, settings, lost=(1,)):
        assert answer.kind == "SyncError" and ("rank 1" in answer.text or "pulled" in answer.text), answer.text


def closed_at_once(rank, world):
    for _ in range(8):
        model = small_model()
        with cinch.torch.Delayed(model, optimizer_of("sgd", model), "ssd_sgd", pull_every=2) as trainer:
            for step in range(3):
                loss_of(model, rank, step).backward()
                trainer.step()
        with pytest.raises(cinch.Error, match="closed"):
            trainer.step()


def test_closing_waits_for_a_push(ranks):
    ranks.run(2, closed_at_once)


def shown(rank, world):
    model = small_model()
    trainer = cinch.torch.Delayed(model, optimizer_of("sgd", model), "od_sgd")
    with trainer.global_weights(), pytest.raises(cinch.Error, match="behind it"):
        trainer.step()


def test_no_step_is_taken_while_global_weights_are_shown(ranks):
    ranks.run(2, shown)


def of_types(rank, world):
    model = small_model().to(torch.bfloat16 if rank == 1 else torch.float32)
    with pytest.raises(cinch.Error, match="types"):
        cinch.torch.Delayed(model, optimizer_of("sgd", model), "od_sgd", timeout=5)


def test_ranks_of_other_types_are_told(ranks):
    ranks.run(2, of_types)


def other_method(rank, world):
    model = small_model()
    saved = cinch.torch.Delayed(model, optimizer_of("sgd", model), "od_sgd").state_dict()
    with pytest.raises(cinch.Error, match="method is 'od_sgd' in the saved states"):
        cinch.torch.Delayed(model, optimizer_of("sgd", model), "stale").load_state_dict(saved)


def test_states_of_another_method_are_refused(ranks):
    ranks.run(2, other_method)


def frozen(rank, world):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(64, 72), torch.nn.Linear(72, 3))
    model[0].requires_grad_(False)
    cinch.torch.Delayed(model, torch.optim.SGD(model[1].parameters(), lr=0.1), "stale")
    return flat(model)


def test_frozen_parameters_begin_alike(ranks):
    assert_all_same(ranks.run(2, frozen))
