"""prepare.py BUILD FOLDER [--arch sm_90] [--only NAME,...] [--sizes N,...] [--nvcc NVCC]: the folder that tests/gpu/run takes along to a
machine with a GPU: programs as images (one for the GPU, one for its CPU side), the programs that run them, the libraries that a bare
machine lacks, and what the benchmarks need: plain loops, bytes that calls have to move at each size (bench.tsv), a list of tensors, peers."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "bench"))
from programs import PROGRAMS as MEASURED  # noqa: E402

MOST_BYTES = 60 << 20
PROGRAMS = ["gpu_check", "gpu_bench", "gpu_ranks", "nccl_check", "gpu_compile_plain"]
SIZES = "65536,1048576,16777216,134217728"
# As they are in the tree.
TAKEN = ["tests/gpu/run", "tests/gpu/data/bert_large.csv", "tests/gpu/gpu_torch_peers.py", "tests/gpu/cub_peers.cu", "tests/gpu/report.py",
         "tests/gpu/torch_sessions.py", "tests/gpu/torch_training.py", "tests/gpu/plain_loops.cu", "tests/bench/cinch_abi.py", "tests/bench/peer.py", "tests/bench/programs.py",
         *(f"tests/bench/torch_{part}.py" for part in ("bits", "peers", "quantize", "select", "transform"))]
# Libraries that every Linux has, or must provide itself.
OF_THE_MACHINE = re.compile(r"^(ld-linux|linux-vdso|lib(c|m|dl|pthread|rt|util|resolv)\.so)")
# The machine's own modules may need a newer one than ours, and a process has only one: tests/gpu/run uses ours if the machine's does not suffice.
FALLBACK = "fallback"
OF_CPP = re.compile(r"^lib(stdc\+\+|gcc_s)\.so")


def names(cinch):
    listed = subprocess.run([cinch, "list", "--json"], check=True, capture_output=True, text=True).stdout
    # A wrapper is no program: `paper` and payload are its inner compressor's.
    return [entry["name"] for entry in json.loads(listed) if entry["family"] != "wrap"]


def libraries(program):
    found = {}
    for line in subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match and not OF_THE_MACHINE.match(match[1]):
            found[match[1]] = match[2]
    return found


def sets(settings):
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def explained_of(cinch, measured, elements):
    command = [cinch, "explain", measured.name, "--elements", str(elements), "--json", *sets(measured.settings)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def constants_of(cinch, measured):
    """Those settings that an image is compiled with."""
    constants = {each["name"] for each in explained_of(cinch, measured, 1024)["parameters"] if each["constant"]}
    return {name: value for name, value in measured.settings.items() if name in constants}


def bench_lines(cinch, measured, elements):
    """As gpu_bench reads them: what a call has to move at least, and what its kernels move, in bytes."""
    explained = explained_of(cinch, measured, elements)
    constants = constants_of(cinch, measured)
    bound = [f"{name}={value}" for name, value in measured.settings.items() if name not in constants]
    for call in ("encode", "decode"):
        cost = explained[call]
        floor = [cost["floor_sweeps"], *(round(cost[f"floor_{kind}_per_element"] * elements) for kind in ("read", "written"))]
        moved = [cost["bytes_read_least"], cost["bytes_written_least"]]
        yield "\t".join(map(str, [measured.name, ",".join(bound) or "-", elements, call, *floor, *moved])) + "\n"


def take_benchmarks(build, cinch, options, wanted):
    compiler = build / "tests" / "gpu_compile_plain"
    subprocess.run([compiler, HERE / "plain_loops.cu", options.arch, options.folder / "plain.kernels"], check=True)
    lines = [line for measured in MEASURED if measured.name in wanted for elements in options.sizes.split(",")
             for line in bench_lines(cinch, measured, int(elements))]
    (options.folder / "bench.tsv").write_text("".join(lines))
    text = ["--emit=source", "--target", f"cuda:{options.arch.replace('emulated', 'sm_90')}"]
    subprocess.run([cinch, "build", "onebit", *text, "--output", options.folder / "onebit.cu"], check=True)
    for path in TAKEN:
        shutil.copy2(ROOT / path, options.folder / pathlib.Path(path).name)
    if options.nvcc:
        subprocess.run([options.nvcc, "-O3", "-std=c++17", f"-arch={options.arch}", *options.nvcc_flags.split(), "-o",
                        options.folder / "cub_peers", HERE / "cub_peers.cu"], check=True)


def take(source, folder, fallback):
    """A program or library, and beside it what it needs that is not the machine's."""
    subprocess.run(["strip", "--strip-unneeded", "-o", folder / source.name, source], check=True)
    for library, path in libraries(source).items():
        shutil.copy2(path, (fallback if OF_CPP.match(library) else folder) / library)


def pack_images(folder):
    """They are most of the folder, and half as large in one file; tests/gpu/run unpacks them."""
    images = sorted(folder.glob("*.image"))
    with tarfile.open(folder / "images.tar.gz", "w:gz") as packed:
        for image in images:
            packed.add(image, image.name)
            image.unlink()


def take_python(build, folder):
    """For PyTorch: the Python package and libcinch.so, which looks into `cinch` beside itself for what it needs and opens."""
    shutil.copytree(ROOT / "runtime" / "python" / "cinch", folder / "python" / "cinch", ignore=shutil.ignore_patterns("__pycache__"))
    opened = folder / "cinch"
    opened.mkdir()
    take(build / "lib" / "libcinch.so", opened, folder / FALLBACK)
    (opened / "libcinch.so").rename(folder / "libcinch.so")
    for module in (build / "lib").glob("libcinch_ucx.so"):
        take(module, opened, folder / FALLBACK)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--cpu", default="x86-64-v3")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=SIZES, help="elements that benchmarks measure")
    parser.add_argument("--nvcc", help="also compiles cub_peers.cu, for a machine with a GPU and no nvcc")
    parser.add_argument("--nvcc-flags", default="")
    options = parser.parse_args()
    build = pathlib.Path(options.build)
    cinch = str(build / "bin" / "cinch")
    shutil.rmtree(options.folder, ignore_errors=True)
    (options.folder / FALLBACK).mkdir(parents=True)
    wanted = [name for name in options.only.split(",") if name] or names(cinch)
    target = options.arch if options.arch == "emulated" else f"cuda:{options.arch}"
    constants = {measured.name: constants_of(cinch, measured) for measured in MEASURED if measured.name in wanted}
    for name in wanted:
        for kind, made_for in (("gpu", target), ("cpu", f"cpu:{options.cpu}")):
            image = options.folder / f"{name}.{kind}.image"
            subprocess.run([cinch, "build", name, *sets(constants.get(name, {})), "--emit=image", "--target", made_for, "--output", image], check=True)
    for program in PROGRAMS:
        take(build / "tests" / program, options.folder, options.folder / FALLBACK)
    # Opened where the machine has an MPI of its own.
    for module in (build / "lib").glob("libcinch_mpi.so"):
        shutil.copy2(module, options.folder / module.name)
    take_python(build, options.folder)
    take_benchmarks(build, cinch, options, wanted)
    if options.arch != "emulated":
        pack_images(options.folder)
    size = sum(file.stat().st_size for file in options.folder.rglob("*") if file.is_file())
    print(f"{options.folder}: {len(wanted)} programs, {size / (1 << 20):.1f} MiB")
    # Files for an emulated GPU stay here; with sanitizers it is larger.
    if options.arch != "emulated" and size > MOST_BYTES:
        sys.exit(f"at most {MOST_BYTES >> 20} MiB can be taken along")


main()
