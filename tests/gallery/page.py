"""docs/gallery.md from what is known and measured of each program."""
from facts import BENCH_ELEMENTS, ELEMENTS, GPU, GRADIENT, is_wrapper

TITLES = {"lowrank": "Low rank", "quantize": "Numbers of fewer bits", "sign": "Signs", "sparsify": "Few elements", "wrap": "Around other compressors"}
ADDS_UP = {"gather": "no: every rank's payload is decoded", "sum": "yes, field by field"}
INTRODUCTION = """# Gallery

All programs of the standard library, with what each sends, what it loses and what it costs. `cinch list` prints the same list on a terminal, and `cinch list NAME` the parameters, choices and claims of one.

**Figures.** The gradient is [`{gradient}`](../{gradient}), a small ResNet's with 603,498 elements; programs on matrices have its largest tensor. Parameters have their defaults, so programs differ in how much they are
told to keep. A wrapper is shown around the compressor that its heading names.

{when}

    ./dev gallery                                # measures everything again and writes this page
    ./dev gallery --only topk stc                # measures these again
    ./dev gallery --missing                      # measures programs that are new
    ./dev gallery --draw                         # measures nothing: texts, layouts, kernels and drawings
    ./dev gallery --check                        # fails where that would change anything; a test of ./dev test

"""
PICTURES = """## What is lost, by what is saved

![Ratio against error of all programs](gallery/ratio_and_error.svg)

The error is that of one step with fresh states. An unbiased compressor has a large one, as its noise averages out over ranks and steps; a sign without a magnitude (`signsgd`) has a huge one, as the learning rate gives the
magnitude. Each point is `cinch run NAME --input {gradient}`.

## What it costs to encode

![Encode time against ratio of all programs](gallery/time_and_ratio.svg)

The gradient is repeated as often as 64 MiB hold it, here and in the tables below. Programs with a `sync` are shown with their whole call in a world of one. The dashed line is what it takes to read the gradient once. Each point is
`cinch bench NAME --elements {elements} --input {gradient}`.

## Error feedback: look at the sum

![Errors with and without error feedback over 50 steps](gallery/feedback.svg)

The error of one step *rises* when `error_feedback` is put around a compressor, which puzzles newcomers. The reason: each step also sends what earlier steps lost, so what is decoded is no longer near the gradient of
that step alone. Training adds up steps, so the error that counts is that of the sum. Without feedback an element that is never sent is lost in every step. With feedback
what is missing of the sum is the residual alone, which grows more slowly than the sum. Each step here has the real gradient, every element times 1 and normal noise as large. The figures are printed by

    build/venv/bin/python tests/gallery/feedback.py build/release

"""


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def formula(text):
    return text.replace("|", "\\|")


def span(least, most):
    return f"{most:.2f}" if round(least, 2) == round(most, 2) else f"{least:.2f} to {most:.2f}"


def several(least, most, noun):
    amount = f"{most}" if least == most else f"{least} to {most}"
    return f"{amount} {noun}{'' if most == 1 else 's'}"


def call_text(name, call):
    kernels, sweeps = several(call["kernels"], call["kernels"], "kernel"), several(call["sweeps_least"], call["sweeps_most"], "sweep")
    moved = (f"{span(call['read_per_element_least'], call['read_per_element'])} B read and "
             f"{span(call['written_per_element_least'], call['written_per_element'])} B written per element")
    floor = f"floor {several(call['floor_sweeps'], call['floor_sweeps'], 'sweep')}, {call['floor_read_per_element'] + call['floor_written_per_element']:.2f} B"
    return f"{name}: {kernels}, {sweeps}, {moved} ({floor})"


def parameter_text(param):
    text = f"{'const ' if param['constant'] else ''}{param['name']}: {param['type']}"
    text += f" = {param['default']}" if param["default"] else ""
    return f"`{text} in {param['range']}`" if param["range"] else f"`{text}`"


def payload_text(facts):
    if "collectives" in facts:
        return "none; collectives: " + ", ".join(f"`{each}`" for each in facts["collectives"])
    payload = facts["payload"]
    parts = [f"count `{count['name']}` at most `{formula(count['bound'])}`" for count in payload["counts"]]
    parts += [f"`{field['name']}: {field['type']}`" + (f" by {field['by']}" if field["by"] else "") for field in payload["fields"]]
    return "; ".join(parts)


def bound_text(facts):
    if "collectives" in facts:
        return None
    bound = f"`{formula(facts['payload_bound'])}` bytes; " if facts["payload_bound"] else ""
    return f"{bound}{8 * facts['payload']['bound_bytes'] / ELEMENTS:.3f} bits per element of {ELEMENTS:,}"


def laws_text(laws):
    claimed = ", ".join(f"`{law['law']}` {number(law['figure'])} of {number(law['bound'])}" if law["bound"] else f"`{law['law']}`" for law in laws["claimed"])
    return f"{laws['hold']} of {laws['tried']} hold; claimed: {claimed or 'nothing'}"


def time_text(bench):
    return "; ".join(f"{name} {call['ms']:.2f} ms ({call['gb_per_s']:.1f} GB/s), {call['floor_share']:.2f} of the floor" for name, call in bench["calls"].items())


def gpu_text(gpu):
    return f"{gpu['kernels']} kernels for all calls, at most {gpu['registers']} registers and {gpu['stack_bytes']} B of stack a thread"


def section(name, program):
    facts, run = program["facts"], program["run"]
    title = facts["example"]["program"] if is_wrapper(facts) else name
    rows = [("parameters", ", ".join(parameter_text(param) for param in facts["parameters"] if param["type"] != "compressor") or "none"),
            ("keeps", facts["stores"]),
            ("payload", payload_text(facts)), ("at most", bound_text(facts)), ("adds up", ADDS_UP.get(facts["aggregation"])),
            ("real gradient", f"ratio {number(run['ratio'])}, relative error {number(run['relative_error'])}"),
            ("laws", laws_text(program["laws"])),
            ("CPU and GPU", "<br>".join(call_text(*call) for call in facts["calls"].items())),
            ("GPU, sm_90", gpu_text(program["gpu"]) if "gpu" in program else None),
            ("CPU", time_text(program["bench"]))]
    lines = [f"### {title}", "", f"{facts['summary']} [Source](../{facts['source']}). Paper: {facts['paper']}", "", "| | |", "| --- | --- |"]
    lines += [f"| {heading} | {text} |" for heading, text in rows if text]
    return [*lines, "", f"    {facts['example']['command']}", ""]


def table(programs):
    lines = ["## All programs", "", "| program | ratio | error | encode or sync, ms | of the floor | laws |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, program in programs.items():
        facts, run = program["facts"], program["run"]
        title = facts["example"]["program"] if is_wrapper(facts) else name
        call = next(iter(program["bench"]["calls"].values()))
        anchor = "".join(c for c in title if c.isalnum() or c in "_- ").replace(" ", "-")
        lines.append(f"| [{title}](#{anchor}) | {number(run['ratio'])} | {number(run['relative_error'])} | {call['ms']:.2f} | {call['floor_share']:.2f} "
                     f"| {program['laws']['hold']} of {program['laws']['tried']} |")
    return [*lines, ""]


def notes(data):
    programs = data["programs"].values()
    machines = dict.fromkeys(f"on {of['date']} at or after commit {of['commit']} ({of['processor']}, {of['threads']} threads)"
                             for of in sorted((program["measured"] for program in programs), key=lambda of: of["date"]))
    readings = [program["bench"]["bandwidth_gb_per_s"] for program in programs]
    when = (f"Kernels, bytes and layouts follow from the programs and are the same everywhere. Laws, times and GPU code were measured {', '.join(machines)}; "
            f"plain reading took place at {min(readings)} to {max(readings)} GB/s meanwhile. Times are medians; shares of the floor come from calls that take turns, and others may have used the machine. "
            f"No GPU was used: its kernels are compiled for {GPU.removeprefix('cuda:')} and counted.")
    return INTRODUCTION.format(gradient=GRADIENT, when=when) + PICTURES.format(gradient=GRADIENT, elements=BENCH_ELEMENTS)


def text(data):
    lines = [notes(data).rstrip("\n"), "", *table(data["programs"]),
             "In the tables below, bytes per element are those of 2^20 elements (`cinch explain NAME`), laws are `cinch verify NAME`: a figure stands beside the bound that the program claims. GPU kernels are "
             f"`cinch explain NAME --device cuda --target {GPU}`.", ""]
    family = None
    for name, program in data["programs"].items():
        if program["facts"]["family"] != family:
            family = program["facts"]["family"]
            lines += [f"## {TITLES.get(family, family.capitalize())}", "", f"`import std.{family}`", ""]
        lines += section(name, program)
    return "\n".join(lines).rstrip("\n") + "\n"
