"""Copies of models that are compressed."""
import copy
import io

import torch
from support import assert_same, flat, gradients_of, loss_of, small_model, train, wrapped
from torch.optim.swa_utils import AveragedModel

import cinch
import cinch.torch


def loaded(ddp):
    file = io.BytesIO()
    torch.save(ddp, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def copied(rank, world, settings):
    """By way of copying: gradients of a copy, and of one that is compressed, beside those of the model."""
    model = small_model()
    ddp = wrapped(model, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if settings is None:  # what does not pickle
        settings = {"rules": [lambda name, shape: None, {"min_dims": 2}], "schedule": {"ratio": lambda step: 0.1}}
        settings["momentum"] = cinch.torch.take_momentum(optimizer)
    cinch.torch.compress(ddp, "dgc", timeout=10, **settings)
    train(ddp, optimizer, rank, 1)
    told = []
    for make in (copy.deepcopy, loaded, lambda ddp: AveragedModel(ddp).module):
        other = make(ddp)
        other.zero_grad()
        loss_of(other, rank).backward()
        dense = gradients_of(other)
        anew = make(ddp)
        cinch.torch.compress(anew, "fp16", timeout=10)
        anew.zero_grad()
        loss_of(anew, rank).backward()
        again = make(anew)
        told.append((dense, gradients_of(anew), flat(again)))
    train(ddp, optimizer, rank, 1)
    return told, flat(model)


def plain(rank, world, parameters):
    model = small_model()
    torch.nn.utils.vector_to_parameters(parameters, model.parameters())
    ddp = wrapped(model)
    loss_of(ddp, rank).backward()
    return gradients_of(model)


def test_copies_average_exactly_until_they_are_compressed(ranks):
    for settings in ({}, None):
        told = ranks.run(2, copied, settings)
        of_plain = ranks.run(2, plain, told[0][0][0][2])
        for of_rank, _ in told:
            for dense, anew, _ in of_rank:
                for got, compressed, wanted in zip(dense, anew, of_plain[0]):
                    assert_same(got, wanted)
                    torch.testing.assert_close(compressed, wanted, rtol=1e-2, atol=1e-4)
                assert not torch.equal(dense[0], anew[0])
        assert_same(told[0][1], told[1][1])


def a_hook_of_ones_own(rank, world):
    hook = cinch.torch.Hook(cinch.compile("qsgd"))
    ddp = wrapped(small_model())
    ddp.register_comm_hook(hook, cinch.torch.run_hook)
    loss_of(ddp, rank).backward()
    (_, state), = copy.deepcopy(ddp)._comm_hooks
    return state.engine is None and state.settings is hook.settings


def test_a_copied_hook_has_the_settings(ranks):
    assert ranks.run(2, a_hook_of_ones_own) == [True, True]
