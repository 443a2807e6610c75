"""report_page.py CINCH FOLDER: --json has what scripts may rely on, and the page shows the same numbers."""
import json
import math
import os
import subprocess
import sys
import tempfile

from page import read_page

KEYS = {"program", "family", "ratio", "payload_bytes", "relative_error", "exact_tensors", "encode_ms", "decode_ms", "step_ms", "network_ms",
        "plan", "note"}
PROGRAMS = ["onebit", "fp16", "error_feedback(topk(ratio: 0.1))", "powersgd", "oktopk"]

cinch, folder = sys.argv[1:]
with tempfile.TemporaryDirectory() as place:
    path = os.path.join(place, "report.html")
    command = [cinch, "report", folder, "--programs", *PROGRAMS, "--ranks", "3", "--link", "10 Mbit/s", "--seconds", "0.02", "--json", "--html", path]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    page = read_page(path)

assert report["ranks"] == 3 and report["link_bytes_per_second"] == 1.25e6, report
assert report["gradient_bytes"] == 4 * report["elements"] == 4 * sum(tensor["elements"] for tensor in report["tensors"])
rows = report["programs"]
assert sorted(row["program"] for row in rows) == sorted(PROGRAMS) and not report["not_tried"], report["not_tried"]
for row in [*rows, report["uncompressed"]]:
    assert set(row) == KEYS, set(row) ^ KEYS
    assert math.isclose(row["ratio"], report["gradient_bytes"] / row["payload_bytes"])
steps = [row["step_ms"] for row in rows if row["step_ms"] is not None]
assert steps == sorted(steps) and len(steps) == len(PROGRAMS) - 1
assert rows[-1]["program"] == "oktopk" and "sync" in rows[-1]["note"], rows[-1]
by_name = {row["program"]: row for row in rows}
assert by_name["onebit"]["ratio"] > 15 and by_name["fp16"]["relative_error"] < 0.001 < by_name["onebit"]["relative_error"]
assert by_name["powersgd"]["exact_tensors"] == 1 and by_name["powersgd"]["decode_ms"] is None
# Of the plain gradients every rank sends at least 2 (P - 1) / P, of which a link moves so many a second.
assert report["uncompressed"]["step_ms"] >= 1e3 * 4 / 3 * report["gradient_bytes"] / 1.25e6
assert by_name["onebit"]["step_ms"] < report["uncompressed"]["step_ms"] / 4

points = page.shapes["circle"]
assert len(points) == len(PROGRAMS)
bars = [float(bar["data-amount"]) for bar in page.with_attribute("data-amount")]
assert len(bars) == len(PROGRAMS) and bars == sorted(bars), bars  # one has no prediction, and no program is one
for word in [*PROGRAMS, "none (f32)", *(tensor["name"] for tensor in report["tensors"])]:
    assert word in page.text, word
print("report and page agree")
