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

The error is that of one step with fresh states. An unbiased compressor may have a large error, because its noise averages out over ranks and steps. A sign without a magnitude (`signsgd`) has a huge one: there, the learning rate gives the
magnitude. Each point is `cinch run NAME --input {gradient}`.

## What it costs to encode

![Encode time against ratio of all programs](gallery/time_and_ratio.svg)

Here and below, the gradient is repeated to fill 64 MiB. Programs with a `sync` body are shown with their whole call, on one rank. The dashed line is the time to read the gradient once. Each point is
`cinch bench NAME --elements {elements} --input {gradient}`.

## Error feedback: look at the sum

![Errors with and without error feedback over 50 steps](gallery/feedback.svg)

If you put `error_feedback` around a compressor, the error of one step *rises*. The reason: each step also sends what earlier steps lost, so the decoded gradient is no longer near the gradient of
that step alone. Training adds up steps, so the error of the sum counts. Without feedback, an element that is never sent is lost in every step. With feedback, only the residual is missing from the sum, and it grows more slowly than the sum.

Each step here has the real gradient. Each element is multiplied by 1 plus normal noise with a standard deviation of 1. This prints the figures:

    build/venv/bin/python tests/gallery/feedback.py build/release

"""


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def span(least, most):
    return f"{most:.2f}" if round(least, 2) == round(most, 2) else f"{least:.2f} to {most:.2f}"


def several(least, most, noun):
    amount = f"{most}" if least == most else f"{least} to {most}"
    return f"{amount} {noun}{'' if most == 1 else 's'}"


def call_text(call):
    kernels, sweeps = several(call["kernels"], call["kernels"], "kernel"), several(call["sweeps_least"], call["sweeps_most"], "sweep")
    moved = (f"{span(call['read_per_element_least'], call['read_per_element'])} B read and "
             f"{span(call['written_per_element_least'], call['written_per_element'])} B written per element")
    floor = f"floor {several(call['floor_sweeps'], call['floor_sweeps'], 'sweep')}, {call['floor_read_per_element'] + call['floor_written_per_element']:.2f} B"
    return f"{kernels}, {sweeps}, {moved} ({floor})"


def parameter_text(param):
    text = f"{'const ' if param['constant'] else ''}{param['name']}: {param['type']}"
    text += f" = {param['default']}" if param["default"] else ""
    return f"`{text} in {param['range']}`" if param["range"] else f"`{text}`"


def payload_text(facts):
    if "collectives" in facts:
        return "none. Collectives: " + ", ".join(f"`{each}`" for each in facts["collectives"])
    payload = facts["payload"]
    parts = [f"count `{count['name']}` at most `{count['bound']}`" for count in payload["counts"]]
    parts += [f"`{field['name']}: {field['type']}`" + (f" by {field['by']}" if field["by"] else "") for field in payload["fields"]]
    return "; ".join(parts)


def bound_text(facts):
    if "collectives" in facts:
        return None
    bound = f"`{facts['payload_bound']}` bytes; " if facts["payload_bound"] else ""
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
    rows = [("Parameters", ", ".join(parameter_text(param) for param in facts["parameters"] if param["type"] != "compressor") or "none"),
            ("Keeps", facts["stores"]),
            ("Payload", payload_text(facts)), ("At most", bound_text(facts)), ("Adds up", ADDS_UP.get(facts["aggregation"])),
            ("Real gradient", f"ratio {number(run['ratio'])}, relative error {number(run['relative_error'])}"),
            ("Laws", laws_text(program["laws"])),
            *((f"Kernels of {call}", call_text(figures)) for call, figures in facts["calls"].items()),
            ("GPU code, sm_90", gpu_text(program["gpu"]) if "gpu" in program else None),
            ("Time on a CPU", time_text(program["bench"]))]
    lines = [f"### {title}", "", f"{facts['summary']} [Source](../{facts['source']}). Paper: {facts['paper']}", ""]
    lines += [f"- **{heading}:** {text}" for heading, text in rows if text]
    return [*lines, "", "```", facts["example"]["command"], "```", ""]


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
             "Below, bytes per element are those of 2^20 elements (`cinch explain NAME`). Laws are those of `cinch verify NAME`, each with its figure and the bound that the program claims. GPU code is that of "
             f"`cinch explain NAME --device cuda --target {GPU}`.", ""]
    family = None
    for name, program in data["programs"].items():
        if program["facts"]["family"] != family:
            family = program["facts"]["family"]
            lines += [f"## {TITLES.get(family, family.capitalize())}", "", f"`import std.{family}`", ""]
        lines += section(name, program)
    return "\n".join(lines).rstrip("\n") + "\n"
