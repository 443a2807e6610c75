#!/usr/bin/env python3
"""clang-tidy over our sources.

    tidy.py BUILD                 what changed against the merge base with main (all, where there is no base)
    tidy.py BUILD --base REV      what changed against REV
    tidy.py BUILD --all           everything
    tidy.py BUILD FILE…           these sources

BUILD is a configured build folder (its compile_commands.json is read; nothing needs to be built).
Sources of one folder with the same options are checked as one translation unit, because nearly all time goes into
headers of others; sources whose file-local names clash go into another unit. A changed header counts for every
source of ours that includes it, directly or through other headers. Exit status 1 when anything was found.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIDY, CLANG = "clang-tidy-19", "clang++-19"
SOURCES_PER_UNIT = 12
# In tests an empty optional is a failed test, and a vector that grows costs nothing.
OFF_IN_TESTS = "-bugprone-unchecked-optional-access,-performance-inefficient-vector-operation"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def read_commands(build):
    """{(folder, options): [source]} of our own sources; generated ones are left out."""
    groups = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["directory"], entry["file"]).resolve()
        if build in source.parents or ROOT not in source.parents:
            continue
        options, words = [], iter(shlex.split(entry["command"])[1:])
        for word in words:
            if word == "-o":
                next(words)
            elif word != "-c" and Path(entry["directory"], word).resolve() != source:
                options.append(word)
        sources = groups.setdefault((source.parent, tuple(options)), [])
        if source not in sources:
            sources.append(source)
    return groups


def included_by(source, seen):
    """Adds to `seen` every file of ours that `source` includes."""
    for name in INCLUDE.findall(source.read_text(errors="replace")):
        for path in (ROOT / name, source.parent / name):
            if path.is_file() and path not in seen:
                seen.add(path)
                included_by(path, seen)
    return seen


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)


def changed_files(base):
    """Files that differ from the merge base with `base`, untracked ones with them; None where there is no such base."""
    merge_base = git("merge-base", "HEAD", base)
    if merge_base.returncode != 0:
        return None
    names = git("diff", "--name-only", merge_base.stdout.strip()).stdout
    names += git("ls-files", "--others", "--exclude-standard").stdout
    return {ROOT / name for name in names.split("\n") if name}


def find_base(asked):
    for base in [asked] if asked else ["origin/main", "main"]:
        changed = changed_files(base)
        if changed is not None:
            return changed
    return None


def keep_touched(groups, files):
    """The groups with only those sources that are in `files` or include one of them."""
    kept = {}
    for key, sources in groups.items():
        touched = [s for s in sources if s in files or included_by(s, set()) & files]
        if touched:
            kept[key] = touched
    return kept


class Unit:
    """Sources checked together, by a file that includes them all."""

    def __init__(self, path, options, sources):
        self.path, self.options, self.sources = path, options, sources

    def write(self):
        self.path.write_text("".join(f'#include "{s}"\n' for s in self.sources))

    def clashing(self):
        """Sources that do not compile behind the ones before them."""
        run = subprocess.run([CLANG, *self.options, "-fsyntax-only", "-w", str(self.path)], capture_output=True,
                             text=True)
        if run.returncode == 0:
            return []
        named = {Path(m) for m in re.findall(r"^([^\s:]+):\d+:\d+: (?:fatal )?error:", run.stderr, re.M)}
        return [s for s in self.sources[1:] if s in named] or self.sources[1:]

    def check(self):
        checks = ["--checks", OFF_IN_TESTS] if ROOT / "tests" in self.sources[0].parents else []
        run = subprocess.run([TIDY, "--quiet", "--config-file", str(ROOT / ".clang-tidy"), *checks, str(self.path),
                              "--", *self.options], capture_output=True, text=True)
        return run.returncode, run.stdout


def make_units(folder, groups):
    """Units of at most SOURCES_PER_UNIT sources; what clashes is put off to a later unit."""
    folder.mkdir(exist_ok=True)
    units, waiting = [], []
    for (parent, options), sources in groups.items():
        for at in range(0, len(sources), SOURCES_PER_UNIT):
            waiting.append((parent, options, sources[at:at + SOURCES_PER_UNIT]))
    while waiting:
        parent, options, sources = waiting.pop()
        name = f"{parent.relative_to(ROOT)}_{len(units)}.cpp".replace("/", "_")
        unit = Unit(folder / name, options, sources)
        unit.write()
        clashing = unit.clashing() if len(sources) > 1 else []
        if clashing:
            unit.sources = [s for s in sources if s not in clashing]
            unit.write()
            waiting.append((parent, options, clashing))
        units.append(unit)
    return units


def run_units(units, jobs):
    """Checks all units; prints what each found once (headers are met by several). Gives the number that failed."""
    failed, shown = 0, set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(unit.check) for unit in units]):
            code, text = done.result()
            failed += code != 0
            for finding in re.split(r"^(?=\S+:\d+:\d+: (?:warning|error):)", text, flags=re.M):
                if finding.strip() and finding not in shown:
                    shown.add(finding)
                    print(finding.rstrip(), flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--base")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    start = time.monotonic()
    build = options.build.resolve()
    groups = read_commands(build)
    total = sum(map(len, groups.values()))
    files = {f.resolve() for f in options.files} or (None if options.all else find_base(options.base))
    if files is not None and ROOT / ".clang-tidy" not in files:
        groups = keep_touched(groups, files)
    units = make_units(build / "tidy", groups)
    failed = run_units(units, options.jobs)
    checked = sum(len(u.sources) for u in units)
    print(f"clang-tidy: {checked} of {total} sources in {len(units)} units, {failed} with findings, "
          f"{time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
