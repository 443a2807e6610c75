"""Tests of the counting: machine code with counts that are known, and budgets that are exceeded."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import budgets  # noqa: E402
import count  # noqa: E402
import facts  # noqa: E402
import flow  # noqa: E402
import model  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import sass  # noqa: E402
import walk  # noqa: E402

LOAD, STORE, WORD = "LDG.E.128 R4, desc[UR4][R2.64]", "STG.E.128 desc[UR4][R2.64], R4", "STG.E desc[UR4][R2.64], R4"


def functions_of(text):
    return flow.Functions(sass.parse(text), lambda instr: walk.access(instr) is not None)


def assembled(*lines):
    """A kernel `k`: each line a label with its colon, or an instruction."""
    text = ['\t.section\t.text.k,"ax",@progbits', ".text.k:", "k:"]
    address = 0
    for line in lines:
        if line.endswith(":"):
            text.append(line)
        else:
            guard, rest = line.split(" ", 1) if line.startswith("@") else ("", line)
            text.append(f"        /*{address:04x}*/  {guard} {rest} ;")
            address += 16
    return functions_of("\n".join(text))


def a_kernel(sections, group_len=1024):
    return facts.Kernel("k", "sweep", "tile", group_len, sections=sections)


def counted(functions, kernel, bits, groups=1, blocks=4):
    made = count.Count("p", kernel.name, "sweep", 64, 0, 0, 0, 8, blocks)
    made.bytes = facts.element_bytes(kernel, bits)
    count.measure(made, kernel, bits, functions, groups)
    return made


def straight(number):
    return ["FMUL R4, R4, R4"] * number


class Scale(unittest.TestCase):
    """data/scale.sass: tiles by a warp, four rounds of two rows."""

    def setUp(self):
        self.functions = functions_of((HERE / "data" / "scale.sass").read_text())
        self.kernel = a_kernel([(True, [("ld", 0), ("st", 1)])])
        self.kernel.name = "scale"
        self.bits = {0: 32, 1: 32}

    def test_stack(self):
        everything, looped = count.in_loops(self.functions, "scale", False)
        self.assertEqual(sum(i.name in count.SPILLS for i in everything), 3)
        self.assertEqual(sorted(i.address for i in looped if i.name in count.SPILLS), [0x218, 0x538])

    def test_loops(self):
        nodes, entry = flow.inline(self.functions, "scale")
        loops = flow.natural_loops(nodes, entry)
        self.assertEqual([hex(nodes[loop.header].instrs[0].address) for loop in loops], ["0x140", "0x210"])
        self.assertLess(loops[1].nodes, loops[0].nodes)

    def test_instructions(self):
        made = counted(self.functions, self.kernel, self.bits)
        # By hand: 13 before the rows, four times 29 by the way of aligned rows, 5 behind them.
        self.assertEqual(made.loop * 32, 13 + 4 * 29 + 5)
        # 21 to the loop, EXIT behind it.
        self.assertEqual(made.around * 32, 21 + 1)
        self.assertEqual(made.total, made.loop + made.around)
        # 10 in a round over rows, 4 beside these in one over tiles, 8 around.
        self.assertEqual(made.alu * 32, 4 * 10 + 4 + 8)

    def test_spread_over_groups(self):
        made = counted(self.functions, self.kernel, self.bits, groups=22)
        self.assertEqual(made.around * 32, 1)

    def test_memory(self):
        made = counted(self.functions, self.kernel, self.bits)
        self.assertEqual(made.vector_share, 1)
        threads = 32 * 8 * 4
        self.assertEqual(made.loads_in_flight, 2 * 16 * threads)
        self.assertEqual(made.stores_in_flight, 2 * 16 * threads)
        self.assertEqual(made.bytes, 8)
        self.assertGreater(made.round_cycles, 4 * model.LATENCY * model.CLOCK)
        self.assertIn("| scale |", report.table([made]))


class Shapes(unittest.TestCase):
    def test_sections_have_loops_of_their_own(self):
        """The second loop over rows costs more: the first cannot stand in for it."""
        functions = assembled(".L0:", "MOV R0, R1", ".L1:", LOAD, *straight(1), "@P0 BRA `(.L1)", "@P1 BRA `(.L3)", ".L2:", LOAD, *straight(5),
                              "@P0 BRA `(.L2)", ".L3:", "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0)]), (True, [("ld", 0)])]), {0: 32})
        self.assertEqual(made.loop * 32, 1 + 8 * 3 + 1 + 8 * 7 + 1)

    def test_loaded_once_for_two_sections(self):
        functions = assembled(".L0:", *[LOAD.replace("R4", f"R{4 * r}") for r in range(2, 10)], *straight(10), "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0)]), (True, [("ld", 0)])]), {0: 32})
        self.assertEqual(made.loop * 32, 8 + 10 + 1)
        self.assertEqual(made.loads_in_flight, 8 * 16 * 32 * 8 * 4)

    def test_packed_stores_are_not_skipped(self):
        functions = assembled(".L0:", "MOV R0, R1", ".L1:", LOAD, "@P1 BRA `(.L2)", *straight(3), WORD, ".L2:", "@P0 BRA `(.L1)",
                              "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0), ("st", 1)])]), {0: 32, 1: 2})
        self.assertEqual(made.loop * 32, 1 + 8 * 7 + 1)

    def test_packed_stores_of_several_rows(self):
        functions = assembled(".L0:", "MOV R0, R1", ".L1:", LOAD, LOAD, *straight(3), WORD, "@P0 BRA `(.L1)", "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0), ("st", 1)])]), {0: 32, 1: 2})
        self.assertEqual(made.loop * 32, 1 + 4 * 7 + 1)

    def test_fast_copy_beside_a_slow_one(self):
        """Four rows stored together, beside a copy that stores each row: the shorter one counts, though it stores less often."""
        fast = [*[LOAD.replace("R4", f"R{4 * r}") for r in range(2, 6)], *straight(6), WORD]
        functions = assembled(".L0:", "@P3 BRA `(.L2)", ".L1:", *fast, "@P0 BRA `(.L1)", "BRA `(.L3)", ".L2:", LOAD, *straight(9), WORD, "@P0 BRA `(.L2)",
                              ".L3:", "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0), ("st", 1)])]), {0: 32, 1: 2})
        self.assertEqual(made.loop * 32, 1 + 2 * 12 + 1 + 1)

    def test_results_of_a_group_are_stored(self):
        functions = assembled(".L0:", "MOV R0, R1", ".L1:", LOAD, "@P0 BRA `(.L1)", "@P1 BRA `(.L2)", WORD, WORD, ".L2:", "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0)]), (False, [("st", 1), ("st", 2)])]), {0: 32, 1: 32, 2: 32})
        self.assertEqual(made.loop * 32, 1 + 8 * 2 + 1 + 2 + 1)

    def test_tickets(self):
        """A loop that is left at its head: the last ticket, of no group, counts as around it."""
        functions = assembled("MOV R0, R1", ".L0:", "MOV R0, R1", "@P2 BRA `(.L2)", ".L1:", LOAD, "@P0 BRA `(.L1)", "BRA `(.L0)", ".L2:", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0)])]), {0: 32})
        self.assertEqual((made.loop * 32, made.around * 32), (2 + 8 * 2 + 1, 1 + 2 + 1))

    def test_without_wide_accesses(self):
        lines = [*["LDG.E R4, desc[UR4][R2.64]"] * 4, *straight(2), *["STG.E desc[UR4][R2.64], R4"] * 4]
        functions = assembled(".L0:", "MOV R0, R1", ".L1:", *lines, "@P0 BRA `(.L1)", "@P2 BRA `(.L0)", "EXIT")
        made = counted(functions, a_kernel([(True, [("ld", 0), ("st", 1)])]), {0: 32, 1: 32})
        self.assertEqual((made.loop * 32, made.vector_share), (1 + 8 * 11 + 1, 0))

    def test_nothing_that_moves_a_group(self):
        made = counted(assembled("MOV R0, R1", "EXIT"), a_kernel([(True, [("ld", 0)])]), {0: 32})
        self.assertIsNone(made.total)
        self.assertIn("| k |", report.table([made]))


class Facts(unittest.TestCase):
    def test_kernel_ir(self):
        text = """buffers[0] {name="gradient", dtype=f32, storage_bits=32, num_elems=n, role=gradient, role_index=0}
buffers[1] {name="code", dtype=u2, storage_bits=2, num_elems=n, role=field, role_index=0}
buffers[2] {name="norm", dtype=f32, storage_bits=32, num_elems=ceil_div(n, 512), role=field, role_index=1}
kernel {
  symbol="encode_rows"
  role=sweep
  group_multiple=8
  group_kind=row
  group_len=512
  kernel:
    %1: i64 = constant {bits=0x200}  // 512
  group:
    %0: i64 = group
  elements:
    %5: f32 = load_linear %2, %4 @0  // gradient
  group:
    store_at %0, %32 @2  // norm
  elements:
    %6: f32 = load_linear %2, %4 @0  // gradient
    store_linear %44, %2, %4 @1  // code
}
"""
        kernels, bits = facts.kernels(text)
        kernel = kernels["encode_rows"]
        self.assertEqual((kernel.role, kernel.group, kernel.group_len, kernel.multiple), ("sweep", "row", 512, 8))
        self.assertEqual(facts.needed(kernel, bits, 1, True), [{("ld", 128): 4}, {("st", 0): 1}, {("ld", 128): 4, ("st", 0): 4}])
        self.assertEqual(facts.element_bytes(kernel, bits), 4.25)


    def test_launches(self):
        text = """CINCH_FN void a_body(int x) {
  constexpr u32 kRowLanes = 8u;
}
CINCH_FN void b_body(int x) {
}
extern "C" __global__ void __launch_bounds__(256, 4)
    a(int x) {
extern "C" __global__ void __launch_bounds__(128)
    b(int x) {
"""
        self.assertEqual(run.launches(text), {"a": run.Launch(8, 4, 4), "b": run.Launch(4, 1, 1)})


class Model(unittest.TestCase):
    def test_blocks(self):
        self.assertEqual(model.blocks(64, 0, 8), 4)
        self.assertEqual(model.blocks(65, 0, 8), 3)
        self.assertEqual(model.blocks(32, 100 * 1024, 8), 2)

    def test_issue(self):
        made = count.Count("p", "k", "sweep", 64, 0, 0, 0, 8, 4, loop=20.0, around=4.4, total=24.4, alu=12.0, xu=0.0, round_cycles=0, group_len=1024,
                           groups_a_warp=1, bytes=6.0)
        found = model.times(made)
        self.assertAlmostEqual(found["issue"] * 1e6, 106, delta=1)  # the reference's figures of fp16
        self.assertAlmostEqual(found["memory"] * 1e6, 187, delta=1)
        self.assertEqual(model.predicted(made)[1], "memory")


class Budgets(unittest.TestCase):
    def setUp(self):
        self.made = {"architecture": "sm_90", "nvrtc": "13.5", "any": {"stack_bytes": {"may": 100, "goal": 64}}, "kernels": [
            {"program": "p", "kernel": "k", "budgets": {"total": {"may": 20.0, "goal": 10}, "loads_in_flight": {"may": 1000, "goal": 4000}}}]}
        self.good = count.Count("p", "k", "sweep", 64, 80, 0, 0, 8, 4, 1.0, 2000, 0, 15.0, 4.96, 19.96, 8.0, 0.0, 2000, 1024, 1, 6.0)

    def test_kept(self):
        self.assertEqual(budgets.exceeded(self.made, [self.good]), [])

    def test_exceeded(self):
        self.good.total, self.good.loads_in_flight, self.good.stack_bytes = 20.5, 999, 104
        found = budgets.exceeded(self.made, [self.good])
        self.assertEqual(found, ["p k: total is 20.5, at most 20 is allowed (goal 10)", "p k: loads_in_flight is 999, at least 1000 is allowed (goal 4000)",
                                 "p k: stack_bytes is 104, at most 100 is allowed (goal 64)"])

    def test_a_kernel_that_is_gone(self):
        self.good.kernel = "other"
        self.assertEqual([line.split(" was")[0] for line in budgets.exceeded(self.made, [self.good])], ["p k: total", "p k: loads_in_flight"])

    def test_lowered_never_raised(self):
        self.good.total, self.good.stack_bytes = 15.01, 300
        made = budgets.lowered(json.loads(json.dumps(self.made)), [self.good], is_library=True)
        kept = made["kernels"][0]["budgets"]
        self.assertEqual((kept["total"]["may"], kept["loads_in_flight"]["may"], made["any"]["stack_bytes"]["may"]), (15.1, 2000, 100))
        self.good.total = 30.0
        self.assertEqual(budgets.lowered(made, [self.good], is_library=True)["kernels"][0]["budgets"]["total"]["may"], 15.1)

    def test_the_script_fails(self):
        self.good.total = 20.5
        with tempfile.TemporaryDirectory() as made, mock.patch.object(budgets, "FOLDER", pathlib.Path(made)), \
                mock.patch.object(run, "library_counts", lambda options: [self.good]), contextlib.redirect_stdout(io.StringIO()) as printed:
            budgets.write(self.made)
            with self.assertRaisesRegex(SystemExit, "p k: total is 20.5, at most 20 is allowed.*\nBudgets were counted with NVRTC 13.5"):
                run.main(["cinch", "tools", "--check"])
            self.assertIn("| p | k |", printed.getvalue())
            self.good.total = 20.0
            run.main(["cinch", "tools", "--check"])

    def test_page(self):
        with tempfile.TemporaryDirectory() as made:
            page = pathlib.Path(made) / "page.md"
            page.write_text("a\n<!-- budgets -->\nold\n<!-- end of budgets -->\nb\n")
            for _ in range(2):
                report.write_page(page, {"budgets": "new"})
            self.assertEqual(page.read_text(), "a\n<!-- budgets -->\n\nnew\n\n<!-- end of budgets -->\nb\n")

    def test_the_file(self):
        for arch in ("sm_90", "sm_100"):
            made = budgets.read(arch)
            self.assertEqual(made["architecture"], arch)
            for kernel in made["kernels"]:
                for name in kernel["budgets"]:
                    self.assertIn(name, count.Count.__dataclass_fields__)
            self.assertIn("| onebit | encode_sweep |", report.budgets_table(made))


if __name__ == "__main__":
    unittest.main()
