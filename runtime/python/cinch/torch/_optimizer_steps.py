"""Steps of an optimizer other than the one that the training script takes."""
import copy
from collections import defaultdict
from typing import Any, Dict, List, Optional, Sequence

import torch


def rates_of(optimizer: "torch.optim.Optimizer") -> List[Any]:
    """The learning rate of each group, as it is now."""
    return [group["lr"].clone() if isinstance(group["lr"], torch.Tensor) else group["lr"] for group in optimizer.param_groups]


def step_with(
    optimizer: "torch.optim.Optimizer", parameters: Sequence["torch.Tensor"], gradients: Sequence[Optional["torch.Tensor"]], rates: Sequence[Any]
) -> None:
    """A step with these gradients under these rates. The parameters' own gradients, and the groups' rates, are as before then."""
    own, kept = [parameter.grad for parameter in parameters], [group["lr"] for group in optimizer.param_groups]
    try:
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate
        optimizer.step()
    finally:
        for parameter, gradient in zip(parameters, own):
            parameter.grad = gradient
        for group, rate in zip(optimizer.param_groups, kept):
            group["lr"] = rate


def trial_step(optimizer: "torch.optim.Optimizer") -> None:
    """The optimizer's step on the parameters, with a copy of its state that is thrown away."""
    state, groups = optimizer.state, [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    optimizer.state = defaultdict(dict, {parameter: _copied(of) for parameter, of in state.items()})
    try:
        optimizer.step()
    finally:
        optimizer.state = state
        for group, kept in zip(optimizer.param_groups, groups):
            group.update(kept)


def _copied(state: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value) for name, value in state.items()}
