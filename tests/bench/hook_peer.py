"""PyTorch's own PowerSGD hook on one matrix, in a world of one rank: a bucket with that gradient alone."""
import atexit
import logging
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from peer import Peer, timed

RANK = 4  # of powersgd


class Bucket:
    """What the hook asks of a bucket of DistributedDataParallel."""

    def __init__(self, matrix):
        self._matrix = matrix

    def index(self):
        return 0

    def buffer(self):
        return self._matrix.view(-1)

    def gradients(self):
        return [self._matrix]

    def is_last(self):
        return True


def join_alone():
    if dist.is_initialized():
        return
    folder = tempfile.TemporaryDirectory()
    dist.init_process_group("gloo", init_method=f"file://{folder.name}/meeting", rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)


class HookPeer(Peer):
    """The gradient is put into the bucket, where the update will lie, before the time starts: so DistributedDataParallel does."""

    def __init__(self, measured, gradient, elements):
        join_alone()
        logging.getLogger(powerSGD_hook.__name__).setLevel(logging.WARNING)
        rows, columns = measured.shape(elements)
        self._gradient = torch.frombuffer(gradient, dtype=torch.float32, count=rows * columns).view(rows, columns)
        self.out = torch.empty_like(self._gradient)
        self._bucket = Bucket(self.out)
        self._state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=2, min_compression_rate=0.5)
        for _ in range(self._state.start_powerSGD_iter):
            self.sync()

    def _sync(self):
        powerSGD_hook.powerSGD_hook(self._state, self._bucket).wait()

    def sync(self, repeats=1):
        seconds = 0.0
        for _ in range(repeats):
            self.out.copy_(self._gradient)
            seconds += timed(self._sync, 1)
        return seconds
