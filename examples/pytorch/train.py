#!/usr/bin/env python3
"""Trains on a slow network: ranks in network namespaces, a table of times, bytes and losses, and a picture of loss against time.

    train.py --task text --compressor dense qsgd dgc --bandwidth 100 [--ranks 4] [--steps 100] [--seeds 1] [--output FOLDER]
    train.py --task text --method sync stale od_sgd cd_sgd ssd_sgd local_sgd diloco sparse_loco [--sites 2 --latency 50]

--bandwidth is of each rank's link, in Mbit/s, or of the link between two sites; 0: no limit, and no namespaces. Namespaces need root and iproute2, and
sites /dev/net/tun, too. Each compressor or method trains by itself, one behind the other, in as many turns as there are seeds. README.md says what the
table means."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "slow_network"))
from chart import svg  # noqa: E402
from methods import CINCH, METHODS, OF_TORCH  # noqa: E402
from sites import Sites  # noqa: E402
from sites import what_is_missing as missing_for_sites  # noqa: E402
from slow_network import Network  # noqa: E402

CANNOT_RUN = 77


class Local:
    """Ranks of this machine, as they are."""

    def __init__(self, ranks):
        self.ranks = ranks

    def prefix(self, rank):
        return []

    def environment(self):
        return {"MASTER_ADDR": "127.0.0.1"}


class Namespaces(Local):
    def __init__(self, network):
        super().__init__(network.ranks)
        self.network = network

    def prefix(self, rank):
        return ["ip", "netns", "exec", self.network.space(rank)]

    def environment(self):
        # Shared memory would reach across namespaces.
        return {"MASTER_ADDR": self.network.host(0), "GLOO_SOCKET_IFNAME": "eth0", "CINCH_EXAMPLE_INTERFACE": "eth0", "UCX_TLS": "tcp"}


def run(place, options, compressor, seed, port):
    """What rank 0 printed."""
    steps = options.steps if compressor in ("dense", "no_exchange", "sync") else round(options.steps * (1 + options.extra))
    given = {**os.environ, **place.environment(), "MASTER_PORT": str(port), "WORLD_SIZE": str(place.ranks)}
    command = [sys.executable, str(HERE / "worker.py"), options.task, compressor, str(steps), str(seed), str(options.every), "--sites", str(options.sites)]
    command += [] if options.rate is None else ["--rate", str(options.rate)]
    command += [] if options.optimizer is None else ["--optimizer", options.optimizer]
    command += ["--own-data"] if options.own_data else []
    ranks = [subprocess.Popen([*place.prefix(rank), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**given, "RANK": str(rank)})
             for rank in range(place.ranks)]
    outputs = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"training with {compressor} failed:\n" + "\n".join(error for _, error in outputs))
    result = json.loads(next(line for line in outputs[0][0].splitlines() if line.startswith("{")))
    return {**result, "seed": seed}


def score_at(curve, step):
    return next(score for at, _, score in curve if at >= step)


def seconds_to(curve, wanted):
    """When the curve first came down to that score, between its points in a straight line; None: it has not."""
    for (_, earlier, above), (_, later, score) in zip(curve, curve[1:]):
        if score <= wanted:
            return later if above <= score else earlier + (later - earlier) * min(1.0, (above - wanted) / (above - score))
    return None


def time_to_dense(rows, dense):
    """Seconds to the score that dense training (or `sync`) of the same seed ends with, as a part of what that took: the median over seeds that came to it; "-": none has."""
    parts = []
    for row in rows:
        end = next((each["curve"][-1] for each in dense if each["seed"] == row["seed"]), None)
        seconds = end and seconds_to(row["curve"], end[2])
        if seconds:
            parts.append(seconds / end[1])
    if not parts:
        return "-"
    return f"{statistics.median(parts):.2f}" + (f" ({len(parts)} of {len(rows)} seeds)" if len(parts) < len(rows) else "")


def table(runs, options):
    """Rows by compressor: medians over seeds."""
    unit = runs[0]["unit"]
    lines = [f"| compressor | ms a step | exposed ms | MB a step | {unit} | spread | time to dense's |", "| --- | --- | --- | --- | --- | --- | --- |"]
    by_name = {name: [r for r in runs if r["compressor"] == name] for name in options.compressor}
    base = statistics.median(r["step_ms"] for r in by_name["no_exchange"]) if by_name.get("no_exchange") else None
    dense = by_name.get("dense") or by_name.get("sync") or []
    for name, rows in by_name.items():
        # Methods do not exchange at every step.
        step = statistics.median(r.get("mean_ms" if options.method else "step_ms", r["step_ms"]) for r in rows)
        last = [score_at(r["curve"], options.steps) for r in rows]
        exposed = "-" if base is None else f"{max(0.0, step - base):.0f}"
        sent = "-" if rows[0]["mb_step"] == 0 else f"{statistics.median(r['mb_step'] for r in rows):.2f}"
        lines.append(f"| {name} | {step:.0f} | {exposed} | {sent} | {statistics.median(last):.3f} | {max(last) - min(last):.3f} | {time_to_dense(rows, dense)} |")
    return "\n".join(lines)


def train_all(place, options):
    runs, port = [], 29600
    options.output.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for compressor in options.compressor:
            port += 1
            runs.append({**run(place, options, compressor, seed, port), "unit": UNITS[options.task]})
            print(f"{compressor}, seed {seed}: {runs[-1]['step_ms']:.0f} ms a step, {score_at(runs[-1]['curve'], options.steps):.3f} {UNITS[options.task]}", file=sys.stderr, flush=True)
            if runs[-1]["choice"]:
                print(f"plan auto: {runs[-1]['choice']}", file=sys.stderr, flush=True)
            (options.output / "runs.json").write_text(json.dumps(runs))
    text = table(runs, options)
    (options.output / "table.md").write_text(text + "\n")
    (options.output / "loss.svg").write_text(svg(runs, UNITS[options.task]))
    print(text)
    print(f"\n{options.output}/table.md, runs.json, loss.svg")


UNITS = {"text": "bits per byte", "small_text": "nats per byte", "packages": "% wrong", "digits": "% wrong"}


def check(parser, options):
    """Ends with what is wrong."""
    for name, least in (("ranks", 1), ("steps", 1), ("every", 1), ("seeds", 1), ("bandwidth", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name} is {getattr(options, name)}: {least} or more are taken")
    if options.rate is not None and not 0 < options.rate < math.inf:
        parser.error(f"--rate is {options.rate:g}: a number above 0 is taken")
    known, kind = (METHODS, "method") if options.method else ((*OF_TORCH, *CINCH), "compressor")
    for name in options.method or options.compressor:
        if name not in (*known, "no_exchange"):
            parser.error(f"there is no {kind} {name}; there are no_exchange, {', '.join(known)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=sorted(UNITS), default="text")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--compressor", nargs="+", default=["no_exchange", "dense", "qsgd", "dgc"])
    what.add_argument("--method", nargs="+", help="in the place of compressors: schedules of cinch.torch.Delayed and DiLoCo")
    parser.add_argument("--sites", type=int, choices=(1, 2), default=1, help="2: a fast network within sites, and one link between them")
    parser.add_argument("--latency", type=float, default=50, help="of the link between sites, in milliseconds each way")
    parser.add_argument("--rate", type=float, help="the learning rate; by default the task's")
    parser.add_argument("--optimizer", choices=("adamw", "momentum", "sgd"), help="by default the task's")
    parser.add_argument("--own-data", action="store_true", help="each rank draws from its own part of the data: text alone")
    parser.add_argument("--bandwidth", type=int, default=100)
    parser.add_argument("--congestion", default="cubic", help="TCP's congestion control, whatever this machine's own is")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--extra", type=float, default=0.0, help="compressors train so many times more steps than dense, to come to its loss")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("build/training"))
    options = parser.parse_args()
    check(parser, options)
    if options.method:
        options.compressor = options.method
    if options.own_data and not options.task.endswith("text"):
        parser.error(f"--own-data is for text: {options.task} has no parts that differ")
    if options.ranks % options.sites:
        parser.error(f"{options.ranks} ranks in {options.sites} sites: as many in each are taken")
    if options.bandwidth == 0:
        train_all(Local(options.ranks), options)
        return 0
    missing = missing_for_sites() if options.sites > 1 else [] if os.geteuid() == 0 else ["root: network namespaces are made by root alone"]
    if missing:
        print("\n".join(f"missing: {each}" for each in missing) + "\n--bandwidth 0 does without", file=sys.stderr)
        return CANNOT_RUN
    network = Sites(options.ranks, options.congestion, options.sites) if options.sites > 1 else Network(options.ranks, options.congestion)
    network.clean_leftovers()
    try:
        network.build()
        if options.sites > 1:
            network.join(options.bandwidth, options.latency)
        else:
            network.shape(options.bandwidth)
        train_all(Namespaces(network), options)
    finally:
        network.clean()
    return 0


if __name__ == "__main__":
    sys.exit(main())
