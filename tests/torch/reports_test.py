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


def warnings_of(rank, world, program, momentum):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cinch.torch.compress(wrapped(model), program, optimizer=optimizer)
    return [str(each.message) for each in caught if "momentum" in str(each.message)]


def test_momentum_in_both_is_warned_of(ranks):
    (said,) = ranks.run(2, warnings_of, "dgc", 0.9)[0]
    assert "take_momentum" in said
    assert ranks.run(2, warnings_of, "dgc", 0.0)[0] == []
    assert ranks.run(2, warnings_of, "qsgd", 0.9)[0] == []


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
