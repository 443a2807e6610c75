"""Tables of counts."""
import model

HEAD = ("| program | kernel | registers | stack B | STL+LDL (in loops) | blocks, warps | 16 B loads | in flight KB: loads, stores "
        "| loop | around | all in | ALU | bound by | share |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |")


def number(value, form="{:.1f}"):
    return "" if value is None else form.format(value)


def row(c):
    held = f"{c.blocks}, {c.blocks * c.warps_a_block}"
    cells = [c.program, c.kernel, c.registers, c.stack_bytes, f"{c.stack_accesses} ({c.spills_in_loop})", held]
    if c.total is None:
        return cells + [""] * 8
    flight = f"{c.loads_in_flight / 1024:.0f}, {c.stores_in_flight / 1024:.0f}"
    limit = model.predicted(c)[1] if c.bytes else None
    return cells + [number(c.vector_share, "{:.0%}"), flight, number(c.loop), number(c.around), number(c.total), number(c.alu), limit or "",
                    number(model.share(c), "{:.2f}")]


def table(counts):
    return "\n".join([HEAD, *("| " + " | ".join(map(str, row(c))) + " |" for c in counts)])


def forms_table(counts):
    lines = ["| form | instructions per element | ALU | 16 B loads | bound by | share |", "| --- | ---: | ---: | ---: | --- | ---: |"]
    for what, c in counts.items():
        cells = [what, number(c.total), number(c.alu), number(c.vector_share, "{:.0%}"), model.predicted(c)[1] if c.bytes else "", number(model.share(c), "{:.2f}")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def budgets_table(made):
    lines = ["| program | kernel | call | instructions per element: may | goal | in flight KB of a multiprocessor: at least | goal | stack B: may | in loops: may |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for kernel in made["kernels"]:
        kept = kernel["budgets"]
        flight = kept.get("loads_in_flight") or kept["stores_in_flight"]
        cells = [kernel["program"], kernel["kernel"], kernel["call"], kept["total"]["may"], kept["total"]["goal"], flight["may"] // 1024, flight["goal"] // 1024,
                 kept["stack_bytes"]["may"], kept["spills_in_loop"]["may"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    stack, spills = made["any"]["stack_bytes"], made["any"]["spills_in_loop"]
    lines += ["", f"No kernel that is counted may have more than {stack['may']} bytes of stack (goal: {stack['goal']}) or more than {spills['may']} accesses to it inside loops "
                  f"(goal: {spills['goal']})."]
    return "\n".join(lines)


def write_page(path, parts):
    """Puts each part between its marks on a page: <!-- NAME --> and <!-- end of NAME -->."""
    text = path.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{part}\n\n{end}{rest.split(end)[1]}"
    path.write_text(text)
