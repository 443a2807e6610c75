"""Programs of the Python package: compiled, saved, loaded, described, opened from a library; what goes wrong then."""
import gc
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest

import cinch
import numpy as np
from support import GRADIENT, ROW_SIGNS, SOURCE, WORDED, TestCase, read_bytes, run_command


class Programs(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dgc = cinch.compile("dgc", ratio=0.01, momentum=np.float64(0.5))
        cls.gradient = np.load(GRADIENT).reshape(-1)[:5000].copy()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def payload(self, program):
        with program.session(self.gradient) as session:
            return session.encode(0, self.gradient)

    def test_describes_itself(self):
        self.assertEqual((self.dgc.name, self.dgc.aggregation), ("dgc", "gather"))
        self.assertIn("Deep gradient compression", self.dgc.doc)
        self.assertEqual(list(self.dgc.parameters), ["ratio", "momentum"])
        self.assertEqual(self.dgc.parameters["ratio"], cinch.Parameter("ratio", "f32", "(0, 1]", self.dgc.parameters["ratio"].default))
        self.assertEqual(self.dgc.parameters["momentum"].default, 0.5)
        self.assertEqual(list(self.dgc.states.values()), [cinch.State("velocity", "f32"), cinch.State("pending", "f32")])
        self.assertFalse(self.dgc.is_matrix or self.dgc.has_finish)
        self.assertTrue(cinch.compile(text=ROW_SIGNS).is_matrix)
        self.assertTrue(cinch.compile("signsgd").has_finish)
        self.assertEqual(cinch.compile("fp16").aggregation, "sum_proved")

    def test_warnings_of_the_compiler_are_told(self):
        for _ in range(2):
            with self.assertWarnsRegex(UserWarning, "`qsgd` is unbiased but not a contraction") as caught:
                program = cinch.compile("error_feedback(qsgd)")
            self.assertEqual(caught.filename, __file__)
            self.assertIn("not a contraction", program.warnings)
        self.assertEqual(cinch.compile("error_feedback(onebit)").warnings, "")

    def test_parameters_take_words(self):
        program = cinch.compile("worded", text=WORDED, fit="far", half="halved")
        self.assertEqual(program.parameters["fit"].words, ("near", "far"))
        self.assertEqual(program.parameters["fit"].default, 1)
        self.assertEqual(self.dgc.parameters["ratio"].words, ())
        gradient = np.arange(8, dtype=np.float32)
        with program.session(gradient) as session:
            np.testing.assert_array_equal(session.decode(0, session.encode(0, gradient)), -gradient / 2)
            session.set("fit", "near")
            np.testing.assert_array_equal(session.decode(0, session.encode(0, gradient)), gradient / 2)
            session.set("fit", 1)
            self.fails(cinch.OutOfRangeError, "{near, far}", session.set, "fit", "farther")
            np.testing.assert_array_equal(session.decode(0, session.encode(0, gradient)), -gradient / 2)
        for name, word, words in (("fit", "farther", "{near, far}"), ("half", "half", "{whole, halved}")):
            self.fails(cinch.ProgramError, words, cinch.compile, "worded", text=WORDED, **{name: word})
        self.fails(TypeError, "neither a number nor a word", cinch.compile, "worded", text=WORDED, fit="far away")

    def test_fingerprint_is_that_of_the_command(self):
        out = run_command("run", "dgc", "--set", "ratio=0.01", "--set", "momentum=0.5", "--input", GRADIENT, "--json")
        self.assertIn(self.dgc.fingerprint, out)

    def test_text_path_and_name_are_the_same_program(self):
        source = read_bytes(os.path.join(SOURCE, "stdlib", "sign", "onebit.cinch"))
        with open(self.path("mine.cinch"), "wb") as file:
            file.write(source)
        by_name = cinch.compile("onebit")
        by_path = cinch.compile(f"{self.path('mine.cinch')}:onebit")
        by_text = cinch.compile("some text:onebit", text=source.decode())
        self.assertEqual({self.payload(each) for each in (by_path, by_text)}, {self.payload(by_name)})

    def test_states_in_place_make_the_same_payloads(self):
        self.assertEqual(self.payload(cinch.compile("dgc", ratio=0.01, momentum=0.5, states="in_place")), self.payload(self.dgc))

    def test_cpu_level_is_chosen(self):
        oldest = cinch.compile("dgc", ratio=0.01, momentum=0.5, cpu="x86-64")
        self.assertEqual(oldest.cpu, "x86-64")
        self.assertEqual(self.payload(oldest), self.payload(self.dgc))
        self.fails(cinch.UnavailableError, "x86-64-v9", cinch.compile, "dgc", cpu="x86-64-v9")

    def test_images_of_the_package_and_the_command_are_the_same(self):
        self.dgc.save(self.path("dgc.image"))
        run_command("build", "dgc", "--emit=image", "--set", "ratio=0.01", "--set", "momentum=0.5", "--output", self.path("theirs.image"))
        loaded = [cinch.load(self.path("dgc.image")), cinch.load(self.path("theirs.image")), cinch.load_bytes(read_bytes(self.path("dgc.image")))]
        for program in loaded:
            self.assertEqual(program.fingerprint, self.dgc.fingerprint)
            self.assertEqual(self.payload(program), self.payload(self.dgc))

    def test_wrong_images_are_errors(self):
        self.fails(cinch.IoError, "no such", cinch.load, self.path("no such"))
        self.dgc.save(self.path("dgc.image"))
        image = bytearray(read_bytes(self.path("dgc.image")))
        self.fails(cinch.FileError, "", cinch.load_bytes, image[:-1])
        self.fails(cinch.FileError, "", cinch.load_bytes, b"")
        self.fails(cinch.IoError, "", self.dgc.save, self.path("no/such/folder"))

    def test_opens_libraries(self):
        run_command("build", "onebit", "dgc", "--target", "cpu:x86-64", "--name", "two", "--output", self.folder)
        library = cinch.library(self.path("libtwo.so"))
        self.assertEqual((library.name, list(library), library.levels("dgc")), ("two", ["onebit", "dgc"], ("x86-64",)))
        self.assertEqual(library.made_by, cinch.__version__)
        self.assertEqual(self.payload(library["onebit"]), self.payload(cinch.compile("onebit")))
        self.assertEqual(self.payload(library.open("onebit", cpu="x86-64")), self.payload(cinch.load(self.path("libtwo.so") + ":onebit")))
        self.fails(cinch.UnavailableError, "x86-64-v4", library.open, "dgc", cpu="x86-64-v4")
        self.fails(cinch.UnavailableError, "library", library["dgc"].save, self.path("image"))
        self.assertRaises(KeyError, lambda: library["topk"])
        self.assertNotIn("topk", library)
        self.fails(cinch.FileError, "", cinch.library, GRADIENT)
        self.fails(cinch.IoError, "", cinch.library, self.path("none.so"))

    def test_wrong_arguments_are_errors(self):
        self.assertRaises(TypeError, cinch.compile)
        self.assertRaises(TypeError, cinch.compile, "dgc", ratio="0.1")
        self.fails(cinch.InvalidArgumentError, "did you mean", cinch.compile, "onebitt")
        self.fails(ValueError, "in_place", cinch.compile, "dgc", states="in place")
        self.fails(cinch.InvalidArgumentError, "zero byte", cinch.compile, "dgc\0")
        self.fails(cinch.ProgramError, "ratio", cinch.compile, "dgc", ratio=2)
        self.fails(cinch.ProgramError, "nesterov", cinch.compile, "dgc", bindings={"nesterovv": True})
        powersgd = cinch.compile("powersgd(rank: 2)")
        with powersgd.session((30, 20)) as session:
            self.fails(cinch.InvalidArgumentError, "has no encode", session.encode, 0, np.zeros((30, 20), np.float32))

    def test_constants_are_bound(self):
        text = """compressor total(const cube: bool = false) {
  wire { x: f32 }
  encode(g: [f32; n]) {
    let s = sum(g)
    wire { x: if cube { s * s * s } else { s } }
  }
  decode(w) { fill(w.x, n) }
}
"""
        plain, cubes = (cinch.compile(text=text, cube=cube) for cube in (False, np.True_))
        self.assertNotEqual(plain.fingerprint, cubes.fingerprint)
        self.assertEqual(cinch.compile(text=text).fingerprint, plain.fingerprint)
        self.assertEqual(list(plain.parameters), [])

    def test_finds_headers_of_extern_functions(self):
        folder = os.path.join(SOURCE, "examples", "extern_fn")
        source = read_bytes(os.path.join(folder, "levels.cinch")).decode()
        beside = cinch.compile(os.path.join(folder, "levels.cinch"))
        found = cinch.compile(self.path("levels"), text=source, include_folders=[self.path("none"), folder])
        self.assertEqual(self.payload(found), self.payload(beside))
        self.fails(cinch.ProgramError, "levels.h", cinch.compile, self.path("levels"), text=source)

    def test_a_text_is_confined(self):
        folder = os.path.join(SOURCE, "examples", "extern_fn")
        program = os.path.join(folder, "levels.cinch")
        self.assertEqual(self.payload(cinch.compile(program, confine=folder)), self.payload(cinch.compile(program)))
        self.fails(cinch.ProgramError, "only files below", cinch.compile, program, confine=os.path.join(SOURCE, "docs"))

    def test_programs_outlive_their_names(self):
        session = cinch.compile("onebit").session(self.gradient)
        gc.collect()
        self.assertEqual(session.program.name, "onebit")
        session.encode(0, self.gradient)


class Locales(TestCase):
    def test_a_comma_of_the_locale_changes_nothing(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        image = os.path.join(folder.name, "topk.image")
        cinch.compile("topk", ratio=0.25).save(image)
        if not shutil.which("localedef") or subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder.name + "/de_DE.UTF-8"], capture_output=True).returncode:
            self.skipTest("localedef cannot make a locale here")
        code = (
            "import cinch, locale, sys\nlocale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
            "for program in (cinch.load(sys.argv[1]), cinch.compile('topk', ratio=0.25)): print(program.parameters['ratio'].default)"
        )
        done = subprocess.run([sys.executable, "-c", code, image], capture_output=True, text=True, env={**os.environ, "LOCPATH": folder.name})
        self.assertEqual(done.stdout, "0.25\n0.25\n", done.stderr)


class Diagnostics(TestCase):
    def test_have_spans_and_notes(self):
        text = "compressor a {\n  wire { x: f32 }\n  encode(g: [f32; n]) { wire { x: sums(g) } }\n  decode(w) { w.y }\n}\n"
        error = self.fails(cinch.ProgramError, "sums", cinch.compile, "mine", text=text)
        first = error.diagnostics[0]
        self.assertEqual((first.severity, first.file, first.line, first.column, first.length), ("error", "mine", 3, 35, 4))
        self.assertIn("sums", first.message)
        self.assertTrue(any("did you mean" in note.message for note in first.notes))
        self.assertFalse(error.is_cut)

    def test_are_cut_with_the_message(self):
        wrong = "\n".join(f"    let a{i} = unknown_{i}(g)" for i in range(30))
        text = "compressor a {\n wire { x: f32 }\n encode(g: [f32; n]) {\n" + wrong + "\n wire { x: sum(g) } }\n decode(w) { w.x }\n}\n"
        error = self.fails(cinch.ProgramError, "unknown_0", cinch.compile, "mine", text=text)
        self.assertTrue(error.is_cut)
        self.assertGreater(len(error.diagnostics), 2)
        self.assertEqual([each.line for each in error.diagnostics], list(range(4, 4 + len(error.diagnostics))))

    def test_survive_pickling(self):
        error = self.fails(cinch.ProgramError, "", cinch.compile, text="compressor")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.diagnostics), (cinch.ProgramError, str(error), error.diagnostics))
        lost = pickle.loads(pickle.dumps(cinch.PayloadError("payload: field x: …", tensor=3)))
        self.assertEqual((lost.field, lost.tensor), ("x", 3))


class Finding(TestCase):
    def run_python(self, code, **variables):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **variables})

    def test_a_missing_library_is_unavailable(self):
        done = self.run_python("import cinch\ntry: cinch.compile('dgc')\nexcept cinch.UnavailableError as error: print(error)", CINCH_LIBRARY="/no/such/file")
        self.assertIn("/no/such/file", done.stdout)
        self.assertIn("CINCH_LIBRARY", done.stdout)

    def test_another_library_is_of_another_version(self):
        done = self.run_python("import cinch\ntry: cinch.compile('dgc')\nexcept cinch.VersionError as error: print(error)", CINCH_LIBRARY="libm.so.6")
        self.assertIn("libm.so.6 is not a libcinch", done.stdout)

    def test_the_package_starts_without_numpy(self):
        done = self.run_python("import sys\nsys.modules['numpy'] = None\nimport cinch\nprint(cinch.compile('onebit').name)")
        self.assertEqual(done.stdout, "onebit\n", done.stderr)

    def test_the_command_is_part_of_the_wheel_alone(self):
        done = subprocess.run([sys.executable, "-m", "cinch"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("not installed from a wheel", done.stderr)


if __name__ == "__main__":
    unittest.main()
