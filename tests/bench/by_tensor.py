"""by_tensor.py CINCH GRADIENT.npy…: bytes at the error of one value for all tensors, min-max codes in buckets of 512.

Each gradient is one array with a .json file beside it, which has the names and shapes of its tensors (shared/data, examples/data).
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

if len(sys.argv) < 3:
    sys.exit(__doc__)
cinch = sys.argv[1]
print("| gradient | tensors | 4 bits for all, bytes | by tensor, bytes | times fewer | error for all | error by tensor |\n| --- | --- | --- | --- | --- | --- | --- |")
for path in sys.argv[2:]:
    values, at = np.load(path), 0
    with tempfile.TemporaryDirectory() as folder:
        for tensor in json.load(open(path.replace(".npy", ".json")))["tensors"]:
            size = int(np.prod(tensor["shape"]))
            np.save(os.path.join(folder, tensor["name"] + ".npy"), values[at : at + size].astype("f").reshape(tensor["shape"]))
            at += size
        done = subprocess.run([cinch, "plan", "--vary", "bits=1..8", "--budget", "bits=4", "--programs", "cgx", "--gradients", folder, "--json"], capture_output=True, check=True)
    plan = json.loads(done.stdout)
    one, each = plan["with_one_value"], plan["by_tensor"]
    print(f"| {os.path.basename(path)} | {len(plan['tensors'])} | {one['payload_bytes']} | {each['payload_bytes']} | {one['payload_bytes'] / each['payload_bytes']:.2f} | "
          f"{one['relative_error']:.4f} | {each['relative_error']:.4f} |")
