#!/usr/bin/env python3
"""Writes docs/gallery.md, its pictures, and docs/gallery/data.json, which they are drawn from.

    generate.py BUILD                  measures all programs of the library: some minutes; nothing else should run
    generate.py BUILD --only NAME…     measures these, and keeps what was measured of others
    generate.py BUILD --missing        measures programs that were not measured yet
    generate.py BUILD --draw           measures nothing: texts, layouts, kernels and drawings alone
    generate.py BUILD --check          fails where that would change anything

BUILD is a build folder with the targets cinch, cinch_c, cinch_compiler and cinch_clang. GPU code needs NVRTC (VIRTUAL_ENV names the
environment that has it); without it, it is left out.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "bench"))
import facts as known  # noqa: E402
import page  # noqa: E402
import pictures  # noqa: E402
from floors import processor  # noqa: E402

DOCS = ROOT / "docs"
DATA = DOCS / "gallery" / "data.json"
BUDGET, BENCH_SECONDS = 4, 0.4  # seconds of a program's laws, and of each of its calls


def read_data():
    if not DATA.exists():
        return {"feedback": {}, "programs": {}}
    return json.loads(DATA.read_text(encoding="utf-8"))


def data_text(data):
    """A line for each program, so that changes can be read."""
    programs = ",\n".join(f"  {json.dumps(name)}: {json.dumps(program, ensure_ascii=False)}" for name, program in data["programs"].items())
    return f'{{\n"feedback": {json.dumps(data["feedback"])},\n"programs": {{\n{programs}\n}}\n}}\n'


def add_facts(command, data):
    """What follows from the programs, of all of them; programs that are no more go."""
    old = data["programs"]
    data["programs"] = {name: {**old.get(name, {}), "facts": facts} for name, facts in known.all_facts(command).items()}


def has_nvrtc():
    return any(Path(os.environ.get("VIRTUAL_ENV", "/nonexistent")).glob("lib/python3*/site-packages/nvidia/c*"))


def measure_apart_from_times(command, program):
    import measures
    name = program["facts"]["example"]["program"]
    measured = {"run": measures.run_of(command, program["facts"]), "laws": measures.laws_of(command, name, BUDGET)}
    if measured["laws"]["hold"] < measured["laws"]["tried"]:
        raise SystemExit(f"{name}: a law does not hold: cinch verify \"{name}\" --budget {BUDGET}")
    if has_nvrtc():
        measured["gpu"] = measures.gpu_of(command, name)
    return measured


def rounded(values):
    return [round(value, 5) for value in values]


def measure(build, command, data, names):
    import feedback
    import measures
    programs = data["programs"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {name: pool.submit(measure_apart_from_times, command, programs[name]) for name in names}
        for i, name in enumerate(names):
            programs[name].update(found[name].result())
            print(f"laws {i + 1} of {len(names)}: {name}", file=sys.stderr, flush=True)
    for i, name in enumerate(names):
        programs[name]["measured"] = here_and_now()
        programs[name]["bench"] = measures.bench_of(command, programs[name]["facts"]["example"]["program"], BENCH_SECONDS)
        print(f"times {i + 1} of {len(names)}: {name}", file=sys.stderr, flush=True)
    data["feedback"] = {name: {side: {key: rounded(values) for key, values in curve[side].items()} for side in curve}
                        for name, curve in feedback.curves(build).items()}


def here_and_now():
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {"date": str(datetime.date.today()), "commit": commit, "processor": processor(), "threads": os.cpu_count()}


def rows(data, figure):
    """Programs that stand alone: a wrapper's point is that of what it wraps, or near it."""
    return [(name, program["facts"]["family"], *figure(program)) for name, program in data["programs"].items()
            if not known.is_wrapper(program["facts"])]


def ratio_and_error(program):
    return program["run"]["ratio"], program["run"]["relative_error"]


def ratio_and_time(program):
    return program["run"]["ratio"], next(iter(program["bench"]["calls"].values()))["ms"]


def reading_ms(data):
    """Of the gradient that was measured, at the median of all readings."""
    return statistics.median(4 * program["bench"]["elements"] / program["bench"]["bandwidth_gb_per_s"] / 1e6
                             for program in data["programs"].values())


def outputs(data):
    """Texts of all files, by their paths."""
    elements = next(program["bench"]["elements"] for program in data["programs"].values())
    return {DATA: data_text(data), DOCS / "gallery.md": page.text(data),
            DOCS / "gallery" / "ratio_and_error.svg": pictures.ratio_and_error(rows(data, ratio_and_error)),
            DOCS / "gallery" / "time_and_ratio.svg": pictures.time_and_ratio(rows(data, ratio_and_time), reading_ms(data), elements),
            DOCS / "gallery" / "feedback.svg": pictures.feedback(data["feedback"])}


def check(texts):
    stale = [str(path.relative_to(ROOT)) for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if stale:
        sys.exit("out of date: " + ", ".join(stale) + "; ./dev gallery --draw writes them")


def chosen(options, data):
    if options.draw or options.check:
        return []
    unknown = [name for name in options.only or [] if name not in data["programs"]]
    if unknown:
        sys.exit("not in the library: " + " ".join(unknown))
    unmeasured = [name for name, program in data["programs"].items() if "bench" not in program]
    return unmeasured if options.missing else options.only or list(data["programs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    for flag in ("--missing", "--draw", "--check"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    command, data = known.Command(options.build), read_data()
    add_facts(command, data)
    names = chosen(options, data)
    if names:
        measure(options.build, command, data, names)
        DATA.parent.mkdir(exist_ok=True)
        DATA.write_text(data_text(data), encoding="utf-8")  # kept, whatever a drawing says
    unmeasured = [name for name, program in data["programs"].items() if "bench" not in program]
    if unmeasured:
        sys.exit("not measured yet: " + " ".join(unmeasured) + "; ./dev gallery --missing")
    texts = outputs(data)
    if options.check:
        return check(texts)
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
