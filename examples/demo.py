"""The demo behind `./dev demo`: real gradients through six compressors, one table.

usage: demo.py CINCH GRADIENT.npy
Payload, ratio and error are of the gradient itself; encode and decode GB/s of the gradient repeated to 256 MiB."""
import json
import subprocess
import sys

COMPRESSORS = ["onebit", "tbq", "terngrad", "dgc", "graddrop", "minmax"]
# Parameters whose right value depends on the gradient's scale.
SETTINGS = {"tbq": ["--set", "tau=0.001"]}
REPEATED_BYTES = 256 << 20


def cinch(binary, *args):
    return json.loads(subprocess.run([binary, *args, "--json"], check=True, stdout=subprocess.PIPE).stdout)


def main():
    binary, gradient = sys.argv[1:3]
    print(f"\n{gradient}, then the same repeated to 256 MiB\n")
    print(f"{'compressor':<12}{'payload':>12}{'ratio':>9}{'error':>9}{'kernels':>12}{'encode':>13}{'decode':>13}")
    for name in COMPRESSORS:
        settings = SETTINGS.get(name, [])
        once = cinch(binary, "run", name, "--input", gradient, *settings)
        large = cinch(binary, "run", name, "--input", gradient, "--repeat-to", str(REPEATED_BYTES), *settings)
        explained = cinch(binary, "explain", name, "--elements", str(once["elements"]))
        kernels = "{} + {}".format(explained["encode"]["kernels"], explained["decode"]["kernels"])
        print(
            f"{name:<12}{once['payload_bytes']:>10} B{once['ratio']:>9.1f}{once['relative_error']:>9.4f}{kernels:>12}"
            f"{large['encode_gb_per_s']:>8.2f} GB/s{large['decode_gb_per_s']:>8.2f} GB/s",
            flush=True,
        )
    print("\nkernels: encode + decode; error: |x - decoded| / |x| of one step; GB/s count the gradient's bytes")


if __name__ == "__main__":
    main()
