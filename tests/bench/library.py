"""The last part of the page: the programs beside which no loops were written by hand, with floors and PyTorch."""
import datetime
import subprocess
import sys

import peers
from floors import bench, label, share
from programs import LIBRARY, Measured

HEADING = "## The rest of the library"
ELEMENTS = 1 << 24
CHECKED_ELEMENTS = 1 << 20  # eager sketches take seconds a call
CODEC_HEAD = ["| program | encode ms | GB/s | of the floor | floor | PyTorch / Cinch | decode ms | of the floor | PyTorch / Cinch |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
SYNC_HEAD = ["| program | sync ms | GB/s | of the floor | floor | PyTorch / Cinch | PyTorch's hook / Cinch |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
SELECTORS = [Measured(name, {"ratio": 0.001}, 0.5, 0.8, 4) for name in ("sidco", "topk")]
CALLS_BEFORE = 100  # sidco looks at the number of its stages after every five


def floor_text(report, call):
    figures = report[call]
    moved = (figures["floor_bytes_read"] + figures["floor_bytes_written"]) / report["elements"]
    return f"{figures['floor_sweeps']} sweeps, {moved:.2f} B"


def floor_share(measured, report, call):
    return share(report[call]["floor_share"], measured.floor(call) or 0)


def codec_row(measured, floors, others):
    encode, decode = floors["encode"], floors["decode"]
    cells = [label(measured), f"{encode['ms']:.2f}", f"{encode['gb_per_s']:.1f}", floor_share(measured, floors, "encode"),
             floor_text(floors, "encode"), peers.ratio(others["encode"], "torch", measured.torch), f"{decode['ms']:.2f}",
             floor_share(measured, floors, "decode"), peers.ratio(others["decode"], "torch", measured.torch)]
    return "| " + " | ".join(cells) + " |"


def sync_row(measured, floors, others):
    sync = floors["sync"]
    cells = [label(measured), f"{sync['ms']:.2f}", f"{sync['gb_per_s']:.1f}", floor_share(measured, floors, "sync"), floor_text(floors, "sync"),
             peers.ratio(others["sync"], "torch", measured.torch), peers.ratio(others["sync"], "hook", measured.hook or 0)]
    return "| " + " | ".join(cells) + " |"


def tables(cinch, comparison, seconds):
    """Rows by the calls that they show."""
    rows = {("encode", "decode"): [], ("sync",): []}
    small = peers.Comparison(comparison.build, CHECKED_ELEMENTS, peers.cores())
    for measured in LIBRARY:
        small.check(measured)
        floors, others = bench(cinch, measured, comparison.elements, seconds), comparison.time(measured, 3 * seconds)
        make_row = sync_row if "sync" in measured.calls else codec_row
        rows[measured.calls].append(make_row(measured, floors, others))
        print(rows[measured.calls][-1], file=sys.stderr, flush=True)
    return rows


def selectors_text(comparison, seconds):
    times = comparison.compare_encodes(SELECTORS, 3 * seconds, CALLS_BEFORE)
    sidco, topk = times["sidco"], times["topk"]
    figures = (f"`sidco` encodes in {sidco:.2f} ms where exact `topk` takes {topk:.2f} ms, both at ratio=0.001, in turns, after {CALLS_BEFORE} calls "
               f"each. That is {topk / sidco:.2f} times the speed.")
    if sidco < topk:
        return figures
    return figures + (" The reason: a fit with s stages needs at least s + 1 sweeps. The first takes the moments of all magnitudes, each further one those "
                      "of the elements above the last threshold, and the last one selects. [Exact selection](../notes/fusion.md#exact-selection) guided by "
                      "a sample needs one sweep if k is small, so the estimate has nothing left to save.")


def text(cinch, seconds):
    comparison = peers.Comparison(cinch.resolve().parents[1], ELEMENTS, peers.cores())
    rows = tables(cinch, comparison, seconds)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=peers.ROOT, capture_output=True, text=True).stdout.strip()
    return [f"{HEADING}: {ELEMENTS} elements", "",
            f"Measured {datetime.date.today()} at or after commit {commit}, {seconds} s for each call (`./dev bench --library`). Floors and shares are as "
            "above.", "",
            "- **PyTorch / Cinch** is PyTorch's time over Cinch's, for the same algorithm in eager operations "
            "([`torch_quantize.py`](../../tests/bench/torch_quantize.py), [`torch_select.py`](../../tests/bench/torch_select.py), "
            "[`torch_transform.py`](../../tests/bench/torch_transform.py)). In PyTorch, `qsgd_elias` is only encoded.",
            f"- **Agreement.** Before that, the decoded gradients of {CHECKED_ELEMENTS} elements are compared. If both draw alike, or draw nothing, their "
            "distance is compared; otherwise their length and their loss.",
            "- **Floors count bytes.** They contain neither the arithmetic of a transform nor scattered reads, each of which takes a cache line (`randomk`, "
            "`count_sketch`). Bodies of loops count as often as they run (`redsync`, `sidco`).", "",
            *CODEC_HEAD, *rows[("encode", "decode")], "",
            "Programs with a `sync` body are called on one rank, where nothing is reduced. The buffers of a collective are in memory all the same, and "
            "count in the floor. `powersgd` has a square matrix and rank 4. It is compared with PyTorch's own hook too "
            "(`torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`), on a bucket with that matrix, in a group of one process.", "",
            *SYNC_HEAD, *rows[("sync",)], "",
            selectors_text(comparison, seconds), ""]
