"""What `recipe` chooses, and `compress(model, "auto")`."""
import logging
import time

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from support import wrapped

import cinch
import cinch.torch
from cinch.torch import RECIPES, recipe


def matrices(width=128):
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Linear(width, width))


SIZES = [128 * 128] * 2  # of its matrices


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def adamw(model):
    return torch.optim.AdamW(model.parameters())


@pytest.mark.parametrize("kind, make", [("sgd", sgd), ("adamw", adamw)])
@pytest.mark.parametrize("world", [2, 4, 64])
@pytest.mark.parametrize("budget", [0.26, 1 / 8, 1 / 12])
@pytest.mark.parametrize("total_steps", [None, 1000])
def test_it_is_the_best_within_the_budget(kind, make, world, budget, total_steps):
    model = matrices()
    found = recipe(model, make(model), budget=budget, world=world, total_steps=total_steps)
    fitting = [each for each in RECIPES if each.fits(kind, total_steps) and each.part(SIZES, world) <= budget]
    best = min(fitting, key=lambda each: each.excess[kind])
    assert (found.program, found.plan, found.part) == (best.program, best.plan, best.part(SIZES, world))
    assert found.part <= budget
    assert best.name in found.why and f"{best.excess[kind]:+.1f} %" in found.why


@pytest.mark.parametrize("measured", [each for each in RECIPES if each.part_dense > 0], ids=lambda each: each.name)
def test_a_part_of_the_steps_is_exact(measured):
    """Of the best that sends as little."""
    model = matrices()
    optimizer = sgd(model) if "sgd" in measured.excess else adamw(model)
    budget = measured.part(SIZES, 4)
    found = recipe(model, optimizer, budget=budget, total_steps=1000)
    assert (found.program, found.dense_steps) == (measured.program, 1000 * measured.part_dense)
    assert f"; the first {100 * measured.part_dense:.0f} % of the steps are exact, so that all steps together send 1/" in found.why
    unknown = recipe(model, optimizer, budget=budget)
    assert unknown.dense_steps == (None if cinch.compile(measured.program).states else 0) and "are exact" not in unknown.why


def test_half_exact_steps_are_for_adamw_and_known_lengths():
    model = matrices()
    found = recipe(model, adamw(model), total_steps=200, world=4)
    assert (found.program, found.dense_steps) == ("eden(bits: 3)", 100)
    assert "all steps together send 1/1.8" in found.why and "+0.4 %" in found.why
    found = recipe(model, adamw(model), world=4)
    assert (found.program, found.dense_steps) == ("eden(bits: 3)", 0) and "+5.4 %" in found.why
    found = recipe(model, sgd(model), total_steps=200, world=4)
    assert (found.program, found.dense_steps) == ("eden(bits: 3)", 0) and "+1.0 %" in found.why


def test_a_budget_that_nothing_keeps_gives_the_smallest():
    model = matrices()
    found = recipe(model, adamw(model), budget=1e-6)
    assert found.part == min(each.part(SIZES, 4) for each in RECIPES if "adamw" in each.excess)
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
        ({"total_steps": 3.5}, "total_steps is 3.5: an integer above 0 is taken"),
        ({"world": 2.5}, "world is 2.5: an integer above 0 is taken"),
        ({"world": True}, "world is True"),
        ({"budget": True}, "budget is True: a number above 0 is taken"),
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


@pytest.mark.parametrize("model", [None, [], "model"])
def test_a_model_that_is_none(model):
    with pytest.raises(cinch.InvalidArgumentError, match="model is of type .*: a torch.nn.Module is taken"):
        recipe(model, sgd(matrices()))


@pytest.mark.parametrize("optimizer", [None, "sgd"])
def test_an_optimizer_that_is_none(optimizer):
    with pytest.raises(cinch.InvalidArgumentError, match="optimizer is of type .*: a torch.optim.Optimizer is taken"):
        recipe(matrices(), optimizer)


def test_ranks_have_singular_and_plural():
    model = matrices()
    assert "over 1 rank;" in recipe(model, sgd(model), world=1).why
    assert "over 2 ranks;" in recipe(model, sgd(model), world=2).why


@pytest.mark.parametrize("measured", RECIPES, ids=[each.name for each in RECIPES])
def test_bits_are_those_of_large_tensors(measured):
    copies = 2 if measured.plan == "allgather" else 1  # of four ranks
    assert measured.part([10**8], 4) * 32 / copies == pytest.approx(measured.bits, abs=0.01)


# Small matrices, of which headers are a large part, and larger ones; of 80 by 80 int4_block sends more than an eighth.
MODELS = {"small": (80, 80), "mixed": (64, 80, 300), "large": (600,)}


def sent_by(rank, world, widths):
    """By recipe, what was sent of a dense all-reduce, on this rank."""
    told = []
    for measured in RECIPES:
        model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for width in widths))
        averager = cinch.torch.Averager(model.named_parameters(), measured.program, plan=measured.plan, dense_steps=0)
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape)
        averager.average()
        compressed = [tensor for tensor in averager.report()["tensors"] if tensor["compressed"]]
        averager.close()
        dense = sum(tensor["gradient_bytes"] for tensor in compressed) * 2 * (world - 1) / world
        told.append(sum(tensor["sent_bytes"] for tensor in compressed) / dense)
    return told


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("widths", MODELS.values(), ids=MODELS)
def test_parts_are_what_ranks_send(ranks, world, widths):
    told = ranks.run(world, sent_by, widths)
    for place, measured in enumerate(RECIPES):
        part = measured.part([width * width for width in widths], world)
        sent = [of_rank[place] for of_rank in told]
        # Of payloads without a fixed length, lengths travel, too, and bounds are above them.
        is_fixed = "topk" not in measured.program
        assert sum(sent) / world == pytest.approx(part, rel=0.005 if is_fixed else 0.03), (measured.name, part, sent)


def test_small_tensors_have_other_recipes():
    small = torch.nn.Sequential(torch.nn.Linear(80, 80), torch.nn.Linear(80, 80))
    for model in (small, matrices(600)):
        for budget in (1 / 7, 1 / 10, 1 / 14, 1 / 30):
            found = recipe(model, sgd(model), budget=budget, world=2)
            assert found.part <= budget or "no recipe" in found.why
            assert f"sends 1/{1 / found.part:.3g} of dense's bytes" in found.why


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


def averaged_automatically(rank, world):
    model = matrices()
    averager = cinch.torch.Averager(model.named_parameters(), "auto", optimizer=sgd(model), budget=0.12, plan=None)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    averager.average()
    return {tensor["name"]: tensor["program"] for tensor in averager.report()["tensors"]}, averager.engine.settings.plan


def averaged_with_half(rank, world):
    """Whether the first step is exact."""
    model, are_exact = matrices(), []
    for settings in ({"total_steps": 10}, {"total_steps": 10, "dense_steps": 0}, {}):
        averager = cinch.torch.Averager(model.named_parameters(), "auto", optimizer=adamw(model), **settings)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        averager.average()
        are_exact.append(averager.engine.was_dense)
        averager.close()
    return are_exact


def test_auto_takes_half_exact_steps_where_the_call_does_not_say_how_many(ranks):
    assert ranks.run(2, averaged_with_half) == [[True, False, False]] * 2


def test_averagers_take_auto(ranks):
    model = matrices()
    wanted = recipe(model, sgd(model), budget=0.12, world=2)
    for programs, plan in ranks.run(2, averaged_automatically):
        assert programs["0.weight"] == cinch.compile(wanted.program).name and plan == wanted.plan


def alone(rank, world, program, settings, is_averager):
    """Of settings, rank 1 has the bad ones."""
    model = matrices()
    named = {"good": sgd(model), "bad": "sgd", "other": torch.optim.Adagrad(model.parameters())}
    own = {name: values[rank] for name, values in settings.items()}
    own["optimizer"] = named.get(own.get("optimizer", "good"))
    made = None if is_averager else wrapped(model)

    def make(program, **settings):
        return cinch.torch.Averager(model.named_parameters(), program, **settings) if is_averager else cinch.torch.compress(made, program, **settings)

    begun = time.monotonic()
    try:
        make(program, **own)
        said = ""
    except cinch.Error as error:
        said = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - begun
    # What has failed leaves nothing behind.
    make("topk", optimizer=named["good"]).close()
    return said, seconds


@pytest.mark.parametrize("is_averager", [False, True])
@pytest.mark.parametrize(
    "program, settings, words",
    [
        ("auto", {"budget": (1 / 8, 0)}, "budget is 0: a number above 0 is taken"),
        ("auto", {"optimizer": ("good", None)}, '"auto" chooses by the optimizer: pass optimizer='),
        ("auto", {"optimizer": ("good", "other")}, "the optimizer is Adagrad"),
        ("auto", {"optimizer": ("good", "bad")}, "optimizer is of type str: a torch.optim.Optimizer is taken"),
        ("topk", {"optimizer": ("good", "bad")}, "optimizer is of type str: a torch.optim.Optimizer is taken"),
    ],
)
def test_all_ranks_are_told_why_one_has_no_recipe(ranks, program, settings, words, is_averager):
    (other, seconds), (own, _) = ranks.run(2, alone, program, settings, is_averager)
    assert own.startswith("InvalidArgumentError") and words in own
    assert other.startswith("CancelledError: rank 1 has failed") and words in other
    assert seconds < 10


def alone_by(rank, world, which, program, optimizer, words):
    with pytest.raises(cinch.InvalidArgumentError, match=words):
        make = cinch.torch.compress_fsdp if which == "fsdp" else cinch.torch.compress_replicas
        model = matrices()
        if which == "fsdp":
            fully_shard(model)
            make(model, program, optimizer=optimizer)
        else:
            mesh = init_device_mesh("cpu", (world, 1), mesh_dim_names=("machines", "ranks"))
            fully_shard(model, mesh=mesh["ranks"])
            make(model, program, mesh["machines"].get_group(), optimizer=optimizer)


@pytest.mark.parametrize("which", ["fsdp", "replicas"])
@pytest.mark.parametrize(
    "program, optimizer, words",
    [("auto", None, '"auto" is taken by compress and Averager alone'), ("topk", "sgd", "optimizer is of type str: a torch.optim.Optimizer is taken")],
)
def test_shards_have_no_recipes_and_check_optimizers(ranks, which, program, optimizer, words):
    ranks.run(2, alone_by, which, program, optimizer, words)


def with_a_plan(rank, world):
    model, said = matrices(), []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    log = logging.getLogger("cinch.torch")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        cinch.torch.compress(wrapped(model), "auto", optimizer=sgd(model), plan="ring", dense_steps=1)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    return said


def test_a_plan_of_the_call_is_told(ranks):
    said = ranks.run(2, with_a_plan)[0]
    assert any("by two_shot sends" in line and line.endswith("The call says plan ring, with which nothing was measured") for line in said), said
    assert any("plan ring" in line and line.endswith("the first step exact") for line in said), said


def test_compress_takes_auto(ranks):
    model = matrices()
    wanted = recipe(model, adamw(model), budget=0.26, world=2)
    for told, programs in ranks.run(2, automatic):
        assert told == '"auto" chooses by the optimizer: pass optimizer='
        assert programs["0.bias"] == "exact"
        assert programs["0.weight"].startswith(wanted.program.split("(")[0])
