"""Other libraries' trainers, for worker.py to compare with: those that are installed."""
import ctypes
import datetime
import os
import shutil
import socket
import subprocess
import sys

import torch
import torch.distributed as dist

_LIGHTHOUSE_PORT = 29510
_CLONE_NEWUTS = 0x04000000


def _own_address():
    """Of the interface that leads to the first rank."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((os.environ["MASTER_ADDR"], 1))
        return asked.getsockname()[0]


def _be_found_by_name(address):
    """torchft tells others this machine's name; ranks in network namespaces, which share it, take their address for a name of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(address)


class TorchftDiLoCo:
    """torchft's DiLoCo over gloo, as this repository's with the same numbers: sites are its replica groups, and rank 0 starts its lighthouse."""

    choice = ""

    def __init__(self, model, inner, sites, *, every, outer_lr=0.7, outer_momentum=0.5):
        try:
            from torchft import Manager
            from torchft.local_sgd import DiLoCo
            from torchft.process_group import ProcessGroupGloo
        except ImportError as error:
            raise SystemExit(f"torchft is not installed: {error}") from error
        rank, world = dist.get_rank(), dist.get_world_size()
        per_site, address, seconds = world // sites, _own_address(), datetime.timedelta(seconds=120)
        if "CINCH_EXAMPLE_INTERFACE" in os.environ:
            _be_found_by_name(address)
        program = shutil.which("torchft_lighthouse", path=os.path.dirname(sys.executable))
        arguments = [program, "--min_replicas", str(sites), "--bind", f"0.0.0.0:{_LIGHTHOUSE_PORT}"]
        self._lighthouse = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if rank == 0 else None
        addresses = [None] * world
        dist.all_gather_object(addresses, address)
        first = rank // per_site * per_site
        store_port = _LIGHTHOUSE_PORT + 1 + rank // per_site
        # Managers of a site meet at its first rank's.
        self._store = dist.TCPStore(address, store_port, is_master=True, wait_for_workers=False) if rank == first else None
        dist.barrier()
        self._manager = Manager(
            pg=ProcessGroupGloo(timeout=seconds), load_state_dict=None, state_dict=None, min_replica_size=sites, use_async_quorum=False, timeout=seconds,
            quorum_timeout=seconds, rank=rank - first, world_size=per_site, store_addr=addresses[first], store_port=store_port,
            lighthouse_addr=f"http://{addresses[0]}:{_LIGHTHOUSE_PORT}", replica_id=f"site{rank // per_site}", hostname=address,
            init_sync=False)  # all begin alike
        outer = torch.optim.SGD(model.parameters(), lr=outer_lr, momentum=outer_momentum, nesterov=outer_momentum > 0)
        self._inner = inner
        self._diloco = DiLoCo(self._manager, [model], inner, outer, sync_every=every)
        self._diloco.__enter__()

    def step(self):
        self._inner.step()

    def flush(self):
        """Nothing is under way: it has no delay here."""

    def report(self):
        return None

    def close(self):
        self._diloco.__exit__(None, None, None)
        dist.barrier()
        self._manager.shutdown(wait=False)
        if self._lighthouse is not None:
            self._lighthouse.kill()
            self._lighthouse.wait()
