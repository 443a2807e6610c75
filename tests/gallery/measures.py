"""What is measured of a program: its laws, what it makes of the real gradient, its GPU kernels, its times."""
import json
import tempfile
from pathlib import Path

import numpy
from facts import BENCH_ELEMENTS, GPU, GRADIENT, ROOT

# Tried for every program; other laws were claimed.
COMMON_LAWS = {"round_trip", "size_bound", "threads", "vector_widths", "devices", "ranks", "non_finite", "hostile_payloads", "sums_fit", "sums"}


def laws_of(command, program, budget):
    laws = command.json("verify", program, "--budget", budget)
    return {"tried": len(laws), "hold": sum(law["holds"] for law in laws),
            "claimed": [{key: law[key] for key in ("law", "figure", "bound")} for law in laws if law["law"] not in COMMON_LAWS]}


def largest_matrix(folder):
    """The largest tensor of the gradient, as rows of its first dimension; the file that it is in."""
    tensors = json.loads((ROOT / GRADIENT).with_suffix(".json").read_text())["tensors"]
    sizes = [int(numpy.prod(tensor["shape"])) for tensor in tensors]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    begin = sum(sizes[:largest])
    values = numpy.load(ROOT / GRADIENT)[begin:begin + sizes[largest]]
    path = Path(folder) / "matrix.npy"
    numpy.save(path, values.reshape(tensors[largest]["shape"][0], -1))
    return path


def run_of(command, facts):
    program = facts["example"]["program"]
    with tempfile.TemporaryDirectory() as folder:
        path = largest_matrix(folder) if facts["matrix"] else GRADIENT
        # The gradient stands for weights, of which there are none here.
        given = [word for name in facts.get("inputs", ()) for word in ("--with", f"{name}={0.1 if name == 'lr' else path}")]
        report = command.json("run", program, "--input", path, *given)
    return {"ratio": report["ratio"], "relative_error": report["relative_error"], "payload_bytes": report["payload_bytes"]}


def gpu_of(command, program):
    kernels = command.json("explain", program, "--device", "cuda", "--target", GPU)["gpu_kernels"]
    return {"kernels": len(kernels), "registers": max(kernel["registers"] for kernel in kernels),
            "stack_bytes": max(kernel["stack_bytes"] for kernel in kernels)}


def bench_of(command, program, seconds):
    report = command.json("bench", program, "--elements", BENCH_ELEMENTS, "--input", GRADIENT, "--seconds", seconds)[0]
    calls = {call: {key: round(report[call][key], 4) for key in ("ms", "floor_share", "gb_per_s")} for call in ("encode", "decode", "sync") if call in report}
    return {"elements": report["elements"], "payload_bytes": report["payload_bytes"], "target": report["target"],
            "compile_cold_ms": round(report["compile_cold_ms"]), "bandwidth_gb_per_s": round(report["bandwidth_gb_per_s"], 1), "calls": calls}
