"""gpu_run.py FOLDER RESULTS: tests/gpu/run, as tests/gpu/prepare.py put it into FOLDER, with all its calls on the emulated GPU, in an empty root of a
Debian that is newer than the one that Cinch is built on. What needs no GPU, PyTorch or tool of NVIDIA's passes there, what does is told of, and
nothing of ours stands in for what the root has of its own."""
import pathlib
import shutil
import subprocess
import sys

import empty_root

PASSED = ["bench", "tuning-blocks_per_multiprocessor=8", "tuning-blocks_per_multiprocessor=1024", "tuning-one_launch_elements=65536", "bench-bf16",
          "bench-shifted", "same-bits", "same-bits-rest", "ranks", "again", "bench-all"]
ABSENT = ["nvrtc", "torch-compile", "torch-sessions", "ncu-onebit", "ncu-minmax", "ncu-threshold", "sanitizer-memcheck", "sanitizer-racecheck", "sanitizer-synccheck",
          "sanitizer-initcheck", "cub", "torch-eager", "ranks-nccl", "ranks-nccl-shared", "ranks-mpi", "nccl", "nccl-shared", "torch", "huge"]
ENVIRONMENT = [f"PATH={empty_root.PATH}", "HOME=/root", "DEVICE=emulated", "LARGE=3000", "SMALL=200",
               "BENCH_OPTIONS=--tensors 3 --shrink 300000 --memory-mib 64 --seconds 0"]
# Modules that the copied Python files import, but that are neither copied nor part of Python.
IMPORTS = """
import ast, pathlib, sys
ours = {path.stem for path in pathlib.Path("/taken").glob("*.py")} | {"cinch"}
for path in sorted([*pathlib.Path("/taken").glob("*.py"), *pathlib.Path("/taken/python").rglob("*.py")]):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        for name in {name.split(".")[0] for name in names} - ours - sys.stdlib_module_names:
            print(name)
"""
# Which of our programs' libraries come from the root, and which are missing.
LIBRARIES = "ldd /taken/gpu_check /taken/gpu_bench /taken/gpu_ranks /taken/nccl_check /taken/gpu_compile_plain /taken/libcinch.so $(ls /taken/cinch/libcinch_ucx.so 2>/dev/null)"


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found} instead of {expected}")


def check_libraries(in_root):
    loaded = in_root("sh", "-c", LIBRARIES)
    expect("libraries that are not found", [line for line in loaded.splitlines() if "not found" in line], [])
    cpp = {line.split(" => ")[1].split()[0] for line in loaded.splitlines() if "libstdc++.so" in line or "libgcc_s.so" in line}
    expect("C++ libraries", sorted(path for path in cpp if path.startswith("/taken")), [])


def endings(results):
    """By step: how it ended."""
    lines = [line.removeprefix("-- ").partition(": ") for line in (results / "steps.txt").read_text().splitlines()]
    return {name: how for name, _, how in lines}


def main():
    folder, results = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    root = empty_root.make("trixie", ["python3"])
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)

    def in_root(*words):
        command = empty_root.command(root, folder, results, ["env", "-i", *ENVIRONMENT, *words])
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{words}: status {done.returncode}\n{done.stdout}")
        return done.stdout

    check_libraries(in_root)
    expect("modules of Python that a step needs", set(in_root("python3", "-c", IMPORTS).split()) - {"torch", "numpy", "nvidia", "jax"}, set())
    for call in "123":
        in_root("/taken/run", "/taken", "/results", "--call", call)
    found = endings(results)
    expect("steps that passed", [name for name in PASSED if not found.get(name, "").startswith("exit 0 ")], [])
    expect("steps that are absent", [name for name in ABSENT if not found.get(name, "").startswith("not done: ")], [])
    expect("other steps", sorted(found.keys() - {*PASSED, *ABSENT, "versions"}), [])
    # If the machine's C++ library does not suffice, the copied one does.
    in_root("sh", "-ec", "rm /usr/lib/*/libstdc++.so.6*; mkdir /results/old; /taken/run /taken /results/old --only same-bits")
    expect("without a C++ library", endings(results / "old").get("same-bits", "")[:7], "exit 0 ")
    print(f"{len(PASSED)} steps passed, {len(ABSENT)} are absent")


main()
