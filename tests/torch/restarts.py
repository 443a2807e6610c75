"""restarts.py FOLDER LOST_STEP: training as torchrun restarts it. In the first attempt rank 1 ends without a word in step LOST_STEP. The next
attempt goes on from the last checkpoint. It then trains once more from the beginning, in another folder, without an interruption. Each rank
writes what came of both to FOLDER/trained.RANK.pt."""
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from support import flat, loss_of, small_model, wrapped
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

import cinch.torch

STEPS, SAVED_EVERY = 8, 3


def last_saved(folder):
    """The steps that the last whole checkpoint has behind it; its metadata is written last."""
    return max((int(file.parent.name) for file in folder.glob("*/.metadata")), default=0)


def everything(ddp, optimizer, compression):
    model_states, optimizer_states = get_state_dict(ddp, optimizer)
    return {"model": model_states, "optimizer": optimizer_states, "cinch": compression.state_dict()}


def train_on(rank, folder, lost_step=None):
    """Trains from the last checkpoint in `folder` up to STEPS. Returns the step that it began with, and the parameters."""
    folder = Path(folder)
    ddp = wrapped(small_model())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    compression = cinch.torch.compress(ddp, "error_feedback(onebit)", dense_steps=0, timeout=10)
    first = last_saved(folder)
    if first > 0:
        states = everything(ddp, optimizer, compression)
        checkpoint.load(states, checkpoint_id=folder / str(first))
        set_state_dict(ddp, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
        compression.load_state_dict(states["cinch"])
    for step in range(first, STEPS):
        optimizer.zero_grad()
        loss = loss_of(ddp, rank, step)
        if step == lost_step and rank == 1:
            os._exit(1)
        loss.backward()
        optimizer.step()
        if (step + 1) % SAVED_EVERY == 0:
            checkpoint.save(everything(ddp, optimizer, compression), checkpoint_id=folder / str(step + 1))
    return first, flat(ddp)


def main():
    folder, lost_step = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    rank = dist.get_rank()
    first, parameters = train_on(rank, folder / "restarted", lost_step if attempt == 0 else None)
    _, whole = train_on(rank, folder / "whole")
    torch.save({"attempt": attempt, "first": first, "parameters": parameters, "whole": whole}, folder / f"trained.{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
