"""values_sent.py PLAN.json SYNC.json: did a rank of two send the bytes that `cinch plan --vary` says, and f32 for the rest?"""
import json
import sys

plan, sync = (json.load(open(path)) for path in sys.argv[1:])
exact = sum(4 * tensor["elements"] for tensor in sync["tensors"] if tensor["sent_as"] == "f32")
planned = plan["by_tensor"]["payload_bytes"] + exact
# Payloads of one message begin at multiples of 64 bytes, and a step has a record.
print("the bytes that were planned" if planned <= sync["bytes_sent"] <= planned + 1024 else f"planned {planned}, sent {sync['bytes_sent']}")
