"""Files of `cinch plan`: DDP models follow them with the bits of rules that say the same."""
import json
import os
import pathlib
import subprocess

import pytest
import torch
from support import assert_all_same, flat, small_model, train, wrapped

import cinch
import cinch.torch


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Of the small model, over slow links: its matrix is compressed."""
    folder = tmp_path_factory.mktemp("plan")
    profile, path = folder / "model.csv", folder / "plan.json"
    shapes = {name: "x".join(map(str, parameter.shape)) for name, parameter in small_model().named_parameters()}
    rows = [f"{name},{shape},{10 * place}" for place, (name, shape) in enumerate(reversed(shapes.items()))]
    profile.write_text("\n".join(["name,shape,ready_us", *rows]))
    subprocess.run(
        [os.environ["CINCH_COMMAND"], "plan", profile, "--ranks", "2", "--bandwidth", "10", "--programs", "error_feedback(qsgd)", "--seconds", "0.02", "--output", path],
        check=True, stdout=subprocess.DEVNULL)
    return str(path)


def rules_of(path):
    plan = json.loads(pathlib.Path(path).read_text())
    for tensor in plan["tensors"]:
        route = plan["routes"][tensor["route"]]
        use = "exact" if tensor["program"] is None else plan["programs"][tensor["program"]]["program"]
        yield {"name": tensor["name"], "use": use, "plan": route["plan"], "piece_bytes": route["piece_bytes"]}


def trained(rank, world, settings, program=None):
    model = small_model()
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, program, **settings)
    losses = train(ddp, torch.optim.SGD(model.parameters(), lr=0.1), rank, 8)
    compressed = [tensor["name"] for tensor in compression.report()["tensors"] if tensor["compressed"]]
    return flat(model), losses, compressed


@pytest.mark.parametrize("dense_steps", [0, 3])
def test_has_the_bits_of_rules(ranks, plan, dense_steps):
    by_file = ranks.run(2, trained, {"plan": plan, "dense_steps": dense_steps})
    by_rules = ranks.run(2, trained, {"rules": list(rules_of(plan)), "dense_steps": dense_steps}, "none")
    assert_all_same([weights for weights, _, _ in by_file + by_rules])
    assert by_file[0][2] == ["0.weight"]
    gains = [losses[0] - losses[-1] for _, losses, _ in (by_file[0], ranks.run(2, trained, {}, "none")[0])]
    assert gains[0] > 0.8 * gains[1] > 0.1


def refused(rank, world, settings, program=None):
    ddp = wrapped(small_model())
    with pytest.raises(cinch.Error) as caught:
        cinch.torch.compress(ddp, program, **settings)
    return str(caught.value)


def damaged(plan, folder, **changes):
    path = folder / "other.json"
    path.write_text(json.dumps({**json.loads(pathlib.Path(plan).read_text()), **changes}))
    return str(path)


def test_what_does_not_fit_is_told_on_all_ranks(ranks, plan, tmp_path):
    other = damaged(plan, tmp_path, ranks=3)
    for told in ranks.run(2, refused, {"plan": other}):
        assert "the plan is for something else (1 difference): 2 ranks, not 3" in told
    (tmp_path / "cut.json").write_text(pathlib.Path(plan).read_text()[:100])
    for told in ranks.run(2, refused, {"plan": str(tmp_path / "cut.json")}):
        assert told.endswith("cut.json: no plan that `cinch plan` wrote")
    for told in ranks.run(2, refused, {"plan": plan}, "topk"):
        assert "program is 'topk', and the plan" in told and "error_feedback(qsgd)" in told
    for told in ranks.run(2, refused, {"plan": plan, "rules": []}):
        assert "pass neither rules, piece_bytes nor parameters of programs" in told
    for told in ranks.run(2, refused, {}):
        assert "program is None" in told


def refused_alone(rank, world, plan, folder):
    return refused(rank, world, {"plan": plan if rank == 0 else f"{folder}/missing.json", "timeout": 20})


def test_a_file_that_one_rank_lacks_is_an_error_on_all(ranks, plan, tmp_path):
    told = ranks.run(2, refused_alone, plan, str(tmp_path))
    assert all("missing.json" in each for each in told)
