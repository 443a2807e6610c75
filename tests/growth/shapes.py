"""Programs that grow: a chain of each operator, and shapes whose text is short and whose meaning is not."""


def program(body, result="x", items="", decls="", g="[f32; n]", wire="x: [f32; n]", decode="w.x", kind="encode"):
    head = f"{decls}\ncompressor grown {{\n{items}\n"
    if kind == "sync":
        return f"{head}  sync(g: {g}) {{\n{body}\n    {result}\n  }}\n}}\n"
    return (f"{head}  wire {{ {wire} }}\n  encode(g: {g}) {{\n{body}\n    wire {{ x: {result} }}\n  }}\n"
            f"  decode(w) {{ {decode} }}\n}}\n")


def chain(step, first="let mut x = g", **more):
    """`step` holds {i}, the number of the link."""
    return lambda length: program(
        f"    {first}\n" + "".join(f"    {step.format(i=i)}\n" for i in range(length)), **more)


def integers(step):
    return chain(step, "let mut x = bitcast<u32>(g)", result="bitcast<f32>(x)")


def bools(step):
    return chain(step, "let mut x = g > 0", result="x as f32")


def matrices(step, **more):
    return chain(step, g="[f32; r, c]", wire="x: [f32; r, c]", **more)


def squares(step):
    return chain(step, "let mut x = chunk(g, 16)", result="unchunk(x, n)")


def rows(step, result="unchunk(x, n)"):
    return chain(step, "let mut x = chunk(g, 16)", result=result)


def indices(step):
    return chain(step, "let mut x = iota(n)", result="g[x]")


def syncs(step):
    return chain(step, result="allreduce(x, mean)", kind="sync")


def thin_matmul(length):
    return program("    let mut x = g\n    let mut p = reshape(iota(4 * c) as f32, c, 4)\n" +
                   "    p = transpose(x) @ (x @ p)\n" * length, "x @ (p @ transpose(p))", g="[f32; r, c]", wire="x: [f32; r, c]")


SCALARS = {
    "neg": chain("x = -x * 1.5"), "abs": chain("x = abs(x) - 1"), "sign": chain("x = sign(x) - 0.5"), "sqrt": chain("x = sqrt(x)"),
    "rsqrt": chain("x = rsqrt(x)"), "exp": chain("x = exp(x)"), "exp2": chain("x = exp2(x)"), "log": chain("x = log(x)"),
    "log2": chain("x = log2(x)"), "sin": chain("x = sin(x)"), "cos": chain("x = cos(x)"), "floor": chain("x = floor(x) * 1.5"),
    "ceil": chain("x = ceil(x) * 1.5"), "round": chain("x = round(x) * 1.5"), "trunc": chain("x = trunc(x) * 1.5"),
    "isnan": chain("x = isnan(x) as f32"), "isfinite": chain("x = isfinite(x) as f32"), "popcount": integers("x = popcount(x)"),
    "clz": integers("x = clz(x)"), "add": chain("x = x + g"), "sub": chain("x = g - x"), "mul": chain("x = x * g"),
    "div": chain("x = g / x"), "mod": integers("x = (x + 3) % 1021"), "pow": chain("x = pow(x, 1.5)"), "min": chain("x = min(x, g * {i})"),
    "max": chain("x = max(x, g * {i})"), "bit_and": integers("x = x & (x + {i})"), "bit_or": integers("x = x | (x - {i})"),
    "bit_xor": integers("x = x ^ (x + {i})"), "bit_not": integers("x = !x + 1"), "logical_and": bools("x = x && g > {i}"),
    "logical_or": bools("x = x || g > {i}"), "logical_not": bools("x = !(x && g > {i})"), "shl": integers("x = (x << 1) + 1"),
    "shr": integers("x = (x >> 1) + {i}"), "eq": bools("x = x == (g > {i})"), "ne": bools("x = x != (g > {i})"),
    "lt": bools("x = g < select(x, 1.0, {i})"), "le": bools("x = g <= select(x, 1.0, {i})"),
    "gt": bools("x = g > select(x, 1.0, {i})"), "ge": bools("x = g >= select(x, 1.0, {i})"),
    "divide_or_zero": chain("x = divide_or_zero(g, x)"), "ceil_div": integers("x = ceil_div(x, 3) + 7"),
    "fma": chain("x = fma(x, g, x)"), "clamp": chain("x = clamp(x, -{i}, g)"), "select": chain("x = select(x > {i}, g, x)"),
    "convert": chain("x = (x as f16) + g"), "bitcast": chain("x = bitcast<f32>(bitcast<u32>(x) + 1)"),
}

BUILTINS = {
    "map": chain("x = map(x, g, |a, b| a * b + 1)"), "fill": chain("x = x + fill({i} * 0.5, n)"),
    "len": chain("x = x * len(x)"), "reduce": chain("x = x + reduce(x, 0.0, |a, b| max(a, b))"),
    "sum": chain("x = x + sum(x)"), "mean": chain("x = x - mean(x)"), "std": chain("x = x / std(x)"), "min_of": chain("x = x - min(x)"),
    "max_of": chain("x = x - max(x)"), "argmax": chain("x = x + argmax(x) as f32"), "any": chain("x = x + any(x > {i}) as f32"),
    "all": chain("x = x + all(x > {i}) as f32"), "count": chain("x = x + count(x > {i}) as f32"), "dot": chain("x = x * dot(x, g)"),
    "norm1": chain("x = x / norm1(x)"), "norm2": chain("x = x / norm2(x)"), "norm_inf": chain("x = x / norm_inf(x)"),
    "masked_sum": chain("x = x + sum(x, where: x > {i})"), "row_sum": rows("x = x + sum(x, axis: 1)"),
    "column_sum": rows("x = x + sum(x, axis: 0)"), "scan": chain("x = scan(x, 0.0, |a, b| max(a, b)) + g"),
    "cumsum": chain("x = cumsum(x) + g"), "filter": chain("let y{i} = filter(x, where: x > {i})\n    x = x + sum(y{i})"),
    "nonzero": chain("let y{i} = nonzero(x > {i})\n    x[y{i}] = 0"),
    "sort": chain("x = sort(x * g)"), "argsort": chain("x = x[argsort(x * g)]"), "sort_by_key": chain("x = sort_by_key(x, g) + x"),
    "top_k": chain("x[top_k(x, min(n, 10))] = 0"), "kth_largest": chain("x = x - kth_largest(x, 1)"),
    "pack": chain("x = x + sum(pack(iota(n) + x as u32, bits: 3)) as f32"),
    "unpack": chain("x = x + unpack(pack(bitcast<u32>(x), bits: 4), bits: 4, size: n) as f32"),
    "concat": chain("x = concat(x, g)[0..n]"), "concat_long": chain("x = concat(g, x)[1..n + 1]"),
    "slice": chain("x = slice(concat(x, g), 1, n) + {i}"), "range": chain("x = x + sum(x[0..min(n, {i} + 1)])"),
    "element": chain("x = x + x[0]"), "gather": chain("x = x[random_index(n, size: n)] + g"), "gather_map": indices("x = x[x]"),
    "scatter": chain("x = scatter(x, at: random_index(n, size: n), size: n) + g"),
    "scatter_add": chain("x = scatter_add(x, at: iota(n) / 2, size: n)"), "store": chain("x[iota(n)] = x + {i}"),
    "reshape": chain("x = reshape(reshape(x, 1, n) + 1, n)"), "transpose": matrices("x = transpose(transpose(x) + {i})"),
    "chunk": chain("x = unchunk(chunk(x, 16) + {i}, n)"), "iota": chain("x = x + iota(n) as f32"),
    "histogram": chain("x = x + sum(histogram((iota(n) + {i}) % 8, bins: 8)) as f32"),
    "random": chain("x = x + random(n)"), "random_bits": chain("x = x + random_bits(n) as f32"), "normal": chain("x = x + normal(n)"),
    "random_index": chain("x = x + random_index(n, size: n) as f32"), "stochastic_round": chain("x = stochastic_round(x) * 0.5"),
    "matmul": matrices("x = x @ (transpose(x) @ x)"), "thin_matmul": thin_matmul,
    "orthonormalize": matrices("x = orthonormalize(x) + {i}"), "hadamard": rows("x = hadamard(x) + {i}"),
    "hadamard_long": chain("x = unchunk(hadamard(chunk(x, 1024)), n) + {i}"),
    "row_top_k": rows("x = scatter(x[top_k(x, 4, axis: 1)], at: top_k(x, 4, axis: 1), size: 16) + {i}"),
    "row_sort": rows("x = sort(x, axis: 1) * {i}"), "row_cumsum": rows("x = cumsum(x, axis: 1) * 0.5"),
    "lambda_table": chain("x = map(x, |a| a + sum([0.5, 1.5] * a))"), "lambda_gather": chain("x = map(iota(n), |i| x[i] + g[i])"),
    "allreduce": syncs("x = allreduce(x, mean) + g"), "allgather": syncs("x = x + sum(allgather(x))"),
    "all_to_all": syncs("x = x + sum(all_to_all(allgather(x)))"), "reduce_scatter": syncs("x = reduce_scatter(allgather(x))"),
    "broadcast": syncs("x = broadcast(x, root: 0) + g"), "sendrecv": syncs("x = sendrecv(x, to: worker) + g"),
    "allgather_counted": syncs("x = x + sum(allgather(filter(x, where: x > 0)))"),
    "sendrecv_counted": syncs("x = x + sum(sendrecv(filter(x, where: x > 0), to: worker))"),
}

STATEMENTS = {
    "lets": lambda k: program("    let x0 = g\n" + "".join(f"    let x{i + 1} = x{i} * 1.5\n" for i in range(k)), f"x{k}"),
    "if": chain("let c{i} = mean(g) > {i}\n    if c{i} {{ x = x * 2 }} else {{ x = x + 1 }}"),
    "if_scalar": chain("y = if y > {i} {{ y * 2 }} else {{ y + 1 }}", "let mut y = mean(g)", result="g * y"),
    "if_reduction": chain("if mean(x) > {i} {{ x = x * 2 }} else {{ x = x + 1 }}"),
    "for": chain("for i in 0..3 {{ x = x * 2 + i }}"), "while": chain("while mean(x) > {i}, at_most: 3 {{ x = x - 1 }}"),
    "assert": chain("assert mean(g) < 1e30 - {i}, \"large\""), "checked_index": chain("x = x + g[x as u32]"),
    "size_check": chain("x = x + sum(x[0..{i}])"),
    "many_mutables": lambda k: program(
        "".join(f"    let mut x{i} = g * {i}\n" for i in range(k)) + "    for i in 0..3 {\n" +
        "".join(f"      x{i} = x{i} + 1\n" for i in range(k)) + "    }\n", "x0"),
    "branch_mutables": lambda k: program(
        "".join(f"    let mut x{i} = g * {i}\n" for i in range(k)) + "    if mean(g) > 0 {\n" +
        "".join(f"      x{i} = x{i} + 1\n" for i in range(k)) + "    }\n", f"x{k - 1}"),
    "fields": lambda k: ("compressor grown {\n  wire { " + ", ".join(f"x{i}: [f32; n]" for i in range(k)) + " }\n  encode(g: [f32; n]) { wire { " +
                         ", ".join(f"x{i}: g * {i}" for i in range(k)) + " } }\n  decode(w) { w.x0 }\n}\n"),
    "counts": lambda k: ("compressor grown {\n  wire { " + ", ".join(f"count m{i} <= n, x{i}: [u32; m{i}]" for i in range(k)) +
                         " }\n  encode(g: [f32; n]) { wire { " + ", ".join(f"x{i}: nonzero(g > {i})" for i in range(k)) +
                         " } }\n  decode(w) { scatter(fill(1.0, m0), at: w.x0, size: n) }\n}\n"),
    "states": lambda k: program("".join(f"    s{i} = s{i} + g\n" for i in range(k)), "s0",
                                items="".join(f"  state s{i}: [f32; n] = 0\n" for i in range(k))),
    "params": lambda k: program("    let mut x = g\n" + "".join(f"    x = x * p{i}\n" for i in range(k))).replace(
        "compressor grown {", "compressor grown(" + ", ".join(f"p{i}: f32 = 1" for i in range(k)) + ") {"),
    "sizes": lambda k: program("", "g", items="  size k0 = n\n" + "".join(f"  size k{i + 1} = min(k{i} + 1, n)\n" for i in range(k))),
    "size_sum": lambda k: program("", f"fill(1.0, k{k})[0..n]",
                                  items="  size k0 = n\n" + "".join(f"  size k{i + 1} = k{i} + ceil_div(n, {i + 2})\n" for i in range(k))),
    "consts": lambda k: program("", f"g * c{k}", decls="const c0 = 1\n" + "".join(f"const c{i + 1} = c{i} + 1\n" for i in range(k))),
    "own_consts": lambda k: program("", f"g * c{k}", items="  const c0 = 1\n" + "".join(f"  const c{i + 1} = c{i} + 1\n" for i in range(k))),
    "fns": lambda k: program("", "g * f0(1.0)" if k == 0 else f"f{k}(g)", decls="fn f0(x: [f32; m]) -> [f32; m] { x }\n" +
                             "".join(f"fn f{i + 1}(x: [f32; m]) -> [f32; m] {{ x + {i} }}\n" for i in range(k))),
    "fn_calls": lambda k: program("    let mut x = g\n" + "    x = f(x)\n" * k, decls="fn f(x: [f32; m]) -> [f32; m] { x * 2 + 1 }\n"),
    "scalar_fn_calls": lambda k: program("    let mut x = g\n" + "    x = map(x, |a| f(a))\n" * k, decls="fn f(x: f32) -> f32 { x * 2 + 1 }\n"),
    "sum_of_terms": lambda k: program("", " +\n      ".join(["g"] + [f"g * {i}" for i in range(min(k, 250))])),
    "compressors": lambda k: "".join(program("", f"g * {i}").replace("grown", f"grown{i}" if i else "grown") for i in range(k)),
    "long_table": lambda k: program("", "g * sum(t)", decls="const t = [" + ", ".join(f"{i}.5" for i in range(k)) + "]\n"),
    "table_sum": lambda k: program("", "g * sum(t)", decls="const t = " + "iota(64) as f32" + "".join(f" * {i}" for i in range(min(k, 250))) + "\n"),
}

CHAINS = {**SCALARS, **BUILTINS, **STATEMENTS}

EF = """compressor ef(inner: compressor) {
  state s: [f32; n] = 0
  wire inner.wire
  encode(g: [f32; n]) {
    let w = inner.encode(g + s)
    s = g + s - inner.decode(w)
    w
  }
  decode(w) { inner.decode(w) }
}
compressor plain {
  wire { x: [f32; n] }
  encode(g: [f32; n]) { wire { x: g } }
  decode(w) { w.x }
}
compressor twice(inner: compressor) {
  wire { a: inner.wire, b: inner.wire }
  encode(g: [f32; n]) { wire { a: inner.encode(g), b: inner.encode(g * 2) } }
  decode(w) { inner.decode(w.a) + inner.decode(w.b) }
}
compressor pair(one: compressor, two: compressor) {
  wire { a: one.wire, b: two.wire }
  encode(g: [f32; n]) { wire { a: one.encode(g), b: two.encode(g) } }
  decode(w) { one.decode(w.a) + two.decode(w.b) }
}
"""


def wrapped(name, depth):
    return EF + "compressor grown = " + f"{name}(" * depth + "plain" + ")" * depth + "\n"


def named_wrapped(step, depth):
    text = EF + "compressor c0 = plain\n"
    for i in range(depth):
        text += f"compressor {'grown' if i == depth - 1 else f'c{i + 1}'} = {step.format(c=f'c{i}')}\n"
    return text


def doubling_fns(depth, body="f{i}(x) + f{i}(x)"):
    decls = "fn f0(x: [f32; m]) -> [f32; m] { x }\n"
    for i in range(depth):
        decls += f"fn f{i + 1}(x: [f32; m]) -> [f32; m] {{ {body.format(i=i)} }}\n"
    return program("", f"f{depth}(g)", decls=decls)


def doubling_consts(depth, first="1", step="c{i} + c{i}", use="g * c{k}", where="decls"):
    text = f"const c0 = {first}\n" + "".join(f"const c{i + 1} = {step.format(i=i)}\n" for i in range(depth))
    return program("", use.format(k=depth), **{where: text})


def nested(opening, middle, closing, depth):
    return program("", opening * depth + middle + closing * depth)


SHAPES = {
    "ef_40": lambda: wrapped("ef", 40), "ef_12": lambda: wrapped("ef", 12), "ef_70": lambda: wrapped("ef", 70), "ef_300": lambda: wrapped("ef", 300),
    "ef_5000": lambda: wrapped("ef", 5000), "named_ef_40": lambda: named_wrapped("ef({c})", 40), "named_ef_400": lambda: named_wrapped("ef({c})", 400),
    "twice_20": lambda: wrapped("twice", 20), "twice_60": lambda: wrapped("twice", 60), "named_pair_20": lambda: named_wrapped("pair({c}, {c})", 20),
    "named_pair_12": lambda: named_wrapped("pair({c}, {c})", 12), "named_pair_60": lambda: named_wrapped("pair({c}, {c})", 60),
    "fns_40": lambda: doubling_fns(40), "fns_arg_40": lambda: doubling_fns(40, "f{i}(f{i}(x))"), "fns_190": lambda: doubling_fns(190, "f{i}(f{i}(x) + 1)"),
    "fns_once_190": lambda: doubling_fns(190, "f{i}(x) + 1"), "fns_once_3000": lambda: doubling_fns(3000, "f{i}(x) + 1"),
    "fns_numbers_40": lambda: program("", "g * f40(2)", decls="fn f0(x: u32) -> u32 { x }\n" + "".join(
        f"fn f{i + 1}(x: u32) -> u32 {{ f{i}(x) + f{i}(x) }}\n" for i in range(40))),
    "fns_in_size_40": lambda: program("", "g", items="  size k = min(f40(n), n)\n", decls="fn f0(x: f32) -> f32 { x }\n" + "".join(
        f"fn f{i + 1}(x: f32) -> f32 {{ f{i}(x) + f{i}(x) }}\n" for i in range(40))),
    "fns_in_lambda_40": lambda: program("", "map(g, |a| f40(a))", decls="fn f0(x: f32) -> f32 { x }\n" + "".join(
        f"fn f{i + 1}(x: f32) -> f32 {{ f{i}(x) + f{i}(x) }}\n" for i in range(40))),
    "consts_40": lambda: doubling_consts(40), "consts_62": lambda: doubling_consts(62), "consts_70": lambda: doubling_consts(70),
    "own_consts_40": lambda: doubling_consts(40, where="items"), "float_consts_40": lambda: doubling_consts(40, "1.5"),
    "unused_consts_40": lambda: doubling_consts(40, use="g"),
    "const_tables_40": lambda: doubling_consts(40, "[1.0, 2.0]", "c{i} + c{i}", "g * sum(c{k})"),
    "const_concat_10": lambda: doubling_consts(10, "[1.0, 2.0]", "concat(c{i}, c{i})", "g * sum(c{k})"),
    "const_concat_16": lambda: doubling_consts(16, "[1.0, 2.0]", "concat(c{i}, c{i})", "g * sum(c{k})"),
    "const_concat_40": lambda: doubling_consts(40, "[1.0, 2.0]", "concat(c{i}, c{i})", "g * sum(c{k})"),
    "own_const_concat_40": lambda: doubling_consts(40, "[1.0, 2.0]", "concat(c{i}, c{i})", "g * sum(c{k})", "items"),
    "const_iota_40": lambda: doubling_consts(40, "iota(64) as f32", "c{i} * c{i}", "g * sum(c{k})"),
    "own_const_iota_40": lambda: doubling_consts(40, "iota(64) as f32", "c{i} * c{i}", "g * sum(c{k})", "items"),
    "const_chain_5000": lambda: doubling_consts(5000, "1", "c{i} + 1", "g * c{k}"),
    "const_chain_20000": lambda: doubling_consts(20000, "1", "c{i} + 1", "g * c{k}"),
    "sizes_40": lambda: program("", "g", items="  size k0 = n\n" + "".join(f"  size k{i + 1} = k{i} + k{i}\n" for i in range(40))),
    "sizes_80": lambda: program("", "g", items="  size k0 = n\n" + "".join(f"  size k{i + 1} = k{i} + k{i}\n" for i in range(80))),
    "size_products_40": lambda: program("", "g", items="  size k0 = n + world\n" + "".join(f"  size k{i + 1} = k{i} * k{i}\n" for i in range(40))),
    "size_min_40": lambda: program("    let y = fill(1.0, k40)", "g + y[0]", items="  size k0 = n\n" + "".join(
        f"  size k{i + 1} = min(k{i} + step, max(k{i}, world))\n" for i in range(40))),
    "size_select_400": lambda: program("    let y = fill(1.0, k400)", "g + y[0]", items="  size k0 = n\n" + "".join(
        f"  size k{i + 1} = if k{i} > {i} {{ ceil_div(k{i}, 2) }} else {{ k{i} + 1 }}\n" for i in range(400))),
    "let_doubling_40": lambda: program("    let x0 = g\n" + "".join(f"    let x{i + 1} = x{i} + x{i}\n" for i in range(40)), "x40"),
    "array_doubling_30": lambda: program("    let x0 = g\n" + "".join(f"    let x{i + 1} = concat(x{i}, x{i})\n" for i in range(30)), "x30[0..n]"),
    "array_doubling_80": lambda: program("    let x0 = g\n" + "".join(f"    let x{i + 1} = concat(x{i}, x{i})\n" for i in range(80)), "x80[0..n]"),
    "array_squares_20": lambda: program("    let x0 = g\n" + "".join(f"    let x{i + 1} = unchunk(chunk(x{i}, 2) + {i}, n)\n" for i in range(20)), "x20"),
    "parens_200": lambda: nested("(", "g", ")", 200), "parens_10000": lambda: nested("(", "g", ")", 10000), "parens_200000": lambda: nested("(", "g", ")", 200000),
    "open_parens_400000": lambda: program("", "(" * 400000), "minus_10000": lambda: nested("-", "g", "", 10000), "minus_400000": lambda: nested("-", "g", "", 400000),
    "not_10000": lambda: nested("!", "(g > 0)", "", 10000), "blocks_10000": lambda: nested("{ ", "g", " }", 10000),
    "ifs_200": lambda: nested("if mean(g) > 0 { ", "g", " } else { g }", 200), "ifs_10000": lambda: nested("if mean(g) > 0 { ", "g", " } else { g }", 10000),
    "else_ifs_200": lambda: nested("if mean(g) > 0 { g } else ", "{ g }", "", 200), "else_ifs_10000": lambda: nested("if mean(g) > 0 { g } else ", "{ g }", "", 10000),
    "nested_ifs_two_40": lambda: program("    let mut x = g\n" + "    if mean(x) > 0 {\n" * 40 + "      x = x + 1\n" + "    }\n" * 40),
    "nested_loops_40": lambda: program("    let mut x = g\n" + "".join(f"    for i{i} in 0..2 {{\n" for i in range(40)) + "      x = x + 1\n" + "    }\n" * 40),
    "nested_whiles_40": lambda: program("    let mut x = g\n" + "    while mean(x) > 0, at_most: 2 {\n" * 40 + "      x = x - 1\n" + "    }\n" * 40),
    "indices_10000": lambda: nested("g[", "0", "]", 10000), "calls_10000": lambda: nested("abs(", "g", ")", 10000), "calls_250": lambda: nested("abs(", "g", ")", 250),
    "plus_10000": lambda: program("", "g" + " + g" * 10000), "plus_250": lambda: program("", "g" + " + g" * 250), "compare_10000": lambda: program("", "g" + " < g" * 10000),
    "suffix_10000": lambda: program("", "g" + "[0..n]" * 10000), "casts_10000": lambda: program("", "g" + " as f32" * 10000),
    "types_10000": lambda: program("", "g", items="  state s: " + "[" * 10000 + "f32" + "; n]" * 10000 + " = 0\n"),
    "stores_20": lambda: program("    let mut x = g\n" + "    x[top_k(abs(x), 1)] = 1\n" * 20),
    "filters_60": lambda: program("    let y0 = filter(g, where: g > 0)\n" + "".join(f"    let y{i + 1} = filter(y{i}, where: y{i} > {i})\n" for i in range(59)),
                                  "g + sum(y59)"),
    "filters_1000": lambda: program("    let y0 = filter(g, where: g > 0)\n" + "".join(f"    let y{i + 1} = filter(y{i}, where: y{i} > {i})\n" for i in range(999)),
                                    "g + sum(y999)"),
    "claims_3000": lambda: program("", "g", items="  claims " + ", ".join(["linear"] * 3000) + "\n"),
    "args_20000": lambda: program("", "concat(" + ", ".join(["g"] * 20000) + ")[0..n]"),
    "args_1000": lambda: program("", "concat(" + ", ".join(["g"] * 1000) + ")[0..n]"),
    "map_args_1000": lambda: program("", "map(" + ", ".join(["g"] * 1000) + ", |" + ", ".join(f"a{i}" for i in range(1000)) + "| a0 + a999)"),
    "table_100000": lambda: program("", "g * sum(t)", decls="const t = [" + ", ".join(["1.5"] * 100000) + "]\n"),
    "fn_table_40": lambda: program("", "g * f([1.0, 2.0])[0]", decls="fn f(x: [f32; m]) -> [f32; m] { x" + " + x" * 40 + " }\n"),
    "loop_rounds": lambda: program("    let mut x = g\n    for i in 0..100000000 { x = x + i }"),
    "constant_loop": lambda: program("", "g * total", decls="fn f(x: [f32; m]) -> [f32; m] {\n  let mut y = x\n  for i in 0..1000000000 { y = y * 0.5 + i }\n  y\n}\nconst total = sum(f(exp(iota(4000) as f32)))\n"),
    "constant_big": lambda: program("", "g * total", decls="const total = sum(exp(iota(4000000000) as f32))\n"),
    "constant_matmul": lambda: program("", "g * total", decls="const a = chunk(exp(iota(4096) as f32), 1)\nconst total = sum(a @ transpose(a))\n"),
    "deep_fns": lambda: program("", "f199(g)", decls="fn f0(x: [f32; m]) -> [f32; m] { x }\n" + "".join(
        f"fn f{i + 1}(x: [f32; m]) -> [f32; m] {{ " + "(" * 240 + f"f{i}(x)" + ")" * 240 + " }\n" for i in range(199))),
    "const_sums_3000": lambda: program("    let mut x = g\n    let mut t = iota(64) as f32\n" + "    t = t * 1.5\n    x = x + sum(t)\n" * 3000),
    "const_chain_exp": lambda: program("    let mut t = iota(64) as f32\n" + "    t = t * 1.5 + 1\n" * 8000, "g * sum(exp(t))"),
    "big_programs": lambda: "".join(program("    let mut x = g\n" + "    x = x * 2\n" * 1000).replace("grown", f"grown{i}" if i else "grown") for i in range(60)),
    "fns_of_fns": lambda: program("", "g", decls="fn f0(x: f32) -> f32 { x" + " + x" * 200 + " }\n" + "".join(
        f"fn f{i + 1}(x: f32) -> f32 {{ f0(x) + f0(x) + f0(x) + f0(x) + f0(x) + f0(x) }}\n" for i in range(3000))),
    "constant_sorts": lambda: program("", "g * total", decls="const a = sort(exp(iota(4096) as f32))\nconst total = sum(" + " + ".join(["sort(a)"] * 200) + ")\n"),
}
