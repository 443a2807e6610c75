"""How much longer code takes that was compiled quickly for a CPU, beside the same program fully optimised.

    quick_code.py BUILD [--cpu x86-64-v3] [PROGRAM …]

BUILD is a build folder. Both sessions run in turns in this process, with one thread, on the gradient of the examples; the least of
14 calls each, in milliseconds. The lock that the background process waits for is held meanwhile, so that no code is replaced.
"""
import argparse
import fcntl
import os
import sys
import tempfile
import time

import numpy

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROGRAMS = ["topk", "dgc", "sidco", "qsgd_elias", "three_lc", "count_sketch", "demo", "bloom", "graddrop", "sketchml", "eden", "adacomp",
            "dist_ef_sgdm", "inceptionn", "variance_based"]
ROUNDS, CALLS = 2, 7


def least_ms(call):
    spent = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        spent.append(1e3 * (time.perf_counter() - start))
    return min(spent)


def open_session(cinch, program, cpu, size, folder, background):
    os.environ.update(CINCH_CACHE="on", CINCH_CACHE_DIR=folder, CINCH_BACKGROUND=background)
    return cinch.compile(program, cpu=cpu).session(size, threads=1)


def compare(cinch, program, cpu, gradient):
    out = numpy.empty_like(gradient)
    with tempfile.TemporaryDirectory() as quick_folder, tempfile.TemporaryDirectory() as full_folder:
        lock = os.open(os.path.join(quick_folder, "improving"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        sessions = [open_session(cinch, program, cpu, gradient.size, quick_folder, "on"),
                    open_session(cinch, program, cpu, gradient.size, full_folder, "off")]
        encode, decode = [[], []], [[], []]
        for _ in range(ROUNDS):
            for i, session in enumerate(sessions):
                payload = session.encode(0, gradient)
                encode[i].append(least_ms(lambda: session.encode(0, gradient)))
                decode[i].append(least_ms(lambda: session.decode(0, payload, out=out)))
        os.close(lock)
    columns = [(min(times[0]), min(times[1])) for times in (encode, decode)]
    print(f"{program:16}" + "".join(f"{quick:9.2f} {full:7.2f} {quick / full:5.1f}" for quick, full in columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--cpu", default="x86-64-v3")
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    options = parser.parse_args()
    os.environ["CINCH_LIBRARY"] = os.path.join(os.path.abspath(options.build), "lib", "libcinch.so")
    sys.path.insert(0, os.path.join(ROOT, "runtime", "python"))
    import cinch

    gradient = numpy.load(os.path.join(ROOT, "examples", "data", "resnet-step40.npy")).ravel().astype(numpy.float32)
    print(f"{gradient.size} elements\n{'program':16}   encode: quick, full, ratio  decode: quick, full, ratio")
    for program in options.programs:
        compare(cinch, program, options.cpu, gradient)


if __name__ == "__main__":
    main()
