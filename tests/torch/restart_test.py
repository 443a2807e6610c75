"""torchrun restarts ranks of which one has ended: training goes on from the last checkpoint, with the bits of a run that was not interrupted."""
import os
import subprocess
import sys
from pathlib import Path

import torch
from restarts import SAVED_EVERY
from support import assert_all_same

LOST_STEP = 5  # behind the first checkpoint, and before the second
# Each attempt has a store of its own. PyTorch else finds addresses of the attempt before: https://github.com/pytorch/pytorch/issues/135712.
VARIABLES = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def run_by_torchrun(folder):
    script = Path(__file__).with_name("restarts.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1",
               "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", script, folder, str(LOST_STEP)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, env={**os.environ, **VARIABLES})
    assert done.returncode == 0, done.stderr
    return [torch.load(folder / f"trained.{rank}.pt", weights_only=True) for rank in range(2)]


def test_training_goes_on_from_the_last_checkpoint(tmp_path):
    told = run_by_torchrun(tmp_path)
    for each in told:
        assert (each["attempt"], each["first"]) == (1, SAVED_EVERY)
    assert_all_same([each[run] for each in told for run in ("parameters", "whole")])
