"""`Averager`: gradients averaged without DistributedDataParallel."""
import warnings

import pytest
import torch
from support import assert_all_same, assert_same, flat, gradients_of, loss_of, small_model, wrapped
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

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


def in_a_context(rank, world):
    weight = torch.nn.Parameter(torch.zeros(72, 64))
    with cinch.torch.Averager([("w", weight)], "none", timeout=5) as averager:
        averager.average()
    with pytest.raises(cinch.SyncError, match="closed"):
        averager.average()


def test_a_context_closes_it(ranks):
    ranks.run(2, in_a_context)


def not_aligned(rank, world):
    weight = torch.nn.Parameter(torch.zeros(72, 64))
    averager = cinch.torch.Averager([("w", weight)], "none")
    weight.grad = torch.frombuffer(bytearray(4 * 72 * 64 + 1), dtype=torch.float32, offset=1).reshape(72, 64).fill_(rank + 1)
    averager.average()
    return weight.grad.clone()


def test_gradients_that_are_not_aligned(ranks):
    for gradient in ranks.run(2, not_aligned):
        assert_same(gradient, torch.full((72, 64), 1.5))


def distributed(rank, world):
    mesh = init_device_mesh("cpu", (world,))
    part = distribute_tensor(torch.ones(72, 64), mesh, [Shard(0)])
    told = []

    def note(call):
        with pytest.raises(cinch.Error) as caught:
            call()
        told.append(f"{caught.typename}: {caught.value}")

    note(lambda: cinch.torch.Averager([("w", torch.nn.Parameter(part))], "topk"))
    note(lambda: cinch.torch.Averager([("w", torch.nn.Parameter(torch.ones(72, 64, device="meta")))], "topk"))
    weight = torch.nn.Parameter(torch.zeros(36, 64))
    averager = cinch.torch.Averager([("w", weight)], "topk", timeout=5)
    weight.grad = part.to_local()
    averager.average()
    session = cinch.compile("topk").session((36, 64))
    payload = session.encode(0, part.to_local())
    note(lambda: session.encode(0, part))
    note(lambda: session.decode(0, payload, out=part))
    with warnings.catch_warnings(), FakeTensorMode():
        warnings.simplefilter("ignore")
        note(lambda: session.encode(0, torch.ones(36, 64)))
    sync = cinch.Synchronizer(cinch.Transport.loopback(1)[0], [cinch.SyncTensor("a", (36, 64))])
    note(lambda: sync.step(0, [part]))
    return told


def test_tensors_without_memory_of_their_own(ranks):
    for told in ranks.run(2, distributed):
        assert "w is a DTensor, of which each rank has a part: compress_fsdp" in told[0]
        assert "w is on meta: parameters on CPUs" in told[1]
        for said, what in zip(told[2:], ("gradient is a DTensor", "output is a DTensor", "gradient is a FakeTensor, which has no memory", "gradient is a DTensor")):
            assert what in said, said
        assert "give its to_local()" in told[2]


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
