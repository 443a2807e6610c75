"""Writes the wheel: the Python package with an installed tree inside. Needs Python 3.11, nothing else.

    cinch_wheel.py BUILD_FOLDER OUTPUT_FOLDER [--fast]     prints the path; --fast compresses less

It is also the build backend that pyproject.toml names, so that `pip install .` works where `./dev build` ran before.
"""
import argparse
import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PACKAGE = os.path.join(ROOT, "runtime", "python", "cinch")
RELEASE_BUILD = os.path.join(ROOT, "build", "release")
# docs/installing.md: the oldest glibc that installed files run with.
TAG = "py3-none-manylinux_2_34_x86_64"
# Parts of an installed tree in the wheel, under `cinch/`. Wheels have no links: libcinch.so has only its SONAME.
HELD = re.compile(r"(bin/cinch|lib/libcinch\.so\.1|lib/cinch/.+|share/cinch/stdlib/.+|include/.+)$")
LICENSES = "share/doc/cinch/"
EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(cinch VERSION ([\d.]+)", file.read()).group(1)


def project():
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def metadata(licenses):
    about = project()
    with open(os.path.join(ROOT, about["readme"]), encoding="utf-8") as file:
        readme = file.read()
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {version()}", f"Summary: {about['description']}",
             f"License-Expression: {about['license']}", f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in about["dependencies"]]
    for extra, needs in about["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {needed}; extra == "{extra}"' for needed in needs)]
    lines += [f"License-File: {name}" for name in licenses]
    lines += ["Description-Content-Type: text/markdown", "", readme]
    return "\n".join(lines)


def files_below(folder):
    """(path from the folder, path) of every file, in an order of their names."""
    for place, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in sorted(files):
            path = os.path.join(place, name)
            yield os.path.relpath(path, folder), path


def contents(tree, info):
    """(name in the wheel, path) of every file but those of dist-info that are made here."""
    for name, path in files_below(PACKAGE):
        yield f"cinch/{name}", path
    for name, path in files_below(tree):
        if HELD.match(name):
            yield f"cinch/{name}", path
        elif name.startswith(LICENSES) and not name.endswith(".md"):
            yield f"{info}/licenses/{name.removeprefix(LICENSES)}", path


class Wheel:
    """A wheel that is being written: adds files and remembers their hashes for RECORD."""

    def __init__(self, path, level):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level)
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, EARLIEST_TIME)
        entry.external_attr = (stat.S_IFREG | mode) << 16  # pip gives execution back
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info):
        self.record.append(f"{info}/RECORD,,")
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", EARLIEST_TIME), "\n".join(self.record) + "\n")
        self.zip.close()


def write_wheel(tree, folder, level=9):
    """The wheel of an installed tree, written into `folder`; its path."""
    name = f"{project()['name'].replace('-', '_')}-{version()}"
    info = f"{name}.dist-info"
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}-{TAG}.whl")
    wheel = Wheel(path, level)
    for inside, source in contents(tree, info):
        with open(source, "rb") as file:
            wheel.add(inside, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)
    licenses = [row.split(",")[0].removeprefix(f"{info}/licenses/") for row in wheel.record if row.startswith(f"{info}/licenses/")]
    scripts = "".join(f"{name} = {place}\n" for name, place in project()["scripts"].items())
    wheel.add(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())
    wheel.add(f"{info}/METADATA", metadata(licenses).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: cinch\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
    wheel.close(info)
    return path


def wheel_of_build(build, folder, level=9):
    with tempfile.TemporaryDirectory() as tree:
        subprocess.run(["cmake", "--install", build, "--prefix", tree, "--strip"], check=True, stdout=subprocess.DEVNULL)
        return write_wheel(tree, folder, level)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook of PEP 517."""
    if not os.path.exists(os.path.join(RELEASE_BUILD, "cmake_install.cmake")):
        sys.exit("there is no build to make a wheel of: run ./dev build first")
    return os.path.basename(wheel_of_build(RELEASE_BUILD, wheel_directory))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("output")
    parser.add_argument("--fast", action="store_true")
    given = parser.parse_args()
    print(wheel_of_build(given.build, given.output, 1 if given.fast else 9))


if __name__ == "__main__":
    main()
