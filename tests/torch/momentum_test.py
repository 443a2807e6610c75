"""Momentum in the program and in the optimizer, exact steps, directions and clipping, against recurrences of the tests' own."""
import functools
import math
import warnings

import numpy as np
import pytest
import torch
from support import TIMEOUT, USUAL_DENSE_STEPS, assert_all_same, flat, gradients_of, loss_of, small_model, train, wrapped

import cinch
import cinch.torch
from cinch.torch import _phases, _rules

RATE, MOMENTUM = 0.05, 0.9
WHOLE = {"ratio": 1.0, "masking": False, "plan": "allgather"}  # dgc is momentum SGD


def mean_gradients(model, world, step):
    """Of the ranks' batches, by one process."""
    found = []
    for rank in range(world):
        model.zero_grad()
        loss_of(model, rank, step).backward()
        found.append([gradient.double().numpy() for gradient in gradients_of(model)])
    return [sum(of_rank) / world for of_rank in zip(*found)]


def by_recurrence(steps, direction, world=2):
    """Parameters after steps of p -= RATE * direction(step, place, mean gradient)."""
    model = small_model()
    values = [parameter.detach().double().numpy().copy() for parameter in model.parameters()]
    for step in range(steps):
        for place, gradient in enumerate(mean_gradients(model, world, step)):
            values[place] -= RATE * direction(step, place, gradient)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), values):
                parameter.copy_(torch.from_numpy(value))
    return flat(model)


def momentum_sgd(*cuts):
    """In steps `cuts` the velocity of the matrix, parameter 0, begins anew."""
    velocity = [0.0] * 4

    def direction(step, place, gradient):
        velocity[place] = MOMENTUM * (0.0 if step in cuts and place == 0 else velocity[place]) + gradient
        return velocity[place]

    return direction


def with_momentum_moved(rank, world, settings, is_averager, paused):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    moved = {"momentum": cinch.torch.take_momentum(optimizer), **WHOLE, **settings}
    ddp = model if is_averager else wrapped(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if is_averager:
            compression = cinch.torch.Averager(model.named_parameters(), "dgc", optimizer=optimizer, **moved)
        else:
            compression = cinch.torch.compress(ddp, "dgc", optimizer=optimizer, **moved)
    kinds = []
    for step in range(30):
        if step in paused:
            compression.pause()
        if step - 1 in paused and step not in paused:
            compression.resume()
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        if is_averager:
            compression.average()
        optimizer.step()
        kinds.append(compression.report()["is_dense"])
    return flat(model), kinds


@pytest.mark.parametrize(
    "settings, is_averager, paused",
    [
        ({"dense_steps": 0}, False, []),
        ({"dense_steps": 10}, False, []),
        ({"total_steps": 100}, True, []),
        ({"dense_steps": 5, "dense_after": 27}, False, range(12, 18)),
    ],
)
def test_moved_momentum_is_that_of_sgd(ranks, settings, is_averager, paused):
    (first, kinds), (second, _) = ranks.run(2, with_momentum_moved, settings, is_averager, paused)
    assert_all_same([first, second])
    dense_steps = settings.get("dense_steps", 10)
    assert kinds == [step < dense_steps or step in paused or step >= settings.get("dense_after", 30) for step in range(30)]
    # Exact steps behind compressed ones begin with no velocity of what was compressed: the program has kept it.
    torch.testing.assert_close(first, by_recurrence(30, momentum_sgd(*[12, 27] if paused else [])), rtol=2e-5, atol=2e-6)


# The first matrix, which dgc compresses, has momentum from it; the other one is sent whole, by a program without momentum.
MIXED = [{"name": "2.weight", "use": "topk(ratio: 1)"}, {"min_elements": 4096, "min_dims": 2}]


def with_momentum_of_some(rank, world, by_rule, dense_steps):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    taken = cinch.torch.take_momentum(optimizer)
    ddp = wrapped(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if by_rule:
            rules = [{"name": "0.weight", "use": "momentum(none)", "set": {"factor": taken}}, {"name": "2.weight"}]
            cinch.torch.compress(ddp, "topk", ratio=1.0, rules=rules, plan="allgather", dense_steps=dense_steps, optimizer=optimizer)
        else:
            cinch.torch.compress(ddp, "dgc", momentum=taken, rules=MIXED, dense_steps=dense_steps, optimizer=optimizer, **WHOLE)
    train(ddp, optimizer, rank, 15)
    return flat(model)


@pytest.mark.parametrize("by_rule", [False, True])
@pytest.mark.parametrize("dense_steps", [0, 4])
def test_only_programs_that_are_bound_to_it_take_momentum(ranks, by_rule, dense_steps):
    told = ranks.run(2, with_momentum_of_some, by_rule, dense_steps)
    assert_all_same(told)
    torch.testing.assert_close(told[0], by_recurrence(15, momentum_sgd()), rtol=2e-5, atol=2e-6)


def test_momentum_that_is_not_taken():
    parameters = list(small_model().parameters())
    for settings, words in (({"nesterov": True}, r"as in nesterov\(topk\) and dgc\(nesterov: true\)"), ({"dampening": 0.5}, "momentum with dampening")):
        with pytest.raises(cinch.InvalidArgumentError, match=words):
            cinch.torch.take_momentum(torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM, **settings))


def of_the_usual_steps(rank, world, program, steps):
    """Parameters and which steps were exact, with nothing said of exact steps."""
    _phases._USUAL_DENSE_STEPS = USUAL_DENSE_STEPS
    try:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
        ddp = wrapped(model)
        moved = {"momentum": cinch.torch.take_momentum(optimizer), **WHOLE} if program == "dgc" else {}
        compression = cinch.torch.compress(ddp, program, **moved)
        kinds = []
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(ddp, rank, step).backward()
            optimizer.step()
            kinds.append(compression.report()["is_dense"])
        return flat(model), kinds
    finally:
        _phases._USUAL_DENSE_STEPS = 0


@pytest.mark.parametrize("program", ["dgc", "error_feedback(onebit)", "powersgd"])
def test_what_has_states_begins_after_fifty_steps(ranks, program):
    (first, kinds), (second, _) = ranks.run(2, of_the_usual_steps, program, 54)
    assert_all_same([first, second])
    assert kinds == [step < 50 for step in range(54)]
    if program == "dgc":
        torch.testing.assert_close(first, by_recurrence(54, momentum_sgd()), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("program", ["qsgd", "drive", "fp16"])
def test_quantisers_begin_at_once(ranks, program):
    assert ranks.run(2, of_the_usual_steps, program, 2)[0][1] == [False, False]


def signs(gradients):
    return [np.sign(gradient) for gradient in gradients]


def signs_of_momentum(gradients):
    momentum, found = 0.0, []
    for gradient in gradients:
        momentum = 0.9 * momentum + 0.1 * gradient
        found.append(np.sign(momentum))
    return found


def signs_of_lion(gradients):
    momentum, found = 0.0, []
    for gradient in gradients:
        found.append(np.sign(0.9 * momentum + 0.1 * gradient))
        momentum = 0.99 * momentum + 0.01 * gradient
    return found


def uncorrected_adam(gradients, freeze=4):
    first, second, found = 0.0, 0.0, []
    for step, gradient in enumerate(gradients):
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2 if step < freeze else second
        found.append(first / (np.sqrt(second) + 1e-8))
    return found


SHAPES = {"w": (64, 72), "b": (72,)}


def given_gradients(rank, step):
    random = np.random.default_rng([rank, step])
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def directions(rank, world, program, settings, steps):
    """Updates of gradients that do not depend on what is updated; states are saved and restored on the way."""
    parameters = {name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in SHAPES.items()}
    told, saved = [], None
    for first, last in ((0, steps // 2), (steps // 2, steps)):
        averager = cinch.torch.Averager(parameters.items(), program, scale=lambda: 8.0, **settings)
        if saved is not None:
            assert averager.load_state_dict(saved) == ""
        for step in range(first, last):
            for name, gradient in given_gradients(rank, step).items():
                parameters[name].grad = 8.0 * torch.from_numpy(gradient)
            averager.average()
            told.append({name: parameter.grad.numpy() / 8.0 for name, parameter in parameters.items()})
        saved = averager.state_dict()
    return told


@pytest.mark.parametrize(
    "program, settings, wanted, exact_steps",
    [
        ("signsgd", {}, signs, 0),
        ("demo", {"plan": "allgather"}, signs, 0),
        ("signum", {}, signs_of_momentum, 0),
        ("onebit_adam", {"freeze": 4, "beta2": 0.99}, uncorrected_adam, 4),
        ("lion_mavo", {}, signs_of_lion, 0),
        ("zero_one_adam(beta2: 0.99)", {}, functools.partial(uncorrected_adam, freeze=math.inf), 6),
        ("signsgd(tie_is_zero: true)", {}, signs, 0),
        ("demo(kept: 4)", {"plan": "allgather"}, signs, 0),
        ("signum(beta: 0.9)", {}, signs_of_momentum, 0),
        ("onebit_adam(freeze: 4, beta2: 0.99)", {}, uncorrected_adam, 4),
        ("scaled(signsgd, factor: 0.5)", {}, signs, 0),
        ("chunked(signsgd)", {}, signs, 0),
    ],
)
def test_exact_tensors_get_the_direction_of_the_program(ranks, program, settings, wanted, exact_steps):
    told = ranks.run(2, directions, program, settings, 6)[0]
    for name in SHAPES:
        means = [sum(given_gradients(rank, step)[name].astype(np.float64) for rank in range(2)) / 2 for step in range(6)]
        for step, update in enumerate(wanted(means)):
            if name == "b" or step < exact_steps:
                np.testing.assert_allclose(told[step][name], update, rtol=1e-4, atol=1e-5)
            else:
                assert set(np.unique(np.abs(told[step][name]))) <= {0.0, 1.0} or exact_steps


DIRECTIONS_IN_A_FILE = """
import std.sign  // compressor faster = topk
import std.wrap

compressor halved(inner: compressor, part: f32 = 0.5 in (0, 1]) {
  wire inner.wire
  encode(g: [f32; n]) { inner.encode(part * g) }
}

compressor slow(b: f32 = 0.5 in [0, 1)) = signum(beta: b)
compressor faster(b: f32 = 0.75 in [0, 1)) = halved(slow(b: b), part: 0.25)
compressor usual = halved(signum)
compressor ties = signsgd(tie_is_zero: true)
compressor adam(late: u32 = 7 in 1..=100) = onebit_adam(freeze: late, beta2: 0.5)
compressor none_of_them = error_feedback(topk(ratio: 0.5))
import std.topk
"""


@pytest.mark.parametrize(
    "name, bound, kind, values",
    [
        ("slow", {}, _rules._SignOfMomentum, {"beta": 0.5}),
        ("faster", {}, _rules._SignOfMomentum, {"beta": 0.75}),
        ("faster", {"b": 0.25}, _rules._SignOfMomentum, {"beta": 0.25}),
        ("usual", {"beta": 0.125}, _rules._SignOfMomentum, {"beta": 0.125}),
        ("ties", {}, _rules._Sign, {}),
        ("adam", {}, _rules._Adam, {"freeze": 7, "beta1": 0.9, "beta2": 0.5}),
        ("adam", {"late": 9}, _rules._Adam, {"freeze": 9}),
        ("none_of_them", {}, type(None), {}),
    ],
)
def test_directions_are_found_in_files(tmp_path, name, bound, kind, values):
    file = tmp_path / "mine.cinch"
    file.write_text(DIRECTIONS_IN_A_FILE)
    for program in (cinch.compile(f"{file}:{name}", bindings=bound), cinch.compile(f"mine:{name}", text=DIRECTIONS_IN_A_FILE, bindings=bound)):
        direction = _rules.direction_of([program])
        assert type(direction) is kind
        for parameter, value in values.items():
            assert direction._value(parameter, None) == pytest.approx(value)


def test_directions_without_a_text_are_found_by_what_they_keep(tmp_path):
    for name, kind in (("signum(beta: 0.9)", _rules._SignOfMomentum), ("onebit_adam", _rules._Adam), ("demo(kept: 4)", _rules._Sign)):
        cinch.compile(name).save(tmp_path / "image")
        assert type(_rules.direction_of([cinch.load(tmp_path / "image")])) is kind, name


def clipped(rank, world, limit):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "none", clip=limit, scale=lambda: 4.0)
    (4.0 * loss_of(ddp, rank, 0)).backward()
    return torch.cat([gradient.flatten() for gradient in gradients_of(model)]) / 4.0


def test_clipping_is_of_each_rank_before_the_mean(ranks):
    wanted = []
    for rank in range(2):
        model = small_model()
        loss_of(model, rank, 0).backward()
        own = torch.cat([gradient.flatten() for gradient in gradients_of(model)])
        wanted.append(own * (0.3 / math.sqrt(2) / own.norm()))
        assert own.norm() > 0.3
    for told in ranks.run(2, clipped, 0.3):
        torch.testing.assert_close(told, (wanted[0] + wanted[1]) / 2)


def pauses_alone(rank, world, action):
    ddp = wrapped(small_model())
    compression = cinch.torch.compress(ddp, "error_feedback(onebit)", timeout=TIMEOUT)
    for step in range(2):  # DDP itself exchanges something in the second one
        loss_of(ddp, rank, step).backward()
    if rank == 0:
        compression.pause()
    elif action == "resume":
        compression.resume()
    loss_of(ddp, rank, 2).backward()


@pytest.mark.parametrize("action, words", [("resume", "what is asked for is pause on rank 0 and resume on rank 1"), ("step", "rank 1 had not come")])
def test_ranks_that_do_not_pause_together_fail(ranks, action, words):
    own, other = ranks.fail(2, pauses_alone, action)
    assert words in own.text
    assert other.kind == ("InvalidArgumentError" if action == "resume" else "SyncError"), other


# The program of the call comes first, and keeps a tensor.
WITH_ADAM = [{"name": "0.*", "min_dims": 2}, {"name": "2.weight", "use": "onebit_adam(freeze: 4)"}]


def cannot_pause(rank, world):
    compression = cinch.torch.compress(wrapped(small_model()), "topk", rules=WITH_ADAM)
    with pytest.raises(cinch.InvalidArgumentError, match="onebit_adam_freeze_4 cannot pause"):
        compression.pause()


def test_every_program_says_whether_it_can_pause(ranks):
    ranks.run(2, cannot_pause)


def mistaken(rank, world, program, settings, words):
    with pytest.raises(cinch.InvalidArgumentError, match=words):
        cinch.torch.compress(wrapped(small_model()), program, **settings)


@pytest.mark.parametrize(
    "program, settings, words",
    [
        ("onebit_adam", {"dense_steps": 5}, "exact steps of its own"),
        ("onebit_adam(freeze: 4)", {"dense_steps": 5}, "exact steps of its own"),
        ("onebit_adam", {"dense_after": 5}, "dense_after is 5, and exact steps leave the states of onebit_adam behind"),
        ("topk", {"dense_steps": 5, "rules": WITH_ADAM}, "onebit_adam_freeze_4 has exact steps of its own"),
        ("dgc", {"total_steps": 100, "rules": WITH_ADAM}, "dense_steps is 10, as is usual beside a program with states, and onebit"),
        ("topk", {"dense_after": 5, "rules": WITH_ADAM}, "leave the states of onebit_adam_freeze_4 behind"),
        ("qsgd", {"clip": 0.0}, "a norm above 0"),
        ("qsgd", {"total_steps": -1}, "total_steps is -1"),
    ],
)
def test_settings_that_are_refused(ranks, program, settings, words):
    ranks.run(2, mistaken, program, settings, words)


def loss_after(rank, world, program, settings):
    """On data that no rank has trained with."""
    model = small_model()
    ddp = wrapped(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=MOMENTUM)
    if program == "dgc":
        settings = {"momentum": cinch.torch.take_momentum(optimizer), **settings}
    cinch.torch.compress(ddp, program, **settings)
    train(ddp, optimizer, rank, 60)
    return loss_of(model, 99, 99).item()


def test_small_trainings_end_near_dense_ones(ranks):
    start, dense = loss_of(small_model(), 99, 99).item(), ranks.run(2, loss_after, "none", {})[0]
    assert dense < 0.05 * start
    found = [
        ranks.run(2, loss_after, "dgc", {"ratio": 0.1, "plan": "allgather", "total_steps": 60})[0],
        ranks.run(2, loss_after, "error_feedback(topk(ratio: 0.1))", {"plan": "allgather", "total_steps": 60})[0],
    ]
    assert all(0.5 * dense < loss < 1.5 * dense for loss in found), (start, dense, found)


def losses_by_plan(rank, world, program, settings, plans):
    """Without exact steps, which plans share."""
    told = {}
    for plan in plans:
        model = small_model()
        ddp = wrapped(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=MOMENTUM)
        moved = {"momentum": cinch.torch.take_momentum(optimizer)} if program == "dgc" else {}
        compression = cinch.torch.compress(ddp, program, plan=plan, dense_steps=0, **moved, **settings)
        train(ddp, optimizer, rank, 60)
        compression.close()
        told[plan] = loss_of(model, 99, 99).item()
    return told


@pytest.mark.parametrize(
    "program, settings, plans",
    [
        ("dgc", {"ratio": 0.25}, ("allgather", "two_shot")),
        ("error_feedback(topk(ratio: 0.25))", {}, ("allgather", "two_shot", "ring", "tree")),
        ("ef21(topk(ratio: 0.25))", {}, ("allgather", "two_shot")),  # its finish takes whole sums
    ],
)
def test_plans_train_alike(ranks, program, settings, plans):
    told = ranks.run(3, losses_by_plan, program, settings, plans)[0]
    assert all(0.85 * told["allgather"] < loss < 1.15 * told["allgather"] for loss in told.values()), told
