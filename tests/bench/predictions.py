"""predictions.py CINCH [MODEL:RANKS:PROGRAM,…]…: steps that `cinch plan` predicts beside steps that ran, over loopback's shaped links.

Each case is planned once for 100 Mbit/s, 1 and 10 Gbit/s (50 us), with speeds measured for its number of ranks. Then each program's best single plan runs
behind the same backward pass, and so does what was chosen: medians of the slowest rank. Nothing else should run; a first step touches memory and is left out.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROFILES = Path(__file__).resolve().parent / "profiles"
STEPS = 6


def run(cinch, *words):
    done = subprocess.run([cinch, *map(str, words), "--json"], capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def step_ms(cinch, links, profile, *words):
    return statistics.median(run(cinch, "sync", *words, "--profile", profile, *links, "--steps", STEPS)["all_step_ms"][1:])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cinch, cases = sys.argv[1], sys.argv[2:] or ["vgg16:4:onebit", "gpt2:4:onebit", "resnet101:4:onebit,dgc", "resnet101:8:onebit,dgc"]
    print("| model | ranks | Mbit/s | program | plan | predicted ms | measured ms | off by |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    offs, losses = [], []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            model, ranks, programs = case.split(":")
            profile, speeds, file = PROFILES / f"{model}.csv", Path(folder) / "speeds.json", Path(folder) / "plan.json"
            run(cinch, "plan", "--measure", programs, "--ranks", ranks, "--output", speeds)
            for bandwidth in (100, 1000, 10000):
                links = ["--ranks", ranks, "--bandwidth", bandwidth, "--latency", 50]
                plan = run(cinch, "plan", profile, *links, "--speeds", speeds, "--programs", programs, "--output", file)
                measured = {}
                for single in plan["compared"]:
                    if single["name"] not in programs.split(","):
                        continue
                    lengths = single["lengths"]
                    measured[single["name"]] = step_ms(cinch, links, profile, single["name"], "--plan", single["plan"], "--piece-bytes", single["piece_bytes"], "--lengths", lengths)
                    tell(model, ranks, bandwidth, single["name"], single["plan"], single["predicted_ms"], measured[single["name"]], offs)
                if plan["chosen"] not in measured:
                    chosen = step_ms(cinch, links, profile, "--plan", file)
                    tell(model, ranks, bandwidth, plan["chosen"], "the file", plan["predicted_ms"], chosen, offs)
                else:
                    chosen = measured[plan["chosen"]]
                losses.append(chosen / min(measured.values()) - 1)
    within = sum(abs(off) <= 0.15 for off in offs)
    print(f"\n{within} of {len(offs)} within 15 %; the chosen plan takes at most {100 * max(losses):+.1f} % of the best single plan's time.")


def tell(model, ranks, bandwidth, name, how, predicted, measured, offs):
    offs.append(predicted / measured - 1)
    print(f"| {model} | {ranks} | {bandwidth} | `{name}` | {how} | {predicted:.1f} | {measured:.1f} | {100 * offs[-1]:+.0f} % |", flush=True)


if __name__ == "__main__":
    main()
