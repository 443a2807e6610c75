"""negative_sizes.py CINCH PROGRAM GRADIENT: each compressor of the program on every device: where it fails, the message names the size."""
import subprocess
import sys

cinch, program, gradient = sys.argv[1:]
NEGATIVE = "n - 10000000"
EXPECTED = {
    "filled": f"negative_sizes.cinch:4:57: the size {NEGATIVE} is not negative",
    "sliced": "negative_sizes.cinch:10:16: a slice ends behind its begin",
    "scattered": f"negative_sizes.cinch:17:77: the size {NEGATIVE} is not negative",
    "sent": "field value: the size `n - 10000000` is -9396502",
    "counted": "field value: the size `n - 10000000` is -9396502",
    "kept": "state sent: the size `n - 10000000` is -9396502",
    "decoded": f"negative_sizes.cinch:44:39: the size {NEGATIVE} is not negative",
    "branched": None,  # in a branch that is not taken
}
for name, expected in EXPECTED.items():
    for device in ("cpu", "emulated"):
        done = subprocess.run([cinch, "run", f"{program}:{name}", "--device", device, "--input", gradient], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        fits = done.returncode == (0 if expected is None else 1) and (expected or "") in done.stderr
        if not fits:
            sys.exit(f"{name} on {device}: {done.returncode}: {done.stderr}")
print("sizes are named")
