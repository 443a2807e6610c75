"""run.py BUILD_FOLDER [--write] [--only REGEX]: what must not move while the house is rebuilt, as digests in golden.json.

- every compressor of every file of Cinch in the tree, as the checker, the compiler and the emitters write it (`--emit=`)
- payloads and updates of the library, by size and seed, on the CPU and on the emulated GPU
- the help of every command
- diagnostics of every program of tests/lit that is wrong
- exported symbols and layouts of structs of libcinch.so

A change that means to move some of it runs --write (--only: of that part) in a commit of its own, which says why. Without --write, the names of what moved are printed."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
GOLDEN = os.path.join(HERE, "golden.json")
FORMS = ("checked", "ir", "kir", "source", "cu")
SIZES = (0, 1, 31, 1000, 20011)
SEEDS = (0, 12345)


class Tree:
    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        self.cinch = os.path.join(self.build, "bin", "cinch")
        self.environment = dict(os.environ, CINCH_STDLIB=os.path.join(ROOT, "stdlib"), CINCH_TUNING="off", NO_COLOR="1", COLUMNS="80", CINCH_CACHE_DIR=os.path.join(folder, "cache"))

    def run(self, *words):
        done = subprocess.run(words, capture_output=True, cwd=ROOT, env=self.environment)
        text = (done.stdout + done.stderr).replace(ROOT.encode(), b"").replace(self.build.encode(), b"").replace(self.folder.encode(), b"")
        return b"%d\n" % done.returncode + text

    def files(self, *patterns):
        return subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()

    def library(self):
        return [each["name"] for each in json.loads(subprocess.run([self.cinch, "list", "--json"], capture_output=True, check=True).stdout) if each["family"] != "wrap"]


def forms(tree):
    for path in tree.files("*.cinch"):
        if "tests/lit/check" in path or "tests/lit/parse" in path or "corpus" in path:
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            names = re.findall(r"^(?:pub )?compressor (\w+)", file.read(), re.M)
        for name in names:
            for form in FORMS:
                # Not for the processor at hand.
                command = [tree.cinch, "build", f"{path}:{name}", f"--emit={form}", *(["--cpu", "x86-64-v3"] if form == "source" else [])]
                yield f"form {form} {path}:{name}", lambda command=command: tree.run(*command)


def gradient(tree, shape):
    path = os.path.join(tree.folder, "x".join(map(str, shape)) + ".npy")
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + repr({"descr": "<f4", "fortran_order": False, "shape": shape}).ljust(117).encode() + b"\n")
        file.write(struct.pack(f"<{count}f", *((i * 7919 % 2003 - 1001) / 977 * 2.0 ** (i % 13 - 9) for i in range(count))))
    return path


def payload(tree, name, path, seed, device):
    end = f"{name}-{os.path.basename(path)}-{seed}-{device}"
    outputs = [os.path.join(tree.folder, f"{end}.{kind}") for kind in ("payload", "npy")]
    status = tree.run(tree.cinch, "run", name, "--input", path, path, "--seed", str(seed), "--device", device, "--payload", outputs[0], "--output", outputs[1])[:2]
    for output in outputs:
        if os.path.exists(output):
            with open(output, "rb") as file:
                status += hashlib.sha256(file.read()).digest()
    return status


def payloads(tree):
    shapes = [(size,) for size in SIZES] + [(37, 29)]
    paths = {shape: gradient(tree, shape) for shape in shapes}
    for name in tree.library():
        for shape in shapes:
            for seed in SEEDS:
                for device in ("cpu", "emulated") if shape in ((1000,), (37, 29)) else ("cpu",):
                    yield (f"payload {name} {shape} seed {seed} {device}",
                           lambda name=name, path=paths[shape], seed=seed, device=device: payload(tree, name, path, seed, device))


def helps(tree):
    text = tree.run(tree.cinch, "--help").decode()
    yield "help", lambda: text.encode()
    for command in re.findall(r"^  (\w[\w-]*) {2,}", text, re.M):
        yield f"help {command}", lambda command=command: tree.run(tree.cinch, command, "--help")


def diagnostics(tree):
    for path in tree.files("tests/lit/check/*.cinch", "tests/lit/parse/*.cinch", "tests/lit/diagnostics/*"):
        if path.endswith(".cinch"):
            yield f"diagnostics {path}", lambda path=path: tree.run(tree.cinch, "check", path)


def interface(tree):
    library = os.path.join(tree.build, "lib", "libcinch.so")
    yield "symbols", lambda: subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", library], capture_output=True, check=True).stdout
    for header in tree.files("runtime/c_api/cinch*.h"):
        command = ["clang++-19", "-fsyntax-only", "-xc++", "-I", "runtime/c_api", "-Xclang", "-fdump-record-layouts-complete", header]
        # Of system headers nothing is kept.
        layout = lambda command=command: b"\n\n".join(each for each in tree.run(*command).split(b"\n\n") if b"cinch_" in each)  # noqa: E731
        yield f"layouts {header}", layout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tree = Tree(args.build, folder)
        named = [each for part in (forms, payloads, helps, diagnostics, interface) for each in part(tree) if re.search(args.only, each[0])]
        digests = pool.map(lambda each: hashlib.sha256(each[1]()).hexdigest()[:16], named)
        found = dict(zip((name for name, _ in named), digests))
    with open(GOLDEN, encoding="utf-8") as file:
        kept = json.load(file)
    golden = {name: digest for name, digest in kept.items() if re.search(args.only, name)}
    if args.write:
        with open(GOLDEN, "w", encoding="utf-8") as file:
            file.write(json.dumps({name: digest for name, digest in {**kept, **found}.items() if name in found or name not in golden}, indent=0) + "\n")
        return 0
    moved = [name for name in golden.keys() | found.keys() if golden.get(name) != found.get(name)]
    print("\n".join(sorted(moved) + [f"{len(moved)} of {len(golden)} moved"]))
    return 1 if moved or not found else 0


if __name__ == "__main__":
    sys.exit(main())
