"""bench_test.py BUILD FOLDER: gpu_bench on the emulated GPU, at tiny sizes: every figure that it should give is there, and what does not
fit is said to be left out. What the figures are means nothing here."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
from programs import PROGRAMS  # noqa: E402

FITS, TOO_LARGE, TENSORS = 3000, 1 << 20, 30
CALLS = ["decode", "encode"]


def prepare(build, folder):
    command = [sys.executable, HERE / "prepare.py", build, folder, "--arch", "emulated", "--sizes", f"{FITS},{TOO_LARGE}"]
    subprocess.run([*command, "--only", ",".join(each.name for each in PROGRAMS)], check=True)


def measure(folder):
    figures = folder / "bench.jsonl"
    command = [folder / "gpu_bench", folder, "--device", "emulated", "--json", figures, "--tensors", str(TENSORS), "--shrink", "300000", "--memory-mib", "3",
               "--seconds", "0"]
    subprocess.run(command, check=True)
    return [json.loads(line) for line in figures.read_text().splitlines()]


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found} instead of {expected}")


def check(lines):
    def all_of(what):
        return [line for line in lines if line["what"] == what]

    names = [each.name for each in PROGRAMS]
    expect("machines", [line["device"] for line in all_of("machine")], ["emulated GPU"])
    expect("plain loops", [(line["loop"], line["elements"]) for line in all_of("plain")], [(loop, FITS) for loop in ("copy", "read", "write")])
    expect("calls", [(line["program"], line["elements"], line["call"]) for line in all_of("call")],
           [(name, FITS, call) for name in names for call in CALLS])
    expect("left out", [(line["program"], line["elements"]) for line in all_of("skipped")], [(name, TOO_LARGE) for name in ["plain", *names]])
    expect("lists", [(line["tensors"], line["call"]) for line in all_of("list")], [(TENSORS, call) for call in reversed(CALLS)])
    for line in all_of("call"):
        own = {key: line[key] for key in ("ms", "floor_ms", "floor_bytes", "moved_bytes", "payload_bytes", "launches")}
        expect(f"figures of {line['program']}", [key for key, value in own.items() if value <= 0], [])
    fp16 = next(line for line in all_of("call") if line["program"] == "fp16")
    expect("payload of fp16", fp16["payload_bytes"], 64 + 2 * FITS)
    expect("floor of fp16", fp16["floor_bytes"], 6 * FITS)


def check_report(folder, lines):
    """The page that is made of the figures has a row for each call."""
    made = subprocess.run([sys.executable, HERE / "report.py", folder], check=True, capture_output=True, text=True).stdout
    for line in lines:
        if line["what"] == "call":
            rows = [row for row in made.splitlines() if row.startswith(f"| `{line['program']}`") and f"| {line['call']} | {line['ms']:.4f}" in row]
            expect(f"rows of {line['program']} {line['call']}", len(rows), 1)
    expect("lists in the page", made.count(f"of {TENSORS} tensors"), len(CALLS))


def check_tensors(folder):
    rows = [line.split(",") for line in (folder / "bert_large.csv").read_text().splitlines() if not line.startswith("#")]
    expect("tensors of BERT-large", (len(rows) - 1, sum(int(row[1]) for row in rows[1:])), (391, 334100482))


def main():
    build, folder = map(pathlib.Path, sys.argv[1:3])
    prepare(build, folder)
    check_tensors(folder)
    lines = measure(folder)
    check(lines)
    check_report(folder, lines)
    print("every line is there")


main()
