"""Sketches, rotations and low rank in PyTorch operations; as torch_peers.py. Those with `sync` run in a world of one: nothing is reduced."""
import math

import torch

from torch_bits import scatter, share_of
from torch_quantize import rows_of

WORD = 0xffffffff


class CountSketch:
    """New hashes in each step. Words are kept in int64, where products do not overflow."""
    ROWS = 5

    def __init__(self, columns=0.02, ratio=0.002):
        self.columns, self.ratio, self.step = columns, ratio, 0

    def places(self, step, elements, cells):
        """The cell and the sign of every element, row by row."""
        i = torch.arange(elements, dtype=torch.int64)
        keys = torch.randint(0, 1 << 32, (self.ROWS,), generator=torch.Generator().manual_seed(step)).tolist()
        for row, key in enumerate(keys):
            a = ((i ^ key) * 0x85ebca6b) & WORD
            b = ((a ^ (a >> 13)) * 0xc2b2ae35) & WORD
            hashed = b ^ (b >> 16)
            yield (hashed & 0x7fffffff) % cells + row * cells, 1 - 2 * (hashed >> 31).to(torch.float32)

    def encode(self, g):
        self.step += 1
        cells = share_of(self.columns, g.numel())
        table = torch.zeros(self.ROWS * cells)
        for cell, sign in self.places(self.step, g.numel(), cells):
            table.index_add_(0, cell, g * sign)
        return self.step, table, g.numel()

    def decode(self, w):
        step, table, elements = w
        rows = [table[cell] * sign for cell, sign in self.places(step, elements, table.numel() // self.ROWS)]
        estimate = torch.stack(rows).median(dim=0).values
        index = torch.topk(estimate.abs(), share_of(self.ratio, elements), sorted=False).indices
        return scatter(index, estimate[index], elements)


class Demo:
    SIZE = 64

    def __init__(self, kept=8, decay=0.999):
        self.kept, self.decay, self.momentum = kept, decay, None
        k, i = torch.meshgrid(torch.arange(self.SIZE), torch.arange(self.SIZE), indexing="ij")
        scale = torch.where(k == 0, 1.0, 2.0).div(self.SIZE).sqrt()
        self.dct = (torch.cos(math.pi / self.SIZE * (i + 0.5) * k) * scale).to(torch.float32)

    def encode(self, g):
        self.momentum = g.clone() if self.momentum is None else self.momentum.mul_(self.decay).add_(g)
        all_of_them = rows_of(self.momentum, self.SIZE) @ self.dct.T
        index = all_of_them.abs().topk(self.kept, dim=1, sorted=False).indices
        value = all_of_them.gather(1, index)
        self.momentum -= self.spread(index, value, g.numel())
        return index.to(torch.uint8), value, g.numel()

    def spread(self, index, value, elements):
        sent = torch.zeros(index.shape[0], self.SIZE).scatter_(1, index, value)
        return (sent @ self.dct).view(-1)[:elements]

    def decode(self, w):
        index, value, elements = w
        return self.spread(index.to(torch.int64), value, elements)


def hadamard(x):
    """Orthonormal, per row; a new tensor for each of the log2(width) steps."""
    width, half = x.shape[1], 1
    while half < width:
        pairs = x.view(-1, width // (2 * half), 2, half)
        x = torch.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), dim=2).view(-1, width)
        half *= 2
    return x / math.sqrt(width)


class Thc:
    BLOCK, STEPS, BOUND = 1024, 30, 2.153875
    TABLE = [0, 3, 5, 7, 9, 11, 13, 14, 16, 17, 19, 21, 23, 25, 27, 30]

    def __init__(self):
        self.residual = None
        table = torch.tensor(self.TABLE, dtype=torch.float32)
        cells = torch.searchsorted(table, torch.arange(31, dtype=torch.float32), right=True)
        self.low, self.high = table[cells - 1], torch.cat((table, torch.tensor([31.0])))[cells]

    def sync(self, g):
        x = g if self.residual is None else g + self.residual
        blocks = rows_of(x, self.BLOCK)
        norm = blocks.norm(dim=1, keepdim=True)
        signs = torch.randint(0, 2, blocks.shape, dtype=torch.float32) * 2 - 1
        turned = hadamard(blocks / norm.clamp(min=1e-30) * signs) * math.sqrt(self.BLOCK)
        place = (turned.clamp_(-self.BOUND, self.BOUND) + self.BOUND) * (self.STEPS / (2 * self.BOUND))
        cell = place.to(torch.int32).clamp_(max=30)
        low, high = self.low[cell], self.high[cell]
        level = torch.where(torch.rand_like(place) * (high - low) < place - low, high, low)
        unit = norm * (2 * self.BOUND / (self.STEPS * math.sqrt(self.BLOCK)))
        update = (hadamard((level - 0.5 * self.STEPS) * unit) * signs).view(-1)[:g.numel()]
        self.residual = x - update
        return update


class Powersgd:
    RANK = 4

    def __init__(self):
        self.residual = self.q = None

    def sync(self, g):
        if self.q is None:
            self.residual, self.q = torch.zeros_like(g), torch.randn(g.shape[1], self.RANK)
        m = g + self.residual
        p = torch.linalg.qr(m @ self.q).Q
        self.q = m.T @ p
        update = p @ self.q.T
        self.residual = m - update
        return update


COMPRESSORS = {"count_sketch": CountSketch, "demo": Demo, "thc": Thc, "powersgd": Powersgd}
