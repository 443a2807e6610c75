"""A model whose weights may differ between ranks while it trains."""
import contextlib
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Tuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..errors import InvalidArgumentError
from ._names import plain_names, without_compile


@dataclass
class Trained:
    """What a model trains, each parameter once, and which optimizer moves it.

    Attributes:
        named: names without wrappers. Of a parameter that is sharded (FSDP2) this rank's shard: what is written into it the model has.
        is_closed, is_shown: no step is taken, for good or within `shown`.
        problem: why there is none, for all ranks to hear; empty: nothing.
    """

    named: List[Tuple[str, "torch.Tensor"]]
    model: Any = None
    problem: str = ""
    is_closed: bool = False
    is_shown: bool = False

    @property
    def tensors(self) -> List["torch.Tensor"]:
        return [tensor for _, tensor in self.named]

    def check(self) -> None:
        """Errors: InvalidArgumentError (`problem`)."""
        if self.problem:
            raise InvalidArgumentError(self.problem)

    def types(self) -> List[str]:
        """For ranks to compare."""
        return sorted({str(tensor.dtype) for tensor in self.tensors})

    def begin_alike(self, group: Any) -> None:
        """Every rank of the group gets the parameters, also those that are not trained, and the buffers of its first rank. Errors: those of
        torch.distributed."""
        first = dist.get_global_rank(group, 0)
        with torch.no_grad():
            for tensor in [local(parameter) for parameter in self.model.parameters()] + list(self.model.buffers()):
                same = tensor.detach().contiguous()
                dist.broadcast(same, first, group=group)
                tensor.copy_(same)

    def check_open(self) -> None:
        """Errors: InvalidArgumentError (closed, or within `shown`)."""
        if self.is_closed or self.is_shown:
            raise InvalidArgumentError("the trainer is closed" if self.is_closed else "the model has the global weights for the time of a `with`: steps are taken behind it")

    @contextlib.contextmanager
    def shown(self, show: Callable[[], None]) -> Iterator[None]:
        """Within it the model has what `show` writes; no step is taken then."""
        with torch.no_grad():
            kept = [tensor.detach().clone() for tensor in self.tensors]
            show()
        self.reshard()
        self.is_shown = True
        try:
            yield
        finally:
            self.is_shown = False
            with torch.no_grad():
                for tensor, own in zip(self.tensors, kept):
                    tensor.copy_(own)
            self.reshard()

    def reshard(self) -> None:
        """FSDP2 keeps whole parameters behind a forward pass: they are gathered anew when the shards have changed."""
        for module in self.model.modules():
            if hasattr(module, "reshard") and hasattr(module, "unshard"):
                module.reshard()


def trained_by(optimizer: Any, model: Any, *, may_be_wrapped: bool) -> Trained:
    """`may_be_wrapped`: averaging within a site (DistributedDataParallel, FSDP2) is taken."""
    model = without_compile(model)
    if not isinstance(model, torch.nn.Module):
        return _wrong(f"model is of type {type(model).__name__}: a torch.nn.Module is taken")
    if not may_be_wrapped and isinstance(model, DistributedDataParallel):
        return _wrong("the model is in DistributedDataParallel, which averages gradients by itself: give the model that it wraps")
    if not isinstance(getattr(optimizer, "param_groups", None), list):
        return _wrong(f"the optimizer is of type {type(optimizer).__name__}: a torch.optim.Optimizer is taken")
    if isinstance(optimizer, torch.optim.LBFGS):
        return _wrong("LBFGS takes several gradients for a step, and ranks exchange one")
    plain = plain_names(model)
    parameters = [(plain(name), parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    if not may_be_wrapped and any(hasattr(parameter, "to_local") for _, parameter in parameters):
        return _wrong("the model is sharded (FSDP2), which reduces gradients by itself: DiLoCo takes it within a site")
    of_model = {id(parameter) for _, parameter in parameters}
    moved = [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]
    if any(id(parameter) not in of_model for parameter in moved):
        return _wrong("the optimizer has a parameter that the model has not")
    left = of_model - {id(parameter) for parameter in moved}
    missing = next((name for name, parameter in parameters if id(parameter) in left), None)
    if missing is not None:
        return _wrong(f"the optimizer has not {missing}: give it all parameters that are trained, and freeze the others (requires_grad=False)")
    return Trained([(name, local(parameter)) for name, parameter in parameters], model)


def _wrong(problem: str) -> Trained:
    return Trained([], torch.nn.Module(), problem)


def local(parameter: "torch.Tensor") -> "torch.Tensor":
    """This rank's shard of a parameter that FSDP2 shards, or the parameter itself."""
    sharded: Any = parameter
    return sharded.to_local() if hasattr(parameter, "to_local") else parameter
