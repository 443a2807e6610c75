#!/usr/bin/env python3
"""torch_sessions.py FOLDER [--device cuda|cpu]: libcinch.so below PyTorch: sessions on memory and streams of PyTorch's, calls on several streams
one after another, calls in its graphs, and a session that closes while PyTorch captures; payloads are those of sessions on the CPU, bit for bit.
--device cpu: the calls alone, where no GPU is."""
import argparse
import sys
from ctypes import byref, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import cinch_abi  # noqa: E402
from cinch_abi import Error, Outcome, Payload, SessionOptions, Tensor, sized  # noqa: E402

ELEMENTS, SEED, STEPS = 100003, 7, 6
CALL_ENCODE = 0
ON_CPU, ON_CUDA = 0, 1


class Session:
    """Of one tensor; its payload is a tensor of PyTorch's, too."""

    def __init__(self, library, image, device, stream=0):
        self.library, self.device, self.is_cuda = library, device, device == "cuda"
        self.shape = (c_int64 * 1)(ELEMENTS)
        program, self.session = c_void_p(), c_void_p()
        self.call("cinch_program_load", str(image).encode(), byref(program))
        self.call("cinch_session_open", program, byref(sized(SessionOptions, threads=1, seed=SEED)), byref(self.tensor(None, stream)), c_size_t(1),
                  byref(self.session))
        library.cinch_program_release(program)
        bound = c_size_t()
        self.call("cinch_payload_bounds", self.session, c_uint64(0), None, c_size_t(1), byref(bound))
        self.payload = torch.zeros(bound.value, dtype=torch.uint8, device=device)
        self.size = 0

    def call(self, name, *args):
        error = sized(Error)
        if getattr(self.library, name)(*args, byref(error)) != 0:
            sys.exit(f"{name}: {error.message.decode()}")

    def tensor(self, of, stream):
        return sized(Tensor, data=of.data_ptr() if of is not None else None, device=ON_CUDA if self.is_cuda else ON_CPU, num_dims=1,
                     shape=self.shape, stream=stream)

    def encode(self, gradient, step, stream=0):
        payload = sized(Payload, data=self.payload.data_ptr(), capacity=self.payload.numel())
        self.call("cinch_encode", self.session, c_uint64(step), None, c_size_t(1), byref(self.tensor(gradient, stream)), byref(payload))
        self.size = payload.size

    def prepare(self, step, stream):
        self.call("cinch_prepare", self.session, c_int32(CALL_ENCODE), c_uint64(step), c_void_p(stream))

    def bytes(self, stream=0):
        if self.is_cuda:
            outcome = sized(Outcome)
            self.call("cinch_collect", self.session, c_void_p(stream), byref(outcome), c_size_t(1))
            if outcome.status != 0:
                sys.exit(f"encode: {outcome.message.decode()}")
            self.size = outcome.payload_size
        return bytes(self.payload[:self.size].cpu().numpy())

    def close(self):
        self.library.cinch_session_release(self.session)


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: payloads differ")
    print(f"{what}: same bits", flush=True)


def check_cuda(name, gradients, expected, open_session):
    on_device = [gradient.cuda() for gradient in gradients]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    session = open_session(streams[0].cuda_stream)
    for step, gradient in enumerate(on_device):
        session.encode(gradient, step, streams[step % 2].cuda_stream)
    same(f"{name} on streams in turn", session.bytes(torch.cuda.current_stream().cuda_stream), expected[-1])
    session.close()

    stream, given = streams[1], torch.empty_like(on_device[0])
    session = open_session(stream.cuda_stream)
    given.copy_(on_device[0])
    torch.cuda.synchronize()
    session.encode(given, 0, stream.cuda_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        session.encode(given, 0, stream.cuda_stream)
    with torch.cuda.stream(stream):
        for step in range(1, len(on_device)):
            given.copy_(on_device[step])
            session.prepare(step, stream.cuda_stream)
            graph.replay()
    same(f"{name} in a graph", session.bytes(stream.cuda_stream), expected[-1])
    torch.cuda.synchronize()
    session.close()

    session = open_session(streams[0].cuda_stream)
    session.encode(on_device[0], 0, streams[0].cuda_stream)
    payload, size = session.payload, len(expected[0])
    graph, out = torch.cuda.CUDAGraph(), torch.zeros(5, device="cuda")
    with torch.cuda.graph(graph, stream=stream):
        session.close()
        out += 1
    graph.replay()
    torch.cuda.synchronize()
    same(f"{name} closed beside a capture", bytes(payload[:size].cpu().numpy()), expected[0])
    if out.tolist() != [1.0] * 5:
        sys.exit("the capture was spoiled")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    library = cinch_abi.load(options.folder / "libcinch.so")
    torch.manual_seed(SEED)
    gradients = [0.01 * torch.randn(ELEMENTS) for _ in range(STEPS)]
    names = [name for name in ("onebit", "ef_sign", "qsgd", "dgc") if (options.folder / f"{name}.cpu.image").exists()]
    for name in names:
        session = Session(library, options.folder / f"{name}.cpu.image", "cpu")
        expected = []
        for step, gradient in enumerate(gradients):
            session.encode(gradient, step)
            expected.append(session.bytes())
        session.close()
        print(f"{name}: payloads of {len(expected[0])} bytes", flush=True)
        if options.device == "cuda":
            check_cuda(name, gradients, expected, lambda stream, n=name: Session(library, options.folder / f"{n}.gpu.image", "cuda", stream))
    if not names:
        sys.exit("no images")


main()
