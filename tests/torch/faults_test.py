"""A rank that is killed, stopped, or leaves: the others get an exception that names it, in time."""
import datetime
import os
import signal
import time

import cinch
import cinch.torch
import pytest
import torch
import torch.distributed as dist
from support import SECONDS, TIMEOUT, loss_of, small_model, train, wrapped

LOST = 1


def die(how):
    if how == "exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    raise ValueError("this rank leaves")


def trains_until(rank, world, how, moment, settings):
    """Rank 1 is lost in its third step, `moment` of it."""
    model = small_model()
    ddp = wrapped(model, **settings)
    cinch.torch.compress(ddp, "error_feedback(onebit)", timeout=TIMEOUT)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train(ddp, optimizer, rank, 2)
    optimizer.zero_grad()
    loss = loss_of(ddp, rank, 2)
    if rank == LOST and moment == "backward":
        # The last matrix has been handed over by then, the first has not.
        model[0].weight.register_hook(lambda gradient: die(how))
    elif rank == LOST:
        die(how)
    begun = time.monotonic()
    try:
        loss.backward()
    except cinch.SyncError as failure:
        assert failure.__cause__ is not None
        return str(failure), time.monotonic() - begun
    return "no failure", 0.0


@pytest.mark.parametrize("how, moment", [("exit", "forward"), ("kill", "backward"), ("stop", "forward"), ("stop", "backward")])
def test_a_rank_that_is_lost_is_named(ranks, how, moment):
    told = ranks.answers(3, trains_until, how, moment, {}, lost=(LOST,))
    for rank in (0, 2):
        said, seconds = told[rank]
        assert f"rank {LOST}" in said, told
        assert seconds < TIMEOUT + 6, told


def test_a_rank_that_leaves_by_an_exception_is_named(ranks):
    for moment in ("forward", "backward"):
        told = ranks.answers(3, trains_until, "raise", moment, {})
        assert told[LOST].kind == "ValueError", told
        for rank in (0, 2):
            said, seconds = told[rank]
            assert f"rank {LOST}" in said, told
            assert seconds < TIMEOUT + 6, told


def test_in_the_first_step_of_a_static_graph(ranks):
    told = ranks.answers(2, leaves_at_once, lost=(LOST,))
    assert told[0].kind == "SyncError" and f"rank {LOST}" in told[0].text, told


def leaves_at_once(rank, world):
    model = small_model()
    ddp = wrapped(model, static_graph=True)
    cinch.torch.compress(ddp, "qsgd", timeout=TIMEOUT)
    loss = loss_of(ddp, rank)
    if rank == LOST:
        die("exit")
    loss.backward()


def test_an_averager(ranks):
    told = ranks.answers(2, averages, lost=(LOST,))
    assert told[0].kind == "SyncError" and f"rank {LOST}" in told[0].text, told


def averages(rank, world):
    model = small_model()
    averager = cinch.torch.Averager(model.named_parameters(), "qsgd", timeout=TIMEOUT)
    loss_of(model, rank).backward()
    if rank == LOST:
        die("kill")
    averager.average()


def seconds_by_default(rank, world):
    settings = cinch.torch._settings.Settings("qsgd")
    other = dist.new_group(timeout=datetime.timedelta(seconds=67))
    return settings.most_seconds(None), settings.most_seconds(other)


def test_ranks_are_waited_for_as_long_as_the_process_group_waits(ranks):
    assert tuple(ranks.answers(2, seconds_by_default)[0]) == (SECONDS / 2, 67)
