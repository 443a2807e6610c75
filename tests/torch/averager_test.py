"""`Averager`: gradients averaged without DistributedDataParallel."""
import pytest
import torch
from support import assert_all_same, assert_same, flat, gradients_of, loss_of, small_model, wrapped

import cinch
import cinch.torch


def steps_of(rank, world, is_averager, program):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if is_averager:
        averager = cinch.torch.Averager(model.named_parameters(), program)
    else:
        ddp = wrapped(model)
        cinch.torch.compress(ddp, program)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model if is_averager else ddp, rank, step).backward()
        if is_averager:
            assert averager.average() is False
        optimizer.step()
    return flat(model)


@pytest.mark.parametrize("program", ["none", "dgc", "powersgd"])
def test_averages_are_those_of_ddp(ranks, program):
    assert_all_same(ranks.run(2, steps_of, True, program) + ranks.run(2, steps_of, False, program))


def with_holes(rank, world):
    """Matrix 1 has a gradient on rank 0 alone, matrix 2 on none."""
    weights = [torch.nn.Parameter(torch.zeros(72, 64)) for _ in range(4)]
    weights[3].requires_grad_(False)
    averager = cinch.torch.Averager([(f"w{i}", weight) for i, weight in enumerate(weights)], "none")
    weights[0].grad = torch.full((72, 64), float(rank + 1))
    if rank == 0:
        weights[1].grad = torch.full((72, 64), 3.0)
    averager.average()
    return gradients_of(torch.nn.ParameterList(weights))


def test_gradients_that_are_not_there(ranks):
    for first, second, third, fourth in ranks.run(2, with_holes):
        assert_same(first, torch.full((72, 64), 1.5))
        assert_same(second, torch.full((72, 64), 1.5))
        assert_same(third, torch.zeros(72, 64))
        assert fourth is None


def not_contiguous(rank, world):
    weight, conv = torch.nn.Parameter(torch.zeros(72, 64)), torch.nn.Parameter(torch.zeros(4, 3, 2, 2).to(memory_format=torch.channels_last))
    averager = cinch.torch.Averager([("w", weight), ("c", conv)], "none")
    values = torch.arange(72 * 64, dtype=torch.float32).reshape(64, 72) * (rank + 1)
    weight.grad = values.t()
    conv.grad = torch.arange(48, dtype=torch.float32).reshape(4, 3, 2, 2).to(memory_format=torch.channels_last) * (rank + 1)
    assert not weight.grad.is_contiguous() and not conv.grad.is_contiguous()
    kept = weight.grad
    averager.average()
    assert weight.grad is kept
    return weight.grad.contiguous(), conv.grad.contiguous()


def test_gradients_that_are_not_contiguous(ranks):
    for weight, conv in ranks.run(2, not_contiguous):
        assert_same(weight, (torch.arange(72 * 64, dtype=torch.float32).reshape(64, 72) * 1.5).t().contiguous())
        assert_same(conv, torch.arange(48, dtype=torch.float32).reshape(4, 3, 2, 2) * 1.5)


def sparse_on_one(rank, world, sparse_rank):
    weight = torch.nn.Parameter(torch.zeros(72, 64))
    averager = cinch.torch.Averager([("table", weight)], "none", timeout=5)
    weight.grad = torch.ones(72, 64)
    if rank == sparse_rank:
        weight.grad = weight.grad.to_sparse()
    averager.average()


def test_a_sparse_gradient_fails_on_all_ranks(ranks):
    other, own = ranks.fail(2, sparse_on_one, 1)
    assert own.kind == "SyncError" and "table: gradients of layout torch.sparse" in own.text
    assert other.kind == "SyncError" and "rank 1" in other.text


def nothing_to_average(rank, world):
    cinch.torch.Averager([], "none", timeout=5)


def test_no_parameters(ranks):
    for failure in ranks.fail(2, nothing_to_average):
        assert failure.kind == "InvalidArgumentError" and "no parameter" in failure.text
