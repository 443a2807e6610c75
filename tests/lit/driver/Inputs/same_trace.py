"""same_trace.py A.json B.json: do two timelines have the same tasks, by rank and what they do?"""
import collections
import json
import sys

found = [collections.Counter((e["pid"], e["cat"], e.get("args", {}).get("what", e["name"])) for e in json.load(open(path))["traceEvents"] if e["ph"] == "X") for path in sys.argv[1:]]
print("the same tasks" if found[0] == found[1] else f"only in one: {list((found[0] - found[1]) + (found[1] - found[0]))[:5]}")
