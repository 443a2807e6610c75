"""`compress_replicas` against PyTorch's own HSDP."""
import warnings

import pytest
import torch
from fsdp_test import Branches, Model, loss_of, sharded, train, whole
from support import assert_all_same, assert_same
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard  # fsdp_test skips where there is none

import cinch
import cinch.torch


def meshes(world):
    """Two machines, or, of two ranks, two machines of one rank each."""
    return init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("machines", "ranks"))


def trained(rank, world, program, settings=None, compresses_shards=False, steps=12):
    mesh = meshes(world)
    if program is None:
        model = sharded(mesh=mesh)
    else:
        model = sharded(mesh=mesh["ranks"])
        if compresses_shards:
            cinch.torch.compress_fsdp(model, "none")
        compression = cinch.torch.compress_replicas(model, program, mesh["machines"].get_group(), **(settings or {}))
    losses = train(model, rank, steps=steps, batches=2)
    return whole(model), losses, 0 if program is None else compression.state_bytes


@pytest.mark.parametrize("world, compresses_shards", [(2, False), (4, False), (4, True)])
def test_without_compression_parameters_are_those_of_hsdp(ranks, world, compresses_shards):
    wanted = [parameters for parameters, _, _ in ranks.run(world, trained, None)]
    made = [parameters for parameters, _, _ in ranks.run(world, trained, "none", None, compresses_shards)]
    assert_all_same(made)
    # Means of two are exact halves of sums that are rounded once, in the same order.
    assert_same(made[0], wanted[0])


@pytest.mark.parametrize("program", ["error_feedback(topk(ratio: 0.1))", "powersgd"])
def test_compressed_runs_agree_and_learn(ranks, program):
    settings = {"rules": [{"min_elements": 97, "min_dims": 2}]}
    first, again = ranks.run(4, trained, program, settings), ranks.run(4, trained, program, settings)
    assert_all_same([parameters for parameters, _, _ in first + again])
    for _, losses, _ in first:
        assert sum(losses[-2:]) < sum(losses[:2])


def with_momentum(rank, world, is_compressed):
    """Momentum of the optimizer, or, behind four exact steps, of dgc, which sends all of it."""
    mesh = meshes(world)
    model = sharded(mesh=mesh["ranks"] if is_compressed else mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if is_compressed:
        moved = {"momentum": cinch.torch.take_momentum(optimizer), "ratio": 1.0, "masking": False}
        cinch.torch.compress_replicas(model, "dgc", mesh["machines"].get_group(), rules=[{"min_dims": 2}], dense_steps=4, **moved)
    for step in range(12):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
    return whole(model)


def test_moved_momentum_is_that_of_sgd(ranks):
    wanted, found = (ranks.run(4, with_momentum, is_compressed)[0] for is_compressed in (False, True))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_states_are_of_shards_alone(ranks):
    settings = {"rules": [{"name": "first.weight"}], "plan": "allgather"}
    # 73 rows of 64 elements: 37 of them on the first rank of a machine. A state has two buffers.
    for rank, (_, _, size) in enumerate(ranks.run(4, trained, "error_feedback(topk)", settings)):
        rows = 37 if rank % 2 == 0 else 36
        assert rows * 64 * 4 <= size < 2.5 * rows * 64 * 4


def with_unused(rank, world, is_compressed):
    mesh = meshes(world)
    model = fully_shard(Branches(), mesh=mesh["ranks"] if is_compressed else mesh)
    if is_compressed:
        cinch.torch.compress_replicas(model, "none", mesh["machines"].get_group())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(2):
            loss_of(model, rank, step).backward()
    return whole(model.used, lambda parameter: parameter.grad), sum("FSDP has" in str(each.message) for each in caught)


def test_what_does_not_fit_is_exact(ranks):
    wanted = ranks.run(4, with_unused, False)
    for (gradient, count), (dense, _) in zip(ranks.run(4, with_unused, True), wanted):
        assert_same(gradient, dense)
        assert count == 1


def mistaken(rank, world, which):
    mesh = meshes(world)
    if which == "native":
        cinch.torch.compress_replicas(sharded(mesh=mesh), "none", mesh["machines"].get_group())
    if which == "shards":
        cinch.torch.compress_replicas(sharded(mesh=mesh["ranks"]), "none", mesh["ranks"].get_group())
    if which == "twice":
        model = sharded(mesh=mesh["ranks"])
        for _ in range(2):
            cinch.torch.compress_replicas(model, "none", mesh["machines"].get_group())
    if which == "dense":
        cinch.torch.compress_replicas(Model(), "none", mesh["machines"].get_group())


@pytest.mark.parametrize(
    "which, words",
    [
        ("native", "its all-reduce leaves nothing to compress"),
        ("shards", "the shard's number is 0 on rank 0 and 1 on rank 1"),
        ("twice", "has an all-reduce hook already"),
        ("dense", "call torch.distributed.fsdp.fully_shard"),
    ],
)
def test_mistakes_are_told_on_all_ranks(ranks, which, words):
    for failure in ranks.fail(4, mistaken, which):
        assert failure.kind == "InvalidArgumentError" and words in failure.text, failure
