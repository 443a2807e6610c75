"""What an ELF file needs: shared libraries, and versions of their symbols."""
import re
import subprocess


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def needed_libraries(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", _readelf("-d", path))


def run_paths(path):
    return [part for found in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", _readelf("-d", path)) for part in found.split(":")]


def needed_versions(path):
    """{"GLIBC": (2, 34), …}: the newest version of each name that the file needs."""
    newest = {}
    section = _readelf("-V", path).partition("Version needs section")[2]
    for version in re.findall(r"Name: (\S+)", section):
        name, _, number = version.rpartition("_")
        # A version without a number, as GLIBC_ABI_DT_RELR, is newer than any with one.
        parts = tuple(int(part) for part in number.split(".")) if re.fullmatch(r"[0-9.]+", number) else (float("inf"),)
        newest[name] = max(newest.get(name, ()), parts)
    return newest


def exported_names(path):
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", path], check=True, capture_output=True, text=True).stdout
    return out.split()
