"""run.py CINCH: Memcheck finds no use of undefined values in kernels, for the library's programs, on two levels of vectors.

Kernels are compiled before, since LLVM's own code has such uses. Three lengths: tiles that end within a vector, and within a word of packed bits.
Ends with status 77 where there is no valgrind."""
import concurrent.futures
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

LEVELS = ("x86-64", "x86-64-v3")  # Memcheck knows no AVX-512
SHAPES = ((3001,), (1025,), (41, 30))
ENVIRONMENT = dict(os.environ, CINCH_CACHE="off")


def gradient(path, shape):
    """Values of both signs that differ, as a .npy file."""
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape})
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n")
        file.write(struct.pack(f"<{count}f", *((i * 7919 % 2003 - 1001) / 977 for i in range(count))))


def run(words):
    return subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)


def fault_of(cinch, folder, name, level):
    image = os.path.join(folder, f"{name}-{level}.image")
    built = run([cinch, "build", name, "--emit=image", "--target", f"cpu:{level}", "--output", image])
    if built.returncode != 0:
        return f"{name} at {level}: not built\n{built.stderr[:3000]}"
    for shape in SHAPES:
        path = os.path.join(folder, f"{len(shape)}-{shape[0]}.npy")
        done = run(["valgrind", "-q", "--error-exitcode=9", "--track-origins=yes", cinch, "run", image, "--input", path, path])
        if done.returncode != 0:
            return f"{name} at {level}, {shape}: status {done.returncode}\n{done.stderr[:3000]}"
    return None


def main():
    if shutil.which("valgrind") is None:
        print("there is no valgrind")
        return 77
    cinch = os.path.abspath(sys.argv[1])
    names = [each["name"] for each in json.loads(run([cinch, "list", "--json"]).stdout) if each["family"] != "wrap"]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for shape in SHAPES:
            gradient(os.path.join(folder, f"{len(shape)}-{shape[0]}.npy"), shape)
        pairs = [(name, level) for name in names for level in LEVELS]
        faults = list(filter(None, pool.map(lambda pair: fault_of(cinch, folder, *pair), pairs)))
    print("\n".join(faults) or f"{len(names)} programs at {len(LEVELS)} levels")
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
