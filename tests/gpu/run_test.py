"""run_test.py FOLDER RESULTS: tests/gpu/run, as prepare.py put it into FOLDER, on the emulated GPU: its three calls leave few files with all
that they should hold, what is not there is told of and fails nothing, failures are told of, and a call that is cut off keeps what it has.
NVIDIA's tools are doubles here that run the program they are given."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import time

MOST_FILES, MOST_BYTES = 8, 16 << 20
DOUBLES = {
    # Options up to the program, which begins with a slash.
    "compute-sanitizer": '[ "$2" = memcheck ] || exit 0; while [ "${1#/}" = "$1" ]; do shift; done; exec "$@"',
    "ncu": 'echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1',
    "nvidia-smi": 'echo "emulated"',
    "nvcc": 'echo "no compiler"; exit 1',
    "mpirun": "exit 1",
}


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found} instead of {expected}")


def make_doubles(folder):
    folder.mkdir(parents=True)
    for name, body in DOUBLES.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)


def environment(doubles):
    tiny = "--tensors 3 --shrink 300000 --memory-mib 64 --seconds 0"
    return dict(os.environ, PATH=f"{doubles}:{os.environ['PATH']}", DEVICE="emulated", LARGE="3000", SMALL="200", BENCH_OPTIONS=tiny)


def command(folder, results, *options):
    return ["bash", folder / "run", folder, results, *options]


def endings(results):
    """By step: how it ended."""
    lines = [line.removeprefix("-- ").partition(": ") for line in (results / "steps.txt").read_text().splitlines()]
    return {name: how for name, _, how in lines}


def names_in(results):
    files = list(results.iterdir())
    expect("many or large files", [str(file) for file in files if len(files) > MOST_FILES or file.stat().st_size > MOST_BYTES], [])
    with tarfile.open(results / "results.tar.gz") as archive:
        return {pathlib.PurePath(name).name for name in archive.getnames()}


def check_ended(results, passed, absent, failed=()):
    found = endings(results)
    expect("steps that failed", sorted(name for name, how in found.items() if how.startswith("exit") and not how.startswith("exit 0 ")),
           sorted(failed))
    expect("steps that passed", [name for name in passed if not found.get(name, "").startswith("exit 0 ")], [])
    expect("steps that are absent", [name for name in absent if not found.get(name, "").startswith("not done: ")], [])


def check_calls(folder, results, doubles):
    tuning = [f"tuning-{numbers}" for numbers in ("blocks_per_multiprocessor=8", "blocks_per_multiprocessor=1024", "one_launch_elements=65536")]
    benches = ["bench", *tuning, "bench-bf16", "bench-shifted"]
    subprocess.run(command(folder, results, "--call", "1"), check=True, env=environment(doubles))
    check_ended(results, [*benches, "same-bits", "same-bits-rest"], ["ncu-onebit", "ncu-threshold"])
    expect("call 1 leaves", {"nvrtc.txt", "torch-compile.txt", "machine.txt", *(f"{name}.jsonl" for name in benches)} - names_in(results), set())
    expect("rows of the report", (results / "report.md").read_text().count("| `onebit` |"), 4)
    # The next call adds to the results. A failure is reported, and the others run.
    code = subprocess.run(command(folder, results, "--call", "2"), env=environment(doubles)).returncode
    sanitizers = [f"sanitizer-{name}" for name in ("memcheck", "racecheck", "synccheck", "initcheck")]
    check_ended(results, [*benches, *sanitizers, "ranks"], ["cub", "nccl", "nccl-shared", "ranks-mpi"], ["cub-build"])
    expect("status of a call with a failed step", code, 1)
    subprocess.run(command(folder, results, "--call", "3"), check=True, env=environment(doubles))
    check_ended(results, ["again", "bench-all"], ["huge", "torch"], ["cub-build"])
    expect("calls leave", {"bench.jsonl", "sanitizer-memcheck.txt", "bench-all.jsonl"} - names_in(results), set())


def check_cut_off(folder, results, doubles):
    """A step that would take long is ended, and what was done before it stays."""
    (doubles / "compute-sanitizer").write_text("#!/bin/sh\nexec sleep 50\n")
    running = subprocess.Popen(command(folder, results, "--only", "bench,sanitizer"), env=environment(doubles), stdout=subprocess.DEVNULL)
    end = time.monotonic() + 100
    while time.monotonic() < end and not (results / "steps.txt").exists():
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    expect("status of a run that was cut off", running.wait(timeout=20), 143)
    check_ended(results, ["bench"], [])
    expect("kept", {"bench.txt", "bench.jsonl"} - names_in(results), set())


def main():
    folder, results = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    shutil.rmtree(results, ignore_errors=True)
    make_doubles(results / "doubles")
    check_calls(folder, results / "calls", results / "doubles")
    check_cut_off(folder, results / "cut", results / "doubles")
    print("all calls leave what they should")


main()
