"""Names are those of the model without wrappers."""
import pytest
import torch
from support import assert_same, flat, small_model, train, wrapped
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.optim.swa_utils import AveragedModel

import cinch
import cinch.torch


def compiled(model):
    return torch.compile(model, backend="eager")


def in_one_bucket(model):
    return wrapped(model, bucket_cap_mb=1)  # Dynamo cuts what it compiles where DDP's buckets of 1 MB end


def in_layers(model):
    model[0] = checkpoint_wrapper(model[0])
    return in_one_bucket(model)


WRAPPED = {
    "plain": in_one_bucket,
    "compiled within": lambda model: in_one_bucket(compiled(model)),
    "compiled around": lambda model: compiled(in_one_bucket(model)),
    "checkpointed": in_layers,
}


def made(how, **settings):
    model = small_model()
    outer = WRAPPED[how](model)
    return model, outer, torch.optim.SGD(model.parameters(), lr=0.05), cinch.torch.compress(outer, "error_feedback(onebit)", timeout=10, **settings)


def saved(rank, world, how):
    model, outer, optimizer, compression = made(how)
    train(outer, optimizer, rank, 2)
    then, states = [parameter.detach().clone() for parameter in model.parameters()], compression.state_dict()
    train(outer, optimizer, rank, 2, first=2)
    return then, states, flat(model)


def resumed(rank, world, how, told):
    model, outer, optimizer, compression = made(how)
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), told[rank][0]):
            parameter.copy_(value)
    notes = compression.load_state_dict(told[rank][1])
    train(outer, optimizer, rank, 2, first=2)
    return notes, flat(model)


@pytest.mark.parametrize("how", [each for each in WRAPPED if each != "plain"])
def test_states_fit_with_and_without_wrappers(ranks, how):
    for before, after in ((how, "plain"), ("plain", how)):
        told = ranks.run(2, saved, before)
        for notes, parameters in ranks.run(2, resumed, after, told):
            assert notes == "", (after, notes)
            assert_same(parameters, told[0][2])


def names_of(rank, world, how):
    _, _, _, compression = made(how, rules=[{"name": "0.*", "use": "exact"}, {"name": "2.*", "use": "qsgd"}])
    return {tensor["name"]: tensor["program"] for tensor in compression.report()["tensors"]}


@pytest.mark.parametrize("how", WRAPPED)
def test_rules_and_reports_have_plain_names(ranks, how):
    for names in ranks.run(2, names_of, how):
        assert names == {"0.weight": "exact", "0.bias": "exact", "2.weight": "qsgd", "2.bias": "qsgd"}


class Holder(torch.nn.Module):
    """A model's own module of this name is no wrapper."""

    def __init__(self, module, averaged):
        super().__init__()
        self.module, self.averaged = module, averaged


def names_of_averager(rank, world):
    model = compiled(Holder(torch.nn.Linear(64, 72), torch.nn.DataParallel(AveragedModel(torch.nn.Linear(64, 72)))))
    plain = cinch.torch._names.plain_names(model)
    names = [plain(name) for name, _ in model.named_parameters()]
    compression = cinch.torch.Averager(model.named_parameters(), "qsgd")
    return names, [tensor["name"] for tensor in compression.report()["tensors"]]


def test_module_is_left_out_only_where_it_is_of_a_wrapper(ranks):
    names, of_averager = ranks.run(1, names_of_averager)[0]
    assert names == ["module.weight", "module.bias", "averaged.weight", "averaged.bias"]
    assert of_averager == ["module.weight", "module.bias", "averaged.module.module.weight", "averaged.module.module.bias"]
