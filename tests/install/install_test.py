"""install_test.py BUILD_FOLDER: installs, moves what was installed, and uses it from outside."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import elf_needs

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv.pop(1))
GRADIENT = os.path.join(ROOT, "examples/data/resnet-step40.npy")

# The oldest systems: glibc 2.34, and the C++ library of GCC 11, which oneTBB alone uses.
NEWEST_VERSIONS = {"GLIBC": (2, 34), "GCC": (4, 2, 0)}
NEWEST_VERSIONS_OF_TBB = {**NEWEST_VERSIONS, "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
# Debian package of each library that is needed.
PACKAGES = {"libc.so.6": "libc6", "libm.so.6": "libc6", "ld-linux-x86-64.so.2": "libc6", "libgcc_s.so.1": "libgcc-s1", "libstdc++.so.6": "libstdc++6"}
MAX_COMPILER_LIBRARY_BYTES = 105_000_000
# Layers of the library, compiled. All of them take minutes: a short run makes the first, and looks at others that are there.
LAYERS = ["cpu-x86-64-v3", "cpu-x86-64-v4", "cuda-sm_80", "cuda-sm_90", "cuda-sm_100", "cuda-ptx"]
MADE_LAYERS = LAYERS if os.environ.get("CINCH_LONG") else LAYERS[:1]
MAX_LAYERS_BYTES = 40_000_000
# Nothing compiles: neither library is found.
NO_COMPILER = {"CINCH_CLANG_LIBRARY": "/none", "CINCH_NVRTC": "/none", "CINCH_CACHE": "on"}

FILES = ["bin/cinch", "lib/libcinch.so", "lib/libcinch.so.1", "lib/cinch/libcinch_compiler.so", "lib/cinch/libcinch_clang.so", "lib/cinch/libtbb.so.12",
         "include/cinch.h", "include/cinch.hpp", "include/cinch_library.h", "include/cinch_sync.h", "include/cinch_transport.h",
         "share/cinch/stdlib/sparsify/topk.cinch", "lib/pkgconfig/cinch.pc", "lib/cmake/Cinch/CinchConfig.cmake",
         "lib/cmake/Cinch/CinchConfigVersion.cmake", "lib/cmake/Cinch/CinchAddLibrary.cmake", "share/bash-completion/completions/cinch",
         "share/zsh/site-functions/_cinch", "share/fish/vendor_completions.d/cinch.fish", "share/man/man1/cinch.1",
         "share/man/man1/cinch-run.1", "share/doc/cinch/copyright"]


def run(command, **options):
    """Standard output; the whole output in the failure where the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError("%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout


def stamp(layer):
    return f"compiled/{layer}.stamp"


def is_of_this_build(layer):
    """Was the layer made after what makes it?"""
    path, makers = os.path.join(BUILD, stamp(layer)), [os.path.join(BUILD, name) for name in ("bin/cinch", "lib/libcinch_clang.so")]
    return os.path.exists(path) and all(os.path.getmtime(maker) <= os.path.getmtime(path) for maker in makers)


def run_cmake(source, build, *options):
    run(["cmake", "-G", "Ninja", "-S", source, "-B", build, *options])
    return run(["cmake", "--build", build])


class InstalledTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cinch-install-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = os.path.join(cls.folder, "first")
        run(["cmake", "--build", BUILD, "--target", *map(stamp, MADE_LAYERS)])
        run(["cmake", "--install", BUILD, "--prefix", first, "--strip"])
        # A blank in the path: nobody may take it for two.
        cls.prefix = os.path.join(cls.folder, "moved to", "cinch")
        os.makedirs(os.path.dirname(cls.prefix))
        os.rename(first, cls.prefix)
        cls.cinch = os.path.join(cls.prefix, "bin/cinch")
        cls.package_option = "-DCMAKE_PREFIX_PATH=" + cls.prefix

    def installed(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.prefix) for name in names]

    def binaries(self):
        return [path for path in self.installed() if not os.path.islink(path) and elf_needs.is_elf(path)]

    def build_folder(self, name):
        return os.path.join(self.folder, name)

    def compiled_with_pkg_config(self, source):
        program = self.build_folder(os.path.splitext(os.path.basename(source))[0])
        search = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.prefix, "lib/pkgconfig"))
        # pkg-config escapes blanks for a shell.
        flags = run(["pkg-config", "--cflags", "--libs", "cinch"], env=search).strip()
        run(["sh", "-c", "${CC:-cc} -std=gnu11 -Wall -Werror '%s' -o '%s' %s -lm" % (source, program, flags)])
        return program

    def test_holds_all_files(self):
        self.assertEqual([file for file in FILES if not os.path.exists(os.path.join(self.prefix, file))], [])

    def test_names_no_folder_of_the_build(self):
        for path in self.installed():
            if os.path.islink(path) or elf_needs.is_elf(path):
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            self.assertNotIn(BUILD, text, path)
            self.assertNotIn(self.folder, text, path)

    def test_needs_what_every_system_has(self):
        binaries = self.binaries()
        self.assertGreaterEqual(len(binaries), 5)
        own = {os.path.basename(path) for path in self.installed()}
        with open(os.path.join(BUILD, "CPackConfig.cmake"), encoding="utf-8") as file:
            depends = re.search(r'CPACK_DEBIAN_PACKAGE_DEPENDS "(.*)"', file.read()).group(1)
        packages = {entry.split()[0] for entry in depends.split(", ")}
        used = set()
        for path in binaries:
            name = os.path.basename(path)
            libraries = set(elf_needs.needed_libraries(path)) - own
            if name == "libcinch_mpi.so":
                libraries = {library for library in libraries if not library.startswith("libmpi.")}
            if name == "libcinch_ucx.so":
                libraries -= {"libucp.so.0", "libucs.so.0"}
            self.assertLessEqual(libraries, PACKAGES.keys(), name)
            used |= {PACKAGES[library] for library in libraries}
            limits = NEWEST_VERSIONS_OF_TBB if name.startswith("libtbb") else NEWEST_VERSIONS
            for versioned, version in elf_needs.needed_versions(path).items():
                self.assertLessEqual(version, limits.get(versioned, ()), "%s needs %s %s" % (name, versioned, version))
            for run_path in elf_needs.run_paths(path):
                self.assertTrue(run_path.startswith("$ORIGIN"), "%s looks into %s" % (name, run_path))
        self.assertEqual(used, packages)

    def test_loads_its_own_tbb(self):
        own = os.path.join(self.prefix, "lib/cinch/libtbb.so.12")
        for file in ("bin/cinch", "lib/libcinch.so"):
            found = re.search(r"libtbb\.so\.12 => (.*) \(", run(["ldd", os.path.join(self.prefix, file)])).group(1)
            self.assertEqual(os.path.realpath(found), os.path.realpath(own))

    def test_compiler_library_shows_its_door_alone(self):
        library = os.path.join(self.prefix, "lib/cinch/libcinch_clang.so")
        self.assertEqual(elf_needs.exported_names(library), ["cinch_clang_backend"])
        self.assertLessEqual(os.path.getsize(library), MAX_COMPILER_LIBRARY_BYTES)

    def test_runs_a_program(self):
        # Nothing of the environment may help.
        out = run([self.cinch, "run", "topk", "--input", GRADIENT], env={"CINCH_CACHE": "off", "HOME": self.folder}, cwd="/")
        self.assertIn("payload", out)
        self.assertIn("topk", run([self.cinch, "list"], env={"HOME": self.folder}, cwd="/"))

    def library(self):
        """The inputs of every program that wraps no other."""
        listed = json.loads(run([self.cinch, "list", "--json"], env={"HOME": self.folder}, cwd="/"))
        return {entry["name"]: entry["inputs"] for entry in listed if entry["family"] != "wrap"}

    def without_compiler(self, *words, **variables):
        return run([self.cinch, *words], env={**NO_COMPILER, "HOME": self.folder, **variables}, cwd="/")

    def test_runs_the_whole_library_without_a_compiler(self):
        self.assertGreaterEqual(len(self.library()), 28)
        for name, inputs in self.library().items():
            given = [f"--with={each}={0.1 if each == 'lr' else GRADIENT}" for each in inputs]
            out = self.without_compiler("run", name, "--cpu", "x86-64-v3", "--input", GRADIENT, *given)
            self.assertRegex(out, "\ndecode |\nsynchronised .* same bits: yes", name)
        # Without the layer it is a compiler that is missing.
        compiled = os.path.join(self.prefix, "lib/cinch/compiled")
        os.rename(compiled, compiled + ".away")
        try:
            with self.assertRaisesRegex(AssertionError, "no compiler library"):
                self.without_compiler("run", "topk", "--cpu", "x86-64-v3", "--input", GRADIENT)
        finally:
            os.rename(compiled + ".away", compiled)

    def test_finds_all_that_is_compiled(self):
        names = self.library()
        for layer in LAYERS:
            if not is_of_this_build(layer):
                # Without NVRTC there is nothing for GPUs, whatever is asked for.
                self.assertFalse(layer in MADE_LAYERS and layer.startswith("cpu"), layer)
                print(f"{layer}: not compiled, not looked at")
                continue
            target = layer.replace("-", ":", 1)
            for states in ("second-buffer", "in-place"):
                out = self.without_compiler("cache", "warm", "--target", target, "--states", states)
                self.assertEqual(len(out.splitlines()), len(names), layer)
            if layer in ("cuda-sm_80", "cuda-ptx"):
                newer = {"cuda-sm_80": "sm_86", "cuda-ptx": "sm_120"}[layer]
                self.without_compiler("cache", "warm", "--target", f"cuda:{newer}")
        self.assertEqual(os.path.exists(os.path.join(self.folder, ".cache")), False)  # nothing was compiled, nothing kept

    def test_layers_are_small_and_nobody_elses_to_write(self):
        size = 0
        for folder, _, names in os.walk(os.path.join(self.prefix, "lib/cinch/compiled")):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o755, folder)
            for name in names:
                found = os.stat(os.path.join(folder, name))
                self.assertEqual(stat.S_IMODE(found.st_mode), 0o644, name)
                size += found.st_size
        self.assertGreater(size, 0)
        self.assertLessEqual(size, MAX_LAYERS_BYTES)

    def test_believes_no_layer_that_others_may_write(self):
        compiled = os.path.join(self.prefix, "lib/cinch/compiled")
        os.chmod(compiled, 0o777)
        try:
            with self.assertRaisesRegex(AssertionError, "no compiler library"):
                self.without_compiler("run", "topk", "--cpu", "x86-64-v3", "--input", GRADIENT)
            self.assertIn("may be written by others", self.without_compiler("doctor"))
        finally:
            os.chmod(compiled, 0o755)

    def test_runs_images_without_the_compiler(self):
        image = "images/x86-64/topk.image"
        run(["cmake", "--build", BUILD, "--target", image])
        alone = self.build_folder("no compiler")
        for file in ("bin/cinch", "lib/cinch/libtbb.so.12"):
            os.makedirs(os.path.dirname(os.path.join(alone, file)), exist_ok=True)
            shutil.copy(os.path.join(self.prefix, file), os.path.join(alone, file))
        with open(os.path.join(BUILD, image), "rb") as file:
            self.assertNotIn(BUILD.encode(), file.read())
        out = run([os.path.join(alone, "bin/cinch"), "run", os.path.join(BUILD, image), "--input", GRADIENT], env={"CINCH_CACHE": "off", "HOME": self.folder}, cwd="/")
        self.assertIn("payload", out)

    def test_compiles_through_pkg_config(self):
        program = self.compiled_with_pkg_config(os.path.join(ROOT, "examples/c_api/compress.c"))
        self.assertIn("step 2: 60000", run([program, "dgc"], env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.prefix, "lib"))))

    def test_compiles_beside_another_llvm(self):
        program = self.compiled_with_pkg_config(os.path.join(HERE, "beside_llvm.c"))
        with open(os.path.join(BUILD, "tests/install/system_llvm.txt"), encoding="utf-8") as file:
            system_llvm = file.read()
        run([program, system_llvm], env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.prefix, "lib")))

    def test_is_found_by_cmake(self):
        build = self.build_folder("find_package")
        run_cmake(os.path.join(ROOT, "examples/find_package"), build, self.package_option)
        self.assertIn("step 2: 60000", run([os.path.join(build, "compress"), "topk"]))

    def test_headers_compile_without_warnings(self):
        for header in sorted(os.listdir(os.path.join(self.prefix, "include"))):
            languages = [("c", "-std=c11"), ("c++", "-std=c++20")] if header.endswith(".h") else [("c++", "-std=c++20")]
            for language, standard in languages:
                run(["cc", "-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I" + os.path.join(self.prefix, "include"), "-"],
                    input="#include <%s>\n" % header)

    def test_trains_through_a_library(self):
        build = self.build_folder("trainer")
        run_cmake(os.path.join(ROOT, "examples/trainer"), build, self.package_option, "-DCMAKE_BUILD_TYPE=Release")
        text = run([os.path.join(build, "trainer"), os.path.join(ROOT, "examples/data/digits.u8")])
        beside_exact = [float(line.split()[-2]) for line in text.splitlines()]
        self.assertEqual(len(beside_exact), 4, text)
        self.assertLess(max(map(abs, beside_exact)), 1, text)

    def test_finds_a_library_by_its_own_package(self):
        made, source = self.build_folder("made"), os.path.join(HERE, "package_user")
        run([self.cinch, "build", "dgc", "--name", "compressors", "--target", "x86-64", "--output", made], env=dict(os.environ, CINCH_CACHE="off"))
        build = self.build_folder("package_user")
        run_cmake(source, build, "-DCMAKE_PREFIX_PATH=%s;%s" % (self.prefix, made))
        for program in ("shared", "static"):
            self.assertIn("120 bytes instead of 16384", run([os.path.join(build, program)]))

    def test_library_follows_imports_and_headers(self):
        source, build = self.build_folder("a follower"), self.build_folder("follower build")
        shutil.copytree(os.path.join(HERE, "follower"), source)
        library = os.path.join(build, "mine/libmine.a")

        def built():
            run_cmake(source, build, self.package_option)
            with open(library, "rb") as file:
                return file.read()

        first = built()
        self.assertEqual(built(), first)
        for name, old, new in [("shared.cinch", "2.0", "3.0"), ("add.h", "+ 1", "+ 2")]:
            path = os.path.join(source, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertIn(old, text)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
            second = built()
            self.assertNotEqual(second, first, name)
            first = second

    def test_library_follows_its_programs(self):
        source, build = self.build_folder("consumer"), self.build_folder("consumer_build")
        shutil.copytree(os.path.join(HERE, "consumer"), source)
        log = os.path.join(self.folder, "stand_in.log")
        os.environ["STAND_IN_LOG"] = log
        programs = {"mine.cinch": "four", "imported.cinch": ""}

        def built_after(name, text):
            programs[name] = text
            for program, its_text in programs.items():
                path = os.path.join(source, program)
                if not os.path.exists(path) or program == name:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(its_text)
            run_cmake(source, build, self.package_option, "-DCINCH_COMMAND=" + os.path.join(HERE, "stand_in_cinch.py"))
            with open(log, encoding="utf-8") as file:
                runs = file.read().splitlines()
            self.assertEqual(set(runs), {"mine.cinch topk cpu:x86-64-v3,cpu:x86-64"})
            answers = {run([os.path.join(build, name)]).strip() for name in ("uses_mine", "uses_mine_shared")}
            self.assertEqual(len(answers), 1)
            return len(runs), answers.pop()

        self.assertEqual(built_after("mine.cinch", "four"), (1, "4"))
        run(["cmake", "--build", build])
        self.assertEqual(built_after("mine.cinch", "seventy"), (2, "7"))
        self.assertEqual(built_after("imported.cinch", "changed"), (3, "7"))


if __name__ == "__main__":
    unittest.main()
