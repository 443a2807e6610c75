"""One rank of train.py: trains, and prints JSON on rank 0."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from tasks import TASKS
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import cinch.torch

# By name: the program and its parameters. Those with states begin after a tenth of 200 steps.
CINCH = {
    "none": ("none", {}),
    "fp16": ("fp16", {}),
    "qsgd": ("qsgd", {"bits": 4}),
    "int8_block": ("int8_block", {}),
    "int4_block": ("int4_block", {}),
    "nvfp4": ("nvfp4", {}),
    "eden": ("eden", {}),
    "eden_3": ("eden", {"bits": 3}),
    "drive": ("drive", {}),
    "drive_unbiased": ("drive(unbiased: true)", {"plan": "allgather"}),
    "onebit": ("onebit", {}),
    "ef_onebit": ("error_feedback(onebit)", {"dense_steps": 20}),
    "ef_sign": ("ef_sign", {"dense_steps": 20}),
    "dgc": ("dgc", {"ratio": 0.001, "dense_steps": 0}),
    "dgc_1": ("dgc", {"ratio": 0.01, "dense_steps": 20}),
    "powersgd": ("powersgd(rank: 4)", {"dense_steps": 0}),
    "powersgd_20": ("powersgd(rank: 4)", {"dense_steps": 20}),
    "qsgd_auto": ("qsgd", {"bits": 4, "plan": "auto"}),
    "dgc_auto": ("dgc", {"ratio": 0.001, "plan": "auto", "dense_steps": 0}),
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
        sys.exit(f"no compressor {name!r}: one of dense, no_exchange, torch_fp16, torch_bf16, torch_powersgd, {', '.join(CINCH)}")
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


def main():
    task_name, compressor, steps, seed, every = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    task = TASKS[task_name](seed=1000 * seed + rank)
    torch.manual_seed(seed)
    net = task.model()
    # PyTorch's PowerSGD hook aborts over gloo with several buckets.
    model = DistributedDataParallel(net, **({"bucket_cap_mb": 1000} if compressor == "torch_powersgd" else {}))
    compression = install(compressor, model, seed)
    optimizer = task.optimizer(net)
    curve, times, trained, sent = [], [], 0.0, 0
    for step in range(steps + 1):
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
        optimizer.step()
        times.append(time.perf_counter() - begun)
        trained += times[-1]
        sent += sent_bytes() - earlier
    if rank == 0:
        warm = times[min(5, len(times) - 1):]
        report = compression.report() if compression else None
        print(json.dumps({"compressor": compressor, "step_ms": 1e3 * median(warm), "curve": curve, "mb_step": sent / steps / 1e6, "world": world,
                          "parameters": sum(p.numel() for p in net.parameters()), "report": report, "choice": compression.choice if compression else ""}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
