"""Names of modules and parameters as they are without wrappers, so that rules and states fit a model with and without one."""
from typing import Any, Callable

import torch
from torch.optim.swa_utils import AveragedModel

# What torch.compile, activation checkpointing, the first FSDP and Lightning's Fabric call the module that they wrap.
_WRAPPED = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_forward_module")
# These call it `module`, a name that models use, too.
_WRAPPERS = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel, AveragedModel)


def plain_name(name: str) -> str:
    """For names whose module is not known: `module` stays."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPED)


def plain_names(model: "torch.nn.Module") -> Callable[[str], str]:
    """What gives the plain name of a module or parameter, of its name in `model`."""
    wrapped = {f"{name}.module" if name else "module" for name, module in model.named_modules(remove_duplicate=False) if isinstance(module, _WRAPPERS)}

    def plain(name: str) -> str:
        parts = name.split(".")
        kept = (part for place, part in enumerate(parts, 1) if ".".join(parts[:place]) not in wrapped)
        return plain_name(".".join(kept))

    return plain


def without_compile(model: Any) -> Any:
    """What `torch.compile` was given, or `model` itself."""
    while isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):
        model = model._orig_mod
    return model
