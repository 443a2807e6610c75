"""Runs the lit tests: run.py BUILD_FOLDER [lit's own arguments]. lit comes with llvm-19-tools, or as a wheel.

Where CINCH_SAMPLE is set, every eighth one of them, by name."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CANDIDATES = glob.glob("/usr/lib/llvm-19/build/utils/lit/lit.py")


def main():
    build, extra = sys.argv[1], sys.argv[2:]
    sample = ["--order=lexical", "--num-shards=8", "--run-shard=1"] if os.environ.get("CINCH_SAMPLE") else []
    lit = [sys.executable, CANDIDATES[0]] if CANDIDATES else ["lit"]
    # What a failing test printed is shown at once, and so is in the log that `./dev test` keeps.
    shown = ["-v", *extra] if extra else ["-s", "-v"]
    command = [*lit, *shown, *sample, "--param", f"build={build}", "--param", f"python={sys.executable}", HERE]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
