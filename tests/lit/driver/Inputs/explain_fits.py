"""explain_fits.py CINCH: no line of `cinch explain` is longer than 80 characters for any program of the library; of every fourth, the bytes
of each kernel's streams are those of the kernel, and its lines add up to the totals."""
import concurrent.futures
import json
import re
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


def check_sums(program, call, entry):
    """Where no branch or loop decides how often a line counts."""
    lines = entry["kernel_list"] + entry["move_list"]
    if any(line["in_branch"] or line["in_loop"] for line in lines):
        return
    sums = [sum(line[f"{key}_most"] for line in lines) for key in ("read", "written")]
    assert sums == [entry["bytes_read"], entry["bytes_written"]], (program, call, sums)


def bytes_of(line):
    """What ends a line of the table."""
    found = re.search(r"(?:^| )([0-9.]+) (B|kB|MB|GB)$", line)
    return float(found[1]) * 1000 ** ["B", "kB", "MB", "GB"].index(found[2]) if found else 0


def check_printed_sums(program):
    """The same of what people read, in three digits."""
    sections = re.split(r"\n(?=encode|decode|finish|sync|\n)", output_of(cinch, "explain", program, "--elements", "1000000"))
    checked = 0
    for section in sections:
        moved = re.search(r"(?:moves|worst) .*?([0-9.]+) B read, ([0-9.]+) B written", section)
        if moved is None or "  #  reads" not in section or "in a loop" in section or "only where" in section:
            continue
        whole = 1e6 * (float(moved[1]) + float(moved[2]))
        printed = sum(bytes_of(line) for line in section.splitlines())
        assert abs(printed - whole) < 0.01 * whole, (program, section, printed, whole)
        checked += 1
    assert checked > 0, program


def check_bytes(program):
    report = json.loads(output_of(cinch, "explain", program, "--elements", "1000000", "--json"))
    for call in ("encode", "decode", "decode_add", "finish", "sync"):
        if call in report:
            check_sums(program, call, report[call])
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
    list(pool.map(check_printed_sums, ("count_sketch", "topk", "three_lc", "inceptionn")))
print(f"{len(programs)} programs fit")
