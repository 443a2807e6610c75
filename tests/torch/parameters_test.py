"""Parameters of other types and layouts, and those that take no gradient."""
import pytest
import torch
from support import assert_same, data_of, flat, gradients_of, loss_of, small_model, train, wrapped

import cinch
import cinch.torch


def in_type(rank, world, dtype):
    model = small_model().to(dtype)
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    inputs, wanted = data_of(rank)
    for _ in range(2):
        ddp.zero_grad()
        ((ddp(inputs.to(dtype)) - wanted.to(dtype)) ** 2).mean().backward()
    return gradients_of(model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_small_types(ranks, dtype):
    told = ranks.run(2, in_type, dtype)
    for a, b in zip(*told):
        assert a.dtype == dtype and torch.isfinite(a).all() and a.any()
        assert_same(a, b)


class OfTwoTypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.small, self.wide = torch.nn.Linear(64, 72, dtype=torch.bfloat16), torch.nn.Linear(72, 64)

    def forward(self, inputs):
        return self.wide(self.small(inputs.bfloat16()).float())


def of_two_types(rank, world):
    model = OfTwoTypes()
    ddp = wrapped(model, bucket_cap_mb=25)
    cinch.torch.compress(ddp, "qsgd")
    ddp(data_of(rank)[0]).square().mean().backward()
    return gradients_of(model)


def test_two_types_in_one_model(ranks):
    for a, b in zip(*ranks.run(2, of_two_types)):
        assert_same(a, b)


def frozen_later(rank, world):
    model = small_model()
    model[2].weight.requires_grad_(False)
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, "qsgd")
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 2)
    return [tensor["name"] for tensor in compression.report()["tensors"]], flat(model)


def test_frozen_parameters_are_left_out(ranks):
    told = ranks.run(2, frozen_later)
    assert told[0][0] == ["0.weight", "0.bias", "2.bias"]
    assert_same(told[0][1], told[1][1])


def of_rank_one(rank, world, is_transposed, is_averager):
    """What powersgd of rank 1 makes of a gradient of rank 1: the same, but for rounding. A matrix read in another order would not be one of rank 1."""
    weight = torch.nn.Parameter((torch.zeros(100, 70).t() if is_transposed else torch.zeros(70, 100)))
    outer = torch.outer(torch.linspace(-1, 1, 70), torch.linspace(1, 3, 100) ** 2)
    holder = torch.nn.Module()
    holder.weight = weight
    holder.forward = lambda: (holder.weight * outer).sum()
    if is_averager:
        averager = cinch.torch.Averager(holder.named_parameters(), "powersgd(rank: 1)")
        holder().backward()
        averager.average()
    else:
        ddp = wrapped(holder)
        cinch.torch.compress(ddp, "powersgd(rank: 1)")
        ddp().backward()
    assert weight.grad.stride() == weight.stride()
    return (weight.grad - outer).norm() / outer.norm()


@pytest.mark.parametrize("is_averager", [False, True])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_matrices_are_taken_as_they_lie(ranks, is_transposed, is_averager):
    for error in ranks.run(2, of_rank_one, is_transposed, is_averager):
        assert error < 1e-5


def channels_last(rank, world):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 16, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    model(torch.zeros(1, 4, 5, 5))
    model = model.to(memory_format=torch.channels_last)
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "error_feedback(onebit)", rules=[{"min_dims": 4}])
    random = torch.Generator().manual_seed(rank)
    for _ in range(2):
        ddp.zero_grad()
        ddp(torch.randn(3, 4, 5, 5, generator=random)).square().mean().backward()
    return gradients_of(model)


def test_channels_last(ranks):
    for a, b in zip(*ranks.run(2, channels_last)):
        assert_same(a, b)


def of_plans(rank, world, settings):
    """Updates of three steps."""
    model = small_model()
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, "error_feedback(onebit)", **settings)
    told = []
    for step in range(3):
        model.zero_grad()
        loss_of(ddp, rank, step).backward()
        told.append(gradients_of(model))
    return told, compression.engine.compressed.plan.split(",")[0]


def test_rules_give_parameters_plans_of_their_own(ranks):
    rules = [{"name": "0.weight", "plan": "allgather"}, {"use": "exact", "plan": "ring"}]
    mixed = ranks.run(2, of_plans, {"rules": rules, "plan": "two_shot"})
    alone = ranks.run(2, of_plans, {"plan": "allgather"})
    for (own, plan), (whole, _) in zip(mixed, alone):
        assert plan == "plan routes"
        for a, b in zip(own, whole):
            assert_same(a[0], b[0])


def test_rules_with_plans_beside_auto_are_refused(ranks):
    for failed in ranks.fail(2, of_plans, {"rules": [{"plan": "ring"}], "plan": "auto"}):
        assert "auto is one for all" in failed.text
