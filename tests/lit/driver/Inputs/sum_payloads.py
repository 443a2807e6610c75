"""What `cinch run --ranks --sum-payloads` must give for fp16 and summed.cinch, by numpy.

sum_payloads.py CINCH FOLDER SUMMED"""
import subprocess
import sys

import numpy as np

cinch, folder, summed = sys.argv[1:]
ranks = [np.random.default_rng(i).standard_normal(1001).astype(np.float32) for i in range(3)]
names = []
for i, rank in enumerate(ranks):
    names.append(f"{folder}-{i}.npy")
    np.save(names[-1], rank)


def run(program, inputs):
    out = f"{folder}-out.npy"
    done = subprocess.run([cinch, "run", program, "--ranks", "--sum-payloads", "--output", out, "--input", *inputs],
                          capture_output=True, text=True)
    return done, np.load(out) if done.returncode == 0 else None


halves = [r.astype(np.float16).astype(np.float32) for r in ranks]
_, found = run("fp16", names)
expected = ((halves[0] + halves[1]) + halves[2]).astype(np.float16).astype(np.float32) / np.float32(3)
print("fp16:", "as expected" if np.array_equal(found, expected) else "differs")

_, found = run(summed, names[:2])
codes = np.sign(ranks[0]) * 3 + np.sign(ranks[1]) * 3
expected = codes.astype(np.float32) * max(ranks[0].max(), ranks[1].max()) / np.float32(2)
print("summed:", "as expected" if np.array_equal(found, expected) else "differs")

done, _ = run(summed, names)
print(done.returncode, done.stderr.strip())
