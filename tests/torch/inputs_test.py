"""Programs that take weights and the learning rate."""
import torch
from support import assert_all_same, flat, gradients_of, loss_of, small_model, wrapped

import cinch
import cinch.torch

# What DDP's mean becomes: lr times the weight on top.
DECAYED = """compressor decayed {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  wire { v: [f32; n] }
  encode(g: [f32; n]) { wire { v: g } }
  decode(w) { w.v }
  finish(sum) { sum / world + lr * weights }
}
"""
SCALED = DECAYED.replace("input weights: [f32; n]", "input factor: f32").replace("lr * weights", "lr * factor").replace("decayed", "scaled_up")


def plain_means(world, model, step):
    own = []
    for rank in range(world):
        model.zero_grad()
        loss_of(model, rank, step).backward()
        own.append(gradients_of(model))
    return [sum(each) / world for each in zip(*own)]


def is_compressed(parameter):
    return parameter.dim() > 1 and parameter.numel() >= 4096


def follows(rank, world, is_averager, given):
    """The learning rate changes between steps, and weights by the optimizer's."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    program = cinch.compile(text=DECAYED)
    inputs = {} if given is None else {"lr": lambda: 0.125, "weights": lambda name: dict(model.named_parameters())[name] * given}
    settings = dict(optimizer=optimizer, plan="allgather", inputs=inputs)
    averager = cinch.torch.Averager(model.named_parameters(), program, **settings) if is_averager else None
    ddp = None if is_averager else wrapped(model)
    if ddp is not None:
        cinch.torch.compress(ddp, program, **settings)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = lr = 0.5 / (step + 1)
        means = plain_means(world, model, step)
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer.zero_grad()
        loss_of(model if is_averager else ddp, rank, step).backward()
        if averager is not None:
            averager.average()
        for parameter, mean, weight in zip(model.parameters(), means, weights):
            on_top = (lr * weight if given is None else 0.125 * given * weight) if is_compressed(parameter) else 0
            torch.testing.assert_close(parameter.grad, mean + on_top, rtol=1e-4, atol=1e-6)
        optimizer.step()
    assert any(map(is_compressed, model.parameters()))
    return flat(model)


def test_weights_and_the_optimizers_learning_rate(ranks):
    for is_averager in (False, True):
        assert_all_same(ranks.run(2, follows, is_averager, None))


def test_what_the_caller_names(ranks):
    for is_averager in (False, True):
        assert_all_same(ranks.run(2, follows, is_averager, 3.0))


def in_memory_order(rank, world):
    weight = torch.nn.Parameter(torch.randn(64, 16, 3, 3, generator=torch.Generator().manual_seed(3)).to(memory_format=torch.channels_last))
    averager = cinch.torch.Averager([("w", weight)], cinch.compile(text=DECAYED), plan="allgather", inputs={"lr": 0.5})
    weight.grad = torch.full_like(weight, float(rank))
    averager.average()
    torch.testing.assert_close(weight.grad, 0.5 + 0.5 * weight.detach())


def test_weights_that_lie_in_another_order(ranks):
    ranks.run(2, in_memory_order)


def mistakes(rank, world):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    said = []

    def fails(kind, act):
        try:
            act()
        except kind as error:
            said.append(str(error))
        else:
            said.append("no error")

    invalid = cinch.InvalidArgumentError
    program, scaled = cinch.compile(text=DECAYED), cinch.compile(text=SCALED)
    fails(invalid, lambda: cinch.torch.compress(wrapped(model), program))
    fails(invalid, lambda: cinch.torch.compress(wrapped(model), scaled, optimizer=optimizer))
    fails(invalid, lambda: cinch.torch.compress(wrapped(model), program, optimizer=optimizer, inputs={"wd": 1}))
    for inputs in ({"lr": 0}, {"lr": float("nan")}, {"weights": lambda name: torch.zeros(3)}):
        ddp = wrapped(model)
        cinch.torch.compress(ddp, program, optimizer=optimizer, plan="allgather", inputs=inputs)
        fails((cinch.SyncError, RuntimeError), lambda: loss_of(ddp, rank, 0).backward())
    two = torch.nn.Sequential(torch.nn.Linear(64, 72), torch.nn.Linear(72, 72), torch.nn.Linear(72, 3))
    groups = [{"params": [each], "lr": 0.1 * (i + 1)} for i, each in enumerate(two.parameters())]
    ddp = wrapped(two)
    cinch.torch.compress(ddp, program, optimizer=torch.optim.SGD(groups), plan="allgather")
    fails((cinch.SyncError, RuntimeError), lambda: loss_of(ddp, rank, 0).backward())
    return said


def test_mistakes_name_the_input(ranks):
    for said in ranks.run(2, mistakes):
        for words, text in zip(
            (
                "decayed takes the input lr, a number: pass optimizer=, or inputs={'lr': a number",
                "scaled_up takes the input factor, a number: pass inputs={'factor': a number",
                "no program that a tensor has takes an input wd",
                "input lr = 0 is outside (0, inf)",
                "input lr = nan is not finite",
                "the input weights has the shape (3,)",
                "the learning rate of ",
            ),
            said,
        ):
            assert words in text, (words, text)


def trains(rank, world, program):
    model = small_model()
    ddp = wrapped(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if program is not None:
        cinch.torch.compress(ddp, program, optimizer=optimizer)
    losses = []
    for step in range(25):
        optimizer.zero_grad()
        loss = loss_of(ddp, rank, 0)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


def test_training_beside_exact_means(ranks):
    exact = ranks.run(2, trains, None)
    for program in ("intsgd", "ef_lr(topk(ratio: 0.1))"):
        for found, wanted in zip(ranks.run(2, trains, program), exact):
            assert found[-1] < found[0] - 0.5 * (wanted[0] - wanted[-1]), (program, found[-1], wanted[-1])
