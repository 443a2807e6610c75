"""What kernels may take on each architecture: budgets_ARCH.json. `may` is checked, `goal` stands beside it; both are lowered by hand or by --write-budgets, never raised by it."""
import json
import math
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
# Of these, more is better: `may` is the least.
AT_LEAST = {"loads_in_flight", "stores_in_flight", "vector_share"}


def file_of(arch):
    return FOLDER / f"budgets_{arch}.json"


def read(arch):
    return json.loads(file_of(arch).read_text())


def write(made):
    lines = [json.dumps(kernel) for kernel in made["kernels"]]
    head = {name: value for name, value in made.items() if name != "kernels"}
    text = json.dumps(head)[:-1] + ',\n "kernels": [\n  ' + ",\n  ".join(lines) + "\n]}\n"
    file_of(made["architecture"]).write_text(text)


def tightest(name, value):
    """What is measured, rounded to what a budget says."""
    if name == "vector_share":
        return math.floor(value * 100) / 100
    if name in AT_LEAST:
        return int(value)
    return math.ceil(value * 10) / 10 if isinstance(value, float) else value


def lowered(made, counts, is_library):
    """The budgets, each as tight as what was counted where that is tighter; those of any kernel where all were counted."""
    found = {(c.program, c.kernel): c for c in counts}
    for kernel in made["kernels"]:
        for name, budget in kernel["budgets"].items():
            value = getattr(found.get((kernel["program"], kernel["kernel"])), name, None)
            if value is None:
                continue
            pick = max if name in AT_LEAST else min
            budget["may"] = pick(budget["may"], tightest(name, value))
    if is_library:
        for name, budget in made["any"].items():
            budget["may"] = min(budget["may"], max(getattr(c, name) for c in counts))
    return made


def exceeded(made, counts):
    """A line for each budget that a kernel does not keep: its name, what it has, what it may. Kernels of programs that were
    not counted are left out; one that a counted program no longer has is exceeded."""
    found = {(c.program, c.kernel): c for c in counts}
    programs = {c.program for c in counts}
    lines = []
    for kernel in made["kernels"]:
        if kernel["program"] not in programs:
            continue
        where = f"{kernel['program']} {kernel['kernel']}"
        counted = found.get((kernel["program"], kernel["kernel"]))
        for name, budget in kernel["budgets"].items():
            value = getattr(counted, name, None)
            if value is None:
                lines.append(f"{where}: {name} was not counted; its budget is {budget['may']}")
            elif value < budget["may"] if name in AT_LEAST else value > budget["may"]:
                bound = "at least" if name in AT_LEAST else "at most"
                lines.append(f"{where}: {name} is {value:g}, {bound} {budget['may']:g} is allowed (goal {budget['goal']:g})")
    for c in counts:
        for name, budget in made["any"].items():
            if getattr(c, name) > budget["may"]:
                lines.append(f"{c.program} {c.kernel}: {name} is {getattr(c, name)}, at most {budget['may']} is allowed (goal {budget['goal']})")
    return lines
