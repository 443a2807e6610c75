"""outputs.py FOLDER CINCH: every option that names a file to write, given a file with a mode, a link, a pipe, a device, a folder and a
full disk. Files are replaced and keep their mode, links stay, pipes and devices are written to, folders are errors, and a failed write
changes nothing."""
import os
import resource
import shutil
import stat
import struct
import subprocess
import sys
import threading

folder, cinch = sys.argv[1:]
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
os.chdir(folder)
PAYLOAD, gradient = "p.bin", "g.npy"
PROGRAM = "compressor  kept(){\n  wire { value: [f32; n] }\n  encode(g: [f32; n]) { wire { value: g } }\n  decode(w) { w.value } }\n"


header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }".ljust(117) + "\n"
with open(gradient, "wb") as written:
    written.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<1000f", *range(1000)))


def run(words, **options):
    return subprocess.run([cinch, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def fails(words, reason, **options):
    done = run(words, **options)
    assert done.returncode == 1 and reason in done.stderr, (words, done)


run(["encode", "onebit", "--input", gradient, "--payload", PAYLOAD]).check_returncode()
WRITERS = {
    "payload": ["run", "onebit", "--input", gradient, "--payload", "%"],
    "encode": ["encode", "onebit", "--input", gradient, "--payload", "%"],
    "output": ["run", "onebit", "--input", gradient, "--output", "%"],
    "decode": ["decode", "onebit", "--payload", PAYLOAD, "--output", "%"],
    "states": ["run", "dgc", "--input", gradient, "--state-out", "%"],
    "emit": ["build", "onebit", "--emit=kir", "--output", "%"],
    "plan": ["sync", "none", "--input", gradient, "--plan", "ring", "--save-plan", "%"],
    "trace": ["sync", "none", "--input", gradient, "--plan", "ring", "--trace", "%"],
    "update": ["sync", "none", "--input", gradient, "--plan", "ring", "--output", "%"],
    "rank states": ["sync", "none", "--input", gradient, "--plan", "ring", "--state-out", "%"],
    "network": ["probe", "--ranks", "2", "--seconds", "0.05", "--largest", "1024", "--output", "%"],
    "table": ["tune", "--device", "emulated", "--budget", "0", "--output", "%"],
}
os.makedirs("folder")
os.mkfifo("pipe")
has_devices = True
try:
    os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod("full", stat.S_IFCHR | 0o600, os.makedev(1, 7))
    open("device", "wb").close()
except OSError:
    has_devices = False

for name, words in WRITERS.items():
    def to(path, words=words):
        return [path if word == "%" else word for word in words]

    # A new file, then one with a mode of its own behind a link.
    run(to("made")).check_returncode()
    content = open("made", "rb").read()
    assert content, name
    with open("target", "wb") as file:
        file.write(content if name == "table" else b"old")
    os.chmod("target", 0o640)
    os.symlink("target", "link")
    run(to("link")).check_returncode()
    assert os.readlink("link") == "target" and stat.S_IMODE(os.stat("target").st_mode) == 0o640, name
    assert name == "table" or open("target", "rb").read() != b"old", name
    # A pipe and devices.
    got = []
    reader = threading.Thread(target=lambda: got.append(open("pipe", "rb").read()))
    reader.start()
    run(to("pipe")).check_returncode()
    reader.join(60)
    assert got and got[0] and stat.S_ISFIFO(os.stat("pipe").st_mode), name
    if has_devices:
        run(to("device")).check_returncode()
        assert stat.S_ISCHR(os.stat("device").st_mode), name
        fails(to("full"), "No space left on device")
        assert stat.S_ISCHR(os.stat("full").st_mode), name
    # A failure loses nothing.
    fails(to("folder"), "Is a directory")
    before = open("target", "rb").read()
    small = run(to("target"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)), env=dict(os.environ, CINCH_CACHE="off"))
    assert small.returncode != 0 and open("target", "rb").read() == before, (name, small)
    for made in ("made", "link", "target"):
        os.remove(made)
    left = sorted(set(os.listdir()) - {PAYLOAD, gradient, "folder", "pipe", "device", "full"})
    assert not left and not os.listdir("folder"), (name, left)

# fmt overwrites its input.
with open("kept.cinch", "w") as file:
    file.write(PROGRAM)
os.chmod("kept.cinch", 0o600)
os.symlink("kept.cinch", "link.cinch")
run(["fmt", "link.cinch"]).check_returncode()
assert os.path.islink("link.cinch") and open("kept.cinch").read() != PROGRAM and stat.S_IMODE(os.stat("kept.cinch").st_mode) == 0o600
# No other files can be written next to a device.
wrong = run(["verify", "onebit", "--counterexample", "/dev/null"])
assert wrong.returncode == 2 and "--counterexample /dev/null" in wrong.stderr and not os.path.exists("/dev/null.json"), wrong
# Two outputs in one file would lose the first.
os.symlink("both", "other")
twice = run(["run", "onebit", "--input", gradient, "--payload", "both", "--output", "./other"])
assert twice.returncode == 2 and "--payload and --output name one file" in twice.stderr and not os.path.exists("both"), twice
print("outputs hold")
