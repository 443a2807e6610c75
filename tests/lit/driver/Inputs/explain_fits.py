"""explain_fits.py CINCH: no line of `cinch explain` is longer than 80 characters for any program of the library; of every fourth, the bytes
of each kernel's streams are those of the kernel."""
import concurrent.futures
import json
import shlex
import subprocess
import sys

cinch = sys.argv[1]


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def check_lines(program):
    text = output_of(cinch, "explain", program)
    longest = max(text.splitlines(), key=len)
    assert len(longest) <= 80, (program, longest)


def check_bytes(program):
    report = json.loads(output_of(cinch, "explain", program, "--elements", "1000000", "--json"))
    for call in ("encode", "decode", "decode_add", "finish", "sync"):
        for kernel in report.get(call, {}).get("kernel_list", []):
            for key, total in (("reads", "read"), ("writes", "written")):
                for case in ("least", "most"):
                    parts = sum(stream[case] for stream in kernel[key])
                    whole = kernel[f"{total}_{case}"]
                    assert whole <= parts <= whole + len(kernel[key]), (program, kernel["name"], key, case, whole, parts)
    if "payload" in report:
        payload = report["payload"]
        assert payload["least_bytes"] <= payload["bound_bytes"], program
        last = payload["fields"][-1]
        assert last["offset"] + last["bytes"] == payload["bound_bytes"], program


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    programs = [shlex.split(item["example"]["command"])[2] for item in json.loads(output_of(cinch, "list", "--json"))]
    list(pool.map(check_lines, programs))
    list(pool.map(check_bytes, programs[::4]))
print(f"{len(programs)} programs fit")
