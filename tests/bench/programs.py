"""The programs that are measured: their settings and the goals that stand beside the figures."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    name: str
    settings: dict
    encode_floor: float  # goals for the shares of the floor
    decode_floor: float
    torch: float  # how many times faster than PyTorch's tensor operations encode and decode are to be


LOOP_GOAL = 0.95
# 0.0329 keeps a thousandth of a normal gradient of deviation 0.01.
PROGRAMS = [
    Measured("fp16", {}, 0.8, 0.8, 1), Measured("bf16", {}, 0.8, 0.8, 1), Measured("onebit", {}, 0.8, 0.8, 4),
    Measured("tbq", {"tau": 0.01}, 0.8, 0.8, 4), Measured("minmax", {}, 0.8, 0.8, 4), Measured("ef_sign", {}, 0.8, 0.8, 4),
    Measured("qsgd", {}, 0.6, 0.8, 8), Measured("terngrad", {}, 0.6, 0.8, 4), Measured("natural", {}, 0.6, 0.8, 4),
    Measured("threshold", {"tau": 0.0329}, 0.5, 0.8, 4), Measured("topk", {"ratio": 0.001}, 0.5, 0.8, 8),
    Measured("graddrop", {"ratio": 0.001, "sample": 0.01}, 0.5, 0.8, 4),
    Measured("dgc", {"ratio": 0.001, "momentum": 0.9}, 0.5, 0.8, 8),
]
