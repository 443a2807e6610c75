"""many_at_once.py NUMBER FOLDER COMMAND…: the same command NUMBER times at the same time, with a cache in FOLDER that is empty before, and
--payload to a file each. Fails unless all succeed and give the same bytes; prints what the cache holds then."""
import os
import subprocess
import sys

number, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
environment = dict(os.environ, CINCH_CACHE="on", CINCH_CACHE_DIR=os.path.join(folder, "cache"))
os.makedirs(folder)
paths = [os.path.join(folder, "payload%d" % i) for i in range(number)]
running = [subprocess.Popen([*command, "--payload", path], env=environment, stdout=subprocess.DEVNULL) for path in paths]
codes = [process.wait() for process in running]
assert codes == [0] * number, codes
payloads = set()
for path in paths:
    with open(path, "rb") as file:
        payloads.add(file.read())
assert len(payloads) == 1, "payloads differ"
for place, _, names in os.walk(os.path.join(folder, "cache")):
    for name in names:
        print("kept:", os.path.splitext(name)[1])
