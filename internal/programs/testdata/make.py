"""Makes NAME.zip: what a training program leaves in its folder, with a network of a few weights. Each is made by the program itself, in an
environment that has it (Python 3.11, torch 2.15.0):

    python make.py NAME…

accelerate 1.15.0 diffusers 0.42.1 ema-pytorch 0.8.3 monai 1.6.1 pytorch-ignite 0.5.5 catalyst 21.5 mmengine 0.10.7 speechbrain 1.1.2
timm 1.0.31 lightning 2.6.6 skorch 1.4.0 fastai 2.8.12. torchvision's references and PyTorch's ImageNet example are scripts in no package:
their calls of torch.save are copied.
"""

import argparse
import copy
import os
import shutil
import sys
import tempfile
import zipfile

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
EPOCHS = 3


def start(seed=0):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    return net, torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)


def step(net, optimizer):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net.train()(torch.randn(8, 2)), torch.randint(2, (8,))).backward()
    optimizer.step()


def data():
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 2), torch.randint(2, (16,))), 8)


def accelerate():
    from accelerate import Accelerator
    from accelerate.utils import ProjectConfiguration

    a = Accelerator(cpu=True, project_config=ProjectConfiguration("run", automatic_checkpoint_naming=True))
    net, optimizer = a.prepare(*start())
    for _ in range(EPOCHS):
        step(net, optimizer)
        a.save_state()


def ema_pytorch():
    from ema_pytorch import EMA

    net, optimizer = start()
    ema = EMA(net, beta=0.5, update_after_step=0, update_every=1)
    for k in range(EPOCHS):
        step(net, optimizer)
        ema.update()
        torch.save({"model": net.state_dict(), "ema": ema.state_dict()}, f"run/epoch_{k}.pt")


def ema_pytorch_alone():
    from ema_pytorch import EMA

    net, optimizer = start()
    ema = EMA(net, beta=0.5, update_after_step=0, update_every=1, include_online_model=False)
    for k in range(EPOCHS):
        step(net, optimizer)
        ema.update()
        torch.save(ema.state_dict(), f"run/epoch_{k}.pt")


def diffusers():
    from diffusers.training_utils import EMAModel

    net, optimizer = start()
    ema = EMAModel(net.parameters(), decay=0.5)
    for k in range(EPOCHS):
        step(net, optimizer)
        ema.step(net.parameters())
        torch.save({"model": net.state_dict(), "ema": ema.state_dict()}, f"run/epoch_{k}.pt")


def diffusers_scripts():
    """checkpoint-N as diffusers' examples of training write it, by the hooks of Accelerate."""
    from diffusers import UNet2DModel
    from diffusers.training_utils import EMAModel

    torch.manual_seed(0)
    net = UNet2DModel(sample_size=4, in_channels=1, out_channels=1, block_out_channels=(2,), down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",),
                      layers_per_block=1, norm_num_groups=1, add_attention=False)
    ema = EMAModel(net.parameters(), decay=0.5, model_cls=UNet2DModel, model_config=net.config)
    for k in range(2):
        with torch.no_grad():
            for p in net.parameters(): p.add_(torch.randn_like(p))
        ema.step(net.parameters())
        ema.save_pretrained(f"run/checkpoint-{k}/unet_ema")
        net.save_pretrained(f"run/checkpoint-{k}/unet")


def ignite():
    from ignite.engine import Events, create_supervised_trainer
    from ignite.handlers import Checkpoint, DiskSaver

    net, optimizer = start()
    trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())
    trainer.add_event_handler(Events.EPOCH_COMPLETED, Checkpoint({"model": net, "optimizer": optimizer, "trainer": trainer}, DiskSaver("run"), n_saved=None))
    trainer.run(data(), max_epochs=EPOCHS)


def monai():
    from monai.engines import SupervisedTrainer
    from monai.handlers import CheckpointSaver

    net, optimizer = start()
    batches = [{"image": x, "label": y} for x, y in data()]
    SupervisedTrainer(torch.device("cpu"), EPOCHS, batches, net, optimizer, nn.CrossEntropyLoss(), train_handlers=[
        CheckpointSaver("run", {"net": net}, save_interval=1, save_final=True)]).run()


def catalyst():
    import collections
    import collections.abc

    collections.MutableMapping = collections.abc.MutableMapping  # catalyst 21.5 is older than Python 3.10
    from catalyst import dl

    net, optimizer = start()
    dl.SupervisedRunner().train(model=net, criterion=nn.CrossEntropyLoss(), optimizer=optimizer, loaders={"train": data(), "valid": data()}, num_epochs=2, logdir="run",
                                valid_loader="valid", valid_metric="loss", minimize_valid_metric=True, callbacks=[dl.CheckpointCallback("run/checkpoints", save_n_best=EPOCHS)])


def mmengine():
    from mmengine.hooks import CheckpointHook, EMAHook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    class Net(BaseModel):
        def __init__(self):
            super().__init__()
            self.net = start()[0]

        def forward(self, x, y, mode="tensor"):
            out = self.net(x)
            return {"loss": nn.functional.cross_entropy(out, y)} if mode == "loss" else out

    Runner(Net(), "run", train_dataloader=data(), train_cfg={"by_epoch": True, "max_epochs": EPOCHS}, optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.5}},
           default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 1, "save_optimizer": False}}, custom_hooks=[{"type": "EMAHook"}]).train()


def speechbrain():
    from speechbrain.utils.checkpoints import Checkpointer

    net, optimizer = start()
    parts = {"first": net[:2], "second": net[2:], "optimizer": optimizer}
    saver = Checkpointer("run/save", parts)
    for k in range(EPOCHS):
        step(net, optimizer)
        saver.save_checkpoint(meta={"loss": 0.5}, name=f"2026-01-02+03-04-0{k}+00")


def timm():
    from timm.utils import CheckpointSaver, ModelEmaV3, update_summary

    net, optimizer = start()
    ema = ModelEmaV3(net, decay=0.5)
    args = argparse.Namespace(model="resnet18", num_classes=2, in_chans=None, gp=None, img_size=32, input_size=None, crop_pct=0.9, mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.2],
                              interpolation="bicubic", model_ema=True, model_kwargs={})
    saver = CheckpointSaver(net, optimizer, args=args, model_ema=ema, checkpoint_dir="run", recovery_dir="run", max_history=9)
    for k in range(EPOCHS):
        step(net, optimizer)
        ema.update(net)
        update_summary(k, {"loss": 1.0}, {"loss": 0.75, "top1": 71.5}, "run/summary.csv", write_header=k == 0)
        saver.save_checkpoint(k, metric=71.5)


def torchvision():
    """references/classification/train.py with --model-ema."""
    net, optimizer = start()
    ema = torch.optim.swa_utils.AveragedModel(net, avg_fn=lambda a, b, n: 0.5 * a + 0.5 * b)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
    args = argparse.Namespace(model="resnet18", val_resize_size=40, val_crop_size=32, interpolation="bilinear", backend="PIL", model_ema=True)
    for k in range(EPOCHS):
        step(net, optimizer)
        ema.update_parameters(net)
        checkpoint = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "lr_scheduler": schedule.state_dict(), "epoch": k, "args": args,
                      "model_ema": ema.state_dict()}
        torch.save(checkpoint, f"run/model_{k}.pth")
        torch.save(checkpoint, "run/checkpoint.pth")


def imagenet():
    """main.py of pytorch/examples."""
    net, optimizer = start()
    for k in range(EPOCHS):
        step(net, optimizer)
        torch.save({"epoch": k + 1, "arch": "resnet18", "state_dict": net.state_dict(), "best_acc1": torch.tensor(50.0), "optimizer": optimizer.state_dict(),
                    "scheduler": {}}, "run/checkpoint.pth.tar")
        if k == 1: shutil.copyfile("run/checkpoint.pth.tar", "run/model_best.pth.tar")


def lightning():
    import lightning as L
    from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.save_hyperparameters({"class_names": ["cat", "dog"], "lr": 0.5})
            self.net = start()[0]

        def training_step(self, batch, i): return nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        def validation_step(self, batch, i): self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))
        def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.5)

    L.Trainer(max_epochs=EPOCHS, default_root_dir="run", callbacks=[EMAWeightAveraging(decay=0.5), ModelCheckpoint(save_top_k=-1)], accelerator="cpu",
              logger=L.pytorch.loggers.CSVLogger("run"), enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0).fit(Module(), data(), data())


def skorch():
    from skorch import NeuralNetClassifier
    from skorch.callbacks import Checkpoint

    saved = Checkpoint(dirname="run", monitor=None, f_params="params_{last_epoch[epoch]}.pt", f_optimizer="optimizer_{last_epoch[epoch]}.pt",
                       f_criterion="criterion_{last_epoch[epoch]}.pt")
    x, y = torch.randn(20, 2).numpy(), torch.randint(2, (20,)).numpy()
    NeuralNetClassifier(start()[0], criterion=nn.CrossEntropyLoss, max_epochs=EPOCHS, lr=0.5, callbacks=[saved], verbose=0, classes=[0, 1]).fit(x, y)


def fastai():
    from fastai.callback.tracker import SaveModelCallback
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner

    learner = Learner(DataLoaders(data(), data()), start()[0], loss_func=nn.CrossEntropyLoss(), path="run", cbs=SaveModelCallback(every_epoch=True, fname="epoch", with_opt=True))
    with learner.no_bar(), learner.no_logging(): learner.fit(EPOCHS, 0.05)


for name in sys.argv[1:]:
    os.chdir(tempfile.mkdtemp())
    os.makedirs("run")
    globals()[name]()
    with zipfile.ZipFile(f"{HERE}/{name}.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for folder, _, files in sorted(os.walk("run")):
            for file in sorted(files):
                path = os.path.join(folder, file)
                content = b"" if file.startswith("random_states") else open(path, "rb").read()  # states of generators are large
                if not file.endswith((".log", ".py")) and "tfevents" not in file:
                    z.writestr(zipfile.ZipInfo(os.path.relpath(path, "run"), (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    print(name, os.path.getsize(f"{HERE}/{name}.zip"), *sorted(z.namelist()))
