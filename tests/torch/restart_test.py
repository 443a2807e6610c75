"""torchrun restarts ranks of which one has ended: training goes on from the last checkpoint, with the bits of a run that was not interrupted."""
import os
import subprocess
import sys
from pathlib import Path

import torch
from restarts import SAVED_EVERY, train_on
from support import assert_all_same, assert_same

LOST_STEP = 5  # behind the first checkpoint, and before the second


def uninterrupted(rank, world, folder):
    return train_on(rank, folder)


def run_by_torchrun(folder):
    """What rank 0 of the last attempt wrote. Each attempt has a store of its own: PyTorch else finds addresses of the one before it, as
    https://github.com/pytorch/pytorch/issues/135712 says."""
    script = Path(__file__).with_name("restarts.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1",
               "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    variables = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    done = subprocess.run([*command, script, folder, str(LOST_STEP)], capture_output=True, text=True, timeout=60, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "trained.pt", weights_only=True)


def test_training_goes_on_from_the_last_checkpoint(ranks, tmp_path):
    restarted, whole = tmp_path / "restarted", tmp_path / "whole"
    restarted.mkdir()
    whole.mkdir()
    told = run_by_torchrun(restarted)
    assert (told["attempt"], told["first"]) == (1, SAVED_EVERY)
    expected = [parameters for _, parameters in ranks.run(2, uninterrupted, str(whole))]
    assert_all_same(expected)
    assert_same(told["parameters"], expected[0])
