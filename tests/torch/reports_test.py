"""What is told of steps, and of momentum."""
import json
import logging
import warnings

import numpy as np
import pytest
import torch
from support import flat, gradients_of, loss_of, small_model, train, wrapped

import cinch
import cinch.torch


def warnings_of(rank, world, program, kind, momentum, is_moved, settings):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum) if kind == "SGD" else torch.optim.AdamW(model.parameters())
    if is_moved:
        settings = {**settings, "momentum": cinch.torch.take_momentum(optimizer)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cinch.torch.compress(wrapped(model), program() if callable(program) else program, optimizer=optimizer, **settings)
    return [str(each.message) for each in caught if each.filename == __file__]


@pytest.mark.parametrize(
    "program, kind, momentum, is_moved, words",
    [
        ("dgc", "SGD", 0.9, False, "dgc has momentum of its own, and the optimizer (SGD with momentum 0.9), too: cinch.torch.take_momentum moves"),
        ("dgc", "SGD", 0.9, True, None),
        ("dgc", "SGD", 0.0, False, None),
        ("momentum(fp16)", "SGD", 0.9, False, "momentum_fp16 has momentum of its own"),
        ("dist_ef_sgdm", "AdamW", 0.0, False, "SGD is what dist_ef_sgdm wants"),
        ("onebit_adam", "AdamW", 0.0, False, "is a direction already: it wants SGD without momentum behind it, and the optimizer is AdamW"),
        ("signum", "SGD", 0.9, False, "the optimizer is SGD with momentum 0.9"),
        ("signsgd", "SGD", 0.0, False, None),
        ("qsgd", "AdamW", 0.0, False, None),
    ],
)
def test_optimizers_that_do_not_fit_are_warned_of(ranks, program, kind, momentum, is_moved, words):
    said, elsewhere = ranks.run(2, warnings_of, program, kind, momentum, is_moved, {})
    assert elsewhere == []
    assert (said == []) if words is None else (len(said) == 1 and words in said[0]), said


def test_rules_that_fit_nothing_are_warned_of(ranks):
    rules = [{"name": "*.bias", "use": "exact"}, {"name": "encoder.*", "use": "dgc"}, {"min_dims": 3}, {}]
    said, _ = ranks.run(2, warnings_of, "qsgd", "SGD", 0.0, False, {"rules": rules})
    assert said == ['rules that fit no parameter: 2 ({"name": "encoder.*", "use": "dgc"}), 3 ({"min_dims": 3})']


@pytest.mark.parametrize("is_compiled", [False, True])
def test_warnings_of_the_compiler_are_told_once(ranks, is_compiled):
    for rank, said in enumerate(ranks.run(2, warnings_of, cinch_program if is_compiled else "error_feedback(qsgd)", "SGD", 0.0, False, {})):
        own = [text for text in said if "`qsgd` is unbiased but not a contraction" in text]
        assert len(own) == (1 if rank == 0 or is_compiled else 0), said


def cinch_program():
    return cinch.compile("error_feedback(qsgd)")


def started(rank, world, settings):
    lines = Lines()
    log = logging.getLogger("cinch.torch")
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    compression = cinch.torch.compress(wrapped(small_model()), "dgc", plan="allgather", **settings)
    log.removeHandler(lines)
    log.setLevel(logging.NOTSET)
    return lines.lines, {tensor["name"]: tensor["program"] for tensor in compression.report()["tensors"]}


def test_the_start_is_logged(ranks):
    (lines, programs), (nothing, _) = ranks.run(2, started, {})
    assert nothing == [] and len(lines) == 1
    assert lines[0].startswith("1 tensor by dgc, 3 exact, plan allgather, states 0.0"), lines
    assert programs == {"0.weight": "dgc", "0.bias": "exact", "2.weight": "exact", "2.bias": "exact"}
    (lines, programs), _ = ranks.run(2, started, {"total_steps": 70})
    assert lines[0].endswith("the first 7 steps exact") and set(programs.values()) == {"exact"}


def test_take_momentum():
    weights = [torch.nn.Parameter(torch.zeros(3)) for _ in range(2)]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.875)
    assert cinch.torch.take_momentum(optimizer) == 0.875
    assert optimizer.param_groups[0]["momentum"] == 0.875
    for named in ({"nesterov": True}, {"dampening": 0.5}):
        optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9, **named)
        with pytest.raises(cinch.InvalidArgumentError):
            cinch.torch.take_momentum(optimizer)
        assert optimizer.param_groups[0]["momentum"] == 0.9
    optimizer = torch.optim.SGD([{"params": weights[:1], "momentum": 0.5}, {"params": weights[1:]}], lr=0.1, momentum=0.9)
    with pytest.raises(cinch.InvalidArgumentError, match="different momentum"):
        cinch.torch.take_momentum(optimizer)


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def told_of_steps(rank, world, settings):
    model = small_model()
    ddp = wrapped(model)
    lines = Lines()
    logging.getLogger("cinch").addHandler(lines)
    compression = cinch.torch.compress(ddp, "onebit", measures_errors=True, report_every=2, **settings)
    before = compression.report()
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 4)
    logging.getLogger("cinch").removeHandler(lines)
    ddp.zero_grad()
    loss_of(ddp, rank, 7).backward()
    return before, compression.report(), lines.lines, compression.trace(), gradients_of(model)[0], flat(model)


@pytest.mark.parametrize("settings", [{}, {"dense_steps": 1}])
def test_reports(ranks, settings):
    told = ranks.run(2, told_of_steps, settings)
    assert told[1][2] == []
    assert [line.split(":")[0] for line in told[0][2]] == ["cinch step 1", "cinch step 3"]
    for before, report, _, trace, _, _ in told:
        assert before["exposed_ms"] == 0
        assert report["gradient_bytes"] == 4 * (64 * 72 + 72 + 72 * 3 + 3)
        by_name = {tensor["name"]: tensor for tensor in report["tensors"]}
        assert by_name["0.weight"]["gradient_bytes"] == 4 * 64 * 72
        assert by_name["0.weight"]["compressed"] and not by_name["2.bias"]["compressed"]
        assert 0 < by_name["0.weight"]["sent_bytes"] < 4 * 64 * 72 / 20
        assert by_name["0.weight"]["error"] > 0.1 and by_name["0.bias"]["error"] == 0
        assert report["exposed_ms"] > 0 and not report["is_dense"]
        assert "encode" in [phase["phase"] for phase in report["phases"]]
        assert "traceEvents" in json.loads(trace)
    # The error is that of the update against the mean of the ranks' gradients.
    own = []
    for rank in range(2):
        model = small_model()
        torch.nn.utils.vector_to_parameters(told[0][5], model.parameters())
        loss_of(model, rank, 7).backward()
        own.append(gradients_of(model)[0].double().numpy())
    mean = (own[0] + own[1]) / 2
    error = np.linalg.norm(told[0][4].double().numpy() - mean) / np.linalg.norm(mean)
    found = {tensor["name"]: tensor["error"] for tensor in told[0][1]["tensors"]}
    assert abs(found["0.weight"] - error) < 1e-4
