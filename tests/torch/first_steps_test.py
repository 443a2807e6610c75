"""Plan "auto" once more behind the backward pass that the first steps measured. Most tests say which plans it takes, since its own choice differs between
machines; the bits of plans that were given, and of plain DDP, are what updates are compared with."""
import contextlib
import time
from unittest import mock

import pytest
import torch
import torch.distributed.checkpoint as checkpoint
from support import assert_all_same, flat, loss_of, small_model, train, wrapped

import cinch
import cinch.torch
from cinch.torch import _engine, _first_steps

FEEDBACK = "error_feedback(fp16)"  # element by element: pieces of any size have the same bits
SMALL, LARGE = ("allgather", 4096), ("allgather", 1 << 20)
STEPS = 6


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x, seconds):
        context.seconds = seconds
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.seconds)
        return gradient, None


class SlowModel(torch.nn.Module):
    """The last layer is ready a while before the first, on rank 1 a longer one; one layer is never used."""

    def __init__(self, rank):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.unused = torch.nn.Linear(64, 72), torch.nn.Linear(72, 3), torch.nn.Linear(40, 40)
        self.seconds = 0.01 if rank == 0 else 0.03

    def forward(self, x):
        return self.last(Slow.apply(torch.tanh(self.first(x)), self.seconds))


def measured(rank, world, plan):
    """With a backward pass under no_sync in each step."""
    model = SlowModel(rank)
    ddp = wrapped(model, find_unused_parameters=True, bucket_cap_mb=0.0005)  # a bucket for each layer
    given, times = [], []
    opened = _engine.Synchronizer

    def spied(*arguments, **settings):
        given.append(settings.get("ready_seconds"))
        return opened(*arguments, **settings)

    with mock.patch.object(_engine, "Synchronizer", spied):
        compression = None if plan is None else cinch.torch.compress(ddp, "none", plan=plan)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            with ddp.no_sync():
                loss_of(ddp, rank, step + 100).backward()
            loss_of(ddp, rank, step).backward()
            optimizer.step()
            times.append(None if compression is None else compression.ready_seconds)
    return flat(model), times, given, "" if compression is None else compression.choice


def test_plans_with_what_the_first_steps_measured(ranks):
    told = ranks.run(2, measured, "auto")
    plain = ranks.run(2, measured, None)
    assert_all_same([weights for weights, _, _, _ in told + plain])
    for _, times, given, _ in told:
        assert times[:5] == [None] * 5 and times[5] == told[0][1][5]
        ready = times[5]
        # Buckets are handed over as a whole: the bias of the first layer shares one with the weight of the last.
        assert set(ready) == {f"{layer}.{kind}" for layer in ("first", "last", "unused") for kind in ("weight", "bias")}
        assert 0 <= ready["unused.bias"] <= ready["last.bias"] < 0.02 and 0.03 <= min(ready["last.weight"], ready["first.bias"], ready["first.weight"])
        assert given == [None, list(ready.values())]
    assert told[0][3] != ""


@contextlib.contextmanager
def choosing(*plans):
    """What "auto" takes, one opening after the other; an exception is raised."""
    left = list(plans)

    def opened(engine, tensors, plan):
        taken = left.pop(0)
        if isinstance(taken, Exception):
            raise taken
        return cinch.Synchronizer(engine.transport, tensors, plan=taken[0], piece_bytes=taken[1], threads=1, timeout=20, ready_seconds=None)

    with mock.patch.object(_engine.Engine, "_opened", opened):
        yield left


def trained(rank, world, plans, settings, forgets=False):
    """Weights, the plan in the end, and states behind the steps."""
    model = small_model()
    ddp = wrapped(model)
    dropped = lambda engine, old, opened: opened()  # noqa: E731
    with choosing(*plans), mock.patch.object(_first_steps, "with_states_of", dropped if forgets else _first_steps.with_states_of):
        compression = cinch.torch.compress(ddp, FEEDBACK, plan="auto", **{"dense_steps": 0, "replan_after": 3, **settings})
        train(ddp, torch.optim.SGD(model.parameters(), lr=0.1), rank, STEPS)
    return flat(model), compression.engine.compressed.plan.split(",")[0], compression.ready_seconds is not None


@pytest.mark.parametrize("plans", [(SMALL, LARGE), (("two_shot", 4096), ("two_shot", 1 << 20)), (("two_shot", 1 << 20), ("two_shot", 8192))])
def test_states_go_over_to_other_pieces_and_owners(ranks, plans):
    again, once = ranks.run(2, trained, plans, {}), ranks.run(2, trained, plans[:1], {"replan_after": 0})
    assert_all_same([weights for weights, _, _ in again + once])
    assert [was_again for _, _, was_again in again + once] == [True, True, False, False]
    forgetful = ranks.run(2, trained, plans, {}, True)
    assert not torch.equal(forgetful[0][0], once[0][0])  # weights do depend on states


def test_the_plan_stays_where_states_would_have_no_place(ranks):
    """Owners have residuals, and an all-gather has no owners."""
    told, once = (ranks.run(2, trained, (("two_shot", 4096), *then), {"replan_after": len(then) * 3}) for then in ((SMALL,), ()))
    assert_all_same([weights for weights, _, _ in told + once])
    assert {plan for _, plan, _ in told} == {"plan two_shot"}


def stopped(rank, world, plans, steps, folder, saved=None, first=0):
    """The first steps of a run, or what follows on saved weights and states, which a folder has."""
    model = small_model()
    if saved is not None:
        torch.nn.utils.vector_to_parameters(saved[0][0].clone(), model.parameters())
    ddp = wrapped(model)
    with choosing(*plans):
        compression = cinch.torch.compress(ddp, FEEDBACK, plan="auto", dense_steps=0, replan_after=0)
        states, notes = {"cinch": compression.state_dict()}, ""
        if saved is not None:
            checkpoint.load(states, checkpoint_id=folder)
            notes = compression.load_state_dict(states["cinch"])
        train(ddp, torch.optim.SGD(model.parameters(), lr=0.1), rank, steps, first)
    if saved is None:
        checkpoint.save({"cinch": compression.state_dict()}, checkpoint_id=folder)
    return flat(model), compression.engine.step, notes


def test_from_gathered_payloads_to_owners(ranks, tmp_path):
    """As a run that stops and goes on under the other plan, from each rank's own states."""
    then = ("two_shot", 8192)
    again = ranks.run(2, trained, (LARGE, then), {})
    saved = ranks.run(2, stopped, (LARGE,), 3, tmp_path)
    followed = ranks.run(2, stopped, (then,), STEPS - 3, tmp_path, saved, 3)
    assert {plan for _, plan, _ in again} == {"plan two_shot"}
    assert_all_same([told[0] for told in again + followed])
    assert {step for _, step, _ in followed} == {STEPS}
    assert all("@worker" not in notes and "@owner begins anew: nothing was saved" in notes for _, _, notes in followed)


def test_exact_steps_are_planned_again_too(ranks):
    """As many openings as there are plans: two at first, two behind the third step."""
    again = ranks.run(2, trained, (LARGE, LARGE, SMALL, SMALL), {"dense_steps": 4})
    once = ranks.run(2, trained, (LARGE, LARGE), {"dense_steps": 4, "replan_after": 0})
    assert_all_same([weights for weights, _, _ in again + once])
    assert again[0][2] and not once[0][2]


def averaged(rank, world):
    model = small_model()
    with choosing(LARGE):
        averager = cinch.torch.Averager(model.named_parameters(), FEEDBACK, plan="auto", dense_steps=0, replan_after=1)
        for step in range(3):
            loss_of(model, rank, step).backward()
            averager.average()
    return averager.ready_seconds


def given_plan(rank, world):
    ddp = wrapped(small_model())
    compression = cinch.torch.compress(ddp, FEEDBACK, plan="ring", dense_steps=0, replan_after=1)
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.1), rank, 3)
    return compression.ready_seconds, compression.engine.compressed.plan.split(",")[0]


def test_what_is_not_planned_again(ranks):
    assert ranks.run(2, given_plan) == [(None, "plan ring")] * 2
    assert ranks.run(2, averaged) == [None] * 2
    for settings in ({"clip": 1.0, "replan_after": 1}, {"delay": 1, "replan_after": 1}):
        assert not any(was_again for _, _, was_again in ranks.run(2, trained, (LARGE,), settings))
    assert not ranks.run(1, trained, (LARGE,), {"replan_after": 1})[0][2]


def failing(rank, world):
    model = small_model()
    ddp = wrapped(model)
    losses = []
    with choosing(LARGE, RuntimeError("no memory") if rank == 1 else LARGE):
        cinch.torch.compress(ddp, FEEDBACK, plan="auto", dense_steps=0, replan_after=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(cinch.SyncError) as caught:
            for step in range(STEPS):
                losses += train(ddp, optimizer, rank, 1, step)
    return len(losses), str(caught.value)


def test_an_error_on_one_rank_is_one_on_all(ranks):
    begun = time.monotonic()
    (first, told), (second, why) = ranks.run(2, failing)
    assert first == second == 2 and "no memory" in why and "rank 1" in told
    assert time.monotonic() - begun < 15


def differing(rank, world):
    with pytest.raises(cinch.Error) as caught:
        cinch.torch.compress(wrapped(small_model()), "none", plan="auto", replan_after=rank)
    return str(caught.value)


def test_ranks_that_differ(ranks):
    assert all("replan_after is 0 on rank 0 and 1 on rank 1" in told for told in ranks.run(2, differing))


def test_times_of_the_slowest_rank():
    """Of three ranks, over threads."""
    import threading

    transports, told = cinch.Transport.loopback(3), [None] * 3
    settings = mock.Mock(most_seconds=lambda group: 10.0)

    def body(rank):
        engine = mock.Mock(transport=transports[rank], settings=settings, group=None)
        told[rank] = _first_steps.slowest(engine, [0.5 * rank, 1.0 - 0.25 * rank])

    threads = [threading.Thread(target=body, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [[1.0, 1.0]] * 3
