"""Two tasks that train within seconds, for recipes.py: a byte transformer, and a convolutional net on scikit-learn's digits. Both under SGD and AdamW,
with a learning rate that rises in 20 steps and falls as a cosine."""
import math

import torch
from tasks import Digits, Gpt, Text
from torch import nn
from torch.nn import functional

WARM_UP = 20
NOISE = 0.3  # of a pixel, whose values lie between 0 and 1
COPIES = 8  # of a held-out picture, shifted and with noise of its own


class SmallText(Text):
    """The next byte by 135,000 parameters. Told: nats per byte on held-out files."""

    rates = {"sgd": 0.2, "adamw": 6e-3}

    @staticmethod
    def model():
        return Gpt(width=64, layers=2, heads=4)

    def score(self, model):
        return super().score(model) * math.log(2)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.before, self.between = nn.GroupNorm(4, width), nn.GroupNorm(4, width)

    def forward(self, x):
        return x + self.second(functional.relu(self.between(self.first(functional.relu(self.before(x))))))


class Pictures(Digits):
    """Which digit 8 by 8 shifted, noisy pixels show, by a residual net of 38,000 parameters. Told: cross entropy on held-out digits."""

    rates = {"sgd": 0.05, "adamw": 3e-3}

    def __init__(self, seed):
        super().__init__(seed)
        pixels, labels = self.held_out
        fixed = torch.Generator().manual_seed(12345)
        self.held_out = self.shown(pixels.repeat(COPIES, 1), fixed), labels.repeat(COPIES)

    @staticmethod
    def model():
        width = 32
        return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), Residual(width), Residual(width), nn.GroupNorm(4, width), nn.ReLU(),
                             nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 10))

    @staticmethod
    def shown(pixels, random):
        """Pictures shifted by up to a pixel each way, with noise."""
        padded = functional.pad(pixels.view(-1, 8, 8), (1, 1, 1, 1))
        down, right = torch.randint(3, (2, len(pixels), 1), generator=random)
        rows, columns = down + torch.arange(8), right + torch.arange(8)
        moved = padded[torch.arange(len(pixels))[:, None, None], rows[:, :, None], columns[:, None, :]]
        return (moved + NOISE * torch.randn(moved.shape, generator=random)).unsqueeze(1)

    def loss(self, model):
        pixels, labels = self.training
        chosen = torch.randint(len(labels), (self.batch,), generator=self.random)
        return functional.cross_entropy(model(self.shown(pixels[chosen], self.random)), labels[chosen])

    def score(self, model):
        pixels, labels = self.held_out
        return functional.cross_entropy(model(pixels), labels).item()


TASKS = {"text": SmallText, "pictures": Pictures}
OPTIMIZERS = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=0.9),
    "adamw": lambda parameters, rate: torch.optim.AdamW(parameters, lr=rate),
}


EXACT_UNDER = 4096  # elements, and tensors of one dimension: the usual rules of cinch.torch
WEIGHT_DECAY = 0.01  # what AdamW has if nothing is said


def optimizer_of(task, name, model, steps):
    """The optimizer and its schedule."""
    return scheduled(OPTIMIZERS[name](model.parameters(), task.rates[name]), steps)


def optimizers_of_directions(task, model, steps):
    """For programs that make Adam's direction: SGD for what is compressed, AdamW for the rest, with one rate and one decay; each with its schedule."""
    compressed = [parameter for parameter in model.parameters() if parameter.dim() > 1 and parameter.numel() >= EXACT_UNDER]
    chosen = {id(parameter) for parameter in compressed}
    exact = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    rate = task.rates["adamw"]
    return [scheduled(torch.optim.AdamW(exact, lr=rate, weight_decay=WEIGHT_DECAY), steps),
            scheduled(torch.optim.SGD(compressed, lr=rate, weight_decay=WEIGHT_DECAY), steps)]


def scheduled(optimizer, steps):
    def share(step):
        return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)
