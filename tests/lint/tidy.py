#!/usr/bin/env python3
"""clang-tidy over our sources.

    tidy.py BUILD             everything
    tidy.py BUILD FILE…       these files: sources, and those that include them
    tidy.py BUILD --last N    the sources that the last N commits changed, and for each changed header one that includes it
    tidy.py BUILD --test      tries itself on a planted finding

BUILD is a configured build folder (its compile_commands.json is read) with the targets own_declarations and
list_includes built.
Sources with the same options are checked as one translation unit, because nearly all time goes into headers of
others; sources whose file-local names clash go into another unit. A changed header counts for every source of ours
that includes it, directly or through other headers. What was found is kept in BUILD/tidy by a hash of all that a unit
is made of. Exit status 1 when anything was found.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from includes import list_includes

ROOT = Path(__file__).resolve().parents[2]
TIDY = "clang-tidy-19"
CONFIG = ROOT / ".clang-tidy"
PLUGIN = "libown_declarations.so"
PLUGIN_SOURCES = ["own_declarations.cpp"]
SOURCES_PER_UNIT = 16
# In tests an empty optional is a failed test, and a growing vector costs nothing; values may have names similar to
# those of parameters.
OFF_IN_TESTS = ("-bugprone-unchecked-optional-access,-performance-inefficient-vector-operation,"
                "-readability-suspicious-call-argument")
# Folders that includes of ours start from: the root, and where headers for users lie.
INCLUDE_FOLDERS = [ROOT, ROOT / "runtime" / "c_api"]


def read_commands(build):
    """{(is a test, options): [source]} of our own sources; generated ones are left out."""
    groups = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if build in source.parents or ROOT not in source.parents or source.suffix != ".cpp":
            continue
        options, words = [], iter(shlex.split(entry["command"])[1:])
        for word in words:
            if word == "-o":
                next(words)
            elif word != "-c" and Path(entry["directory"], word).resolve() != source:
                options.append(word)
        sources = groups.setdefault((ROOT / "tests" in source.parents, tuple(options)), [])
        if source not in sources:
            sources.append(source)
    return groups


class IncludedFiles:
    """Which files of ours a source includes, directly or through other headers."""

    def __init__(self, build, sources):
        self.direct = {}  # by file
        new = set(sources)
        while new:
            for path, includes in list_includes(build, sorted(new)).items():
                self.direct[path] = {found for include in includes for found in self.find(path, include.name)}
            new = set().union(*(self.direct[path] for path in new)) - self.direct.keys()

    @staticmethod
    def find(path, name):
        places = [folder / name for folder in [*INCLUDE_FOLDERS, path.parent]]
        return [place for place in places if place.is_file()]

    def of(self, source):
        seen, waiting = set(), [source]
        while waiting:
            new = self.direct[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen


def keep_touched(groups, files, included):
    """The groups with only those sources that are in `files` or include one of them."""
    kept = {}
    for key, sources in groups.items():
        touched = [s for s in sources if s in files or included.of(s) & files]
        if touched:
            kept[key] = touched
    return kept


def changed_by_last(num_commits):
    """Files that the last commits changed and that still exist; in a checkout without that history, all that it has."""
    names = subprocess.run(["git", "log", f"-{num_commits}", "--first-parent", "-m", "--name-only", "--format="], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split("\n")
    return {ROOT / name for name in names if name.endswith((".cpp", ".h")) and (ROOT / name).is_file()}


def keep_one_for_each(groups, files, included):
    """The groups with the sources in `files`, and for each header in `files` that they do not include one source that does."""
    sources = [(key, source) for key, all_of_key in groups.items() for source in all_of_key]
    kept = {source for _, source in sources if source in files}
    met = {header for source in kept for header in included.of(source)}
    for header in sorted(files - met):
        includer = next((s for _, s in sources if header in included.of(s)), None)
        if includer and header not in met:
            kept.add(includer)
            met |= included.of(includer)
    return {key: [s for s in all_of_key if s in kept] for key, all_of_key in groups.items() if kept & set(all_of_key)}


class Unit:
    """Sources checked together, by a file that includes them all."""

    def __init__(self, is_test, options, sources):
        self.is_test, self.options, self.sources = is_test, options, sources

    def key(self, common, included):
        """A hash of all that the findings depend on."""
        state = hashlib.sha256(repr((common, self.is_test, self.options, self.sources)).encode())
        files = set(self.sources)
        for source in self.sources:
            files |= included.of(source)
        for path in sorted(files):
            state.update(f"{path}\0".encode() + path.read_bytes() + b"\0")
        return state.hexdigest()

    def check(self, path, plugin):
        """What clang-tidy prints; `path` is a file to write the unit to."""
        path.write_text("".join(f'#include "{s}"\n' for s in self.sources))
        checks = ["--checks", OFF_IN_TESTS] if self.is_test else []
        run = subprocess.run([TIDY, "--quiet", "--load", str(plugin), "--config-file", str(CONFIG), *checks, str(path),
                              "--", *self.options], capture_output=True, text=True)
        if run.returncode != 0 and "error:" not in run.stdout:
            raise RuntimeError(f"{TIDY} failed: {run.stderr}")
        return run.stdout

    def clashing(self, text):
        """Sources that do not compile behind the ones before them."""
        named = {Path(m) for m in re.findall(r"^([^\s:]+):\d+:\d+: error:.*\[clang-diagnostic-error\]$", text, re.M)}
        if not named or len(self.sources) == 1:
            return []
        return [s for s in self.sources[1:] if s in named] or self.sources[1:]

    def split(self, clashing):
        left = [s for s in self.sources if s not in clashing]
        return [Unit(self.is_test, self.options, part) for part in (left, clashing)]


class Run:
    """Checks units until none is left; what was found before is not looked for again."""

    def __init__(self, build, included):
        self.included = included
        self.folder = build / "tidy"
        self.folder.mkdir(exist_ok=True)
        self.plugin = build / "lib" / PLUGIN
        version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
        plugin_source = "".join((Path(__file__).parent / name).read_text() for name in PLUGIN_SOURCES)
        self.common = version + CONFIG.read_text() + OFF_IN_TESTS + plugin_source
        self.lock = threading.Lock()
        self.shown, self.used = set(), set()
        self.num_units, self.num_kept = 0, 0

    def found(self, unit):
        key = unit.key(self.common, self.included)
        kept = self.folder / f"{key}.txt"
        self.used.add(kept.name)
        if kept.exists():
            with self.lock:
                self.num_kept += 1
            return kept.read_text()
        source = self.folder / f"{key}.cpp"
        text = unit.check(source, self.plugin)
        source.unlink()
        kept.write_text(text)
        return text

    def check(self, unit):
        """Shows what was found in a unit, once (headers are met by several); gives the units still to be checked."""
        text = self.found(unit)
        clashing = unit.clashing(text)
        if clashing:
            return unit.split(clashing)
        with self.lock:
            self.num_units += 1
            for finding in re.split(r"^(?=\S+:\d+:\d+: (?:warning|error):)", text, flags=re.M):
                if "error:" in finding and finding not in self.shown:
                    self.shown.add(finding)
                    print(finding.rstrip(), flush=True)
        return []

    def check_all(self, units, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(self.check, unit) for unit in units}
            while waiting:
                done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    waiting |= {pool.submit(self.check, unit) for unit in future.result()}

    def forget_unused(self):
        for path in self.folder.iterdir():
            if path.name not in self.used:
                path.unlink()


def make_units(groups):
    """Units of about the same size, at most SOURCES_PER_UNIT."""
    units = []
    for (is_test, options), sources in groups.items():
        num_parts = -(-len(sources) // SOURCES_PER_UNIT)
        for part in range(num_parts):
            begin, end = (len(sources) * p // num_parts for p in (part, part + 1))
            units.append(Unit(is_test, options, sources[begin:end]))
    return sorted(units, key=lambda unit: -len(unit.sources))


def planted_texts():
    """(text, what is shown of its one finding, or None), of sources that are checked one after the other."""
    naming = "1:6: error: invalid case style for function 'Planted'"
    complexity = "[readability-function-cognitive-complexity"

    def nested(depth):
        return "{\n" + "if (x > 0) {\n" * depth + "++x;\n" + "}\n" * depth + "}"

    return [("void Planted() {}\n", naming), ("void Planted() {}\n", naming), ("void planted() {}\n", None),
            ("void planted(int x) " + nested(9) + "\n", None),
            ("void planted(int x) " + nested(10) + "\n", complexity)]


def self_test(build):
    """A planted finding is an exit status of 1, also when it is known already; its source mended, the status is 0."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        source, made = Path(folder, "tests", "planted.cpp"), Path(folder, "build")
        source.parent.mkdir()
        made.mkdir()
        for name in ("lib", "tests"):
            (made / name).symlink_to(build / name)
        (made / "compile_commands.json").write_text(json.dumps(
            [{"directory": folder, "file": str(source), "command": f"c++ -std=c++20 -o planted.o -c {source}"}]))
        before = ""
        for text, finding in planted_texts():
            source.write_text(text)
            run = subprocess.run([sys.executable, __file__, str(made)], capture_output=True, text=True)
            shown = (f"{1 if finding else 0} findings in 1 of 1 sources, 1 units ({1 if text == before else 0} known)",
                     finding or "")
            if run.returncode != (1 if finding else 0) or not all(words in run.stdout for words in shown):
                print(f"clang-tidy: {text.rstrip()} gave status {run.returncode}\n{run.stdout}{run.stderr}")
                return 1
            before = text
    print("clang-tidy: planted findings are found")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--last", type=int, metavar="N")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_intermixed_args()
    start = time.monotonic()
    build = options.build.resolve()
    if options.test:
        return self_test(build)
    groups = read_commands(build)
    total = sum(map(len, groups.values()))
    if total == 0:
        print(f"clang-tidy: {build}/compile_commands.json names no source of ours")
        return 1
    included = IncludedFiles(build, [source for sources in groups.values() for source in sources])
    if options.files:
        groups = keep_touched(groups, {f.resolve() for f in options.files}, included)
    if options.last is not None:
        groups = keep_one_for_each(groups, changed_by_last(options.last), included)
    run = Run(build, included)
    run.check_all(make_units(groups), options.jobs)
    if not options.files and options.last is None:
        run.forget_unused()
    checked = sum(map(len, groups.values()))
    print(f"clang-tidy: {len(run.shown)} findings in {checked} of {total} sources, {run.num_units} units "
          f"({run.num_kept} known), {time.monotonic() - start:.0f} s")
    return 1 if run.shown else 0


if __name__ == "__main__":
    sys.exit(main())
