"""What DistributedDataParallel does beside plain steps."""
import copy
import itertools

import pytest
import torch
import torch.distributed as dist
from support import assert_all_same, assert_same, data_of, flat, gradients_of, loss_of, small_model, train, wrapped
from torch.utils.checkpoint import checkpoint

import cinch
import cinch.torch


def mean_of(rank_gradients):
    return [sum(each) / len(each) for each in zip(*rank_gradients)]


def plain_gradients(world, step=0):
    """Means over ranks, in rank order."""
    own = []
    for rank in range(world):
        model = small_model()
        loss_of(model, rank, step).backward()
        own.append(gradients_of(model))
    return mean_of(own)


def accumulates(rank, world):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "none")
    with ddp.no_sync():
        loss_of(ddp, rank, 0).backward()
        alone = gradients_of(model)
        loss_of(ddp, rank, 1).backward()
    loss_of(ddp, rank, 2).backward()
    own = []
    for each in range(world):
        plain = small_model()
        for step in range(3):
            loss_of(plain, each, step).backward()
        own.append(gradients_of(plain))
    assert not torch.equal(alone[0], own[1 - rank][0])
    for got, wanted in zip(gradients_of(model), mean_of(own)):
        assert_same(got, wanted)


def test_no_sync(ranks):
    ranks.run(2, accumulates)


class Branches(torch.nn.Module):
    """Each call uses some of three matrices."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 72, bias=False) for _ in range(3))

    def forward(self, inputs, used):
        return sum(self.layers[i](inputs).mean() for i in used)


def leaves_out(rank, world, program, uses):
    """Gradients by step, where the steps of rank r use uses[step][r]; and what the states are after each."""
    model = Branches()
    ddp = wrapped(model, find_unused_parameters=True)
    compression = cinch.torch.compress(ddp, program)
    told = []
    for step, used in enumerate(uses):
        ddp.zero_grad()
        ddp(data_of(rank, step)[0], used[rank]).backward()
        told.append(gradients_of(model))
    return told, compression.state_dict()[f"rank{rank}.states"]


def test_parameters_unused_on_one_rank(ranks):
    told = ranks.run(2, leaves_out, "none", [((0, 1, 2), (0, 1))] * 2)
    for step in range(2):
        wanted = []
        for rank, used in enumerate(((0, 1, 2), (0, 1))):
            model = Branches()
            model(data_of(rank, step)[0], used).backward()
            wanted.append([torch.zeros(72, 64) if gradient is None else gradient for gradient in gradients_of(model)])
        for place, mean in enumerate(mean_of(wanted)):
            for gradients, _ in told:
                assert_same(gradients[step][place], mean)


def test_parameters_unused_on_all_ranks_keep_their_states(ranks):
    everything, two = ((0, 1, 2), (0, 1, 2)), ((0, 1), (0, 1))
    told = ranks.run(2, leaves_out, "error_feedback(onebit)", [everything, two, everything])
    assert all(gradients[1][2] is None for gradients, _ in told)
    assert_all_same([gradients[2][2] for gradients, _ in told])
    # Matrix 2 takes its second step as if there had been none between.
    without = ranks.run(2, leaves_out_later, "error_feedback(onebit)")
    for rank in range(2):
        assert_same(told[rank][0][2][2], without[rank])


def leaves_out_later(rank, world, program):
    model = Branches()
    ddp = wrapped(model, find_unused_parameters=True)
    cinch.torch.compress(ddp, program)
    for step in (0, 2):
        ddp.zero_grad()
        ddp(data_of(rank, step)[0], (0, 1, 2)).backward()
    return gradients_of(model)[2]


def with_settings(rank, world, settings, is_checkpointed=None):
    model = small_model()
    if is_checkpointed is not None:
        first = model[0]
        model = torch.nn.Sequential(Checkpointed(torch.nn.Sequential(first, model[1]), is_checkpointed), model[2])
    ddp = wrapped(model, **settings)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 3)
    return flat(model)


class Checkpointed(torch.nn.Module):
    def __init__(self, inner, use_reentrant):
        super().__init__()
        self.inner, self.use_reentrant = inner, use_reentrant

    def forward(self, inputs):
        return checkpoint(self.inner, inputs.requires_grad_(), use_reentrant=self.use_reentrant)


def test_settings_of_ddp_change_no_bits(ranks):
    told = []
    for settings in (
        {"gradient_as_bucket_view": False},
        {"gradient_as_bucket_view": True},
        {"static_graph": True},
        {"bucket_cap_mb": 25},
        {"find_unused_parameters": True},
    ):
        told += ranks.run(2, with_settings, settings)
    for use_reentrant in (True, False):
        told += ranks.run(2, with_settings, {}, use_reentrant)
    assert_all_same(told)


class Mixed(torch.nn.Module):
    """Parameters of two types, which DDP puts into two buckets."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(64, 72), torch.nn.Linear(72, 70).bfloat16()

    def forward(self, inputs):
        return self.narrow(self.wide(inputs).bfloat16()).float()


def with_two_types(rank, world, settings, is_bare_hook):
    torch.manual_seed(5)
    model = Mixed()
    ddp = wrapped(model, **settings)
    if is_bare_hook:
        ddp.register_comm_hook(cinch.torch.Hook("topk", timeout=5), cinch.torch.run_hook)
    else:
        cinch.torch.compress(ddp, "topk", timeout=5)
    for step in range(3):
        ddp.zero_grad()
        (ddp(data_of(rank, step)[0]) ** 2).mean().backward()
    return gradients_of(model)


@pytest.mark.parametrize("is_bare_hook", [False, True])
def test_several_buckets_in_a_static_graph(ranks, is_bare_hook):
    """In its first step DDP says of no bucket that it is the last."""
    plain = ranks.run(2, with_two_types, {}, is_bare_hook)
    for settings in ({"static_graph": True}, {"static_graph": True, "bucket_cap_mb": 0.001}):
        for a, b in zip(plain, ranks.run(2, with_two_types, settings, is_bare_hook)):
            assert_all_same([torch.cat([each.float().flatten() for each in side]) for side in (a, b)])


def unused_in_a_static_graph(rank, world):
    model = Branches()
    ddp = wrapped(model, static_graph=True)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    for step in range(3):
        ddp.zero_grad()
        ddp(data_of(rank, step)[0], (0, 2)).backward()
    return gradients_of(model)


def test_static_graph_with_unused_parameters(ranks):
    told = ranks.run(2, unused_in_a_static_graph)
    assert_same(told[0][0], told[1][0])
    assert_same(told[0][2], told[1][2])
    assert told[0][1] is None or not told[0][1].any()


def clips(rank, world):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "none")
    loss_of(ddp, rank).backward()
    norm = torch.nn.utils.clip_grad_norm_(ddp.parameters(), 0.01)
    return norm, gradients_of(model)


def test_gradients_are_clipped_after_they_are_means(ranks):
    told = ranks.run(2, clips)
    wanted = plain_gradients(2)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(each) for each in wanted]))
    for got, gradients in told:
        assert_same(got, norm)
        torch.testing.assert_close(gradients, [each * (0.01 / norm) for each in wanted])


def uneven(rank, world, settings):
    """Rank 1 has more steps than rank 0."""
    model = small_model()
    ddp = wrapped(model, **settings)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with ddp.join():
        train(ddp, optimizer, rank, 2 + 2 * rank)
    first = flat(model)
    train(ddp, optimizer, rank, 1)
    return first, flat(model)


@pytest.mark.parametrize("settings", [{}, {"find_unused_parameters": True}, {"bucket_cap_mb": 25}])
def test_join(ranks, settings):
    told = ranks.run(2, uneven, settings)
    for moment in range(2):
        assert_same(told[0][moment], told[1][moment])


def two_models(rank, world, is_alternating):
    models = [small_model(72), small_model(100)]
    ddps = [wrapped(model) for model in models]
    for ddp, program in zip(ddps, ("qsgd", "error_feedback(onebit)")):
        cinch.torch.compress(ddp, program)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    order = itertools.product(range(3), range(2)) if is_alternating else [(step, which) for which in range(2) for step in range(3)]
    for step, which in order:
        train(ddps[which], optimizers[which], rank, 1, first=step)
    return [flat(model) for model in models]


def test_two_models(ranks):
    told = ranks.run(2, two_models, True) + ranks.run(2, two_models, False)
    for which in range(2):
        assert_all_same([each[which] for each in told])


def in_groups(rank, world):
    groups = [dist.new_group([1, 2]), dist.new_group([0])]
    group = groups[0] if rank > 0 else groups[1]
    model = small_model()
    ddp = wrapped(model, group)
    cinch.torch.compress(ddp, "error_feedback(onebit)")
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 2)
    whole = copy.deepcopy(model)
    ddp = wrapped(whole)
    cinch.torch.compress(ddp, "none")
    loss_of(ddp, rank).backward()
    return flat(model), gradients_of(whole)[0]


def test_groups(ranks):
    told = ranks.run(3, in_groups)
    assert_same(told[1][0], told[2][0])
    assert not torch.equal(told[0][0], told[1][0])
    assert_all_same([gradient for _, gradient in told])
