"""full_disk.py FOLDER COMMAND…: the command with files that may not grow above more and more bytes (RLIMIT_FSIZE), as on a disk that is
full, and with an empty cache. It succeeds, or ends with status 3 and a word why; no part of a file is left. Prints what was seen."""
import os
import resource
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
seen = set()
for limit in [0, *(1000 << doubled for doubled in range(12))]:
    cache = os.path.join(folder, str(limit))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, CINCH_CACHE="on", CINCH_CACHE_DIR=cache),
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    files = [name for _, _, names in os.walk(cache) for name in names]
    assert all(name.endswith(".cinchcache") for name in files), files
    assert done.returncode == 0 or (done.returncode == 3 and "File too large" in done.stderr), (limit, done)
    seen.add("no compilation" if done.returncode else "kept" if files else "not kept")
print("; ".join(sorted(seen)))
