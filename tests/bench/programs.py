"""The programs that are measured: their settings and the goals that stand beside the figures."""
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    name: str
    settings: dict
    encode_floor: float  # goals for the shares of the floor; None: there is none, the floor stands beside
    decode_floor: float
    torch: float  # how many times faster than PyTorch's tensor operations encode and decode are to be
    has_loop: bool = True
    calls: tuple = ("encode", "decode")
    is_matrix: bool = False
    hook: float = None  # how many times faster than PyTorch's own hook

    def shape(self, elements):
        """As many as that, or hardly fewer in a square."""
        side = math.isqrt(elements)
        return (side, side) if self.is_matrix else (elements,)

    def floor(self, call):
        return self.decode_floor if call == "decode" else self.encode_floor


def other(name, settings, encode_floor, decode_floor, torch, **more):
    return Measured(name, settings, encode_floor, decode_floor, torch, has_loop=False, **more)


def synced(name, floor, torch, **more):
    return other(name, {}, floor, None, torch, calls=("sync",), **more)


LOOP_GOAL = 0.95
# 0.0329 keeps a thousandth of a normal gradient of deviation 0.01.
PROGRAMS = [
    Measured("fp16", {}, 0.8, 0.8, 1), Measured("bf16", {}, 0.8, 0.8, 1), Measured("onebit", {}, 0.8, 0.8, 4),
    Measured("tbq", {"tau": 0.01}, 0.8, 0.8, 4), Measured("minmax", {}, 0.8, 0.8, 4), Measured("ef_sign", {}, 0.8, 0.8, 4),
    Measured("qsgd", {"bucket": 512}, 0.6, 0.8, 8), Measured("terngrad", {}, 0.6, 0.8, 4), Measured("natural", {}, 0.6, 0.8, 4),
    Measured("threshold", {"tau": 0.0329}, 0.5, 0.8, 4), Measured("topk", {"ratio": 0.001}, 0.5, 0.8, 8),
    Measured("graddrop", {"ratio": 0.001, "sample": 0.01}, 0.5, 0.8, 4),
    Measured("dgc", {"ratio": 0.001, "momentum": 0.9}, 0.5, 0.8, 8),
]
# No loops by hand beside these.
LIBRARY = [
    other("signsgd", {}, 0.8, 0.8, 4), other("dynamic8", {}, 0.8, 0.8, 4), other("mxfp8", {}, 0.8, 0.8, 4),
    other("qsgd_elias", {}, 0.6, 0.8, 8), other("adacomp", {}, 0.8, 0.8, 4), other("redsync", {"ratio": 0.001}, 0.5, 0.8, 4),
    other("sidco", {"ratio": 0.001}, 0.5, 0.8, 4), other("randomk", {"ratio": 0.001}, 0.5, 0.8, 4),
    other("dgc_sampled", {"ratio": 0.001, "momentum": 0.9, "sample": 0.01}, 0.5, 0.8, 8),
    other("count_sketch", {}, None, None, 3), other("demo", {}, None, None, 3),
    synced("terngrad_shared", 0.6, 4), synced("thc", None, 3), synced("powersgd", None, 3, is_matrix=True, hook=1),
]
