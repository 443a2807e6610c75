"""What compressors in PyTorch operations share: sizes, packed codes, random rounding."""
import math

import torch
import torch.nn.functional


def share_of(ratio, elements, least=1):
    """In f64, as the language computes sizes."""
    return min(max(math.ceil(ratio * elements), least), elements)


def pack(codes, bits):
    """uint8 codes of `bits` bits into bytes, the first one lowest."""
    per_byte = 8 // bits
    rows = torch.nn.functional.pad(codes, (0, -codes.numel() % per_byte)).view(-1, per_byte)
    packed = rows[:, 0].clone()
    for i in range(1, per_byte):
        packed |= rows[:, i] << (bits * i)
    return packed


def unpack(packed, bits, elements):
    per_byte, mask = 8 // bits, (1 << bits) - 1
    codes = torch.empty((packed.numel(), per_byte), dtype=torch.uint8, device=packed.device)
    for i in range(per_byte):
        codes[:, i] = (packed >> (bits * i)) & mask
    return codes.view(-1)[:elements]


def round_at_random(magnitude, most):
    """What is `most` stays so where the sum rounds up."""
    return torch.floor(magnitude + torch.rand_like(magnitude)).clamp_(max=most)


def pack_signs(negative):
    return pack(negative.view(torch.uint8), 1)


def scatter(index, value, elements):
    out = torch.zeros(elements, device=value.device)
    out[index] = value
    return out
