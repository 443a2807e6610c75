"""What the command says of programs, from machine to machine the same: texts, layouts, kernels and the bytes that they move."""
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ELEMENTS = 1 << 20
# The gradient on which measures are taken.
GRADIENT = "examples/data/resnet-step40.npy"
BENCH_ELEMENTS = 1 << 24
GPU = "cuda:sm_90"
CALLS = ("encode", "decode", "finish", "sync")
KEPT_OF_A_CALL = ("kernels", "sweeps_least", "sweeps_most", "read_per_element", "written_per_element", "read_per_element_least",
                  "written_per_element_least", "floor_sweeps", "floor_read_per_element", "floor_written_per_element")


class Command:
    """`cinch` of a build folder, with a library that it was built with."""

    def __init__(self, build):
        self.path = str(Path(build).resolve() / "bin" / "cinch")
        self.environment = dict(os.environ, CINCH_TUNING="off", NO_COLOR="1", CINCH_STDLIB=str(ROOT / "stdlib"))

    def json(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments), "--json"], cwd=ROOT, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"cinch {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
        return json.loads(done.stdout)


def call_of(report):
    return {key: round(report[key], 6) if isinstance(report[key], float) else report[key] for key in KEPT_OF_A_CALL}


def field_of(field):
    return {"name": field["name"], "type": field["packs"] or field["type"], "by": field["by"]}


def facts_of(command, item):
    report = command.json("explain", item["example"]["program"], "--elements", ELEMENTS)
    facts = {key: item[key] for key in ("family", "summary", "paper", "stores", "aggregation", "matrix", "claims", "parameters",
                                        "payload_bits_per_element", "payload_bound", "example")}
    facts["source"] = os.path.relpath(item["file"], ROOT)
    if report["inputs"]:
        facts["inputs"] = [each["name"] for each in report["inputs"]]
    facts["states"] = [{"name": state["name"], "type": state["type"]} for state in report["states"]]
    facts["calls"] = {name: call_of(report[name]) for name in CALLS if name in report}
    if "payload" in report:
        payload = report["payload"]
        facts["payload"] = {"bound_bytes": payload["bound_bytes"], "counts": [{key: count[key] for key in ("name", "bound")} for count in payload["counts"]],
                            "fields": [field_of(field) for field in payload["fields"]]}
    else:
        facts["collectives"] = [f"{each['name']} of {each['type']}" for each in report["collectives"]]
    return facts


def is_wrapper(facts):
    return any(param["type"] == "compressor" for param in facts["parameters"])


def all_facts(command):
    return {item["name"]: facts_of(command, item) for item in command.json("list")}
