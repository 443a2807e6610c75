"""json_keys.py KEY…: standard input is one JSON object, or a list of them, with at least these keys. Prints a word."""
import json
import sys

value = json.load(sys.stdin)
items = value if isinstance(value, list) else [value]
for item in items:
    missing = [key for key in sys.argv[1:] if key not in item]
    if missing:
        sys.exit(f"missing: {' '.join(missing)}")
print("list" if isinstance(value, list) else "object", len(items))
