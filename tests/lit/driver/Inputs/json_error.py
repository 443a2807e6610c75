"""json_error.py KIND CODE TEXT DIAGNOSTICS: standard input is one error as JSON, of that kind and exit code, whose message has that text and
which has that many diagnostics, each with a place."""
import json
import sys

kind, code, text, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
error = json.load(sys.stdin)["error"]
assert (error["kind"], error["exit_code"]) == (kind, code), error
assert text in error["message"], error
assert len(error["diagnostics"]) == count, error
for found in error["diagnostics"]:
    assert {"severity", "code", "message", "file", "line", "column"} <= found.keys(), found
