"""One rank of train.py: trains, and prints JSON on rank 0."""
import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from methods import CINCH, METHODS
from peers import TorchftDiLoCo
from small_tasks import SmallText
from tasks import TASKS
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import cinch.torch

OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1.0),
}


def no_exchange(_, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def bf16(group, bucket):
    # Torch refuses its own hook by name where there is no GPU; this is the same.
    return default_hooks.bf16_compress_hook(group, bucket)


def install(name, model, seed):
    if name in CINCH:
        program, parameters = CINCH[name]
        return cinch.torch.compress(model, program, seed=seed, interface=os.environ.get("CINCH_EXAMPLE_INTERFACE"), timeout=120, **parameters)
    if name == "torch_fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "torch_bf16":
        model.register_comm_hook(None, bf16)
    elif name == "torch_powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2, min_compression_rate=0.5)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name == "no_exchange":
        model.register_comm_hook(None, no_exchange)
    elif name != "dense":
        sys.exit(f"no compressor {name!r}")
    return None


def sent_bytes():
    """That the rank's interface has sent, headers and all; 0 where it has none of its own."""
    try:
        with open("/sys/class/net/eth0/statistics/tx_bytes", encoding="ascii") as file:
            return int(file.read()) if "CINCH_EXAMPLE_INTERFACE" in os.environ else 0
    except OSError:
        return 0


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def trainer_of(name, model, optimizer, seed, sites):
    """What takes the optimizer's steps by the method. Over sites, those that exchange now and then average every step within a site."""
    kind, arguments = METHODS[name]
    group = None
    if sites > 1 and kind != "Delayed":
        per_site = dist.get_world_size() // sites
        rank = dist.get_rank()
        within = [dist.new_group(range(site * per_site, (site + 1) * per_site)) for site in range(sites)]
        between = [dist.new_group(range(place, per_site * sites, per_site)) for place in range(per_site)]
        model, group = DistributedDataParallel(model, process_group=within[rank // per_site]), between[rank % per_site]
    if kind == "torchft":
        return model, TorchftDiLoCo(model, optimizer, sites, **arguments)
    made = getattr(cinch.torch, kind)
    trainer = made(model, optimizer, group=group, seed=seed, interface=os.environ.get("CINCH_EXAMPLE_INTERFACE"), timeout=120, **arguments)
    return model, trainer


class Plain:
    """DistributedDataParallel, with what `install` puts into it."""

    def __init__(self, optimizer, compression):
        self.step, self.compression = optimizer.step, compression

    def report(self):
        return self.compression.report() if self.compression else None

    @staticmethod
    def flush():
        """Nothing is under way."""

    @property
    def choice(self):
        return self.compression.choice if self.compression else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("name", help="a compressor or a method")
    parser.add_argument("steps", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("every", type=int, help="steps between two scores")
    parser.add_argument("--rate", type=float, help="the learning rate; by default the task's")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS))
    parser.add_argument("--own-data", action="store_true", help="each rank draws from its own part of the data")
    parser.add_argument("--sites", type=int, default=1)
    given = parser.parse_args()
    steps, seed, every = given.steps, given.seed, given.every
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    task = {**TASKS, "small_text": SmallText}[given.task](seed=1000 * seed + rank)
    torch.manual_seed(seed)
    net = task.model()
    optimizer = OPTIMIZERS[given.optimizer](net.parameters()) if given.optimizer else task.optimizer(net)
    if given.rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = given.rate
    if given.own_data:
        task.keep_part(rank, world)
    if given.name in METHODS:
        model, trainer = trainer_of(given.name, net, optimizer, seed, given.sites)
    else:
        # PyTorch's PowerSGD hook aborts over gloo with several buckets.
        model = DistributedDataParallel(net, **({"bucket_cap_mb": 1000} if given.name == "torch_powersgd" else {}))
        trainer = Plain(optimizer, install(given.name, model, seed))
    curve, times, trained, sent = [], [], 0.0, 0
    for step in range(steps + 1):
        if step == steps:
            trainer.flush()  # the last score is that of the global weights
        if step % every == 0 or step == steps:
            # Scores are not part of the time, and no rank waits for another in a step.
            with torch.no_grad():
                curve.append((step, trained, task.score(net) if rank == 0 else 0.0))
            dist.barrier()
        if step == steps:
            break
        earlier, begun = sent_bytes(), time.perf_counter()
        optimizer.zero_grad()
        task.loss(model).backward()
        trainer.step()
        times.append(time.perf_counter() - begun)
        trained += times[-1]
        sent += sent_bytes() - earlier
    if rank == 0:
        warm = times[min(5, len(times) - 1):]
        print(json.dumps({"compressor": given.name, "step_ms": 1e3 * median(warm), "mean_ms": 1e3 * sum(warm) / len(warm), "curve": curve, "mb_step": sent / steps / 1e6,
                          "world": world, "parameters": sum(p.numel() for p in net.parameters()), "report": trainer.report(), "choice": getattr(trainer, "choice", "")}))
    if hasattr(trainer, "close"):
        dist.barrier()
        trainer.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
