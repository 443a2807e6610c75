"""Lightning's trainer, with the callback of docs/pytorch.md."""
import logging
import warnings

import pytest
import torch
from support import assert_same, data_of, flat, small_model

import cinch
import cinch.torch

lightning = pytest.importorskip("lightning.pytorch")
from lightning.fabric.plugins.environments import LightningEnvironment  # noqa: E402
from lightning.pytorch.strategies import DDPStrategy  # noqa: E402


class Compress(lightning.Callback):
    def on_train_start(self, trainer, module):
        self.compression = cinch.torch.compress(trainer.strategy.model, "dgc", optimizer=trainer.optimizers[0], timeout=10)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = small_model()

    def training_step(self, batch, place):
        inputs, wanted = batch
        return ((self.model(inputs) - wanted) ** 2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class Environment(LightningEnvironment):
    """Ranks are there already, all on this machine."""

    creates_processes_externally = True

    def local_rank(self):
        return self.global_rank()


def trained(rank, world):
    environment = Environment()
    environment.set_world_size(world)
    environment.set_global_rank(rank)
    callback, module = Compress(), Module()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            accelerator="cpu", devices=world, strategy=DDPStrategy(cluster_environment=environment), max_steps=3, callbacks=[callback],
            logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False)
        trainer.fit(module, torch.utils.data.DataLoader([data_of(rank, step) for step in range(3)], batch_size=None))
    report = callback.compression.report()
    return callback.compression.engine.step, {tensor["name"]: tensor["program"] for tensor in report["tensors"]}, flat(module)


def test_the_callback_compresses_on_cpus(ranks):
    told = ranks.run(2, trained)
    for step, programs, _ in told:
        assert step == 3 and programs["model.0.weight"] == "dgc"
    assert_same(told[0][2], told[1][2])
