"""run.py CINCH TOOLS [--only NAME,...] [--arch sm_90]: counts the machine code of the library's kernels, without a GPU.

CINCH is the `cinch` command, TOOLS a folder with the wheels of nvdisasm and cuobjdump. Prints, for each kernel: registers, stack, what a
multiprocessor holds, loads by 16 bytes, bytes in flight, instructions per element (count.py says how they are counted), and the share of the
floor that the model of an H200 predicts. --check compares with
budgets_ARCH.json, --write-budgets lowers what it allows to what is there."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "bench"))
import budgets  # noqa: E402
import count  # noqa: E402
import facts  # noqa: E402
import flow  # noqa: E402
import forms  # noqa: E402
import model  # noqa: E402
import report  # noqa: E402
import sass  # noqa: E402
import walk  # noqa: E402
from programs import PROGRAMS  # noqa: E402

IS_LONG = os.environ.get("CINCH_LONG", "0") not in ("", "0")
PAGE = HERE.parents[2] / "docs" / "benchmarks" / "gpu-static.md"
TUNING = HERE.parents[2] / "runtime" / "tuning" / "tuning.json"
USAGE = re.compile(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
BOUNDS = re.compile(r"__launch_bounds__\((\d+)(?:, (\d+))?\)\s+(\w+)\(")
BODY = re.compile(r"^CINCH_FN void (\w+)_body\(.*?^}", re.DOTALL | re.MULTILINE)
ROW_LANES = re.compile(r"kRowLanes = (\d+)u")
KEPT = re.compile(r"const \w+ \(&v\d+\w*\)\[4\] = v\d+\w*;")


NOT_HERE = 77  # exit status where what is needed is not installed: tests are skipped


def stop(text):
    print(text, file=sys.stderr)
    sys.exit(NOT_HERE)


def tool(folder, name):
    found = sorted(pathlib.Path(folder).rglob(f"bin/{name}"))
    if not found:
        stop(f"{folder} has no {name}; ./dev test installs it")
    return str(found[0])


def look_for_tools(options):
    """Ends where nvdisasm, cuobjdump or NVRTC are missing."""
    for name in ("nvdisasm", "cuobjdump"):
        tool(options.tools, name)
    with tempfile.TemporaryDirectory() as made:
        command = [options.cinch, "build", "fp16", "--emit=cubin", "--target", f"cuda:{options.arch}", "--output", pathlib.Path(made) / "cubin"]
        tried = subprocess.run(command, capture_output=True, text=True)
    if "no NVRTC" in tried.stderr:
        stop(tried.stderr)


def stage(options, name, kind, folder):
    path = folder / f"{name}.{kind}"
    subprocess.run([options.cinch, "build", name, f"--emit={kind}", "--target", f"cuda:{options.arch}", "--output", path], check=True)
    return path


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass
class Launch:
    """What the emitted text says of a kernel's launch."""
    warps: int  # of a block
    resident: int  # blocks that stay on a multiprocessor
    groups_a_row: int = 1  # short groups that share a warp's row
    keeps_rows: bool = False  # see facts.Kernel


def launches(source):
    """By kernel."""
    rows = {body[1]: lanes for body in BODY.finditer(source) if (lanes := ROW_LANES.search(body[0]))}
    kept = {body[1] for body in BODY.finditer(source) if KEPT.search(body[0])}
    return {found[3]: Launch(int(found[1]) // 32, int(found[2] or 1), 32 // int(rows[found[3]][1]) if found[3] in rows else 1, found[3] in kept)
            for found in BOUNDS.finditer(source)}


def groups_a_warp(options, kernel, launch):
    """Groups that a warp takes in a launch over 2^27 elements: as runtime/gpu/session/blocks.cpp spreads them."""
    entry = next(e for e in json.loads(TUNING.read_text())["entries"] if e["architecture"] == options.arch)
    groups = model.ELEMENTS / kernel.group_len
    each = entry["numbers"]["blocks_per_multiprocessor"] or launch.resident
    blocks = min(groups / (launch.warps * kernel.multiple), each * model.MULTIPROCESSORS)
    return groups / launch.warps / blocks


def program_counts(options, name):
    """Counts of all kernels of a program's cubin that are launched."""
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        kernels, bits = facts.kernels(stage(options, name, "kir", folder).read_text())
        source = stage(options, name, "source", folder).read_text()
        cubin = stage(options, name, "cubin", folder)
        usage = output(tool(options.tools, "cuobjdump"), "-res-usage", cubin)
        sections = sass.parse(output(tool(options.tools, "nvdisasm"), "-c", cubin))
    launched = launches(source)
    return [kernel_count(options, name, kernels, bits, sections, launched[used[0]], used) for used in USAGE.findall(usage) if used[0] in launched]


def kernel_count(options, program, kernels, bits, sections, launch, used):
    name, registers, stack, shared = used[0], *map(int, used[1:])
    functions = flow.Functions(sections, lambda instr: walk.access(instr) is not None)
    kernel = kernels.get(name)
    everything, looped = count.in_loops(functions, name, kernel is None)
    made = count.Count(program, name, kernel.role if kernel else "service", registers, stack, sum(i.name in count.SPILLS for i in everything),
                       sum(i.name in count.SPILLS for i in looped), launch.warps, model.blocks(registers, shared, launch.warps))
    if kernel is None or kernel.role != "sweep" or not kernel.group_len or not kernel.sections:
        return made
    made.bytes = facts.element_bytes(kernel, bits)
    kernel.keeps_rows = launch.keeps_rows
    kernel.group_len, kernel.multiple = kernel.group_len * launch.groups_a_row, max(1, kernel.multiple // launch.groups_a_row)
    count.measure(made, kernel, bits, functions, groups_a_warp(options, kernel, launch))
    return made


def names(options):
    if options.only:
        return options.only.split(",")
    if options.benched and (options.long or not IS_LONG):
        return [p.name for p in PROGRAMS] + ["mxfp8"]
    # A wrapper is no program.
    return [e["name"] for e in json.loads(output(options.cinch, "list", "--json")) if e["family"] != "wrap"]


def library_counts(options):
    look_for_tools(options)
    programs = names(options)
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        return [c for found in pool.map(program_counts, [options] * len(programs), programs) for c in found]


def form_counts(options):
    """Kernels of encode that compute more than a look for NaN, by form."""
    look_for_tools(options)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        files = forms.write(pathlib.Path(folder))
        found = pool.map(program_counts, [options] * len(files), files.values())
        # The first sweep of a program with rows looks for NaN.
        return {what: max((c for c in counts if c.kernel.startswith("encode") and c.total is not None), key=lambda c: c.total) for what, counts in zip(files, found)}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cinch")
    parser.add_argument("tools")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--benched", action="store_true", help="the programs that are measured, and mxfp8; with CINCH_LONG the whole library")
    parser.add_argument("--long", action="store_true", help="where CINCH_LONG is set counts the programs that are measured, and is left out otherwise")
    parser.add_argument("--json", action="store_true", help="prints JSON, not a table")
    parser.add_argument("--check", action="store_true", help="fails where a budget is exceeded")
    parser.add_argument("--write-budgets", action="store_true", help="lowers budgets to what is there")
    parser.add_argument("--write-docs", action="store_true", help="writes the tables of docs/benchmarks/gpu-static.md")
    parser.add_argument("--forms", action="store_true", help="operators at widths where a cliff would be, and no programs")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if options.long and not IS_LONG:
        print("left out: CINCH_LONG is not set")
        sys.exit(NOT_HERE)
    if options.forms:
        table = report.forms_table(form_counts(options))
        print(table)
        if options.write_docs:
            report.write_page(PAGE, {"forms": table})
        return
    counts = library_counts(options)
    if options.json:
        print(json.dumps([c.as_dict() | {"share": model.share(c)} for c in counts], indent=1))
    else:
        print(report.table(counts))
    if options.write_budgets:
        budgets.write(budgets.lowered(budgets.read(options.arch), counts, not options.only and (IS_LONG or not options.benched)))
    if options.write_docs:
        report.write_page(PAGE, {f"budgets of {options.arch}": report.budgets_table(budgets.read(options.arch)), options.arch: report.table([c for c in counts if c.kernel != "cinch_serve"])})
    if options.check:
        made = budgets.read(options.arch)
        exceeded = budgets.exceeded(made, counts)
        if exceeded:
            exceeded.append(f"Budgets were counted with NVRTC {made['nvrtc']}; another one makes other code.")
            sys.exit("\n".join(exceeded))


if __name__ == "__main__":
    main()
