#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets into tests/fuzz/corpus: what a well-formed input looks like.

    seeds.py CINCH [TARGET…]    CINCH: build/release/bin/cinch; a target as run.py names it (all)

Run it again where a format has changed, and for each new compressor of the library.
"""
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from targets import CORPUS, PROGRAMS, TARGETS

# Of decoder_payload.h: sizes by session, and ways.
SIZES = [0, 1, 5, 67, 1027]
RAW, MARKED, INDICES_UNMENDED, COUNTS_UNMENDED, DAMAGED, RESEALED = 1, 2, 4, 8, 16, 32


def npy(values, descr="<f4", code="f", shape=None):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape or f'({len(values)},)'}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values)


def rendezvous():
    """Of frames.h: a byte for where the stream is cut, then frames."""
    def frame(kind, body):
        return b"CnRv" + bytes([kind, 0, 0, 0]) + struct.pack("<I", len(body)) + body

    answer = struct.pack("<II", 1, 3) + bytes(64)
    parts = b"".join(struct.pack("<I", len(part)) + part for part in (b"one", b"", b"three"))
    return {"challenge": b"\x05" + frame(1, bytes(32)), "answer": b"\x20" + frame(2, answer), "verdict": b"\x01" + frame(3, bytes(37)),
            "two": b"\x10" + frame(4, b"\0part") + frame(5, b"\0" + parts), "failed": b"\0" + frame(5, b"\x0crank 2 has not come"),
            "card": b"\0" + frame(4, b"\0" + struct.pack("<I", 1) + bytes(32) + b"machine"), "address": b"\0127.0.0.1:29400", "header": b"\0" + bytes(40)}


def gradient(num_elems):
    rng = random.Random(num_elems)
    return [rng.gauss(0, 1) for _ in range(num_elems)]


def emitted(cinch, program, stage, *options):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([cinch, "build", program, f"--emit={stage}", "--output", file.name, *options], check=True)
        return Path(file.name).read_bytes()


def payload_of(cinch, program, num_elems):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "g.npy").write_bytes(npy(gradient(num_elems)))
        text = PROGRAMS[program]
        if text:
            (folder / f"{program}.cinch").write_text(text)
        subprocess.run([cinch, "encode", folder / f"{program}.cinch" if text else program, "--input", folder / "g.npy",
                        "--payload", folder / "p"], check=True, stdout=subprocess.DEVNULL)
        return (folder / "p").read_bytes()


def decoder_input(session, way=0, at=0, what=0, longer=0, body=b""):
    return struct.pack("<BBIBb", session, way, at, what, longer) + body


def decoder(cinch, program):
    payloads = [payload_of(cinch, program, n) for n in SIZES]
    bodies = [payload[64:] for payload in payloads]
    files = {f"valid_{SIZES[i]}": decoder_input(i, body=bodies[i]) for i in range(1, len(SIZES))}
    files["no_elements"] = decoder_input(0)
    files["drawn"] = decoder_input(5, body=b"drawn")
    files["marked"] = decoder_input(3, MARKED)
    files["indices_drawn"] = decoder_input(3, INDICES_UNMENDED, body=b"indices")
    files["index_outside"] = decoder_input(3, INDICES_UNMENDED, body=struct.pack("<I", 1) + b"\xff" * 60)
    files["count_above"] = decoder_input(2, COUNTS_UNMENDED, body=struct.pack("<I", 6))
    files["raw"] = decoder_input(2, RAW, body=payloads[2])
    files["flipped"] = decoder_input(3, DAMAGED, 70, 0xff, 0, bodies[3])
    files["forged_count"] = decoder_input(3, DAMAGED | RESEALED, 65, 0x80, 0, bodies[3])
    files["longer"] = decoder_input(3, DAMAGED | RESEALED, 0, 0, 16, bodies[3])
    return files


def image_input(file):
    """An image with a binary of 16 zeros, as image_fuzz.cpp takes it."""
    (json_bytes,) = struct.unpack_from("<Q", file, 24)
    tree = json.loads(file[48:48 + json_bytes])
    at, constants = 48 + json_bytes, []
    for size in tree["blob_bytes"][:-1]:
        at += -at % 16
        constants.append(file[at:at + size])
        at += size
    tree["blob_bytes"][-1] = 16
    text = json.dumps(tree, separators=(",", ":")).encode()
    out = text
    for blob in [*constants, bytes(16)]:
        out += bytes(-len(out) % 16) + blob
    return struct.pack("<I", len(text)) + out


def images(cinch):
    """Of every kind: packed fields, prefix codes, counts, states and such that change in place, inputs, matrices, loops, `sync`, groups, a GPU."""
    files = {name: [name] for name in ["fp16", "onebit", "qsgd", "adacomp", "terngrad_shared", "thc", "powersgd", "bf16_lossless", "qgz"]}
    files["ef_lr"] = ["ef_lr(onebit)"]
    files["tbq_in_place"] = ["tbq", "--states", "in-place"]
    for name in ["onebit", "tbq", "terngrad_shared"]:
        files[f"{name}_cuda"] = [name, "--target", "cuda:sm_90"]
    return {name: image_input(emitted(cinch, args[0], "image", *args[1:])) for name, args in files.items()}


def state(name, dtype, data):
    return struct.pack("<IIQ", len(name), len(dtype), len(data)) + name + dtype + data


def payload():
    """For the wire of payload_fuzz.cpp: 3 indices, 3 codes of 5 bits, 37 x 2 places of 11 bits, 37 flags."""
    header = b"CNCH" + struct.pack("<III", 1, 0, 0) + bytes(24) + struct.pack("<qqq", 37, 1, 0)
    fields = [struct.pack("<III", 1, 8, 36), b"\x41\x0c", b"\x01" + bytes(101), b"\xff\xff\xff\xff\x1f"]
    file = header + struct.pack("<I", 3)
    for field in fields:
        file += bytes(-len(file) % 16) + field
    return file


def plan(cinch, name, ranks):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "g.npy").write_bytes(npy(gradient(8)))
        subprocess.run([cinch, "sync", "fp16", "--input", folder / "g.npy", "--ranks", str(ranks), "--plan", name, "--explain",
                        "--save-plan", folder / "plan"], check=True, stdout=subprocess.DEVNULL)
        return (folder / "plan").read_bytes()


def changed_plan(name, world, *changes):
    """For plan_fuzz.cpp: numbers of a sound plan by their place, and what they become."""
    return struct.pack("<BBB", 0, name, world - 1) + b"".join(struct.pack("<Hi", *change) for change in changes)


def checkpoint(cinch):
    """What one of two ranks keeps of a step, without the preamble: the length of the description, that, and the states."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "g.npy").write_bytes(npy(gradient(8)))
        subprocess.run([cinch, "sync", "ef_sign", "--input", folder / "g.npy", "--ranks", "2", "--plan", "two_shot", "--steps", "1",
                        "--state-out", folder / "s%r"], check=True, stdout=subprocess.DEVNULL)
        file = (folder / "s0").read_bytes()
        (description_bytes,) = struct.unpack_from("<Q", file, 32)
        return struct.pack("<H", description_bytes) + file[40:]


def network(cinch):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cinch, "probe", "--ranks", "3", "--latency", "10", "--bandwidth", "1000", "--largest", "256", "--seconds", "0.01",
                        "--output", Path(folder) / "net"], check=True, stdout=subprocess.DEVNULL)
        return (Path(folder) / "net").read_bytes()


def planned(cinch):
    """A plan file, and the speeds that it was made from, as short as they come."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "p.csv").write_text("name,shape,ready_us\na,100x100,100\nb,10,250\n")
        subprocess.run([cinch, "plan", "--measure", "onebit", "--seconds", "0", "--output", at / "speeds"], check=True, stdout=subprocess.DEVNULL)
        table = json.loads((at / "speeds").read_text())
        for curve in ("decode", "decode_add", "finish", "spread", "join"):
            table["f32"][curve] = table["f32"][curve][:2]
            table["programs"][0][curve] = []
        (at / "speeds").write_text(json.dumps(table))
        subprocess.run([cinch, "plan", at / "p.csv", "--ranks", "2", "--bandwidth", "1", "--speeds", at / "speeds", "--programs", "onebit", "--output", at / "plan"],
                       check=True, stdout=subprocess.DEVNULL)
        return {"plan": (at / "plan").read_bytes(), "speeds": (at / "speeds").read_bytes()}


def topologies():
    file = {"file": "cinch topology", "format": 1, "ranks_per_machine": 2, "machines_per_leaf": 2, "spines": 2, "leaves_per_pod": 1,
            "machine": {"gigabits": 800}, "nic": {"gigabits": 100, "latency_us": 1, "message_us": 0.5}, "uplink": {"gigabits": 200},
            "core": {"gigabits": 400}, "sites": [{"machines": 4}, {"machines": 2}],
            "joins": [{"sites": [0, 1], "gigabits": 10, "latency_us": 30000, "loss": 0.0001}], "links": [{"link": "leaf1-spine0", "share": 0}]}
    tree = (b"Nodes 16\nTiers 3\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 2\nDownlink_Latency_ns 500\nTier 1\n"
            b"Downlink_speed_Gbps 200\nRadix_Down 2\nOversubscribed 2\nBundle 1\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 2\n")
    return {"json": json.dumps(file).encode(), "htsim": tree}


def policies():
    rules = [{"name": "*.bias", "use": "exact"}, {"min_elements": 100, "min_dims": 2, "use": "dgc", "set": {"ratio": 0.001}, "priority": 1},
             {"name": "frozen.[a-z]?", "use": "off"}, {"max_elements": 9, "max_dims": 1, "priority": -3}]
    return {"rules": json.dumps({"rules": rules}).encode(), "none": b'{"rules": []}', "ill_typed": b'{"rules": [{"priority": 1e9}]}'}


def inputs(cinch, target):
    if target in PROGRAMS:
        return decoder(cinch, target)
    small = ["fp16", "onebit"]
    said = (b"compressor t {\n  input lr: f32 in (0, 1]\n  input weights: [f32; n]\n"
            b"  sync(g: [f32; n]) {\n    let own = allreduce(g * lr, sum, group: machine_ranks, in: bf16)\n"
            b"    broadcast(own, root: step % 2) - weights\n  }\n}\n\n"
            b"compressor c {\n  wire { lengths: [u4; 16], code: [u32; n] huffman(lengths) }\n"
            b"  encode(g: [f32; n]) { wire { lengths: fill(4 as u4, 16), code: (g > 0.5) as u32 } }\n  decode(w) { (w.code + worker) as f32 }\n}\n")
    return {
        "parser": lambda: {"nested": b"compressor x { encode(g) { " + b"(" * 60 + b"g" + b")" * 60 + b" } }\n",
                           "cut": b"compressor x {\n  state a: [f32; n] = \"", "not_utf8": b"fn \xff\xfe(x: f32) = x\n",
                           "groups_codes_inputs": said},
        "ir_text": lambda: {p: emitted(cinch, p, "ir") for p in small},
        "kir_text": lambda: {p: emitted(cinch, p, "kir") for p in small},
        "image": lambda: images(cinch),
        "npy": lambda: {"vector": npy([1.0, -2.5, 3e38]), "empty": npy([], shape="(0,)"),
                        "matrix": npy([1, 2, 3, 4, 5, 6], "<u2", "H", "(2, 3)")},
        "payload": lambda: {"three": payload()},
        "state_file": lambda: {"both": state(b"a", b"f32", bytes(12)) + state(b"residual", b"u3", bytes(range(12)))},
        "plan": lambda: {"two_shot": plan(cinch, "two_shot", 2), "ring": plan(cinch, "ring", 1), "sound": changed_plan(3, 2),
                         "changed": changed_plan(2, 3, (0, 1 << 30), (70, -1), (300, 5))},
        "checkpoint": lambda: {"two_sites": checkpoint(cinch)},
        "policy": policies,
        "profile": lambda: {"csv": b"name,shape,ready_us,spread_us\na,10x20,100,3\nb,10,250,0\n",
                            "json": b'{"forward_us": 1500, "tensors": [{"name": "a", "shape": [10, 20], "ready_us": 100}, {"name": "b", "numel": 3, "ready_gap_us": 1}]}',
                            "nan": b"# optimizer_us 20\nname,numel,ready_gap_us\na,10,nan\n"},
        "topology": lambda: topologies(),
        "network": lambda: {"loopback": network(cinch)},
        "plan_file": lambda: planned(cinch),
        "agreement": lambda: {"open": bytes([1, 2]) + bytes(16), "step": bytes([9, 3]) + struct.pack("<QQ", 7, 1),
                              "differs": bytes([0, 0]) + b"tensor fc of 3 x 4"},
        "rendezvous": rendezvous,
    }[target]()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or TARGETS:
        target = TARGETS[name]
        folder = CORPUS / target.corpus
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in inputs(sys.argv[1], target.program or name).items():
            (folder / file).write_bytes(content)


if __name__ == "__main__":
    main()
