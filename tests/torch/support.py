"""What the tests of cinch.torch share: processes that are ranks, each of which takes many cases, since a new one costs seconds."""
import datetime
import gc
import multiprocessing
import multiprocessing.connection
import os
import time
import traceback
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from cinch.torch import _phases

# Tests compress from the first step on, unless they say otherwise, or restore what is usual.
USUAL_DENSE_STEPS = _phases._USUAL_DENSE_STEPS
_phases._USUAL_DENSE_STEPS = 0
SECONDS = 60.0  # that a case may take
TIMEOUT = 3.0  # seconds without progress before a failure, for cases about missing ranks


@dataclass
class Failed:
    """An exception of a rank."""

    kind: str
    text: str
    trace: str


class Gone:
    """The rank's process ended, or answered nothing in time."""

    def __repr__(self):
        return "Gone"


def _serve(pipe, port):
    torch.set_num_threads(1)
    while True:
        try:
            case, rank, world, body, arguments = pipe.recv()
        except EOFError:
            return
        pipe.send(_answer(port, case, rank, world, body, arguments))


def _answer(port, case, rank, world, body, arguments):
    try:
        store = dist.PrefixStore(f"case{case}", dist.TCPStore("127.0.0.1", port, is_master=False))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=datetime.timedelta(seconds=SECONDS / 2))
        torch.manual_seed(0)
        return body(rank, world, *arguments)
    except BaseException as failure:
        return Failed(type(failure).__name__, str(failure), traceback.format_exc())
    finally:
        gc.collect()  # connections of this case close on all ranks at once: one that leaves waits for those that have not
        try:
            dist.destroy_process_group()
        except Exception:
            pass  # what is left of a group whose ranks have gone


class Ranks:
    """Processes that run a function at once, each as a rank of a process group of its own case."""

    def __init__(self):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self._context = multiprocessing.get_context("spawn")
        self._workers = []
        self._case = 0

    def _start(self, count):
        while len(self._workers) < count:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(theirs, self._store.port), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))

    def answers(self, world, body, *arguments, lost=(), seconds=SECONDS):
        """What body(rank, world, *arguments) gave on each rank: a value, Failed or Gone. `lost` are ranks that give no
        answer; they are killed when the others have."""
        self._start(world)
        self._case += 1
        workers = self._workers[:world]
        for rank, (_, pipe) in enumerate(workers):
            pipe.send((self._case, rank, world, body, arguments))
        told = [Gone()] * world
        waits = {pipe: rank for rank, (_, pipe) in enumerate(workers) if rank not in lost}
        ends = time.monotonic() + seconds
        while waits and time.monotonic() < ends:
            for pipe in multiprocessing.connection.wait(list(waits), ends - time.monotonic()):
                try:
                    told[waits[pipe]] = pipe.recv()
                except (EOFError, ConnectionError):
                    pass
                del waits[pipe]
        for process, pipe in [worker for worker, answer in zip(workers, told) if isinstance(answer, Gone)]:
            process.kill()
            process.join()
            pipe.close()
            self._workers.remove((process, pipe))
        return told

    def run(self, world, body, *arguments, **named):
        """The values; no rank may fail."""
        told = self.answers(world, body, *arguments, **named)
        for rank, answer in enumerate(told):
            if isinstance(answer, Failed) or (isinstance(answer, Gone) and rank not in named.get("lost", ())):
                raise AssertionError(f"rank {rank}: {answer.trace if isinstance(answer, Failed) else answer}")
        return told

    def fail(self, world, body, *arguments, **named):
        """The exceptions; every rank that is not lost has one."""
        told = self.answers(world, body, *arguments, **named)
        lost = named.get("lost", ())
        for rank, answer in enumerate(told):
            assert isinstance(answer, Failed) or rank in lost, f"rank {rank} has not failed: {answer}"
        return [answer for rank, answer in enumerate(told) if rank not in lost]

    def close(self):
        for process, pipe in self._workers:
            pipe.close()
            process.join(5)
            if process.is_alive():
                process.kill()


def small_model(width=72):
    """A matrix that is compressed (`width` times 64 elements), and tensors that are exact."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 3))


def data_of(rank, step=0, rows=16):
    """A rank's batch of a regression."""
    random = torch.Generator().manual_seed(1000 * step + rank + 1)
    inputs = torch.randn(rows, 64, generator=random)
    return inputs, inputs[:, :3] * 2


def wrapped(model, group=None, **settings) -> Any:
    return torch.nn.parallel.DistributedDataParallel(model, process_group=group, **{"bucket_cap_mb": 0.01, **settings})


def loss_of(model, rank, step=0):
    inputs, wanted = data_of(rank, step)
    return ((model(inputs) - wanted) ** 2).mean()


def flat(model):
    return torch.cat([parameter.detach().flatten().float() for parameter in model.parameters()])


def train(model, optimizer, rank, steps, first=0):
    """Losses of the steps."""
    losses = []
    for step in range(first, first + steps):
        optimizer.zero_grad()
        loss = loss_of(model, rank, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def gradients_of(model):
    return [None if parameter.grad is None else parameter.grad.detach().clone() for parameter in model.parameters()]


def assert_same(a, b):
    """The same bits; NaN equals itself."""
    assert a.dtype == b.dtype and a.shape == b.shape
    a, b = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    differing = (a.view(torch.uint8) != b.view(torch.uint8)).count_nonzero()
    assert differing == 0, f"{differing} bytes of {a.nbytes} differ, by {(a.float() - b.float()).abs().max()}"


def assert_all_same(tensors):
    for each in tensors[1:]:
        assert_same(tensors[0], each)
