"""run.py CINCH [--long]: every program that a release accepted is still accepted.

This folder has one file for each release, with all files of Cinch that its tree had and its `cinch check` accepted. A line `//// PATH NAME…` begins
each of them, and names the compressors that it could compile alone. They are data: nobody adapts them to a language that has changed. `check` takes
all files; with --long, or CINCH_LONG, the compressors are compiled for the CPU, too, and written as CUDA.

    run.py CINCH --keep NAME    writes NAME.txt from the tree of today, before a release"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
HEAD = "//// "


def build(cinch, path, name, form):
    return [cinch, "build", f"{path}:{name}", f"--emit={form}", "--output", "/dev/null"]


def keep(cinch, name):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.cinch"], capture_output=True, text=True, check=True).stdout.split("\n")
    with open(os.path.join(HERE, f"{name}.txt"), "w", encoding="utf-8", newline="") as file:
        for path in filter(None, listed):
            with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace", newline="") as program:
                text = program.read()
            # Headers of C++ are not kept.
            if not text.isascii() or "\r" in text or HEAD in text or "extern fn" in text:
                continue
            if subprocess.run([cinch, "check", path], cwd=ROOT, capture_output=True).returncode != 0:
                continue
            names = re.findall(r"^(?:pub )?compressor (\w+)", text, re.M)
            names = [each for each in names if subprocess.run(build(cinch, path, each, "kir"), cwd=ROOT, capture_output=True).returncode == 0]
            file.write(f"{HEAD}{' '.join([path, *names])}\n{text.rstrip()}\n")


def unpack(path, folder):
    """Writes the files of a release below a folder. Returns (path, names) of each."""
    found = []
    with open(path, encoding="utf-8") as file:
        for part in file.read().split(HEAD)[1:]:
            head, text = part.split("\n", 1)
            name, *compressors = head.split()
            found.append((os.path.join(folder, name), compressors))
            os.makedirs(os.path.dirname(found[-1][0]), exist_ok=True)
            with open(found[-1][0], "w", encoding="utf-8") as program:
                program.write(text)
    return found


def commands(cinch, path, names, is_long):
    yield [cinch, "check", path]
    for name in names if is_long else ():
        yield build(cinch, path, name, "object")
        yield build(cinch, path, name, "cu")


def faults_of(cinch, path, names, is_long):
    for command in commands(cinch, path, names, is_long):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            yield f"{' '.join(command[1:])}: status {done.returncode}\n{done.stderr}"


def main():
    cinch = os.path.abspath(sys.argv[1])
    if "--keep" in sys.argv:
        return keep(cinch, sys.argv[sys.argv.index("--keep") + 1])
    is_long = "--long" in sys.argv or os.environ.get("CINCH_LONG", "") not in ("", "0")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        releases = sorted(name for name in os.listdir(HERE) if name.endswith(".txt"))
        files = [file for name in releases for file in unpack(os.path.join(HERE, name), os.path.join(folder, name[:-4]))]
        faults = [fault for found in pool.map(lambda file: list(faults_of(cinch, *file, is_long)), files) for fault in found]
    print("\n".join(faults) or f"{len(files)} files are accepted")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
