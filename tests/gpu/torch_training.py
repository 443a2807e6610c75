#!/usr/bin/env python3
"""torch_training.py FOLDER [--device cuda|cpu] [--json FILE] [--steps N] [--width N] [--rounds N] [--ask]: cinch.torch, as prepare.py put it
into FOLDER, trains on GPUs. Two ranks are two processes. They share a GPU over UCX, through the machine's memory; over NCCL each has a GPU,
or they share one where NCCL is 2.30 or newer.

The same gradients are averaged on the GPU and on the CPU, in the order of several streams: updates must have the same bits. DDP models train
with each program: parameters must be the same on both ranks, and on a side stream as on PyTorch's own. Then steps are timed beside PyTorch's
hooks, in turns. --device cpu does all of it without a GPU; --ask says why this cannot be done here, if it cannot.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

WORLD, SECONDS = 2, 20.0
PROGRAMS = ["onebit", "dgc", "qsgd", "powersgd"]
NEWEST_ALONE = (2, 29)  # the last NCCL that refuses two ranks on one GPU


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--json", default=os.devnull)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=2048, help="of the layers of the model that is timed")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender")
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--store")
    parser.add_argument("--transport", default="ucx")
    return parser.parse_args()


# ---- the process that starts the ranks ----


def variables(folder):
    """The environment of ranks."""
    own = {"CINCH_LIBRARY": folder / "libcinch.so", "CINCH_UCX": folder / "cinch" / "libcinch_ucx.so", "PYTHONPATH": folder / "python"}
    return {**os.environ, **{name: str(value) for name, value in own.items()}, "GLOO_SOCKET_IFNAME": "lo", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "2"}


def way_of_nccl(options):
    """What ranks need in their environment to meet over NCCL, or why they cannot."""
    import torch

    if options.device == "cpu":
        return None, "NCCL connects GPUs"
    if torch.cuda.device_count() >= WORLD:
        return {}, ""
    version = torch.cuda.nccl.version()
    if version[:2] <= NEWEST_ALONE:
        return None, f"one GPU, and NCCL {'.'.join(map(str, version))} takes no two ranks on it"
    return {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, ""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_ranks(options, transport, more):
    """The exit status: the first that is not 0. When one rank ends badly the other is ended, too."""
    store = f"127.0.0.1:{free_port()}"
    command = [sys.executable, __file__, *sys.argv[1:], "--transport", transport, "--store", store]
    ranks = [subprocess.Popen([*command, "--rank", str(rank)], env={**variables(options.folder), **more}) for rank in range(WORLD)]
    try:
        while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
            time.sleep(0.05)
        if any(rank.poll() for rank in ranks):
            time.sleep(2)  # the other one says what it sees of it
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()
    return next((rank.returncode for rank in ranks if rank.returncode), 0)


def ask(options):
    """Ends with status 1 and a line that says why, where this cannot be done."""
    try:
        import torch

        import cinch

        if options.device == "cuda" and not torch.cuda.is_available():
            sys.exit("PyTorch has no GPU here")
        cinch.Transport.ucx(0, 1, rendezvous=f"127.0.0.1:{free_port()}").close()
    except Exception as failure:
        sys.exit(f"{type(failure).__name__}: {failure}".splitlines()[0])


def start(options):
    if options.ask:
        return subprocess.run([sys.executable, __file__, *sys.argv[1:], "--rank", "0"], env=variables(options.folder)).returncode
    open(options.json, "w", encoding="utf-8").close()
    status = run_ranks(options, "ucx", {})
    more, why = way_of_nccl(options)
    if more is None:
        print(f"over NCCL: not done: {why}", flush=True)
        return status
    return run_ranks(options, "nccl", more) or status


# ---- a rank ----


class Rank:
    """What the checks of a rank share."""

    def __init__(self, options):
        import torch
        import torch.distributed as dist

        import cinch.torch

        self.options, self.torch, self.cinch, self.rank = options, torch, cinch, options.rank
        number = self.rank % torch.cuda.device_count() if options.device == "cuda" else None
        self.device = torch.device("cpu") if number is None else torch.device("cuda", number)
        if number is not None:
            torch.cuda.set_device(number)
        torch.use_deterministic_algorithms(True)
        host, _, port = options.store.partition(":")
        store = dist.TCPStore(host, int(port), WORLD, is_master=self.rank == 0)
        dist.init_process_group("cpu:gloo,cuda:nccl" if options.transport == "nccl" else "gloo", store=store, rank=self.rank, world_size=WORLD)

    def image(self, name, device):
        """The program as prepare.py compiled it; "none" is any program, by rules that compress nothing."""
        kind = "cpu" if device.type == "cpu" else "gpu"
        return self.cinch.load(str(self.options.folder / f"{PROGRAMS[0] if name == 'none' else name}.{kind}.image"))

    def settings(self, name, device):
        over = {"transport": None if device.type == "cpu" else self.options.transport, "timeout": SECONDS, "dense_steps": 0}
        return {**over, "rules": [{"use": "exact"}]} if name == "none" else over

    def names(self):
        return [name for name in PROGRAMS if (self.options.folder / f"{name}.cpu.image").exists()]

    def say(self, text, **figures):
        """Rank 0 prints a line and adds it to the JSON."""
        if self.rank == 0:
            print(f"over {self.options.transport}: {text}", flush=True)
            with open(self.options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps({"what": "training", "transport": self.options.transport, **figures}) + "\n")

    def streams(self):
        """PyTorch's own stream, and one beside it."""
        return [None] if self.device.type == "cpu" else [self.torch.cuda.current_stream(), self.torch.cuda.Stream()]

    def model(self, width, layers):
        self.torch.manual_seed(0)
        modules = [module for _ in range(layers) for module in (self.torch.nn.Linear(width, width), self.torch.nn.Tanh())]
        return self.torch.nn.Sequential(*modules).to(self.device)

    def batch(self, width, step):
        random = self.torch.Generator().manual_seed(1000 * step + self.rank)
        return self.torch.randn(64, width, generator=random).to(self.device)


def synchronize(rank):
    if rank.device.type == "cuda":
        rank.torch.cuda.synchronize()


def averaged(rank, averager, parameters, gradients, stream):
    """The updates. On a GPU the stream writes the gradients late, so that Cinch reads zeros if it does not wait for that stream."""
    there = [gradient.to(parameter.device) for gradient, parameter in zip(gradients, parameters)]
    for parameter in parameters:
        parameter.grad = rank.torch.zeros_like(parameter)
    synchronize(rank)
    with rank.torch.cuda.stream(stream):
        if stream is not None:
            rank.torch.cuda._sleep(50_000_000)
        for parameter, gradient in zip(parameters, there):
            parameter.grad.copy_(gradient)
        averager.average()
        return [parameter.grad.cpu() for parameter in parameters]


def check_updates(rank, name):
    """The device's updates have the same bits as the CPU's."""
    torch = rank.torch
    shapes, random = [(192, 100), (70, 130), (33,)], torch.Generator().manual_seed(rank.rank)
    sides = []
    for device in (torch.device("cpu"), rank.device):
        parameters = [torch.nn.Parameter(torch.zeros(shape, device=device)) for shape in shapes]
        named = [(f"tensor{i}", parameter) for i, parameter in enumerate(parameters)]
        sides.append((parameters, rank.cinch.torch.Averager(named, rank.image(name, device), **rank.settings(name, device))))
    for step, stream in enumerate(rank.streams() * 3):
        gradients = [0.01 * torch.randn(shape, generator=random) for shape in shapes]
        expected, found = (averaged(rank, averager, parameters, gradients, given)
                           for (parameters, averager), given in zip(sides, (None, stream)))
        for i, (one, other) in enumerate(zip(expected, found)):
            if not torch.equal(one.view(torch.int32), other.view(torch.int32)):
                sys.exit(f"{name}: step {step}: tensor {i} has other bits than on the CPU")
    for _, averager in sides:
        averager.close()
    rank.say(f"{name}: updates have the bits of the CPU", check="updates", program=name)


def trained(rank, name, stream):
    """The parameters after the steps, on the CPU."""
    torch = rank.torch
    synchronize(rank)
    with torch.cuda.stream(stream):
        model = torch.nn.parallel.DistributedDataParallel(rank.model(96, 3), bucket_cap_mb=0.02)
        compression = rank.cinch.torch.compress(model, rank.image(name, rank.device), **rank.settings(name, rank.device))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(rank.options.steps):
            optimizer.zero_grad()
            (model(rank.batch(96, step)) - 0.5).square().mean().backward()
            optimizer.step()
        parameters = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).cpu()
    compression.close()
    return parameters


def check_training(rank, name):
    """Both ranks end with the same parameters, on each stream."""
    torch, dist = rank.torch, rank.torch.distributed
    results = [trained(rank, name, stream) for stream in rank.streams()]
    gathered = [torch.empty_like(results[0]) for _ in range(WORLD)]
    dist.all_gather(gathered, results[0])
    for what, other in [("the other rank", each) for each in gathered] + [("another stream", each) for each in results]:
        if not torch.equal(results[0].view(torch.int32), other.view(torch.int32)):
            sys.exit(f"{name}: training ends with other bits on {what}")
    if not results[0].isfinite().all():
        sys.exit(f"{name}: parameters are not finite")
    rank.say(f"{name}: {rank.options.steps} steps of DDP on {len(results)} streams end alike on both ranks", check="training", program=name)


def contenders(rank):
    """By name: what makes a DDP model average its gradients."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    found = {"DDP": lambda model: None, "fp16 hook": lambda model: model.register_comm_hook(None, default_hooks.fp16_compress_hook)}
    found["PowerSGD hook"] = lambda model: model.register_comm_hook(
        powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    for name in ["none", *rank.names()]:
        found[f"cinch {name}"] = lambda model, name=name: rank.cinch.torch.compress(model, rank.image(name, rank.device), **rank.settings(name, rank.device))
    return found


def seconds_of_step(rank, model, step):
    batch = rank.batch(rank.options.width, step)
    rank.torch.distributed.barrier()
    synchronize(rank)
    begun = time.perf_counter()
    model.zero_grad()
    model(batch).square().mean().backward()
    synchronize(rank)
    return time.perf_counter() - begun


def time_steps(rank):
    """Prints medians over turns. A ratio is plain DDP's time over the contender's."""
    rank.torch.use_deterministic_algorithms(False)
    models, kept = {}, []
    for name, prepare in contenders(rank).items():
        models[name] = rank.torch.nn.parallel.DistributedDataParallel(rank.model(rank.options.width, 4))
        kept.append(prepare(models[name]))
    times = {name: [] for name in models}
    for turn in range(-3, rank.options.rounds):  # the first three steps warm up
        for name, model in models.items():
            seconds = seconds_of_step(rank, model, turn + 3)
            if turn >= 0:
                times[name].append(1e3 * seconds)
    medians = {name: statistics.median(each) for name, each in times.items()}
    size = sum(parameter.nbytes for parameter in models["DDP"].parameters())
    for name, ms in medians.items():
        ratio = medians["DDP"] / ms
        rank.say(f"{name}: {ms:.2f} ms a step of {size / 1e6:.1f} MB, {ratio:.2f} of DDP's speed", contender=name, ms=ms, ratio=ratio, bytes=size)


def work(options):
    rank = Rank(options)
    for name in ["none", *rank.names()]:
        check_updates(rank, name)
        check_training(rank, name)
    time_steps(rank)
    rank.torch.distributed.destroy_process_group()


def main():
    options = parsed()
    if options.rank is None:
        sys.exit(start(options))
    if options.ask:
        ask(options)
    else:
        work(options)


if __name__ == "__main__":
    main()
