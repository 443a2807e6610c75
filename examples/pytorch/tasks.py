"""What the examples train: two tasks on the source of Python's standard library, which every machine with Python has, and one on scikit-learn's digits."""
import math
import os
import sysconfig

import torch
from torch import nn
from torch.nn import functional

CONTEXT = 64  # bytes that a prediction sees
PIECE = 256  # bytes whose package is asked for
BUCKETS = 32768  # of hashed trigrams


def source_files():
    """(package, bytes) of every module of the standard library, in an order of their names."""
    root = sysconfig.get_paths()["stdlib"]
    found = []
    for folder, names, files in sorted(os.walk(root)):
        names[:] = [name for name in sorted(names) if name not in ("__pycache__", "site-packages", "test", "tests", "idle_test")]
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                package = os.path.relpath(path, root).split(os.sep)[0].removesuffix(".py")
                with open(path, "rb") as file:
                    found.append((package, file.read()))
    return found


def split(files):
    """Training and held-out files: every tenth is held out."""
    return [file for i, file in enumerate(files) if i % 10], [file for i, file in enumerate(files) if i % 10 == 0]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mix(self.before(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.behind(x))))


class Gpt(nn.Module):
    """1.9 million parameters."""

    def __init__(self, width=192, layers=4, heads=4):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, seen):
        x = self.bytes(seen) + self.places(torch.arange(seen.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


class Text:
    """The next byte. Told: bits per byte on held-out files."""

    unit = "bits per byte"
    num_held_out = 512

    def __init__(self, seed):
        training, held_out = split(source_files())
        self.training = torch.frombuffer(bytearray(b"\n".join(text for _, text in training)), dtype=torch.uint8)
        held = torch.frombuffer(bytearray(b"\n".join(text for _, text in held_out)), dtype=torch.uint8)
        places = torch.linspace(0, len(held) - CONTEXT - 2, self.num_held_out).long()
        self.held_out = torch.stack([held[p : p + CONTEXT + 1] for p in places]).long()
        self.random = torch.Generator().manual_seed(seed)
        self.batch = 4

    def keep_part(self, part, parts):
        """Draws from that part of the training text alone: files lie in the order of their names, so parts tell of different packages."""
        self.training = self.training.chunk(parts)[part]

    @staticmethod
    def model():
        return Gpt()

    @staticmethod
    def optimizer(model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss(self, model):
        places = torch.randint(len(self.training) - CONTEXT - 1, (self.batch,), generator=self.random)
        pieces = torch.stack([self.training[p : p + CONTEXT + 1] for p in places]).long()
        return functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())

    def score(self, model):
        return functional.cross_entropy(model(self.held_out[:, :-1]).flatten(0, 1), self.held_out[:, 1:].flatten()).item() / math.log(2)


class Packages:
    """Which package 256 bytes come from: hashed trigrams, 2.1 million parameters, nearly all of them an embedding."""

    unit = "% wrong"

    def __init__(self, seed):
        training, held_out = split(source_files())
        names = sorted({package for package, text in training if len(text) > PIECE})
        self.names = {name: i for i, name in enumerate(names)}
        self.training = [(self.names[package], text) for package, text in training if package in self.names and len(text) > PIECE]
        held = [(self.names[package], text[:PIECE]) for package, text in held_out if package in self.names and len(text) > PIECE]
        self.held_out = self.described(held)
        self.random = torch.Generator().manual_seed(seed)
        self.batch = 32

    def model(self):
        return nn.Sequential(nn.EmbeddingBag(BUCKETS, 64), nn.Linear(64, len(self.names)))

    @staticmethod
    def optimizer(model):
        return torch.optim.AdamW(model.parameters(), lr=3e-3)

    @staticmethod
    def described(pieces):
        texts = torch.stack([torch.frombuffer(bytearray(text), dtype=torch.uint8) for _, text in pieces]).long()
        trigrams = (texts[:, :-2] * 65599 + texts[:, 1:-1] * 257 + texts[:, 2:]) * 40503 % 1000003 % BUCKETS
        return trigrams, torch.tensor([label for label, _ in pieces])

    def loss(self, model):
        chosen = []
        for i in torch.randint(len(self.training), (self.batch,), generator=self.random).tolist():
            label, text = self.training[i]
            at = int(torch.randint(len(text) - PIECE, (1,), generator=self.random))
            chosen.append((label, text[at : at + PIECE]))
        trigrams, labels = self.described(chosen)
        return functional.cross_entropy(model(trigrams), labels)

    def score(self, model):
        trigrams, labels = self.held_out
        return 100 * (model(trigrams).argmax(1) != labels).float().mean().item()


class Digits:
    """Which digit 64 pixels show: 330,000 parameters. 1,797 samples in all, so 360 held out: one of them is 0.28 points."""

    unit = "% wrong"

    def __init__(self, seed):
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise SystemExit("the task digits takes its data from scikit-learn: python3 -m pip install scikit-learn") from error
        digits = load_digits()
        pixels, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
        is_held = torch.arange(len(labels)) % 5 == 0
        self.training, self.held_out = (pixels[~is_held], labels[~is_held]), (pixels[is_held], labels[is_held])
        self.random = torch.Generator().manual_seed(seed)
        self.batch = 16

    @staticmethod
    def model():
        return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))

    @staticmethod
    def optimizer(model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss(self, model):
        pixels, labels = self.training
        chosen = torch.randint(len(labels), (self.batch,), generator=self.random)
        return functional.cross_entropy(model(pixels[chosen]), labels[chosen])

    def score(self, model):
        pixels, labels = self.held_out
        return 100 * (model(pixels).argmax(1) != labels).float().mean().item()


TASKS = {"text": Text, "packages": Packages, "digits": Digits}
