"""explain_page.py CINCH PROGRAM…: the page of each program is whole, and its pictures show the numbers of --json."""
import json
import os
import subprocess
import sys
import tempfile

from page import read_page

STRIP = 920.0


def check(cinch, program, folder):
    path = os.path.join(folder, "page.html")
    command = [cinch, "explain", program, "--elements", "1000000", "--json", "--html", path]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    page = read_page(path)
    assert report["compressor"] in page.text
    assert report["summary"] in page.text, report["summary"]
    for claim in report["claims"]:
        assert claim in page.text, claim
    if "payload" in report:
        strip = page.with_attribute("data-bytes")
        total = sum(int(part["data-bytes"]) for part in strip)
        assert total == report["payload"]["bound_bytes"], (program, total)
        at = 0.0
        for part in strip:
            width = float(part["width"])
            assert abs(float(part["x"]) - at) < 0.02 and abs(width - STRIP * int(part["data-bytes"]) / total) < 0.002, part
            at += width
    for call in ("encode", "decode", "finish", "sync"):
        for move in report.get(call, {}).get("move_list", []):
            assert move["does"] in page.text, (program, move)
    drawn = sum(int(line["data-most"]) for line in page.with_attribute("data-most"))
    moved = 0
    for call in ("encode", "decode", "finish", "sync"):
        for kernel in report.get(call, {}).get("kernel_list", []):
            if kernel["number"] is None:
                continue
            assert f"sweep {kernel['number']}" in page.text
            streams = [*kernel["reads"], *kernel["writes"]]
            moved += sum(stream["most"] for stream in streams if stream["kind"] != "workspace" or stream["most"] > 64)
    assert drawn >= moved > 0, (program, drawn, moved)


with tempfile.TemporaryDirectory() as folder:
    for program in sys.argv[2:]:
        check(sys.argv[1], program, folder)
print(f"{len(sys.argv) - 2} pages are whole")
