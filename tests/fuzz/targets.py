"""The fuzz targets: what run.py runs and seeds.py writes first inputs for."""
import re
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"


def has_decoder(path):
    """Is it a compressor (wrappers need one to wrap) that decodes (programs with a `sync` body do not)?"""
    return path.parent.name != "wrap" and re.search(r"^  decode\b", path.read_text(), re.MULTILINE)


# Programs whose decoder is a target: the library's compressors (None: by name) and wrappers around one of them, which
# tests/programs/harness/program_file.cpp composes in the same way.
PROGRAMS = {path.stem: None for path in sorted((ROOT / "stdlib").glob("*/*.cinch")) if path.parent.name != "parts" and has_decoder(path)}
PROGRAMS["ef_of_onebit"] = "import std.wrap\nimport std.sign\ncompressor ef_of_onebit = error_feedback(onebit)\n"
PROGRAMS["momentum_of_qsgd"] = "import std.wrap\nimport std.quantize\ncompressor momentum_of_qsgd = momentum(qsgd, nesterov: true)\n"


@dataclass
class Target:
    executable: str
    corpus: str
    max_bytes: int  # of an input
    folders: list = field(default_factory=list)  # of further first inputs
    program: str = ""  # of a decoder
    start_seconds: int = 0  # until the first input


TARGETS = {
    name: Target(f"{name}_fuzz", name, max_bytes, folders) for name, max_bytes, folders in [
        ("parser", 8192, [ROOT / "stdlib", ROOT / "tests" / "programs"]),
        ("ir_text", 8192, [ROOT / "tests" / "lit" / "passes"]),
        ("kir_text", 16384, []),
        ("npy", 512, []),
        ("payload", 1024, []),
        ("image", 131072, []),
        ("state_file", 1024, []),
        ("plan", 8192, []),
        ("checkpoint", 2048, []),
        ("policy", 1024, []),
        ("network", 4096, []),
        ("plan_file", 4096, []),
        ("topology", 2048, []),
        ("profile", 1024, [ROOT / "tests" / "bench" / "profiles"]),
        ("agreement", 2048, []),
        ("rendezvous", 1024, []),
    ]
}
# Inputs as long as most payloads of 1027 elements; the rest of longer ones is random.
TARGETS |= {f"decoder:{name}": Target("decoder_fuzz", f"decoder_{name}", 4096, program=name, start_seconds=3) for name in PROGRAMS}
