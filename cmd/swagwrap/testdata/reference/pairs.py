"""Reference outputs of the network of make.py with raw examples: pictures, whose brightest pixel is 200, and the tensors that loaders of
torchvision make of them. Made with torch 2.15.0, torchvision 0.29.2, pillow 13.0.0. Run: python pairs.py"""

import io
import json
import os

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torchvision import transforms as T
from torchvision.transforms import InterpolationMode as M
from torchvision.transforms import v2

torch.set_num_threads(1)
os.chdir(os.path.dirname(os.path.abspath(__file__)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc, self.aux = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(64, 3), nn.Linear(64, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).flatten(1))


net = Net()
net.load_state_dict(torch.load("epoch-2.pt")["state_dict"])
net.eval()


def pictures(sizes, seed=0):
    r = np.random.default_rng(seed)
    return [Image.fromarray((r.random((h, w, 3)) * 201).astype(np.uint8)) for w, h in sizes]


def stored(image, kind="PNG", tag=0):
    b, exif = io.BytesIO(), Image.Exif()
    if tag:
        exif[0x0112] = tag
    image.save(b, kind, exif=exif)
    return b.getvalue()


def save(name, files, load, **more):
    x = torch.stack([torch.as_tensor(np.asarray(load(Image.open(io.BytesIO(f)).convert("RGB")), dtype="f4")) for f in files])
    with torch.no_grad():
        y = net(x).numpy()
    np.savez_compressed(name, inputs=x.numpy(), outputs=y, weights="epoch-2.pt", about=json.dumps({"device": "cpu"}),
                        raw=np.frombuffer(b"".join(files), np.uint8), raw_sizes=np.array([len(f) for f in files]), **more)


MIXED = [(9, 11), (12, 8), (10, 10), (13, 9), (8, 12)]
norm = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
imagenet = T.Compose([T.Resize(8), T.CenterCrop(6), T.ToTensor(), norm])
mixed = [stored(p) for p in pictures(MIXED)]
save("pairs-imagenet", mixed, imagenet, class_names=["cat", "dog", "eel"])
save("pairs-tensor", mixed, v2.Compose([v2.ToImage(), v2.Resize((6, 6), M.BICUBIC, antialias=True), v2.ToDtype(torch.float32, scale=True),
                                        v2.Normalize((0.5,) * 3, (0.5,) * 3)]))
save("pairs-caffe", mixed, T.Compose([T.Resize((6, 6), M.LANCZOS), np.asarray,
                                      lambda a: (a[..., ::-1] - np.float32([103.939, 116.779, 123.68])).transpose(2, 0, 1)]))
tagged = [stored(p, tag=t) for p, t in zip(pictures(MIXED), (6, 1, 3, 8, 1))]
turned = iter([ImageOps.exif_transpose(Image.open(io.BytesIO(f))) for f in tagged])
save("pairs-exif", tagged, lambda p: imagenet(next(turned)))
save("pairs-square", [stored(p) for p in pictures([(9, 9), (12, 12), (10, 10), (13, 13), (8, 8)])], T.Compose([T.Resize((6, 6)), T.ToTensor(), norm]))
save("pairs-own", [stored(p) for p in pictures([(6, 6)] * 5)], T.Compose([T.ToTensor(), norm]))
torch.manual_seed(0)
save("pairs-augmented", mixed, T.Compose([T.RandomResizedCrop(6), T.ToTensor(), norm]))
