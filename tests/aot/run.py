"""Libraries that `cinch build` makes, linked and opened as a user does it.

    run.py BUILD SOURCE        the build folder, and the tree

A library of three compressors (two of the library, one of a file) is built for all levels of x86-64
and, as data, for the emulated GPU. C and C++ programs link it statically and dynamically, without
warnings and without anything of the compiler; every level that this machine runs gives the payloads
that `cinch encode` gives; files that are cut, changed or of another version are errors.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

BUILD, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CINCH = BUILD / "bin" / "cinch"
COMPRESSORS = ("onebit", "dgc", "mine")
LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
MINE = """compressor mine {
  wire { sign: [bool; n], scale: f32 }
  encode(g: [f32; n]) { wire { sign: g < 0, scale: mean(abs(g)) } }
  decode(w) { select(w.sign, -w.scale, w.scale) }
}
"""
# A library of a sanitizer build needs Clang's run time.
SANITIZER = next((line.split("=", 1)[1] for line in (BUILD / "CMakeCache.txt").read_text().splitlines() if line.startswith("CINCH_SANITIZE:")), "")
CC, CXX = ("clang-19", "clang++-19") if SANITIZER else ("gcc", "g++")
ENVIRONMENT = dict(os.environ, CINCH_CACHE="off", NO_COLOR="1")
if SANITIZER:
    # LLD installs a signal stack on its thread, which AddressSanitizer takes for its own when the thread ends.
    ENVIRONMENT["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "use_sigaltstack=0"]))


def call(*command, ok=True, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=ENVIRONMENT, **more)
    if (done.returncode == 0) != ok:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(held, what):
    if not held:
        sys.exit(f"does not hold: {what}")


def build(folder):
    (folder / "mine.cinch").write_text(MINE)
    call(CINCH, "build", "onebit", "dgc", folder / "mine.cinch", "--target", "cpu,x86-64,emulated", "--name", "compressors", "--output", folder / "out")
    call(CINCH, "build", "onebit", "--target", "aarch64", "--output", folder / "arm")


def compile_clients(folder):
    out, api = folder / "out", SOURCE / "runtime" / "c_api"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{out}", f"-I{api}"]
    found = [f"-Wl,-rpath,{BUILD / 'lib'}:{out}", f"-L{BUILD / 'lib'}", "-lcinch"]
    sanitizer = [f"-fsanitize={SANITIZER}"] if SANITIZER else []
    c, cpp = SOURCE / "tests" / "aot" / "client.c", SOURCE / "tests" / "aot" / "client.cpp"
    call(CC, "-std=c11", *strict, *sanitizer, c, "-o", folder / "shared", f"-L{out}", "-lcompressors", *found)
    call(CC, "-std=c11", *strict, *sanitizer, c, "-o", folder / "static", out / "libcompressors.a", *found)
    call(CXX, "-std=c++20", *strict, *sanitizer, cpp, "-o", folder / "over_cpp", out / "libcompressors.a", *found)


def needed(file):
    lines = call("readelf", "-d", file).splitlines()
    return " ".join(line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line)


def check_needs(folder):
    expect(needed(folder / "out" / "libcompressors.so") == "", "the library needs no other")
    for program in ("shared", "static", "over_cpp"):
        libraries = needed(folder / program)
        for name in ("LLVM", "clang", "nvrtc", "boost", "cinch_compiler"):
            expect(name.lower() not in libraries.lower(), f"{program} needs nothing of {name}: {libraries}")
    symbols = call("nm", "-D", "--defined-only", folder / "out" / "libcompressors.so").split()[2::3]
    expect(sorted(symbols) == sorted(["cinch_compiled_library", "compressors_library", *(f"compressors_{c}" for c in COMPRESSORS)]), symbols)
    for line in call("nm", "--defined-only", "-A", folder / "out" / "libcompressors.a").splitlines():
        kind, symbol = line.split()[-2:]
        expect(kind in "trbd" or symbol.startswith("compressors_"), f"a name of the library's own: {line}")


def host_levels():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return LEVELS[: 1 + ("sse4_2" in flags) + ("avx2" in flags) + ("avx2" in flags and "avx512vl" in flags)]


def check_payloads(folder):
    gradient, wanted = SOURCE / "examples" / "data" / "resnet-step40.npy", folder / "wanted"
    raw = gradient.read_bytes()
    (folder / "g.f32").write_bytes(raw[10 + struct.unpack("<H", raw[8:10])[0]:])
    for name in COMPRESSORS:
        program = folder / "mine.cinch" if name == "mine" else name
        call(CINCH, "encode", program, "--input", gradient, "--payload", wanted)
        ways = [("static", "linked", level) for level in host_levels()]
        ways += [("shared", "linked", "-"), ("static", f"find:{folder / 'out' / 'libcompressors.so'}", "-"),
                 ("static", f"{folder / 'out' / 'libcompressors.so'}:{name}", "-")]
        for client, where, level in ways:
            print(name, client, level, call(folder / client, where, name, level, folder / "g.f32", folder / "p", folder / "o").strip())
            expect((folder / "p").read_bytes() == wanted.read_bytes(), f"{name}: the payload of {client} {where} {level} is that of `cinch encode`")
        if name == "dgc":
            outputs = (folder / "o").read_bytes()
            call(folder / "over_cpp", folder / "g.f32", folder / "p", folder / "o")
            expect((folder / "p").read_bytes() == wanted.read_bytes() and (folder / "o").read_bytes() == outputs, "C++ gives what C gives")


def check_description(folder):
    report = json.loads((folder / "out" / "compressors.json").read_text())
    names = [each["name"] for each in report["compressors"]]
    expect(names == list(COMPRESSORS), names)
    run = json.loads(call(CINCH, "run", "dgc", "--input", SOURCE / "examples" / "data" / "resnet-step40.npy", "--json"))
    expect(run["fingerprint"] == report["compressors"][1]["fingerprint"], "one fingerprint for code that was compiled now and before")
    header = (folder / "out" / "compressors.h").read_text()
    expect("Parameter ratio" in header, "parameters stand in the header")
    expect("AArch64" in call("readelf", "-h", folder / "arm" / "libonebit-aarch64.a"), "objects for AArch64")


def check_levels(folder):
    """Without --target: three levels. A level that is not there is an error that names those that are."""
    call(CINCH, "build", "onebit", "--output", folder / "default")
    report = json.loads((folder / "default" / "onebit.json").read_text())
    expect(report["targets"] == [f"cpu:{level}" for level in LEVELS[1:]], report["targets"])
    text = call(folder / "static", f"find:{folder / 'default' / 'libonebit.so'}", "onebit", LEVELS[0], folder / "g.f32", folder / "p", folder / "o", ok=False)
    expect(f"onebit has no code for '{LEVELS[0]}': it has {', '.join(LEVELS[1:])}; this machine runs {host_levels()[-1]}" in text, text)


def check_examples(folder):
    examples, out, api = SOURCE / "examples", folder / "out", SOURCE / "runtime" / "c_api"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{api}"]
    found = [f"-Wl,-rpath,{BUILD / 'lib'}", f"-L{BUILD / 'lib'}", "-lcinch", *([f"-fsanitize={SANITIZER}"] if SANITIZER else [])]
    call(CC, "-std=c11", *strict, f"-I{out}", examples / "libraries" / "linked.c", out / "libcompressors.a", "-o", folder / "linked", *found)
    call(CC, "-std=c11", *strict, examples / "libraries" / "loaded.c", "-o", folder / "loaded", *found)
    expect("120 bytes instead of 16384" in call(folder / "linked"), "a linked compressor compresses")
    text = call(folder / "loaded", out / "libcompressors.so")
    expect([line.split()[0] for line in text.splitlines()] == list(COMPRESSORS), text)
    trained = folder / "trained"
    call(CINCH, "build", "qsgd", "ef_sign", "fp16", "--target", f"{host_levels()[-1]}", "--name", "compressors", "--output", trained)
    call(CXX, "-std=c++20", "-O2", *strict, f"-I{trained}", examples / "trainer" / "trainer.cpp", trained / "libcompressors.a", "-o", folder / "trainer", *found)
    text = call(folder / "trainer", examples / "data" / "digits.u8")
    for line in text.splitlines():
        print(line)
        expect(abs(float(line.split()[-2])) < 1, f"a loss within 1 % of the exact one: {line}")
    expect(len(text.splitlines()) == 4, text)


def check_neighbours(folder):
    """Libraries of one name in a process: each opens its own."""
    other = folder / "other"
    call(CINCH, "build", "topk", "--set", "ratio=0.5", "--target", "x86-64", "--name", "compressors", "--output", other)
    text = call(folder / "shared", f"find:{other / 'libcompressors.so'}", "onebit", "-", folder / "g.f32", folder / "p", folder / "o", ok=False)
    expect("has no compressor 'onebit': it has topk" in text, text)
    call(folder / "shared", f"find:{other / 'libcompressors.so'}", "topk", "-", folder / "g.f32", folder / "p", folder / "o")


def check_bad_files(folder):
    library = (folder / "out" / "libcompressors.so").read_bytes()

    def refused(data, *words, name="bad.so"):
        (folder / name).write_bytes(data)
        text = call(folder / "static", folder / name, "x", "-", folder / "g.f32", folder / "p", folder / "o", ok=False)
        expect(text.startswith("status") and any(word in text for word in words), f"{name} of {len(data)} bytes: {text}")

    for part in range(1, 20):
        refused(library[: len(library) * part // 20], "cut short", "not a shared library")
    for size in (0, 1, 4, 63, 64, 100, len(library) - 1):
        refused(library[:size], "cut short", "not a shared library", "not an image", "image")
    # Another version of the tables: the first word of each.
    for size in (64, 40):
        table = struct.pack("<II", 1, size)
        expect(table in library, f"a table of {size} bytes")
        (folder / "bad.so").write_bytes(library.replace(table, struct.pack("<II", 2, size)))
        text = call(folder / "static", f"{folder / 'bad.so'}:dgc", "x", "-", folder / "g.f32", folder / "p", folder / "o", ok=False)
        expect("version 2, this libcinch reads 1" in text, text)
    text = call(folder / "static", "/lib/x86_64-linux-gnu/libm.so.6", "x", "-", folder / "g.f32", folder / "p", folder / "o", ok=False)
    expect("not a library of compressors" in text, text)


def main():
    start = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cinch-aot-"))
    try:
        for step in (build, compile_clients, check_needs, check_payloads, check_description, check_levels, check_examples, check_neighbours, check_bad_files):
            step(folder)
            print(f"{step.__name__}: {time.monotonic() - start:.1f} s")
    finally:
        shutil.rmtree(folder)


main()
