"""wheel_test.py BUILD_FOLDER: makes the wheel, installs it into a fresh environment without a network, and uses it there."""
import base64
import csv
import glob
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

try:
    import numpy as np
except ImportError as missing:
    print(f"NumPy is not installed: {missing}")
    sys.exit(77)

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1))
GRADIENT = os.path.join(ROOT, "examples/data/resnet-step40.npy")
IMAGE = "images/x86-64/topk.image"
# The library opens these when someone asks for UCX or MPI. They need the machine's libraries of that name, which no platform tag allows.
MODULES = ("libcinch_ucx.so", "libcinch_mpi.so")
PLATFORM = "manylinux_2_34_x86_64"
# Mounts empty folders over the given ones, and becomes the command behind "--". It runs in a mount namespace of its own: no other process sees it.
COVER = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 99; shift; done; shift; exec "$@"'


def run(command, **options):
    """Standard output; the whole output in the failure where the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError("%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cinch-wheel-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(["cmake", "--build", BUILD, "--target", IMAGE, "compiled/cpu-x86-64-v3.stamp"])
        cls.wheel = run([sys.executable, os.path.join(ROOT, "runtime/python/cinch_wheel.py"), BUILD, cls.folder, "--fast"]).strip()
        # A blank in the path: nobody may take it for two.
        cls.environment = os.path.join(cls.folder, "a fresh environment")
        run([sys.executable, "-m", "venv", "--without-pip", cls.environment])
        cls.python = os.path.join(cls.environment, "bin", "python")
        cls.pip("install", "--no-index", "--no-deps", cls.wheel)
        cls.site = run([cls.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        # Nothing of this process may help.
        cls.variables = {"CINCH_CACHE": "off", "HOME": cls.folder, "PATH": "/usr/bin:/bin"}

    @classmethod
    def pip(cls, *words):
        return run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", cls.python, *words])

    def run_here(self, *command):
        return run(list(command), env=self.variables, cwd="/")

    def with_numpy(self):
        """NumPy as this Python has it, and nothing else of its environment."""
        packages = os.path.dirname(os.path.dirname(np.__file__))
        for name in ("numpy", "numpy.libs"):
            link = os.path.join(self.site, name)
            if os.path.exists(os.path.join(packages, name)) and not os.path.lexists(link):
                os.symlink(os.path.join(packages, name), link)

    def with_torch(self):
        """PyTorch and all that it needs, behind the packages of the fresh environment; for this test alone."""
        found = importlib.util.find_spec("torch")
        if found is None:
            self.skipTest("PyTorch is not installed")
        line = os.path.join(self.site, "behind.pth")
        with open(line, "w", encoding="utf-8") as file:
            file.write(os.path.dirname(os.path.dirname(found.origin)) + "\n")
        self.addCleanup(os.remove, line)

    def without_the_build(self):
        """The words before a command that hide the build folder and Debian's LLVM from it. A namespace of users needs no privilege, but some
        kernels forbid it. There are no such words then, and the test relies on the list of libraries that the processes have mapped."""
        prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", COVER, "cover", BUILD, *glob.glob("/usr/lib/llvm-*"), "--"]
        can_hide = shutil.which("unshare") is not None and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
        if not can_hide:
            print("the build folder is not hidden: the kernel gives no namespaces to users")
        return prefix if can_hide else []

    def test_records_every_file(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            info = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(info).decode()))}
            self.assertEqual(sorted(rows), sorted(wheel.namelist()))
            for name in wheel.namelist():
                content = wheel.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual(rows[name], ["", ""] if name == info else ["sha256=" + digest, str(len(content))], name)

    def test_is_named_as_its_files_need(self):
        version = self.run_here(os.path.join(self.environment, "bin", "cinch"), "--version").split()[-1]
        self.assertEqual(os.path.basename(self.wheel), f"cinch_compiler-{version}-py3-none-{PLATFORM}.whl")
        told = self.run_here(self.python, "-c", "import cinch, importlib.metadata as m; print(cinch.__version__, m.version('cinch-compiler'))")
        self.assertEqual(told.split(), [version, version])

    def test_runs_the_command_without_numpy(self):
        out = self.run_here(os.path.join(self.environment, "bin", "cinch"), "run", "topk", "--input", GRADIENT)
        self.assertIn("payload", out)
        self.assertIn("topk", self.run_here(self.python, "-m", "cinch", "list"))

    def test_status_of_the_command_is_the_scripts(self):
        done = subprocess.run([os.path.join(self.environment, "bin", "cinch"), "run", "none"], capture_output=True, env=self.variables)
        self.assertEqual(done.returncode, 2)

    def test_loads_the_librarys_images(self):
        code = "import os, cinch; os.environ['CINCH_COMPILER'] = '/none'; program = cinch.load('topk'); print(program.name, program.cpu)"
        self.assertRegex(self.run_here(self.python, "-c", code), "topk x86-64(-v[34])?\n")

    def test_compiles_the_library_without_a_compiler(self):
        code = "import cinch; print(cinch.compile('topk', cpu='x86-64-v3').name)"
        here = {**self.variables, "CINCH_CACHE": "on", "CINCH_CLANG_LIBRARY": "/none"}
        self.assertEqual(run([self.python, "-c", code], env=here, cwd="/").strip(), "topk")

    def test_runs_the_example(self):
        self.with_numpy()
        out = self.run_here(self.python, os.path.join(ROOT, "examples/python/compress.py"), "dgc")
        self.assertRegex(out, r"step 2: 240000 B in \d+ B and 1200 B in \d+ B, 61 elements change\n\d+ B of states restored\nmine, line 3, column 35: .*meen")

    def test_trains_with_pytorch(self):
        self.with_torch()
        folder = tempfile.mkdtemp(dir=self.folder)
        told = json.loads(self.run_here(*self.without_the_build(), self.python, os.path.join(ROOT, "tests/wheel/train.py"), folder).splitlines()[-1])
        self.assertEqual(len(set(rank["parameters"] for rank in told["ranks"])), 1)
        self.assertEqual(told["jax"], importlib.util.find_spec("jax") is not None)
        for rank in told["ranks"]:
            self.assertEqual(os.path.dirname(rank["cinch"]), os.path.join(self.site, "cinch"))
            sent, before = rank["bytes"]
            self.assertLess(sent, before)
            inside = [path for path in rank["mapped"] if path.startswith(self.environment)]
            self.assertIn(os.path.join(self.site, "cinch/lib/cinch/libcinch_clang.so"), inside)
            foreign = [path for path in rank["mapped"] if path not in inside and (path.startswith(BUILD) or re.search(r"/(libLLVM|libclang|liblld|libcinch)", path))]
            self.assertEqual(foreign, [])

    def test_auditwheel_agrees_with_the_name(self):
        if importlib.util.find_spec("auditwheel") is None:
            self.skipTest("auditwheel is not installed")
        folder = tempfile.mkdtemp(dir=self.folder)
        copy = os.path.join(folder, os.path.basename(self.wheel))
        with zipfile.ZipFile(self.wheel) as wheel, zipfile.ZipFile(copy, "w") as written:
            for name in wheel.namelist():
                written.writestr(name, b"" if os.path.basename(name) in MODULES else wheel.read(name))
        told = json.loads(run([sys.executable, "-m", "auditwheel", "show", "--json", copy]))
        self.assertEqual(told["overall_tag"], PLATFORM)
        self.assertEqual(told["external_libs"], {})

    def test_holds_types_and_licenses(self):
        package = os.path.join(self.site, "cinch")
        self.assertTrue(os.path.exists(os.path.join(package, "py.typed")))
        self.assertEqual(sorted(re.sub("-.*", "", name) for name in os.listdir(self.site) if "cinch" in name), ["cinch", "cinch_compiler"])
        with zipfile.ZipFile(self.wheel) as wheel:
            told = [line[14:] for line in wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode().splitlines() if line.startswith("License-File: ")]
            held = [name.split("/licenses/")[1] for name in wheel.namelist() if "/licenses/" in name]
        self.assertEqual(told, held)
        self.assertIn("copyright", held)

    def test_is_uninstalled_without_a_rest(self):
        other = os.path.join(self.folder, "other")
        run([sys.executable, "-m", "venv", "--without-pip", other])
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", os.path.join(other, "bin", "python")]
        run([*pip, "install", "--no-index", "--no-deps", "--no-compile", self.wheel])
        run([*pip, "uninstall", "--yes", "cinch-compiler"])
        rest = [name for _, _, names in os.walk(other) for name in names if "cinch" in name]
        self.assertEqual(rest, [])


if __name__ == "__main__":
    unittest.main()
