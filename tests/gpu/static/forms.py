"""Operators at widths where a cliff would be: programs of one operator each, as those of tests/bench/cliffs.py."""
ROWS = (2, 3, 5, 8, 10, 16, 24, 33, 48, 64)


def along(operator, width):
    return f"{operator}(chunk(g, {width}), axis: 1)", "r, 1", f"size r = ceil_div(n, {width})"


def across(operator, height):
    return f"{operator}(reshape(g[0..{height} * c], {height}, c), axis: 0)", "1, c", f"size c = n / {height}"


FORMS = {f"{operator} of rows of {width}": along(operator, width) for operator in ("sum", "norm_inf") for width in ROWS}
FORMS |= {f"sum of {height} rows": across("sum", height) for height in (1, 2, 4, 16, 64)}
FORMS |= {
    "cumsum of rows of 256": ("cumsum(chunk(g, 256), axis: 1)", "r, 256", "size r = ceil_div(n, 256)"),
    "exp2(floor(log2(x)))": ("exp2(floor(log2(abs(g))))", "n", ""),
    "transpose of 64 rows": ("transpose(reshape(g[0..64 * c], 64, c))", "c, 64", "size c = n / 64"),
}


def write(folder):
    """The programs' files, by what they do."""
    files = {}
    for number, (what, (expression, length, size)) in enumerate(FORMS.items()):
        files[what] = folder / f"form{number}.cinch"
        files[what].write_text(f"compressor form {{\n  {size}\n  wire {{ out: [f32; {length}] }}\n  encode(g: [f32; n]) {{ wire {{ out: {expression} }} }}\n"
                               "  decode(w) { fill(0.0, n) }\n}\n")
    return files
