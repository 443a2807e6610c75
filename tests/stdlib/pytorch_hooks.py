"""pytorch_hooks.py CINCH: ten steps of `powersgd` and `fp16` beside PyTorch's own communication hooks, in one process, on the same gradients.

`fp16` gives the same bits. PyTorch draws its first factor itself, so both begin with the states that `powersgd` has after one step; its hook makes the
right factor's columns orthonormal first, which changes no update but its rounding: updates agree within a ten-thousandth of the largest magnitude.
Ends with status 77 where PyTorch is not installed."""
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
except ImportError as missing:
    print(f"PyTorch is not installed: {missing}")
    sys.exit(77)

CINCH = os.path.abspath(sys.argv[1])
ROWS, COLUMNS, RANK, STEPS = 96, 70, 4, 10
TOLERANCE = 1e-4


def gradients():
    """A low-rank part that stays and noise that does not, as gradients have."""
    draw = np.random.default_rng(5)
    kept = draw.standard_normal((ROWS, 6)) @ draw.standard_normal((6, COLUMNS))
    return [(kept + 0.3 * draw.standard_normal((ROWS, COLUMNS))).astype(np.float32) for _ in range(STEPS + 1)]


def run_cinch(program, gradient, step, folder, state_in=None):
    paths = {name: os.path.join(folder, name) for name in ("g.npy", "x.npy", "states")}
    np.save(paths["g.npy"], gradient)
    command = [CINCH, "run", program, "--input", paths["g.npy"], "--output", paths["x.npy"], "--state-out", paths["states"], "--step", str(step)]
    if state_in:
        command += ["--state-in", state_in]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return np.load(paths["x.npy"]).reshape(ROWS, COLUMNS), paths["states"]


def states_of(path):
    """By name, as runtime/call/state_file.h lays them out."""
    with open(path, "rb") as file:
        data = file.read()
    at, states = 64, {}
    for _ in range(struct.unpack_from("<I", data, 12)[0]):
        name_bytes, type_bytes, size = struct.unpack_from("<IIQ", data, at)
        begin = at + 16
        name = data[begin : begin + name_bytes].decode()
        values = begin + name_bytes + type_bytes
        states[name] = np.frombuffer(data[values : values + size], dtype=np.float32)
        at = values + size
    return states


class Scaled(torch.nn.Module):
    """Its gradient is what it is called with."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(ROWS, COLUMNS))

    def forward(self, x):
        return (self.weight * x).sum()


def hooked(hook, state):
    model = torch.nn.parallel.DistributedDataParallel(Scaled())
    model.register_comm_hook(state, hook)

    def step(gradient):
        model.module.weight.grad = None
        model(torch.from_numpy(gradient)).backward()
        return model.module.weight.grad.numpy().copy()

    return step


def compare_powersgd(folder):
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=2, min_compression_rate=0.5)
    step = hooked(powerSGD_hook.powerSGD_hook, state)
    all_gradients = gradients()
    while 0 not in state.q_memory_dict:
        step(all_gradients[0])
    _, states = run_cinch("powersgd", all_gradients[0], 0, folder)
    ours = states_of(states)
    state.q_memory_dict[0].copy_(torch.from_numpy(ours["q"].copy()))
    state.error_dict[0].copy_(torch.from_numpy(ours["residual"].copy()))
    worst = 0.0
    for number, gradient in enumerate(all_gradients[1:], 1):
        theirs = step(gradient)
        update, states = run_cinch("powersgd", gradient, number, folder, states)
        worst = max(worst, float(np.abs(theirs - update).max() / np.abs(update).max()))
    print(f"powersgd: {STEPS} steps, largest difference {worst:.2e} of the largest magnitude, at most {TOLERANCE:.0e}")
    return worst <= TOLERANCE


def compare_fp16(folder):
    step = hooked(default_hooks.fp16_compress_hook, None)
    same = all(np.array_equal(step(gradient), run_cinch("fp16", gradient, number, folder)[0])
               for number, gradient in enumerate(gradients()[:STEPS]))
    print(f"fp16: {STEPS} steps, {'the same bits' if same else 'other values'}")
    return same


with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
    agree = [compare_powersgd(folder), compare_fp16(folder)]
    dist.destroy_process_group()
sys.exit(0 if all(agree) else 1)
