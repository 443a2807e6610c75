#!/usr/bin/env python3
"""Measures what recipes cost in loss: trains two small tasks under SGD and AdamW, dense and by each recipe, and prints a table.

    recipes.py [--recipes NAME…] [--tasks text pictures] [--optimizers sgd adamw] [--seeds 3] [--steps 200] [--ranks 4] [--output runs.json]

Ranks are processes of this machine; every rank has batches of its own. A recipe's loss is compared with dense training of the same seed, whose batches are
the same. Recipes for one optimizer are left out under the other. The table of docs/recipes.md, from which cinch.torch.recipe chooses, was made by this script."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent


def recipes():
    """By name: what cinch.torch.compress takes. Those of the table, and what was tried beside them."""
    from cinch.torch import RECIPES

    folded = str(HERE / "programs" / "folded.cinch") + ":folded_momentum"
    frozen = str(HERE / "programs" / "frozen_adam.cinch")
    # SGD's momentum is moved into the program, and `clip` of compress takes the place of the task's own clipping.
    moved = {"needs": "momentum", "plan": "allgather", "part_dense": 0.25, "clip": 3.0}
    # The program makes Adam's direction: an SGD applies it to what is compressed, and an AdamW trains the rest. Its own first steps are exact.
    direction = {"needs": "direction", "part_frozen": 0.25}
    tried = {
        # What it sends depends on the shapes of matrices, so it is not in the table.
        "powersgd, rank 4": {"program": "powersgd(rank: 4)", "part_dense": 0.1},
        "eden of 4 bits, a quarter exact": {"needs": "adamw", "program": "eden(bits: 4)", "plan": "two_shot", "part_dense": 0.25},
        "eden of 1 bit, half exact": {"needs": "adamw", "program": "eden(bits: 1)", "plan": "two_shot", "part_dense": 0.5},
        "momentum(none)": {**moved, "program": "momentum(none)"},
        "momentum(folded), part 384": {**moved, "program": folded, "part": 384},
        "momentum(folded), part 64": {**moved, "program": folded, "part": 64},
        "frozen_adam, part 384": {**direction, "program": frozen, "part": 384},
        "frozen_adam, part 64": {**direction, "program": frozen, "part": 64},
    }
    return {**{recipe.name: recipe.settings for recipe in RECIPES}, **tried}


def fits(name, optimizer):
    """Is it one for this optimizer?"""
    from cinch.torch import RECIPES

    measured = {recipe.name: recipe.excess for recipe in RECIPES}
    if name in measured:
        return optimizer in measured[name]
    needs = recipes().get(name, {}).get("needs")
    return needs is None or optimizer == ("sgd" if needs == "momentum" else "adamw")


def settings_of(name, steps):
    """What the recipe needs beside compress, the program, and settings of compress."""
    settings = dict(recipes()[name])
    needs, program = settings.pop("needs", None), settings.pop("program")
    if "part_frozen" in settings:
        settings["freeze"] = round(steps * settings.pop("part_frozen"))
    return needs, program, {"dense_steps": round(steps * settings.pop("part_dense", 0.0)), **settings}


def train(task_name, optimizer_name, name, seed, steps):
    """The loss at the end, and the part of dense's bytes that compressed tensors took in the last step."""
    import torch
    import torch.distributed as dist
    from small_tasks import TASKS, optimizer_of, optimizers_of_directions
    from torch.nn.parallel import DistributedDataParallel

    import cinch.torch

    task = TASKS[task_name](seed=1000 * seed + dist.get_rank())
    torch.manual_seed(seed)
    net = task.model()
    model = DistributedDataParallel(net)
    made = [optimizer_of(task, optimizer_name, net, steps)]
    needs = compression = None
    if name != "dense":
        needs, program, settings = settings_of(name, steps)
        if needs == "momentum":
            settings["factor"] = cinch.torch.take_momentum(made[0][0])
        elif needs == "direction":
            made = optimizers_of_directions(task, net, steps)
        compression = cinch.torch.compress(model, program, seed=seed, timeout=120, **settings)
    for _ in range(steps):
        net.zero_grad()
        task.loss(model).backward()
        if optimizer_name == "sgd" and needs != "momentum":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        for optimizer, schedule in made:
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        loss = task.score(net) if dist.get_rank() == 0 else 0.0
    part = sent_part(compression.report(), dist.get_world_size()) if compression else 1.0
    dist.barrier()
    if compression:
        compression.close()
    return {"task": task_name, "optimizer": optimizer_name, "recipe": name, "seed": seed, "loss": loss, "part": part}


def sent_part(report, world):
    """Of what rank 0 would send of the compressed tensors in a dense all-reduce."""
    compressed = [tensor for tensor in report["tensors"] if tensor["program"] != "exact"]
    dense = 2 * (world - 1) / world * sum(tensor["gradient_bytes"] for tensor in compressed)
    return sum(tensor["sent_bytes"] for tensor in compressed) / dense if dense else 1.0


def rank_main(jobs, steps):
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for job in jobs:
        result = train(*job, steps)
        if dist.get_rank() == 0:
            print(json.dumps(result), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def launch(options, jobs):
    """Results as they come; all jobs run in the same processes, one after the other."""
    given = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(options.port), "WORLD_SIZE": str(options.ranks)}
    command = [sys.executable, str(Path(__file__).resolve()), "--jobs", json.dumps(jobs), "--steps", str(options.steps)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, text=True, env={**given, "RANK": str(rank)})
             for rank in range(options.ranks)]
    for line in ranks[0].stdout:
        if line.startswith("{"):
            yield json.loads(line)
    if any(rank.wait() for rank in ranks):
        sys.exit("training failed")


def excesses(runs, task, optimizer, recipe):
    """Percent above dense of the same seed."""
    loss = {(run["recipe"], run["seed"]): run["loss"] for run in runs if (run["task"], run["optimizer"]) == (task, optimizer)}
    return [100 * (value / loss["dense", seed] - 1) for (name, seed), value in loss.items() if name == recipe and ("dense", seed) in loss]


def table(runs):
    """Mean over seeds, and in brackets the difference between seeds."""
    columns = sorted({(run["task"], run["optimizer"]) for run in runs}, reverse=True)
    lines = ["| recipe | bytes | " + " | ".join(f"{task}, {optimizer}" for task, optimizer in columns) + " |", "| --- | ---: |" + " ---: |" * len(columns)]
    for recipe in dict.fromkeys(run["recipe"] for run in runs):
        parts = [run["part"] for run in runs if run["recipe"] == recipe]
        cells = []
        for column in columns:
            if recipe == "dense":
                losses = [run["loss"] for run in runs if run["recipe"] == recipe and (run["task"], run["optimizer"]) == column]
                cells.append(" ".join(f"{loss:.3f}" for loss in losses))
                continue
            found = excesses(runs, *column, recipe)
            cells.append(f"{statistics.mean(found):+.1f} ({max(found) - min(found):.1f})" if found else "")
        lines.append(f"| {recipe} | {'1' if recipe == 'dense' else f'1/{1 / statistics.mean(parts):.1f}'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="*")
    parser.add_argument("--tasks", nargs="+", default=["text", "pictures"])
    parser.add_argument("--optimizers", nargs="+", default=["sgd", "adamw"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--port", type=int, default=29517)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--jobs", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs:
        return rank_main(json.loads(options.jobs), options.steps)
    wanted = options.recipes if options.recipes is not None else list(recipes())
    unknown = sorted(set(wanted) - set(recipes()))
    if unknown:
        parser.error(f"no recipe {unknown[0]!r}: one of {', '.join(recipes())}")
    jobs = [(task, optimizer, name, seed) for seed in range(options.seeds) for task in options.tasks for optimizer in options.optimizers
            for name in ["dense", *wanted] if name == "dense" or fits(name, optimizer)]
    runs = []
    for run in launch(options, jobs):
        runs.append(run)
        print(f"{len(runs)} of {len(jobs)}: {json.dumps(run)}", file=sys.stderr, flush=True)
        if options.output:
            options.output.write_text(json.dumps(runs))
    print(table(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
