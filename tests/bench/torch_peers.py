"""The same compressors in PyTorch operations, on the gradient's device, as collections of compressors for PyTorch are written.

Codes are packed as in Cinch's payloads. Nothing looks for non-finite values, which Cinch's programs all do, and selections
are not sorted by index: both leave work out on PyTorch's side. Every result is a new tensor, as in eager code.
"""
import math

import torch
import torch.nn.functional

import torch_quantize
import torch_select
import torch_transform
from peer import Peer, timed
from torch_bits import pack, pack_signs, round_at_random, scatter, share_of, unpack


class Cast:
    dtype = None

    def encode(self, g):
        return g.to(self.dtype)

    def decode(self, w):
        return w.to(torch.float32)


class Fp16(Cast):
    dtype = torch.float16


class Bf16(Cast):
    dtype = torch.bfloat16


class Onebit:
    def encode(self, g):
        negative = g < 0
        count = negative.sum()
        low = torch.where(negative, g, 0).sum() / count.clamp(min=1)
        high = torch.where(negative, 0, g).sum() / (g.numel() - count).clamp(min=1)
        return low, high, pack_signs(negative), g.numel()

    def decode(self, w):
        low, high, bits, elements = w
        return torch.where(unpack(bits, 1, elements).view(torch.bool), low, high)


class Tbq:
    def __init__(self, tau):
        self.tau, self.residual = tau, None

    def encode(self, g):
        self.residual = g.clone() if self.residual is None else self.residual.add_(g)
        # 0 for -tau, 1 for nothing, 2 for tau.
        codes = (self.residual >= self.tau).to(torch.uint8) + 1 - (self.residual <= -self.tau).to(torch.uint8)
        self.residual -= (codes.to(torch.float32) - 1) * self.tau
        return pack(codes, 2), g.numel()

    def decode(self, w):
        return (unpack(w[0], 2, w[1]).to(torch.float32) - 1) * self.tau


class Minmax:
    def encode(self, g):
        low, high = torch.aminmax(g)
        gap = (high - low) / 3
        codes = round_at_random((g - low) * (1 / gap), 3).to(torch.uint8)
        return low, gap, pack(codes, 2), g.numel()

    def decode(self, w):
        low, gap, codes, elements = w
        return low + gap * unpack(codes, 2, elements)

    def gap(self, w):
        return w[1]


class EfSign:
    def __init__(self):
        self.residual = None

    def encode(self, g):
        p = g if self.residual is None else g + self.residual
        scale = p.abs().mean()
        negative = p < 0
        self.residual = p - torch.where(negative, -scale, scale)
        return scale, pack_signs(negative), g.numel()

    def decode(self, w):
        scale, bits, elements = w
        return torch.where(unpack(bits, 1, elements).view(torch.bool), -scale, scale)


class Qsgd:
    LEVELS = 7

    def __init__(self, bucket):
        self.bucket = bucket

    def encode(self, g):
        x = torch.nn.functional.pad(g, (0, -g.numel() % self.bucket)).view(-1, self.bucket)
        norm = x.norm(dim=1, keepdim=True)
        level = round_at_random(x.abs() * (self.LEVELS / norm.clamp(min=1e-30)), self.LEVELS)
        codes = (x.sign() * level).to(torch.int8).view(torch.uint8) & 15
        return norm, pack(codes.view(-1), 4), g.numel()

    def decode(self, w):
        norm, packed, elements = w
        codes = unpack(packed, 4, 2 * packed.numel()).view(torch.int8)
        signed = (codes << 4) >> 4
        return (signed.view(-1, self.bucket) * (norm / self.LEVELS)).view(-1)[:elements]

    def gap(self, w):
        return (w[0] / self.LEVELS).expand(-1, self.bucket).reshape(-1)[:w[2]]


class Terngrad:
    def encode(self, g):
        bound = 2.5 * g.std(correction=0)
        x = g.clamp(-bound, bound)
        magnitude = x.abs()
        scale = magnitude.max()
        codes = (x.sign() * round_at_random(magnitude * (1 / scale), 1)).to(torch.int8).view(torch.uint8) & 3
        return scale, pack(codes, 2), g.numel()

    def decode(self, w):
        scale, packed, elements = w
        codes = unpack(packed, 2, elements).view(torch.int8)
        return ((codes << 6) >> 6) * scale

    def gap(self, w):
        return w[0]


class Natural:
    def encode(self, g):
        bits = g.view(torch.int32)
        fraction = (bits & 0x7fffff).to(torch.float32) * 2.0 ** -23
        exponent = ((bits >> 23) & 255) + round_at_random(fraction, 1).to(torch.int32)
        kept = exponent.clamp_(18, 145) - 18
        return torch.where((g < 0) & (kept > 0), kept | 128, kept).to(torch.uint8)

    def decode(self, w):
        code = w.to(torch.int32)
        kept = code & 127
        magnitude = torch.where(kept == 0, 0, (kept + 18) << 23)
        return (magnitude | (code & 128) << 24).view(torch.float32)

    def gap(self, w):
        return None  # from a power of two to the next one


class Threshold:
    def __init__(self, tau):
        self.tau = tau

    def encode(self, g):
        index = (g.abs() >= self.tau).nonzero().view(-1)
        return index.to(torch.int32), g[index], g.numel()

    def decode(self, w):
        return scatter(*w)


class Topk(Threshold):
    def __init__(self, ratio):
        self.ratio = ratio

    def encode(self, g):
        index = torch.topk(g.abs(), share_of(self.ratio, g.numel()), sorted=False).indices
        return index.to(torch.int32), g[index], g.numel()


class Graddrop(Threshold):
    def __init__(self, ratio, sample):
        self.ratio, self.sample, self.residual = ratio, sample, None

    def encode(self, g):
        p = g if self.residual is None else g + self.residual
        samples = share_of(self.sample, g.numel(), min(math.ceil(100 / self.ratio), g.numel()))
        sampled = p[torch.randint(0, g.numel(), (samples,), device=g.device)].abs()
        tau = torch.topk(sampled, share_of(self.ratio, samples), sorted=False).values.min()
        index = (p.abs() >= tau).nonzero().view(-1)[:2 * share_of(self.ratio, g.numel())]
        value = p[index]
        self.residual = p.clone() if self.residual is None else p
        self.residual[index] = 0
        return index.to(torch.int32), value, g.numel()


class Dgc(Threshold):
    def __init__(self, ratio, momentum):
        self.ratio, self.momentum, self.velocity, self.pending = ratio, momentum, None, None

    def encode(self, g):
        if self.velocity is None:
            self.velocity, self.pending = torch.zeros_like(g), torch.zeros_like(g)
        self.velocity.mul_(self.momentum).add_(g)
        self.pending.add_(self.velocity)
        index = torch.topk(self.pending.abs(), share_of(self.ratio, g.numel()), sorted=False).indices
        value = self.pending[index]
        self.pending[index] = 0
        self.velocity[index] = 0
        return index.to(torch.int32), value, g.numel()


COMPRESSORS = {"fp16": Fp16, "bf16": Bf16, "onebit": Onebit, "tbq": Tbq, "minmax": Minmax, "ef_sign": EfSign, "qsgd": Qsgd,
               "terngrad": Terngrad, "natural": Natural, "threshold": Threshold, "topk": Topk, "graddrop": Graddrop, "dgc": Dgc,
               **torch_quantize.COMPRESSORS, **torch_select.COMPRESSORS, **torch_transform.COMPRESSORS}


class TorchPeer(Peer):
    def __init__(self, measured, gradient, elements):
        self.compressor = COMPRESSORS[measured.name](**measured.settings)
        shape = measured.shape(elements)
        self._gradient = torch.frombuffer(gradient, dtype=torch.float32, count=math.prod(shape)).view(shape)
        self.payload = self.out = None

    def offers(self, call):
        return hasattr(self.compressor, call)

    def _encode(self):
        self.payload = self.compressor.encode(self._gradient)

    def _decode(self):
        self.out = self.compressor.decode(self.payload)

    def _sync(self):
        self.out = self.compressor.sync(self._gradient)

    def encode(self, repeats=1):
        return timed(self._encode, repeats)

    def decode(self, repeats=1):
        return timed(self._decode, repeats)

    def sync(self, repeats=1):
        return timed(self._sync, repeats)


def mean_is_zero(x):
    """Within six standard errors."""
    return abs(x.mean().item()) <= 6 * x.std().item() / math.sqrt(x.numel())


def rounds_alike(peer, reference):
    """Whether both are values rounded to one of the two levels around each, with the same mean."""
    gap = peer.compressor.gap(peer.payload)
    difference = peer.out - reference
    if gap is None:
        gap = torch.maximum(peer.out.abs(), reference.abs()) / 2
    # A hair more than a gap: the levels themselves may differ by rounding of sums.
    return bool((difference.abs() <= gap * (1 + 1e-4)).all()) and mean_is_zero(difference)
