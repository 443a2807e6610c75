"""verify_library.py CINCH [--budget SECONDS] [--only NAME…]: every program of the library states claims, and `cinch verify` finds no law broken. Wrappers are
tried around a deterministic and a random compressor; with CINCH_LONG around both, else around one of them, in turns. Programs that this version cannot run (exit status 3) are named and left out. Where CINCH_SAMPLE is
set, every fifth program; else, without CINCH_LONG, every second one, in turns from commit to commit."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

WRAPPED = ["topk", "qsgd"]
IS_LONG = os.environ.get("CINCH_LONG", "0") not in ("", "0")

parser = argparse.ArgumentParser()
parser.add_argument("cinch")
parser.add_argument("--only", nargs="*")
# Seconds a program.
parser.add_argument("--budget", default="3" if IS_LONG else "0.4")
options = parser.parse_args()
options.cinch = os.path.abspath(options.cinch)
listed = json.loads(subprocess.run([options.cinch, "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
if os.environ.get("CINCH_SAMPLE"):
    listed = listed[::5]
elif os.environ.get("CINCH_HALF") and not options.only:
    listed = listed[int(os.environ["CINCH_HALF"]) :: 2]
failures = 0


def verify(program, folder):
    """What went wrong, or nothing."""
    ended = subprocess.run([options.cinch, "verify", program, "--budget", options.budget], cwd=folder, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{program}: exit status {ended.returncode}", flush=True)
    if ended.returncode == 3:
        print(ended.stdout)
    return "" if ended.returncode in (0, 3) else ended.stdout


with tempfile.TemporaryDirectory() as folder:
    for number, entry in enumerate(listed):
        if options.only and entry["name"] not in options.only:
            continue
        with open(entry["file"], encoding="utf-8") as file:
            text = file.read()
        if not re.search(r"^  claims ", text, re.M):
            print(f"{entry['name']}: states no claims")
            failures += 1
        programs = [entry["name"]]
        if re.search(rf"^compressor {entry['name']}\(\s*\w+: compressor", text, re.M):
            programs, first = [], number % 2
            for inner in WRAPPED[first:] + WRAPPED[:first]:
                if programs and not IS_LONG:
                    break
                path = os.path.join(folder, f"{entry['name']}_{inner}.cinch")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"import std.{entry['name']}\nimport std.{inner}\n\ncompressor wrapped = {entry['name']}({inner})\n")
                # A wrapper may ask something of what it wraps: a parameter of some name.
                checked = subprocess.run([options.cinch, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                if checked.returncode == 0:
                    programs.append(path + ":wrapped")
            if not programs:
                print(f"{entry['name']}: fits around none of {WRAPPED}\n{checked.stdout}")
                failures += 1
        for program in programs:
            wrong = verify(program, folder)
            if wrong:
                print(wrong)
                failures += 1
sys.exit(1 if failures else 0)
