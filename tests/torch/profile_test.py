"""Profiles of a model's steps, and that the command takes them."""
import json
import os
import subprocess
import time

import pytest
import torch

import cinch
import cinch.torch


class Slow(torch.autograd.Function):
    """A backward pass that takes 20 ms."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(0.02)
        return gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.unused = torch.nn.Linear(8, 6), torch.nn.Linear(6, 1), torch.nn.Linear(3, 3)
        self.scale = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.second(Slow.apply(self.first(x))) * self.scale


def recorded(steps=3, most=20, accumulates=1):
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with cinch.torch.record_profile(model, optimizer, steps=most) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            for _ in range(accumulates):
                model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
    return recorder


def test_tensors_come_in_the_order_of_the_backward_pass():
    profile = recorded().profile()
    ready = {tensor["name"]: tensor["ready_us"] for tensor in profile["tensors"]}
    assert set(ready) == {"first.weight", "first.bias", "second.weight", "second.bias", "scale"}  # no step had a gradient of the unused ones
    assert max(ready["second.weight"], ready["second.bias"], ready["scale"]) < 20000 <= min(ready["first.weight"], ready["first.bias"])
    assert [tensor["ready_us"] for tensor in profile["tensors"]] == sorted(ready.values())
    shapes = {tensor["name"]: tensor["shape"] for tensor in profile["tensors"]}
    assert shapes["first.weight"] == [6, 8] and shapes["scale"] == []
    assert profile["forward_us"] > 0 and profile["optimizer_us"] > 0 and profile["steps"] == 3


@pytest.mark.parametrize("steps, most, accumulates, wanted", [(5, 3, 1, 3), (2, 20, 1, 2), (2, 20, 3, 6)])
def test_as_many_passes_are_recorded_as_are_asked_for(steps, most, accumulates, wanted):
    assert recorded(steps, most, accumulates).profile()["steps"] == wanted


def test_nothing_is_recorded_behind_the_with():
    model = Model()
    with cinch.torch.record_profile(model) as recorder:
        model(torch.randn(4, 8)).sum().backward()
    model(torch.randn(4, 8)).sum().backward()
    assert recorder.profile()["steps"] == 1 and "optimizer_us" not in recorder.profile()


@pytest.mark.parametrize("name", ["model.csv", "model.json"])
def test_the_command_plays_it(tmp_path, name):
    path = tmp_path / name
    recorded().save(path)
    told = subprocess.run([os.environ["CINCH_COMMAND"], "sync", "none", "--profile", str(path), "--ranks", "2", "--json"], capture_output=True, text=True, check=True)
    report = json.loads(told.stdout)
    assert report["same_bits"] and report["backward_ms"] >= 20


def test_evaluations_and_skipped_batches_are_not_part_of_a_forward_pass():
    model = Model()
    with cinch.torch.record_profile(model) as recorder:
        for _ in range(3):
            with torch.no_grad():
                model(torch.randn(4, 8))
            model(torch.randn(4, 8))
            time.sleep(0.05)
            model(torch.randn(4, 8)).sum().backward()
    assert recorder.profile()["steps"] == 3 and recorder.profile()["forward_us"] < 20000


def test_an_optimizer_with_a_closure_has_no_time_of_its_own():
    model = Model()
    optimizer = torch.optim.LBFGS([model.first.weight], lr=0.01, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).sum()
        loss.backward()
        return loss

    with cinch.torch.record_profile(model, optimizer) as recorder:
        optimizer.step(closure)
    assert recorder.profile()["steps"] >= 1


def test_bad_input():
    model = Model()
    with pytest.raises(cinch.InvalidArgumentError, match="type int"):
        cinch.torch.record_profile(model, 5)
    with pytest.raises(cinch.InvalidArgumentError, match="no shape yet"):
        cinch.torch.record_profile(torch.nn.LazyLinear(3))
    with cinch.torch.record_profile(model) as recorder, pytest.raises(cinch.InvalidArgumentError, match="is recording"):
        recorder.__enter__()
    with pytest.raises(cinch.InvalidArgumentError, match="no step has been recorded"):
        recorded(steps=0).profile()
    with pytest.raises(cinch.InvalidArgumentError, match="steps is 0"):
        cinch.torch.record_profile(Model(), steps=0)
    with pytest.raises(cinch.InvalidArgumentError, match="no parameter has a gradient"):
        cinch.torch.record_profile(torch.nn.ReLU())
    with pytest.raises(cinch.InvalidArgumentError, match="type int"):
        cinch.torch.record_profile(3)
    model = torch.nn.Module()
    model.register_module("a,b", torch.nn.Linear(2, 2))
    model.forward = lambda x: model._modules["a,b"](x)
    with cinch.torch.record_profile(model) as recorder:
        model(torch.randn(1, 2)).sum().backward()
    with pytest.raises(cinch.InvalidArgumentError, match="no name for a cell"):
        recorder.save("never.csv")
    assert not os.path.exists("never.csv")
