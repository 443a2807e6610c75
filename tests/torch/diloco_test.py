"""`DiLoCo`, against recurrences in PyTorch without Cinch."""
import copy
import os
import time
import warnings
from unittest import mock

import pytest
import torch
from support import assert_all_same, assert_same, flat, loss_of, small_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import cinch
import cinch.torch
from cinch.torch import _told


def train(rank, world, settings, steps=12, kind="adamw", alike=False):
    """Own weights behind each step, and the global ones at the end."""
    model = small_model()
    inner = torch.optim.AdamW(model.parameters(), lr=0.01) if kind == "adamw" else torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, **settings)
    weights = []
    for step in range(steps):
        inner.zero_grad()
        loss_of(model, 0 if alike else rank, step).backward()
        trainer.step()
        weights.append(flat(model))
    with trainer.global_weights():
        return [*weights, flat(model)]


def recurrence(world, every, lr, momentum, turns, delay=0, mix=0.0, steps=12):
    """`turns`: the places of the parameters of each fragment. In f32, as Cinch adds: in the order of ranks."""
    models = [small_model() for _ in range(world)]
    inners = [torch.optim.AdamW(model.parameters(), lr=0.01) for model in models]
    own = [list(model.parameters()) for model in models]
    base = [p.detach().clone() for p in own[0]]
    velocity = [torch.zeros_like(p) for p in base]
    under_way, told = {}, [[] for _ in range(world)]
    ends = {every * (turn + 1) // len(turns) % every: turn for turn in range(len(turns))}

    @torch.no_grad()
    def begin(turn):
        for place in turns[turn]:
            under_way[place] = sum(base[place] - own[rank][place] for rank in range(world)) / world

    @torch.no_grad()
    def apply(turn):
        for place in turns[turn]:
            by = under_way.pop(place, None)
            if by is None:
                continue
            if momentum:
                velocity[place].mul_(momentum).add_(by)
                by = by.add(velocity[place], alpha=momentum)
            base[place].sub_(by, alpha=lr)
            for rank in range(world):
                own[rank][place].copy_(own[rank][place] * mix + base[place] * (1 - mix) if mix else base[place])

    for step in range(1, steps + 1):
        for rank in range(world):
            inners[rank].zero_grad()
            loss_of(models[rank], rank, step - 1).backward()
            inners[rank].step()
        if delay and step % every in ends:
            apply(ends[step % every])
        if (step + delay) % every in ends:
            begin(ends[(step + delay) % every])
            if not delay:
                apply(ends[step % every])
        for rank in range(world):
            told[rank].append(flat(models[rank]))
    return [[*each, torch.cat([p.flatten() for p in base])] for each in told]


@pytest.mark.parametrize("settings, turns", [
    ({"every": 4, "outer_lr": 0.7, "outer_momentum": 0.5}, [[0, 1, 2, 3]]),
    ({"every": 4, "outer_lr": 1, "outer_momentum": 0}, [[0, 1, 2, 3]]),
    ({"every": 5, "outer_lr": 0.7, "outer_momentum": 0.9, "fragments": lambda name: int(name[0] == "2")}, [[0, 1], [2, 3]]),
    ({"every": 7, "outer_lr": 0.5, "outer_momentum": 0.5, "fragments": lambda name: int(name[0] == "2"), "delay": 2, "mix": 0.25}, [[0, 1], [2, 3]]),
    ({"every": 5, "outer_lr": 0.7, "outer_momentum": 0.5, "delay": 3, "backup": "cpu"}, [[0, 1, 2, 3]]),
], ids=["diloco", "local_sgd", "fragments", "streaming", "delay"])
def test_weights_are_those_of_the_recurrence(ranks, settings, turns):
    mix = settings.get("mix", 0.5 if settings.get("delay") else 0.0)
    wanted = recurrence(2, settings["every"], settings["outer_lr"], settings["outer_momentum"], turns, settings.get("delay", 0), mix)
    told = ranks.run(2, train, {key: value for key, value in settings.items() if key != "fragments"} if len(turns) == 1 else {**settings, "fragments": _by_module})
    for own, expected in zip(told, wanted):
        for a, b in zip(own, expected):
            if mix == 0:
                assert_same(a, b)
            else:
                torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


def _by_module(name):
    return int(name.startswith("2"))


def resumed(rank, world, settings, at, steps=12):
    model = small_model()
    inner = torch.optim.AdamW(model.parameters(), lr=0.01)
    trainer = cinch.torch.DiLoCo(model, inner, **settings)
    weights = []
    for step in range(steps):
        if step == at:
            saved, of_inner = trainer.state_dict(), copy.deepcopy(inner.state_dict())
            trainer.close()
            model = small_model()
            inner = torch.optim.AdamW(model.parameters(), lr=0.01)
            trainer = cinch.torch.DiLoCo(model, inner, **settings)
            inner.load_state_dict(of_inner)
            assert trainer.load_state_dict(saved) == ""
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
        weights.append(flat(model))
    with trainer.global_weights():
        return [*weights, flat(model)]


STREAMING = {"every": 6, "fragments": 2, "delay": 2, "program": "error_feedback(onebit)"}


@pytest.mark.parametrize("at", [1, 2, 6, 9])
def test_a_resumed_run_is_an_uninterrupted_one(ranks, at):
    """Behind steps 1, 4, 7 and 10 an exchange is under way."""
    for a, b in zip(ranks.run(2, resumed, STREAMING, at), ranks.run(2, train, STREAMING)):
        assert_same(torch.cat(a), torch.cat(b))


def averaged(rank, world, every):
    """Weights before and behind the first exchange of local SGD."""
    model = small_model()
    inner = torch.optim.AdamW(model.parameters(), lr=0.01)
    trainer = cinch.torch.DiLoCo(model, inner, every=every, outer_lr=1, outer_momentum=0)
    begun = flat(model)
    for step in range(every):
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        if step == every - 1:
            inner.step()
            before = flat(model)
            inner.step = lambda: None  # has been taken
        trainer.step()
    return begun, before, flat(model)


@pytest.mark.parametrize("world, ulps", [(2, 2), (4, 2), (8, 3)])
def test_local_sgd_is_the_mean_of_weights(ranks, world, ulps):
    told = ranks.run(world, averaged, 3)
    mean = torch.stack([before.double() for _, before, _ in told]).mean(0)
    largest = torch.stack([begun.abs() for begun, _, _ in told] + [before.abs() for _, before, _ in told]).amax(0)
    ulp = ulp_of(largest).double()
    for _, _, after in told:
        assert float(((after.double() - mean).abs() / ulp).max()) <= ulps


def weighted(rank, world):
    weight = torch.nn.Parameter(torch.zeros(72, 64))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.DiLoCo(model, torch.optim.SGD([weight], lr=1.0), every=1, outer_lr=1, outer_momentum=0, weighted=True)
    weight.grad = torch.full_like(weight, -float(rank + 1))
    trainer.count(100 if rank == 0 else 300)
    trainer.step()
    return weight.detach().clone()


def test_means_are_weighted_by_tokens(ranks):
    for weight in ranks.run(2, weighted):
        assert_same(weight, torch.full((72, 64), (1 * 100 + 2 * 300) / 400))


def counted(rank, world):
    model = small_model()
    trainer = cinch.torch.DiLoCo(model, torch.optim.SGD(model.parameters(), lr=0.05), every=4)
    with pytest.raises(cinch.InvalidArgumentError, match="weighted=True does"):
        trainer.count(5)


def test_tokens_that_nobody_weights_by_are_refused(ranks):
    ranks.run(1, counted)


def needless(rank, world):
    """An exchange counts as next to nothing, however long it takes."""
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    with warnings.catch_warnings(record=True) as told, mock.patch.object(_told, "_LITTLE", float("inf")):
        warnings.simplefilter("always")
        trainer = cinch.torch.DiLoCo(model, inner, every=4, delay=2)
        for _ in range(28):
            inner.zero_grad()
            loss_of(model, rank, 0).backward()
            trainer.step()
    return [str(each.message) for each in told]


def test_a_delay_that_no_exchange_needs_is_warned_of(ranks):
    first, second = ranks.run(2, needless)
    assert len(first) == 1 and "needs no delay, and delay=0" in first[0] and not second


METHODS = {
    "sync": ("Delayed", {"method": "sync"}),
    "stale": ("Delayed", {"method": "stale"}),
    "od_sgd": ("Delayed", {"method": "od_sgd"}),
    "cd_sgd": ("Delayed", {"method": "cd_sgd", "program": "correct_every(two_bit(tau: 0.01), every: 5)", "dense_steps": 0}),
    "ssd_sgd": ("Delayed", {"method": "ssd_sgd"}),
    "local_sgd": ("DiLoCo", {"every": 5, "outer_lr": 1, "outer_momentum": 0}),
    "diloco": ("DiLoCo", {"every": 5}),
    "streaming": ("DiLoCo", {"every": 6, "fragments": 2, "delay": 2}),
    "sparse_loco": ("DiLoCo", {"every": 5, "outer_lr": 1, "outer_momentum": 0, "program": "sparse_loco"}),
}


def losses(rank, world, method):
    """Of the global weights on the batches of all ranks, before and behind 150 steps."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    kind, settings = METHODS[method]
    trainer = getattr(cinch.torch, kind)(model, optimizer, **settings)

    def loss():
        with torch.no_grad():
            return sum(float(loss_of(model, each, 0)) for each in range(world)) / world

    begun = loss()
    for _ in range(150):
        optimizer.zero_grad()
        loss_of(model, rank, 0).backward()
        trainer.step()
    trainer.flush()
    return begun, loss()


@pytest.mark.parametrize("method", [name for name in METHODS if name != "sync"])
def test_losses_come_near_those_of_sync(ranks, method):
    """Each rank has a batch of its own, so that methods differ."""
    (begun, wanted), _ = ranks.run(2, losses, "sync")
    (_, found), (_, other) = ranks.run(2, losses, method)
    assert found == other and found - wanted < 0.05 * (begun - wanted)


def weighted_fragments(rank, world, every, steps, tokens, program):
    """Weights that move by rank + 1 a step, of two fragments."""
    model = torch.nn.Module()
    model.first, model.second = (torch.nn.Parameter(torch.zeros(64, 64)) for _ in range(2))
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    trainer = cinch.torch.DiLoCo(model, inner, every=every, outer_lr=1, outer_momentum=0, fragments=2, weighted=True, program=program, dense_steps=0)
    for _ in range(steps):
        for parameter in model.parameters():
            parameter.grad = torch.full((64, 64), float(rank + 1))
        trainer.count(tokens[rank])
        trainer.step()
    trainer.flush()
    return [float(p.detach()[0, 0]) for p in model.parameters()], [float(p.detach().std()) for p in model.parameters()]


@pytest.mark.parametrize("steps", [5, 6, 7, 12])
@pytest.mark.parametrize("tokens, program", [((1, 3), "none"), ((100000, 300000), "fp16")])
def test_fragments_count_tokens_since_their_own_exchanges(ranks, steps, tokens, program):
    """A rank's share of the tokens is the same at all times, so weights move by the weighted mean at every step: 1.75."""
    for found, deviations in ranks.run(2, weighted_fragments, 6, steps, tokens, program):
        assert found == pytest.approx([-1.75 * steps] * 2, rel=1e-3) and deviations == [0, 0]


def broken_once(rank, world, fragments):
    """How many exchanges rank 1 took no part in; it has one gradient that is not a number."""
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    trainer = cinch.torch.DiLoCo(model, inner, every=4, fragments=fragments, min_ranks=1, timeout=20)
    absent = 0
    for step in range(40):
        inner.zero_grad()
        loss_of(model, rank, 0).backward()
        if (rank, step) == (1, 9):
            model[0].weight.grad[0, 0] = float("nan")
        trainer.step()
        absent += not bool(torch.isfinite(flat(model)).all())
    trainer.flush()
    with torch.no_grad():
        return absent, flat(model), float(loss_of(model, rank, 0))


@pytest.mark.parametrize("fragments", [1, 2, 4])
def test_a_rank_that_is_not_finite_comes_back(ranks, fragments):
    (none, first, loss), (few, second, _) = ranks.run(2, broken_once, fragments)
    assert none == 0 and few <= 4 and loss < 1
    assert_same(first, second)


def out_of_step(rank, world):
    """Rank 1 flushes a step early, while rank 0 comes to the exchange of another fragment."""
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, every=4, fragments=2, min_ranks=2, timeout=20)
    for step in range(4 if rank == 0 else 3):
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
    trainer.flush()


def test_ranks_that_flush_behind_other_steps_are_told(ranks):
    for failed in ranks.fail(2, out_of_step):
        assert failed.kind == "SyncError" and "flush is called by all behind the same step" in failed.text


def diverged(rank, world):
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, every=2)
    for step in range(2):
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        if rank == 1:
            next(model.parameters()).grad[3, 4] = float("nan")
        trainer.step()


def test_weights_that_are_not_finite_are_an_error_on_all_ranks(ranks):
    told = ranks.fail(2, diverged)
    assert [answer.kind for answer in told] == ["SyncError", "SyncError"]
    assert "step 2" in told[1].text and "0.weight" in told[1].text and "not finite" in told[1].text


def one_inner_step(rank, world):
    model, dense = small_model(), small_model()
    inner, optimizer = (torch.optim.SGD(each.parameters(), lr=0.05) for each in (model, dense))
    trainer = cinch.torch.DiLoCo(model, inner, every=1, outer_lr=1, outer_momentum=0)
    for step in range(5):
        dense.load_state_dict(model.state_dict())
        before = flat(model)
        for each in (model, dense):
            each.zero_grad()
            loss_of(each, 0, step).backward()
        trainer.step()
        optimizer.step()
        assert bool(((flat(model) - flat(dense)).abs() <= ulp_of(torch.maximum(before.abs(), flat(dense).abs()))).all())


def test_a_step_on_equal_data_is_that_of_sgd(ranks):
    """Within the rounding of global - local."""
    ranks.run(2, one_inner_step)


def ulp_of(values):
    return torch.ldexp(torch.ones_like(values), torch.frexp(values)[1] - 24)


def refused(rank, world, settings):
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    with pytest.raises(cinch.Error) as caught:
        cinch.torch.DiLoCo(model, inner, timeout=5, **settings)
    return f"{caught.typename}: {caught.value}"


@pytest.mark.parametrize("settings, text", [
    ({"every": 0}, "every is 0"),
    ({"every": -3}, "every is -3"),
    ({"every": 5, "delay": -1}, "delay is -1"),
    ({"every": 5, "delay": 5}, "an exchange ends every 5 steps"),
    ({"every": 8, "delay": 4, "fragments": 2}, "an exchange ends every 4 steps"),
    ({"every": 9, "fragments": 5}, "5 fragments of 4 tensors"),
    ({"every": 2, "fragments": 3}, "3 fragments in 2 steps"),
    ({"every": 2, "fragments": 0}, "fragments is 0"),
    ({"every": 2, "outer_lr": 0}, "outer_lr is 0"),
    ({"every": 2, "outer_momentum": 1}, "outer_momentum is 1"),
    ({"every": 2, "mix": 0.5}, "without a delay"),
    ({"every": 5, "delay": 1, "mix": 1.5}, "mix is 1.5"),
    ({"every": 2, "backup": "disk"}, "backup is 'disk'"),
    ({"every": 2, "program": "no_such"}, "no_such"),
    ({"every": 2, "program": "topk(ratio: 2.0)"}, "ratio"),
])
def test_bad_input_is_an_error_on_all_ranks(ranks, settings, text):
    told = ranks.run(2, refused, settings)
    assert any(text in each for each in told), told


def of_other_schedules(rank, world):
    return refused(rank, world, {"every": 4 + rank})


def test_ranks_of_other_schedules_are_told(ranks):
    for text in ranks.run(2, of_other_schedules):
        assert "every is 4 on rank 0 and 5 on rank 1" in text


def two_sites(rank, world, kind, settings):
    """Sites of two ranks, which train as one; each rank meets its like in the other site."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("sites", "ranks"))
    site, between = mesh["ranks"].get_group(), mesh["sites"].get_group()
    model = small_model()
    if kind == "fsdp":
        trained = fully_shard(model, mesh=mesh["ranks"])
    else:
        trained = torch.nn.parallel.DistributedDataParallel(model, process_group=site)
    inner = torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)
    trainer = cinch.torch.DiLoCo(trained, inner, every=3, group=between, **settings)
    for step in range(9):
        inner.zero_grad()
        loss_of(trained, rank, step).backward()
        trainer.step()
    trainer.flush()
    if kind == "fsdp":
        return torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])
    return flat(model)


def test_sites_of_shards_and_of_replicas_train_alike(ranks):
    sharded, replicated = ranks.run(4, two_sites, "fsdp", {}), ranks.run(4, two_sites, "ddp", {})
    assert_all_same(sharded)
    assert_all_same(replicated)
    torch.testing.assert_close(sharded[0], replicated[0], rtol=1e-5, atol=1e-6)


def test_shards_are_compressed(ranks):
    assert_all_same(ranks.run(4, two_sites, "fsdp", {"program": "error_feedback(onebit)", "fragments": 2, "delay": 0, "rules": [{}]}))


def bytes_of(rank, world, settings):
    weight = torch.nn.Parameter(torch.randn(512, 512))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.DiLoCo(model, torch.optim.SGD([weight], lr=0.1), **settings)
    for step in range(settings["every"]):
        weight.grad = torch.randn(512, 512)
        trainer.step()
    told = trainer.report()
    assert told["fragments"][0]["tensors"][0]["program"] != "exact"
    return told["sent_bytes"] / (settings["every"] * 2 * (world - 1) / world * weight.nbytes)


@pytest.mark.parametrize("program, part", [("qsgd(bits: 4, bucket: 4096)", 1 / 800), ("mxfp4", 4.25 / 32 / 100)])
def test_bytes_of_f32_at_every_step(ranks, program, part):
    for found in ranks.run(4, bytes_of, {"every": 100, "program": program, "plan": "two_shot"}):
        assert abs(found / part - 1) < 0.02


def slow_exchange(rank, world):
    """A delay of a step, and steps that take nothing."""
    weight = torch.nn.Parameter(torch.randn(4096, 512))
    model = torch.nn.Module()
    model.weight = weight
    trainer = cinch.torch.DiLoCo(model, torch.optim.SGD([weight], lr=0.1), every=2, delay=1)
    weight.grad = torch.zeros_like(weight)
    for _ in range(6):
        trainer.step()
    return trainer.report()


def test_a_report_says_how_much_room_an_exchange_wants(ranks):
    for told in ranks.run(2, slow_exchange):
        assert told["copies_bytes"] == 3 * 4 * 4096 * 512
        assert told["has_room"] or told["every_with_room"] > 2


def elastic(rank, world, what, at, settings={}):
    """Rank 2 is late, or ends, at a step; the others go on. Weights behind each step."""
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, **{"every": 2, **settings}, outer_lr=1, outer_momentum=0, min_ranks=2, grace=1, timeout=20)
    told, step, is_paced = [], 0, what == "late"
    while step < 10:
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        if rank == 2 and step == at and what == "late":
            time.sleep(3)
            what = ""
        elif is_paced and step > at:
            time.sleep(0.4)  # so that the late rank comes before the others are done
        if rank == 2 and step == at and what == "ends":
            os._exit(1)
        trainer.step()
        step = trainer.step_number
        told.append((step, flat(model)))
    return told


def test_a_late_rank_is_left_out_and_joins_again(ranks):
    told = ranks.run(3, elastic, "late", 3)
    whole = dict(told[0])
    for each in told[1:]:
        assert dict(each)[10].equal(whole[10])
    assert len(told[2]) < len(told[0]) == 10


def test_a_rank_that_ends_costs_one_exchange_at_most(ranks):
    told = ranks.answers(3, elastic, "ends", 3, lost=(2,))
    first, second = dict(told[0]), dict(told[1])
    assert len(first) == len(second) == 10
    assert first[10].equal(second[10])


def test_a_rank_that_ends_while_an_exchange_is_under_way_costs_that_one(ranks):
    """It begins behind step 3, and would be used behind step 4."""
    told = ranks.answers(3, elastic, "ends", 3, {"every": 4, "delay": 1, "mix": 0}, lost=(2,))
    first, second = dict(told[0]), dict(told[1])
    assert len(first) == len(second) == 10
    assert first[8].equal(second[8]) and not first[7].equal(second[7])


def elastic_sites(rank, world, kind):
    """Three sites of two ranks that share a model (FSDP2). Both of the last site end."""
    mesh = init_device_mesh("cpu", (3, 2), mesh_dim_names=("sites", "ranks"))
    model = small_model()
    trained = fully_shard(model, mesh=mesh["ranks"])
    inner = torch.optim.SGD(trained.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(trained, inner, every=2, group=mesh["sites"].get_group(), min_ranks=2, grace=1, timeout=20)
    for step in range(8):
        if step == 3 and rank >= 4:
            os._exit(1)
        inner.zero_grad()
        loss_of(trained, rank, step).backward()
        trainer.step()
    return torch.cat([p.to_local().detach().flatten() for p in model.parameters()])


@pytest.mark.skipif("CINCH_LONG" not in os.environ, reason="six processes: with ./dev test --long")
def test_a_site_of_shards_that_ends_is_left_out(ranks):
    told = ranks.answers(6, elastic_sites, "fsdp", lost=(4, 5))
    for shard in range(2):
        assert_same(told[shard], told[2 + shard])


def loaded_alone(rank, world, kind):
    """Rank 1 loads what does not fit."""
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    if kind == "diloco":
        trainer = cinch.torch.DiLoCo(model, inner, every=4, fragments=2, delay=1)
    else:
        trainer = cinch.torch.Delayed(model, inner, kind)
    for step in range(3):
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
    saved, before = trainer.state_dict(), flat(model)
    trainer.report()
    with pytest.raises(cinch.Error) as caught:
        trainer.load_state_dict(saved if rank == 0 else {key: value for key, value in saved.items() if "2.bias" not in key})
    assert flat(model).equal(before)
    assert trainer.load_state_dict(saved) == ""
    trainer.step()
    return f"{caught.typename}: {caught.value}"


@pytest.mark.parametrize("kind", ["diloco", "od_sgd"])
def test_states_that_do_not_fit_on_one_rank_are_an_error_on_all(ranks, kind):
    first, second = ranks.run(2, loaded_alone, kind)
    assert first.startswith("CancelledError: rank 1") and "2.bias" in second


def flushed(rank, world, settings, steps):
    model = small_model()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, outer_lr=1, outer_momentum=0, **settings)
    for step in range(steps):
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
    own = flat(model)
    trainer.flush()
    first = flat(model)
    trainer.flush()
    return own, first, flat(model)


@pytest.mark.parametrize("steps", [5, 8])
def test_flushing_keeps_the_steps_since_an_exchange_began(ranks, steps):
    """Behind step 5 one is under way, begun behind step 2."""
    told = ranks.run(2, flushed, {"every": 8, "delay": 6}, steps)
    mean = torch.stack([own for own, _, _ in told]).mean(0)
    for _, first, second in told:
        assert second.equal(first)
        if steps == 5:
            torch.testing.assert_close(first, mean, rtol=0, atol=1e-6)


def evaluated(rank, world, evaluates):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("sites", "ranks"))
    model = fully_shard(small_model(), mesh=mesh["ranks"])
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    trainer = cinch.torch.DiLoCo(model, inner, every=3, group=mesh["sites"].get_group())
    for step in range(7):
        if step == 5 and evaluates:
            with trainer.global_weights(), torch.no_grad():
                loss_of(model, rank, step)
        inner.zero_grad()
        loss_of(model, rank, step).backward()
        trainer.step()
    return torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])


def test_evaluating_shards_changes_nothing(ranks):
    for a, b in zip(ranks.run(4, evaluated, True), ranks.run(4, evaluated, False)):
        assert_same(a, b)
