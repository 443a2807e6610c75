"""Bits: every program of the library, and the same synchronisation without PyTorch."""
import json
import os
import subprocess
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from support import assert_all_same, assert_same, flat, gradients_of, loss_of, small_model, train, wrapped

import cinch
import cinch.torch
from cinch.torch._engine import Engine

ALL = [{"min_dims": 2}]  # rules by which small matrices are compressed, too


def library():
    """Programs of the standard library; what wraps others wraps one."""
    told = subprocess.run([os.environ["CINCH_COMMAND"], "list", "--json"], capture_output=True, text=True, check=True).stdout
    inner = {"warmup": "topk"}  # it sets a ratio
    return [f"{row['name']}({inner.get(row['name'], 'onebit')})" if row["family"] == "wrap" else row["name"] for row in json.loads(told)]



def train_with(rank, world, programs):
    for program in programs[rank::world]:
        cinch.compile(program)  # into the cache that ranks share
    dist.barrier()
    told = {}
    for program in programs:
        model = small_model()
        ddp = wrapped(model)
        inputs = {"inputs": {"lr": 0.01}} if "lr" in cinch.compile(program).inputs else {}
        compression = cinch.torch.compress(ddp, program, timeout=60, **inputs)
        losses = train(ddp, torch.optim.SGD(model.parameters(), lr=0.01), rank, 4)
        told[program] = flat(model), losses, compression.report()["sent_bytes"]
        compression.close()
    return told


def test_every_program_of_the_library_trains(ranks):
    programs = library()
    assert len(programs) > 30
    told = ranks.run(2, train_with, programs)
    for program in programs:
        (parameters, losses, sent), other = told[0][program], told[1][program]
        assert torch.isfinite(parameters).all(), program
        assert np.isfinite(losses).all() and sent > 0, program
        assert_same(parameters, other[0])
        assert not torch.equal(parameters, flat(small_model())), program


def learn(rank, world):
    told = {}
    for program, settings in (("none", {}), ("qsgd", {}), ("error_feedback(onebit)", {}), ("dgc", {"ratio": 0.1})):
        model = small_model()
        ddp = wrapped(model)
        cinch.torch.compress(ddp, program, **settings)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = [train(ddp, optimizer, rank, 1)[0] for _ in range(60)]
        told[program] = losses[0], losses[-1]
    return told


def test_losses_fall(ranks):
    for rank in ranks.run(2, learn):
        for program, (first, last) in rank.items():
            assert last < first / 2, program


def none_and_by_hand(rank, world):
    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "none")
    loss_of(ddp, rank).backward()
    own = []
    for each in range(world):
        plain = small_model()
        loss_of(plain, each).backward()
        own.append(gradients_of(plain))
    for place, gradient in enumerate(gradients_of(model)):
        total = own[0][place]
        for each in own[1:]:
            total = total + each[place]
        assert_same(gradient, total / world)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_none_gives_the_mean(ranks, world):
    ranks.run(world, none_and_by_hand)


def step_by_step(rank, world, program, settings, num_steps):
    """Gradients of this rank, and what became of them, by step."""
    model = small_model()
    ddp = wrapped(model)
    bare = small_model()
    compression = cinch.torch.compress(ddp, program, rules=ALL, **settings)
    assert len({tensor.program for tensor in compression.engine.compressed.tensors}) == 2
    told = []
    for step in range(num_steps):
        bare.load_state_dict(model.state_dict())
        for each in (ddp, bare):
            each.zero_grad()
            loss_of(each, rank, step).backward()
        told.append((gradients_of(bare), gradients_of(model)))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.05 * parameter.grad
    return told


def without_torch(told, program, settings):
    """The same gradients through synchronizers between threads; updates by rank and step."""
    world = len(told)
    transports = cinch.Transport.loopback(world)
    updates, failures = [[] for _ in range(world)], []
    compiled = cinch.compile(program, **settings)
    names = [name for name, _ in small_model().named_parameters()]

    def body(rank):
        first = told[rank][0][0]
        tensors = [cinch.SyncTensor(name, tuple(g.shape), compiled if g.dim() > 1 else None) for name, g in zip(names, first)]
        sync = cinch.Synchronizer(transports[rank], tensors, threads=1)
        for step, (gradients, _) in enumerate(told[rank]):
            arrays = [gradient.numpy().copy() for gradient in gradients]
            sync.step(step, arrays)
            updates[rank].append(arrays)

    def guarded(rank):
        try:
            body(rank)
        except Exception as failure:
            failures.append(failure)
            transports[rank].close()

    threads = [threading.Thread(target=guarded, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return updates


@pytest.mark.parametrize(
    "program, settings",
    [("qsgd", {}), ("dgc", {"ratio": 0.05}), ("powersgd", {}), ("error_feedback(onebit)", {}), ("thc", {}), ("signsgd", {})],
)
def test_bits_are_those_of_a_synchronizer(ranks, program, settings):
    told = ranks.run(3, step_by_step, program, settings, 3)
    updates = without_torch(told, program, settings)
    for rank in range(3):
        for step in range(3):
            for place, update in enumerate(updates[rank][step]):
                wanted = torch.from_numpy(update)
                is_direction = program == "signsgd" and wanted.dim() == 1  # an exact tensor
                assert_same(told[rank][step][1][place], wanted.sign() if is_direction else wanted)
    for step in range(3):
        for place in range(4):
            assert_all_same([told[rank][step][1][place] for rank in range(3)])


def two_plans(rank, world, plan):
    model = small_model()
    ddp = wrapped(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compression = cinch.torch.compress(ddp, "qsgd", plan=plan)
    said = [str(each.message) for each in caught if "do not compress" in str(each.message)]
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 2)
    return flat(model), compression.choice, said


@pytest.mark.parametrize("plan", ["allreduce", "allgather", "ring", "tree", "auto"])
def test_plans(ranks, plan):
    told = ranks.run(3, two_plans, plan)
    assert_all_same([parameters for parameters, _, _ in told])
    _, choice, said = told[0]
    assert bool(choice) == (plan == "auto")
    assert [f"{choice}. Gradients are sent as they are"] * choice.startswith("do not compress") == said
    assert told[1][2] == told[2][2] == []


@pytest.mark.parametrize("rank", [0, 1])
def test_auto_warns_where_it_does_not_compress(rank):
    engine = SimpleNamespace(transport=SimpleNamespace(rank=rank), compressed=SimpleNamespace(choice="do not compress: it would cost 2.00 ms more (a; b)"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Engine._tell_choice(engine)
    assert [str(each.message) for each in caught] == ["do not compress: it would cost 2.00 ms more (a; b). Gradients are sent as they are"] * (rank == 0)
