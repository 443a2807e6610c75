"""More selections in PyTorch operations; as torch_peers.py. Thresholds that decide how often a loop runs are waited for, as such code does."""
import math

import torch

from torch_bits import pack_signs, scatter, share_of, unpack
from torch_quantize import rows_of


class Redsync:
    ROUNDS = 12

    def __init__(self, ratio):
        self.ratio = ratio

    def encode(self, g):
        k = share_of(self.ratio, g.numel())
        magnitude = g.abs()
        low, tau, high = 0.0, magnitude.mean().item(), magnitude.max().item()
        kept = (magnitude > tau).sum().item()
        for _ in range(self.ROUNDS):
            if k <= kept <= 2 * k:
                break
            if kept < k:
                high = tau
            else:
                low = tau
            tau = 0.5 * low + 0.5 * high
            kept = (magnitude > tau).sum().item()
        index = (magnitude > (low if kept < k else tau)).nonzero().view(-1)[:2 * k]
        return index.to(torch.int32), g[index], g.numel()

    def decode(self, w):
        return scatter(*w)


def pareto(mean, deviation, share):
    ratio = (mean / deviation) ** 2
    shape, scale = 0.5 - 0.5 * ratio, 0.5 * mean * (ratio + 1)
    if abs(shape) < 1e-4:
        return -scale * math.log(share)
    return scale / shape * (math.exp(-shape * math.log(share)) - 1)


class Sidco(Redsync):
    """Generalised Pareto in all stages; one more of them whenever five calls kept a fifth more or less than wanted."""

    def __init__(self, ratio):
        super().__init__(ratio)
        self.stages, self.calls, self.kept = 1, 0, 0.0

    def encode(self, g):
        k = share_of(self.ratio, g.numel())
        magnitude = g.abs()
        first = 0.25 if self.stages > 1 and self.ratio < 0.25 else self.ratio
        tau = pareto(magnitude.mean().item(), magnitude.std().item(), first)
        for _ in range(self.stages - 1):
            exceeding = magnitude[magnitude > tau]
            if exceeding.numel() <= 1:
                break
            least = exceeding.min().item()
            share = (self.ratio / first) ** (1 / (self.stages - 1))
            tau = least + pareto(exceeding.mean().item() - least, exceeding.std().item(), share)
        index = (magnitude >= tau).nonzero().view(-1)
        self.control(index.numel() / k)
        index = index[:2 * k]
        return index.to(torch.int32), g[index], g.numel()

    def control(self, kept):
        self.kept += min(kept, 2)
        self.calls += 1
        if self.calls < 5:
            return
        if not 4 <= self.kept <= 6:
            self.stages = min(self.stages + 1, max(1, min(16, math.ceil(-math.log2(self.ratio)))))
        self.calls, self.kept = 0, 0.0


class Adacomp:
    BIN = 512

    def __init__(self):
        self.residual = None

    def encode(self, g):
        p = g.clone() if self.residual is None else self.residual + g
        x = rows_of(p, self.BIN)
        largest = x.abs().amax(dim=1, keepdim=True)
        scale = largest.mean()
        reaches = ((x + rows_of(g, self.BIN)).abs() >= largest) & (x != 0)
        index = reaches.view(-1)[:g.numel()].nonzero().view(-1)
        negative = p[index] < 0
        self.residual = p
        self.residual[index] -= torch.where(negative, -scale, scale)
        return scale, index.to(torch.int32), pack_signs(negative), g.numel()

    def decode(self, w):
        scale, index, bits, elements = w
        return scatter(index, torch.where(unpack(bits, 1, index.numel()).view(torch.bool), -scale, scale), elements)


class DgcSampled(Redsync):
    def __init__(self, ratio, momentum, sample):
        super().__init__(ratio)
        self.momentum, self.sample, self.velocity, self.pending = momentum, sample, None, None

    def threshold(self, magnitude, k):
        elements = magnitude.numel()
        samples = min(max(share_of(self.sample, elements), math.ceil(2 / self.ratio)), elements)
        sampled = magnitude[torch.randint(0, elements, (samples,), device=magnitude.device)]
        tau = torch.topk(sampled, share_of(k / elements, samples), sorted=False).values.min()
        for _ in range(10):
            kept = (magnitude >= tau).sum()
            if kept >= 0.8 * k:
                break
            tau *= 0.8
        if kept > 1.3 * k:
            tau = torch.topk(magnitude, k, sorted=False).values.min()
        return tau

    def encode(self, g):
        if self.velocity is None:
            self.velocity, self.pending = torch.zeros_like(g), torch.zeros_like(g)
        self.velocity.mul_(self.momentum).add_(g)
        self.pending.add_(self.velocity)
        magnitude = self.pending.abs()
        index = (magnitude >= self.threshold(magnitude, share_of(self.ratio, g.numel()))).nonzero().view(-1)
        value = self.pending[index]
        self.pending[index] = 0
        self.velocity[index] = 0
        return index.to(torch.int32), value, g.numel()


class Randomk:
    """Both sides draw the same permutation."""

    def __init__(self, ratio):
        self.ratio, self.step = ratio, 0

    def indices(self, step, elements):
        generator = torch.Generator().manual_seed(step)
        return torch.randperm(elements, generator=generator)[:share_of(self.ratio, elements)]

    def encode(self, g):
        self.step += 1
        return self.step, g[self.indices(self.step, g.numel())], g.numel()

    def decode(self, w):
        step, value, elements = w
        return scatter(self.indices(step, elements), value, elements)


COMPRESSORS = {"redsync": Redsync, "sidco": Sidco, "adacomp": Adacomp, "dgc_sampled": DgcSampled, "randomk": Randomk}
