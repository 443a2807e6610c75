#!/usr/bin/env python3
"""Steps whose gradients become ready while a backward pass runs, beside the longer of that pass and the exchange: prints a table.

    profiles.py CINCH [--models vgg16,bert_base,gpt2] [--programs none,onebit,dgc] [--bandwidths 1000,10000] [--ranks N] [--turns N]

Ranks are threads over loopback with links of that many Mbit/s; gradients are made up. "exchange" is a step whose gradients are all ready when it begins, so what ranks
compute is part of it. "behind" is such a step begun after the backward pass: what readiness saves is the difference. Goal: a step takes at most 1.1 times
the longer one. Nothing fails on time. Nothing else should run.
"""
import argparse
import json
import statistics
import subprocess
from pathlib import Path

PROFILES = Path(__file__).resolve().parent / "profiles"
GOAL = 1.1


def run(options, *arguments):
    command = [options.cinch, "sync", *map(str, arguments), "--ranks", str(options.ranks), "--plan", options.plan, "--timeout", "600", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(options, model, program, bandwidth):
    """Medians over turns, in milliseconds: backward pass, exchange, step."""
    profile = PROFILES / f"{model}.csv"
    given = [program, "--profile", profile, "--bandwidth", bandwidth, "--latency", 50, "--steps", options.steps]
    in_parts, at_once = [], []
    for _ in range(options.turns):
        in_parts.append(run(options, *given))
        at_once.append(run(options, *given, "--at-once"))
    return (statistics.median(r["backward_ms"] for r in in_parts), statistics.median(r["step_ms"] for r in at_once),
            statistics.median(r["step_ms"] for r in in_parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch")
    parser.add_argument("--models", default="vgg16,bert_base,gpt2")
    parser.add_argument("--programs", default="none,onebit,dgc")
    parser.add_argument("--bandwidths", default="1000,10000")
    parser.add_argument("--plan", default="two_shot")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    print("| model | program | Mbit/s | backward ms | exchange ms | step ms | of the longer | behind ms | saved |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in options.models.split(","):
        for program in options.programs.split(","):
            for bandwidth in options.bandwidths.split(","):
                backward, exchange, step = measure(options, model, program, bandwidth)
                behind = backward + exchange
                print(f"| {model} | `{program}` | {bandwidth} | {backward:.1f} | {exchange:.1f} | {step:.1f} | {step / max(backward, exchange):.2f} | {behind:.1f} | "
                      f"{100 * (1 - step / behind):.0f} % |", flush=True)
    print(f"\nGoal: at most {GOAL} of the longer.")


if __name__ == "__main__":
    main()
