"""States are saved, and training goes on from them."""
import copy

import pytest
import torch
import torch.distributed.checkpoint as checkpoint
from support import assert_all_same, assert_same, flat, small_model, train, wrapped
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

import cinch
import cinch.torch


def made(program, settings, moves_momentum=False):
    model = small_model()
    ddp = wrapped(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9 if moves_momentum else 0)
    if moves_momentum:
        settings = {**settings, "momentum": cinch.torch.take_momentum(optimizer)}
    return model, ddp, optimizer, cinch.torch.compress(ddp, program, timeout=10, **settings)


def saved_at(rank, world, program, settings, folder=None, steps=12):
    """A run that saves after `steps` steps and goes on: the model then, states, and the model three steps later."""
    model, ddp, optimizer, compression = made(program, settings)
    train(ddp, optimizer, rank, steps)
    then, states = copy.deepcopy(model.state_dict()), compression.state_dict()
    if folder is not None:
        checkpoint.save({"model": model.state_dict(), "cinch": states}, checkpoint_id=folder)
    train(ddp, optimizer, rank, 3, first=steps)
    return then, states, flat(model)


def resumed(rank, world, program, settings, told, merged=None, steps=12):
    """What was returned, and the model after three more steps."""
    model, ddp, optimizer, compression = made(program, settings)
    then, states, _ = told[min(rank, len(told) - 1)]
    model.load_state_dict(then)
    notes = compression.load_state_dict(states if merged is None else merged)
    assert compression.engine.step == steps
    train(ddp, optimizer, rank, 3, first=steps)
    return notes, flat(model), compression.engine.step


def rolled_back(rank, world, program, settings, moves_momentum=False, steps=6):
    """The model and states after three more steps, by turns: from what was saved before them."""
    model, ddp, optimizer, compression = made(program, settings, moves_momentum)
    train(ddp, optimizer, rank, steps)
    saved = (*copy.deepcopy((model.state_dict(), optimizer.state_dict())), compression.state_dict())  # the last is a copy
    told = []
    for _ in range(3):
        train(ddp, optimizer, rank, 3, first=steps)
        told.append((flat(model), compression.state_dict()[f"rank{rank}.states"]))
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(copy.deepcopy(saved[1]))  # it keeps the tensors
        assert compression.load_state_dict(saved[2]) == "" and compression.engine.step == steps
    return told, saved


@pytest.mark.parametrize(
    "program, settings, moves_momentum",
    [
        ("powersgd", {}, False),
        ("error_feedback(onebit)", {}, False),
        ("two_way(topk)", {}, False),
        ("signum", {}, False),
        ("signum", {"dense_steps": 7}, False),
        ("dgc", {"dense_steps": 8}, True),
        ("dgc", {"dense_steps": 2, "dense_after": 7}, True),
    ],
)
def test_states_are_loaded_between_steps(ranks, program, settings, moves_momentum):
    told = ranks.run(2, rolled_back, program, settings, moves_momentum)
    anew = ranks.run(2, from_checkpoint, program, settings, moves_momentum, [saved for _, saved in told])
    for rank, (of_rank, _) in enumerate(told):
        for parameters, states in of_rank:
            assert_same(parameters, anew[0][0])
            assert_same(states, anew[rank][1])


def from_checkpoint(rank, world, program, settings, moves_momentum, saved, steps=6):
    model, ddp, optimizer, compression = made(program, settings, moves_momentum)
    model.load_state_dict(saved[rank][0])
    optimizer.load_state_dict(saved[rank][1])
    compression.load_state_dict(saved[rank][2])
    train(ddp, optimizer, rank, 3, first=steps)
    return flat(model), compression.state_dict()[f"rank{rank}.states"]


def fails_to_load(rank, world, told):
    """Rank 1 cannot load; the next steps are those of a run that did not try."""
    model, ddp, optimizer, compression = made("dgc", {})
    train(ddp, optimizer, rank, 12)
    kept = compression.state_dict()
    bad = {key: value[:100] if rank == 1 and key.endswith(".states") else value for key, value in told[rank][1].items()}
    bad[f"rank{rank}.step"] = torch.tensor(5)
    with pytest.raises(cinch.Error) as caught:
        compression.load_state_dict(bad)
    assert_same(compression.state_dict()[f"rank{rank}.states"], kept[f"rank{rank}.states"])
    train(ddp, optimizer, rank, 3, first=12)
    return caught.typename, flat(model), compression.engine.step


def test_states_that_fail_on_one_rank_change_nothing(ranks):
    told = ranks.run(2, saved_at, "dgc", {}, None, 5)
    whole = ranks.run(2, saved_at, "dgc", {})
    results = ranks.run(2, fails_to_load, told)
    assert [kind for kind, _, _ in results] == ["CancelledError", "FileError"]
    for _, parameters, step in results:
        assert step == 15
        assert_same(parameters, whole[0][2])


def merged_from(told):
    return {key: value for _, states, _ in told for key, value in states.items()}


@pytest.mark.parametrize("program", ["qsgd", "dgc", "powersgd", "error_feedback(onebit)", "two_way(topk)", "randomk"])
def test_resuming_gives_the_bits_of_one_run(ranks, program):
    told = ranks.run(2, saved_at, program, {})
    for notes, parameters, step in ranks.run(2, resumed, program, {}, told):
        assert notes == "" and step == 15
        assert_same(parameters, told[0][2])


@pytest.mark.parametrize("program", ["dgc", "powersgd"])
def test_a_dictionary_of_all_ranks_does_the_same(ranks, program):
    told = ranks.run(2, saved_at, program, {})
    for notes, parameters, _ in ranks.run(2, resumed, program, {}, told, merged_from(told)):
        assert notes == ""
        assert_same(parameters, told[0][2])


def test_dense_steps_are_not_taken_again(ranks):
    for steps in (2, 5):
        told = ranks.run(2, saved_at, "dgc", {"dense_steps": 3}, None, steps)
        for _, parameters, _ in ranks.run(2, resumed, "dgc", {"dense_steps": 3}, told, None, steps):
            assert_same(parameters, told[0][2])


def loaded_by_checkpoint(rank, world, program, folder):
    model, ddp, optimizer, compression = made(program, {})
    loaded = {"model": model.state_dict(), "cinch": compression.state_dict()}
    checkpoint.load(loaded, checkpoint_id=folder)
    model.load_state_dict(loaded["model"])
    notes = compression.load_state_dict(loaded["cinch"])
    train(ddp, optimizer, rank, 3, first=12)
    return notes, flat(model)


@pytest.mark.parametrize("program", ["dgc", "powersgd"])
def test_distributed_checkpoints(ranks, tmp_path, program):
    folder = str(tmp_path / "saved")
    told = ranks.run(2, saved_at, program, {}, folder)
    for notes, parameters in ranks.run(2, loaded_by_checkpoint, program, folder):
        assert notes == ""
        assert_same(parameters, told[0][2])


@pytest.mark.parametrize("before, after", [(2, 3), (3, 2), (1, 2), (2, 1)])
def test_another_number_of_ranks(ranks, tmp_path, before, after):
    folder, file = str(tmp_path / "saved"), str(tmp_path / "all.pt")
    told = ranks.run(before, saved_at, "dgc", {}, folder)
    dcp_to_torch_save(folder, file)
    merged = torch.load(file, weights_only=True)["cinch"]
    assert sorted(merged) == sorted(merged_from(told))
    results = ranks.run(after, resumed, "dgc", {}, told, merged)
    assert_all_same([parameters for _, parameters, _ in results])
    assert any(notes for notes, _, _ in results)
    wanted = "0.weight" if after > before else f"rank {before - 1}"
    assert any(wanted in notes for notes, _, _ in results), results


@pytest.mark.parametrize(
    "before, after", [("dgc", "error_feedback(topk)"), ("error_feedback(topk)", "dgc"), ("error_feedback(topk)", "error_feedback(onebit)")]
)
def test_states_of_another_program_are_told(ranks, before, after):
    told = ranks.run(2, saved_at, before, {})
    for rank, (notes, _, _) in enumerate(ranks.run(2, resumed, after, {}, told)):
        assert "0.weight" in notes and "saved by another program" in notes, (rank, notes)


def test_another_plan(ranks):
    told = ranks.run(2, saved_at, "error_feedback(onebit)", {"plan": "allgather"})
    results = ranks.run(2, resumed, "error_feedback(onebit)", {"plan": "two_shot"}, told, merged_from(told))
    assert_all_same([parameters for _, parameters, _ in results])
    for failure in ranks.fail(2, resumed, "error_feedback(onebit)", {"plan": "two_shot"}, told):
        assert failure.kind == "InvalidArgumentError" and "plan" in failure.text


def refuses(rank, world, told):
    _, _, _, compression = made("dgc", {})
    own, other = told[rank][1], told[1 - rank][1]
    half = {key: value[: len(value) // 2] if key.endswith(".states") else value for key, value in own.items()}
    flipped = copy.deepcopy(own)
    flipped[f"rank{rank}.states"][-100] += 1
    of_three = {**own, f"rank{rank}.world": torch.tensor(3)}
    said = []
    for bad in ({}, other, half, flipped, of_three):
        with pytest.raises((cinch.InvalidArgumentError, cinch.FileError)) as caught:
            compression.load_state_dict(bad)
        said.append(str(caught.value))
    compression.load_state_dict(own)
    return said


def test_states_that_are_refused(ranks):
    told = ranks.run(2, saved_at, "dgc", {}, None, 1)
    said = ranks.run(2, refuses, told)[0]
    assert "no states" in said[0]
    assert "ranks [1] of 2" in said[1]
    assert "ranks [0] of 3" in said[4]
