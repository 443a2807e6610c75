"""More quantisers in PyTorch operations; as torch_peers.py."""
import torch
import torch.nn.functional

from torch_bits import pack, pack_signs, round_at_random, unpack


def rows_of(g, width):
    return torch.nn.functional.pad(g, (0, -g.numel() % width)).view(-1, width)


class Signsgd:
    def encode(self, g):
        return pack_signs(g < 0), g.numel()

    def decode(self, w):
        return 1 - 2 * unpack(w[0], 1, w[1]).to(torch.float32)


def dynamic_codebook():
    """Code 127 is 0; decade i, below 10^(i - 6), has 2^i codes at the middles of equal intervals."""
    positive = [(0.1 + 0.9 * (j + 0.5) / 2 ** i) * 10.0 ** (i - 6) for i in range(7) for j in range(2 ** i)] + [1.0]
    return torch.tensor([-value for value in reversed(positive[:-1])] + [0.0] + positive)


class Dynamic8:
    BLOCK = 4096

    def __init__(self):
        self.book = dynamic_codebook()
        self.borders = (self.book[1:] + self.book[:-1]) / 2

    def encode(self, g):
        x = rows_of(g, self.BLOCK)
        scale = x.abs().amax(dim=1, keepdim=True)
        codes = torch.bucketize(x / scale.clamp(min=1.2e-38), self.borders, out_int32=True, right=True)
        return scale, codes.to(torch.uint8), g.numel()

    def decode(self, w):
        scale, codes, elements = w
        return (self.book[codes.to(torch.int32)] * scale).view(-1)[:elements]


class Mxfp8:
    def encode(self, g):
        x = rows_of(g, 32)
        exponent = x.abs().amax(dim=1, keepdim=True).view(torch.int32) >> 23
        scale = exponent.clamp(min=8) - 8
        value = (x * ((254 - scale) << 23).view(torch.float32)).clamp_(-448, 448).to(torch.float8_e4m3fn)
        return scale.to(torch.uint8), value, g.numel()

    def decode(self, w):
        scale, value, elements = w
        unit = torch.where(scale == 0, 0x400000, scale.to(torch.int32) << 23).to(torch.int32).view(torch.float32)
        return (value.to(torch.float32) * unit).view(-1)[:elements]


class TerngradShared:
    """In a world of one: nothing is reduced."""

    def sync(self, g):
        bound = 2.5 * g.std(correction=0)
        x = g.clamp(-bound, bound)
        magnitude = x.abs()
        scale = magnitude.max()
        codes = (x.sign() * round_at_random(magnitude * (1 / scale), 1)).to(torch.int8)
        return codes * scale


def floor_log2(x):
    """Of positive integers below 2^24."""
    return (x.to(torch.float32).view(torch.int32) >> 23) - 127


def elias_words(values):
    """Elias delta codes one after another, in words of 32 bits that are kept in int64."""
    low_bits = floor_log2(values)
    length_bits = floor_log2(low_bits + 1)
    bits = 2 * length_bits + 1 + low_bits
    codes = ((low_bits + 1).to(torch.int64) << low_bits) | (values & ((1 << low_bits) - 1))
    end = bits.to(torch.int64).cumsum(0)
    begin = end - bits
    # The lowest bit of the code goes to the last place.
    room = 64 - bits - (begin & 31)
    both = codes << room
    words = torch.zeros(int(end[-1]) // 32 + 2, dtype=torch.int64, device=values.device)
    words.index_add_(0, begin >> 5, (both >> 32) & 0xffffffff)
    words.index_add_(0, (begin >> 5) + 1, both & 0xffffffff)
    return words


class QsgdElias:
    """Encodes only: eager operations cannot tell where a code begins before they have read the one before it."""
    BUCKET, LEVELS = 512, 7

    def encode(self, g):
        x = rows_of(g, self.BUCKET)
        norm = x.norm(dim=1, keepdim=True)
        level = round_at_random(x.abs() * (self.LEVELS / norm.clamp(min=1e-30)), self.LEVELS).view(-1)[:g.numel()]
        index = level.nonzero().view(-1)
        gaps = torch.diff(index, prepend=index.new_tensor([-1]))
        return norm, pack(torch.signbit(g[index]).view(torch.uint8), 1), elias_words(gaps), elias_words(level[index].to(torch.int64))


COMPRESSORS = {"signsgd": Signsgd, "dynamic8": Dynamic8, "mxfp8": Mxfp8, "terngrad_shared": TerngradShared, "qsgd_elias": QsgdElias}
