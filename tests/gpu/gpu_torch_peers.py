#!/usr/bin/env python3
"""The compressors of tests/bench/torch_peers.py on a GPU: eager, under torch.compile, and torch.topk alone.

    gpu_torch_peers.py --json FILE [--device cuda|cpu] [--modes eager,compile,topk] [--elements N,…] [--only NAME,…] [--seconds S] [--check] [--expect-all]

Each call is captured into a CUDA graph and replayed between two events, as gpu_bench does with Cinch's; calls whose sizes the host has to
learn (`nonzero`) cannot be captured and are timed as they are. What the device has no memory for is left out, with a line that says so.
--device cpu tries all of it where no GPU is. --check: compiled calls must decode to what eager ones do, where nothing is random.
"""
import argparse
import json
import statistics
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Beside this file on a machine with a GPU, in their own room in the tree.
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import torch  # noqa: E402
import torch._inductor.config  # noqa: E402

import torch_peers  # noqa: E402
from programs import PROGRAMS  # noqa: E402

SIZES = "134217728,16777216,1048576,65536"
DEVIATION = 0.01
TURN_MS, MOST_REPEATS = 2, 200
LEAST_ROUNDS, MOST_ROUNDS = 3, 101
SYNCHRONISES = {("threshold", "encode"), ("graddrop", "encode")}
RANDOM = {"minmax", "qsgd", "terngrad", "natural", "graddrop"}
# The host's part of a size is a constant of the compiled code.
torch_peers.share_of = torch.compiler.assume_constant_result(torch_peers.share_of)


class Compressor:
    """Encode and decode of one program, eager or compiled."""

    def __init__(self, measured, is_compiled):
        self.compressor = torch_peers.COMPRESSORS[measured.name](**measured.settings)
        self.encode, self.decode = self.compressor.encode, self.compressor.decode
        if is_compiled:
            torch.compiler.reset()
            self.encode = torch.compile(self.encode)
            self.decode = torch.compile(self.decode)


class CpuClock:
    def graph(self, call, owner):
        return None

    def ms(self, call, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return 1e3 * (time.perf_counter() - start) / repeats


class CudaClock:
    def graph(self, call, owner):
        """The call as a replay of a graph; it was made before. What it reads of its owner's states is kept beside it."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        states = dict(vars(owner)) if owner else None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()
        return lambda held=(states, result): graph.replay()

    def ms(self, call, repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            call()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / repeats


def median_ms(clock, call, seconds):
    clock.ms(call, 1)
    repeats = max(1, min(MOST_REPEATS, int(TURN_MS / max(clock.ms(call, 1), 1e-6))))
    times, end = [], time.perf_counter() + seconds
    while len(times) < LEAST_ROUNDS or (len(times) < MOST_ROUNDS and time.perf_counter() < end):
        times.append(clock.ms(call, repeats))
    return statistics.median(times), len(times)


def capture(clock, call, owner):
    """A replay of the call, and whether it is one."""
    try:
        replay = clock.graph(call, owner)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        print(f"not captured: {error}", file=sys.stderr)
        replay = None
    return (call, False) if replay is None else (replay, True)


def measure_call(clock, call, seconds, is_capturable=True, owner=None):
    for _ in range(5):  # states are there, everything is compiled
        call()
    replay, is_graph = capture(clock, call, owner) if is_capturable else (call, False)
    ms, rounds = median_ms(clock, replay, seconds)
    return {"ms": ms, "graph": is_graph, "rounds": rounds}


def measure_program(clock, measured, gradient, mode, seconds):
    compressor = Compressor(measured, mode == "compile")
    payload = compressor.encode(gradient)
    # A compiled call may give memory that the next call takes again.
    calls = {"encode": lambda: compressor.encode(gradient), "decode": lambda: compressor.decode(payload)}
    for name, call in calls.items():
        figures = measure_call(clock, call, seconds, (measured.name, name) not in SYNCHRONISES, compressor.compressor)
        yield {"peer": "torch.compile" if mode == "compile" else "torch eager", "program": measured.name, "call": name, **figures}


def measure_topk(clock, measured, gradient, seconds):
    count = torch_peers.share_of(measured.settings["ratio"], gradient.numel())
    magnitude = gradient.abs()
    figures = measure_call(clock, lambda: torch.topk(magnitude, count, sorted=False), seconds)
    yield {"peer": "torch.topk", "program": measured.name, "call": "encode", **figures}


def check_compiled(measured, gradient):
    decoded = []
    for is_compiled in (False, True):
        compressor = Compressor(measured, is_compiled)
        for _ in range(2):  # with states
            payload = compressor.encode(gradient)
        decoded.append(compressor.decode(payload))
    if not torch.allclose(*decoded, rtol=1e-4, atol=1e-7):
        sys.exit(f"{measured.name}: compiled and eager code decode to different gradients")
    return f"{measured.name}: compiled as eager"


class Report:
    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.measured, self.failures = set(), 0

    def add(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        if line["what"] == "peer" and line["ms"] > 0:
            self.measured.add((line["peer"], line["program"], line["call"], line["elements"]))
        print(*line.values(), sep="  ", flush=True)

    def failed(self, measured, elements, why):
        self.failures += 1
        self.add({"what": "failed", "program": measured.name, "elements": elements, "why": why})


def measure(report, clock, gradient, measured, mode, seconds):
    """One program in one mode; memory that is lacking leaves it out."""
    if mode == "topk" and measured.name != "topk":
        return
    figures = measure_topk(clock, measured, gradient, seconds) if mode == "topk" else measure_program(clock, measured, gradient, mode, seconds)
    try:
        for line in figures:
            report.add({"what": "peer", "elements": gradient.numel(), **line})
    except torch.OutOfMemoryError:
        report.add({"what": "skipped", "program": measured.name, "elements": gradient.numel(), "why": f"{mode}: out of device memory"})
    except Exception as error:  # the others are measured nevertheless
        traceback.print_exc()
        report.failed(measured, gradient.numel(), f"{mode}: {type(error).__name__}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--modes", default="eager,topk,compile")
    parser.add_argument("--elements", default=SIZES)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--expect-all", action="store_true", help="fails unless every call has a figure")
    return parser.parse_args()


def main():
    options = parse()
    is_cuda = options.device == "cuda"
    clock = CudaClock() if is_cuda else CpuClock()
    if not is_cuda:
        torch._inductor.config.cpp.simdlen = 1  # vectors of bool do not compile in PyTorch 2.13; times mean nothing here
    report = Report(options.json)
    name = torch.cuda.get_device_name() if is_cuda else "CPU"
    report.add({"what": "machine", "device": name, "torch": torch.__version__})
    wanted = [each for each in PROGRAMS if not options.only or each.name in options.only.split(",")]
    torch.manual_seed(7)
    for elements in map(int, options.elements.split(",")):
        gradient = DEVIATION * torch.randn(elements, device=options.device)
        for mode in options.modes.split(","):
            for measured in wanted:
                if options.check and mode == "compile" and measured.name not in RANDOM:
                    print(check_compiled(measured, gradient), flush=True)
                measure(report, clock, gradient, measured, mode, options.seconds)
                if is_cuda:
                    torch.cuda.empty_cache()
    modes, sizes = options.modes.split(","), len(options.elements.split(","))
    expected = sizes * (2 * len(wanted) * len({"eager", "compile"}.intersection(modes)) + ("topk" in modes))
    if report.failures:
        sys.exit(f"{report.failures} programs failed")
    if options.expect_all and len(report.measured) != expected:
        sys.exit(f"{len(report.measured)} figures instead of {expected}")


main()
