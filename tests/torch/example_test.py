"""What examples/pytorch/train.py and recipes.py make of runs, and which runs recipes.py makes."""
import os
import sys
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "pytorch"))
import recipes  # noqa: E402
import train  # noqa: E402

import cinch  # noqa: E402

DENSE = [(0, 0.0, 5.0), (10, 40.0, 4.0)]


def run(name, seed, curve):
    return {"compressor": name, "seed": seed, "curve": curve, "step_ms": 100.0 * len(name), "mb_step": 1.5, "unit": "bits"}


def test_seconds_to_a_score():
    curve = [(0, 0.0, 5.0), (10, 10.0, 4.0), (20, 20.0, 2.0)]
    assert train.seconds_to(curve, 3.0) == 15.0
    assert train.seconds_to(curve, 4.0) == 10.0
    assert train.seconds_to(curve, 1.0) is None
    assert train.score_at(curve, 10) == 4.0


def test_table():
    # The second seed of "fast" does not come to what dense training ends with.
    runs = [run("dense", seed, DENSE) for seed in (0, 1)]
    runs += [run("fast", 0, [(0, 0.0, 5.0), (10, 10.0, 3.0)]), run("fast", 1, [(0, 0.0, 5.0), (10, 10.0, 4.5)])]
    runs += [run("never", seed, [(0, 0.0, 5.0), (10, 10.0, 4.5)]) for seed in (0, 1)]
    rows = train.table(runs, SimpleNamespace(steps=10, method=None, compressor=["dense", "fast", "never"])).splitlines()[2:]
    assert rows == [
        "| dense | 500 | - | 1.50 | 4.000 | 0.000 | 1.00 |",
        "| fast | 400 | - | 1.50 | 3.750 | 1.500 | 0.12 (1 of 2 seeds) |",
        "| never | 500 | - | 1.50 | 4.500 | 0.000 | - |",
    ]


def test_recipes_fit_optimizers():
    fitting = {name: [kind for kind in ("sgd", "adamw") if recipes.fits(name, kind)] for name in recipes.recipes()}
    assert all(fitting.values()), fitting
    assert fitting["int8_block"] == fitting["powersgd, rank 4"] == ["sgd", "adamw"]
    assert fitting["momentum(folded), part 64"] == ["sgd"]
    assert fitting["frozen_adam, part 64"] == fitting["eden of 1 bit, half exact"] == ["adamw"]


def test_programs_of_recipes():
    for name in recipes.recipes():
        _, program, settings = recipes.settings_of(name, 200)
        cinch.compile(program, bindings={name: value for name, value in settings.items() if name not in ("dense_steps", "plan", "clip")})
    assert recipes.settings_of("frozen_adam, part 64", 200)[2] == {"dense_steps": 0, "part": 64, "freeze": 50}
    assert recipes.settings_of("momentum(folded), part 64", 200)[2]["dense_steps"] == 50


def test_tables_have_blanks():
    runs = [{"task": "text", "optimizer": kind, "recipe": "dense", "seed": 0, "loss": 2.0, "part": 1.0} for kind in ("sgd", "adamw")]
    runs.append({"task": "text", "optimizer": "adamw", "recipe": "one", "seed": 0, "loss": 2.02, "part": 0.1})
    assert recipes.table(runs).splitlines()[-1] == "| one | 1/10.0 |  | +1.0 (0.0) |"
