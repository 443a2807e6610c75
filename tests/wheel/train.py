"""train.py FOLDER: two ranks train three steps with the wheel's cinch.torch, over gloo and the transport of Cinch. Prints JSON, an object for
each rank: a hash of its parameters, where `cinch` lies, what libraries it has mapped, and which packages of frameworks were imported."""
import hashlib
import importlib.util
import json
import multiprocessing
import os
import sys

STEPS = 3


def train(rank, folder):
    import torch
    import torch.distributed as dist

    import cinch.torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 72), torch.nn.Linear(72, 3)))
    compression = cinch.torch.compress(model, "topk")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    random = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(16, 64, generator=random)).square().mean().backward()
        optimizer.step()
    report = compression.report()
    parameters = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    told = {"parameters": hashlib.sha256(parameters.numpy().tobytes()).hexdigest(), "cinch": cinch.__file__, "mapped": mapped_files(),
            "bytes": [report["sent_bytes"], report["gradient_bytes"]]}
    dist.destroy_process_group()
    return told


def mapped_files():
    """The files of this process's memory map."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return sorted({line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/")})


def imports_jax():
    if importlib.util.find_spec("jax") is None:
        return False
    import cinch.jax

    return cinch.jax.Compressor is not None


def main():
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        told = pool.starmap(train, [(rank, sys.argv[1]) for rank in range(2)], chunksize=1)
    print(json.dumps({"ranks": told, "jax": imports_jax()}))


if __name__ == "__main__":
    main()
