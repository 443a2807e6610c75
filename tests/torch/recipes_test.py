"""What `recipe` chooses, and `compress(model, "auto")`."""
import pytest
import torch
from support import wrapped

import cinch
import cinch.torch
from cinch.torch import RECIPES, recipe


def matrices(width=128):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Linear(width, width))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def adamw(model):
    return torch.optim.AdamW(model.parameters())


@pytest.mark.parametrize("kind, make", [("sgd", sgd), ("adamw", adamw)])
@pytest.mark.parametrize("world", [2, 4, 64])
@pytest.mark.parametrize("budget", [0.26, 1 / 8, 1 / 12])
def test_it_is_the_best_within_the_budget(kind, make, world, budget):
    model = matrices()
    found = recipe(model, make(model), budget=budget, world=world)
    fitting = [each for each in RECIPES if each.part(world) <= budget]
    best = min(fitting, key=lambda each: each.excess[kind])
    assert (found.program, found.plan, found.part) == (best.program, best.plan, best.part(world))
    assert found.part <= budget
    assert best.name in found.why and f"{best.excess[kind]:+.1f} %" in found.why


def test_a_part_of_the_steps_is_exact():
    late = [each for each in RECIPES if each.part_dense > 0]
    assert late
    for each in late:  # the best that sends as little
        model = matrices()
        found = recipe(model, sgd(model), budget=each.part(4), total_steps=1000)
        assert (found.program, found.dense_steps) == (each.program, 1000 * each.part_dense)
        assert recipe(model, sgd(model), budget=each.part(4)).dense_steps is None


def test_a_budget_that_nothing_keeps_gives_the_smallest():
    model = matrices()
    found = recipe(model, adamw(model), budget=1e-6)
    assert found.part == min(each.part(4) for each in RECIPES if "adamw" in each.excess)
    assert "no recipe keeps within 1/1e+06" in found.why


def test_a_link_gives_the_budget():
    model = matrices(1024)  # 2 097 152 elements: 100.7 Mbit for four ranks in a dense all-reduce
    assert recipe(model, sgd(model), link=10_000).program == "none"
    # A tenth of a second at 100 Mbit/s is 10 Mbit.
    assert 0 < recipe(model, sgd(model), link=100, world=4).part <= 0.0994
    assert recipe(model, sgd(model), link=100, world=4, budget=0.26).part > 0.0994


@pytest.mark.parametrize(
    "given, text",
    [
        ({"link": 0}, "link is 0: a number above 0 is taken"),
        ({"link": float("nan")}, "link is nan"),
        ({"budget": -1}, "budget is -1"),
        ({"world": "four"}, "world is 'four'"),
        ({"total_steps": 0}, "total_steps is 0"),
    ],
)
def test_numbers_that_are_none(given, text):
    model = matrices()
    with pytest.raises(cinch.InvalidArgumentError, match=text):
        recipe(model, sgd(model), **given)


def test_a_model_without_matrices():
    model = torch.nn.Linear(8, 8)
    with pytest.raises(cinch.InvalidArgumentError, match="no parameter of two dimensions and 4096 elements"):
        recipe(model, sgd(model))


def test_an_optimizer_that_nobody_measured():
    model = matrices()
    with pytest.raises(cinch.InvalidArgumentError, match="measured with SGD and AdamW, and the optimizer is Adagrad"):
        recipe(model, torch.optim.Adagrad(model.parameters()))


def automatic(rank, world):
    model = matrices()
    ddp = wrapped(model)
    try:
        cinch.torch.compress(ddp, "auto")
    except cinch.InvalidArgumentError as error:
        told = str(error)
    compression = cinch.torch.compress(ddp, "auto", optimizer=adamw(model), budget=0.26)
    ddp(torch.ones(4, 128)).sum().backward()
    programs = {tensor["name"]: tensor["program"] for tensor in compression.report()["tensors"]}
    compression.close()
    return told, programs


def test_compress_takes_auto(ranks):
    model = matrices()
    wanted = recipe(model, adamw(model), budget=0.26, world=2)
    for told, programs in ranks.run(2, automatic):
        assert told == '"auto" chooses by the optimizer: pass optimizer='
        assert programs["0.bias"] == "exact"
        assert programs["0.weight"].startswith(wanted.program.split("(")[0])
