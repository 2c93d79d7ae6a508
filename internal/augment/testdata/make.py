"""Writes golden.json: what torchvision does. torch 2.15.0, torchvision
0.29.2, Pillow 13.0.0, NumPy 2.4.6.

    python make.py

pixels: SHA-256 of what torchvision's transforms on PIL images make of source()
with the parameters given; compared bit for bit.
colours: SHA-256 of adjust_hue of all 2^24 colours.
printed: what Compose prints.
draws: histograms of 100,000 draws of get_params (seed 1), compared by a
chi-square test of homogeneity, which must not have a p-value below 1e-4.
"""
import hashlib, itertools, json, os, random, sys
import numpy as np
import PIL, torch, torchvision
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import functional as F, v2
from torchvision.transforms.functional import InterpolationMode as I

os.chdir(os.path.dirname(os.path.abspath(__file__)))
print(torch.__version__, torchvision.__version__, PIL.__version__, np.__version__)


def source(w, h, c):
    """The picture that source of augment_test.go makes."""
    i = np.arange(w * h * c, dtype=np.int64)
    x = ((i * i * 31 + i * 7 + w * 101 + h * 13) >> 3 & 255).astype(np.uint8).reshape(h * w, c)
    p = np.arange(h * w)
    x[p % 5 == 1] = x[p % 5 == 1][:, :1]
    x[p % 7 == 3] = 0
    x[p % 11 == 5] = 255
    x = x.reshape(h, w, c)
    return Image.fromarray(x if c == 3 else x[:, :, 0])


SIZES = [(1, 1, 3), (2, 3, 3), (7, 5, 3), (13, 9, 3), (32, 32, 3), (31, 17, 1), (1, 4, 1), (40, 67, 3)]
pixels = []


def add(size, spec, make, **parameters):
    src = source(*size)
    out = make(src)
    assert out.mode == src.mode, (out.mode, src.mode)
    pixels.append(dict(size=size, spec=spec, out=out.size, sha256=hashlib.sha256(out.tobytes()).hexdigest(), **parameters))


class Fixed(T.RandomCrop):
    """RandomCrop whose get_params gives one place."""
    at = None
    def get_params(self, img, size):
        _, h, w = F.get_dimensions(img)
        self.at[:] = min(self.at[0], h - size[0]), min(self.at[1], w - size[1])
        return (*self.at, *size)


def crop(size, to, at, **kw):
    t = Fixed(to, **kw)
    t.at = at = list(at)  # moved inside when it is applied
    args = ", ".join([str(tuple(t.size))] + ["%s=%r" % a for a in kw.items()])
    add(size, "RandomCrop(%s)" % args, t, at=at)


for at in [(0, 0), (8, 8), (3, 5), (8, 0), (4, 4)]:
    crop((32, 32, 3), 32, at, padding=4)
    crop((32, 32, 3), 32, at, padding=4, fill=(10, 20, 255))
    crop((31, 17, 1), (17, 31), at, padding=4, fill=77)
for mode in ["constant", "edge", "reflect", "symmetric"]:
    crop((7, 5, 3), (8, 10), (1, 2), padding=(1, 2, 3, 4), padding_mode=mode)
    crop((7, 5, 3), (8, 10), (3, 1), padding=(1, 2, 3, 4), padding_mode=mode)
    crop((13, 9, 3), (20, 30), (6, 7), padding=(11, 13), padding_mode=mode)
    crop((2, 3, 3), (21, 22), (2, 0), padding=10, padding_mode=mode)
    crop((1, 1, 3), 5, (1, 0), padding=3, padding_mode=mode)
    crop((1, 4, 1), (12, 9), (0, 3), padding=6, padding_mode=mode)
    crop((13, 9, 3), (16, 15), (2, 1), pad_if_needed=True, padding_mode=mode, fill=9)
    crop((13, 9, 3), (16, 12), (6, 3), pad_if_needed=True, padding=(0, 1, 2, 0), padding_mode=mode)
    crop((7, 5, 3), (9, 30), (0, 11), pad_if_needed=True, padding=2, padding_mode=mode)
crop((13, 9, 3), (9, 13), (0, 0))
crop((13, 9, 3), (4, 6), (5, 7))
crop((40, 67, 3), (40, 40), (27, 0))
for size in SIZES:
    add(size, "RandomHorizontalFlip(p=1)", T.RandomHorizontalFlip(1))
    add(size, "RandomVerticalFlip(p=1)", T.RandomVerticalFlip(1))
    add(size, "RandomGrayscale(p=1)", T.RandomGrayscale(1))
    for to in [1, (5, 9), (33, 33), (20, 70)]:
        add(size, "CenterCrop(%s)" % (to,), T.CenterCrop(to))
    for to in [1, 6, (11, 4), (9, 13)]:
        for mode in [I.BILINEAR, I.BICUBIC, I.NEAREST, I.LANCZOS, I.BOX, I.HAMMING]:
            add(size, "Resize(%s, interpolation='%s')" % (to, mode.value), T.Resize(to, mode))
for box in [(0, 0, 9, 13), (2, 0, 4, 13), (3, 5, 6, 7), (8, 12, 1, 1), (1, 1, 7, 11)]:
    for to in [(8, 8), (3, 17)]:
        for mode in [I.BILINEAR, I.BICUBIC]:
            add((13, 9, 3), "RandomResizedCrop(%s, interpolation='%s')" % (to, mode.value), lambda p: F.resized_crop(p, *box, to, mode), box=box)
add((31, 17, 1), "RandomResizedCrop(12)", lambda p: F.resized_crop(p, 3, 4, 11, 21, (12, 12)), box=(3, 4, 11, 21))

ADJUST = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]


def adjusted(p, steps):
    for i, f in steps:
        p = ADJUST[i](p, f)
    return p


def jitter(size, steps):
    add(size, "ColorJitter", lambda p: adjusted(p, steps), steps=steps)


for size in SIZES:
    for i in range(3):
        for f in [0, 0.2, 0.6, 1, 1.3, 2.7]:
            jitter(size, [(i, f)])
    for f in [-0.5, -0.31, -0.003, 0, 0.004, 0.1, 0.25, 0.5]:
        jitter(size, [(3, f)])
for order in itertools.permutations(range(4)):
    jitter((13, 9, 3), [(i, [1.4, 0.7, 1.6, -0.1][i]) for i in order])
    jitter((31, 17, 1), [(i, [0.8, 1.3, 1.6, 0.2][i]) for i in order])

# All colours; green and blue along the rows.
all_colours = np.zeros((256, 65536, 3), np.uint8)
all_colours[..., 0] = np.arange(256)[:, None]
all_colours[..., 1] = np.arange(65536)[None] >> 8
all_colours[..., 2] = np.arange(65536)[None] & 255
colours = hashlib.sha256(F.adjust_hue(Image.fromarray(all_colours), 0.3).tobytes()).hexdigest()

M, S = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
printed = {}
for name, X in [("v1", T), ("v2", v2)]:
    printed[name + " cifar"] = repr(X.Compose([X.RandomCrop(32, padding=4), X.RandomHorizontalFlip(), X.ToTensor(), X.Normalize(M, S)]))
    printed[name + " imagenet"] = repr(X.Compose([X.RandomResizedCrop(224), X.RandomHorizontalFlip(), X.ToTensor(), X.Normalize(M, S)]))
    printed[name + " all"] = repr(X.Compose([
        X.Resize(256), X.Resize((300, 260), interpolation=I.BICUBIC), X.RandomCrop((240, 230), padding=(1, 2, 3, 4)),
        X.RandomResizedCrop((224, 192), scale=(0.2, 0.9), ratio=(0.5, 2), interpolation=I.NEAREST_EXACT), X.CenterCrop(64), X.RandomVerticalFlip(0.3),
        X.ColorJitter(0.4, 0.25, (0.5, 1.5), 0.1), X.ColorJitter(brightness=0.2), X.RandomGrayscale(0.2), X.PILToTensor(), X.ConvertImageDtype(torch.float),
        X.Normalize([0.5], [0.25]), X.RandomErasing(0.25, value="random"), X.RandomErasing(scale=(0.1, 0.2), value=(1, 2, 3.5)), X.RandomErasing()]))
printed["v2 crop"] = repr(v2.Compose([v2.ToImage(), v2.RandomCrop(32, padding=[1, 2, 3, 4], pad_if_needed=True, fill=3, padding_mode="reflect"),
                                      v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean=M, std=S)]))
printed["v2 nested"] = repr(v2.Compose([v2.Compose([v2.RandomCrop(28)]), v2.RandomHorizontalFlip(0.3)]))
printed["v1 tensors"] = repr(T.Compose([T.RandomCrop(8), T.ToTensor(), T.Normalize(torch.tensor(M), torch.tensor(S))]))

N = 100_000
draws = []
torch.manual_seed(1); random.seed(1); np.random.seed(1)


def histogram(x, whole):
    """Edges between bins of much the same weight, and counts. No edge lies on a
    value that draws can have: logarithms need not agree to the last bit."""
    x = np.asarray(x, float)
    q = np.quantile(x, np.linspace(0, 1, 31)[1:-1])
    edges = np.unique(np.floor(q) + 0.5 if whole else [float("%.9g" % (v + 1e-6)) for v in q])

    def counts():
        return np.histogram(x, np.concatenate([[-np.inf], edges, [np.inf]]))[0]

    while counts().min() < 50:  # too few for chi-square
        edges = np.delete(edges, min(int(counts().argmin()), len(edges) - 1))
    return dict(edges=edges.tolist(), counts=counts().tolist())


def draw(spec, size, columns):
    draws.append(dict(spec=spec, size=size, columns={k: histogram(v, w) for k, (v, w) in columns.items()}))
    print(spec, size, {k: len(c["counts"]) for k, c in draws[-1]["columns"].items()})


class Blank:
    """A picture that has a size and no pixels."""


def boxes(x, size):
    top, left, h, w = np.array(x).T
    return {"top": (top, 1), "left": (left, 1), "h": (h, 1), "w": (w, 1), "area": (h * w, 1), "ratio": (np.log(np.maximum(w, 0.5) / np.maximum(h, 0.5)), 0),
            "topPart": ((top + 0.5) / (size[1] - h + 1), 0), "leftPart": ((left + 0.5) / (size[0] - w + 1), 0)}


for spec, size in [("RandomCrop(32, padding=4)", (32, 32)), ("RandomCrop((8, 9))", (17, 10))]:
    t = eval("T." + spec)
    pad = t.padding or 0
    img = torch.empty(3, size[1] + 2 * pad, size[0] + 2 * pad)
    x = np.array([t.get_params(img, t.size)[:2] for _ in range(N)])
    draw(spec, size, {"top": (x[:, 0], 1), "left": (x[:, 1], 1), "both": (x[:, 0] * (img.shape[2] - t.size[1] + 1) + x[:, 1], 1)})
for spec, size in [("RandomResizedCrop(224)", (500, 375)), ("RandomResizedCrop(32)", (32, 32)), ("RandomResizedCrop(8)", (300, 60)),
                   ("RandomResizedCrop(8, scale=(0.5, 1))", (20, 47)), ("RandomResizedCrop(8, scale=(0.2, 0.9), ratio=(0.25, 3))", (64, 48))]:
    t = eval("T." + spec)
    img = torch.empty(1, size[1], size[0])
    draw(spec, size, boxes([t.get_params(img, t.scale, t.ratio) for _ in range(N)], size))
t = T.ColorJitter(0.4, (0.5, 2), 0.9, 0.1)
x = [t.get_params(t.brightness, t.contrast, t.saturation, t.hue) for _ in range(N)]
columns = {"order": ([np.dot(p[0].numpy(), [64, 16, 4, 1]) for p in x], 1)}
for i, name in enumerate(["brightness", "contrast", "saturation", "hue"]):
    columns[name] = ([p[i + 1] for p in x], 0)
draw("ColorJitter(0.4, (0.5, 2), 0.9, 0.1)", (8, 8), columns)
for spec, size in [("RandomErasing(p=1)", (32, 32)), ("RandomErasing(p=1, scale=(0.1, 0.9), ratio=(0.2, 2))", (64, 9))]:
    t = eval("T." + spec)
    img = torch.zeros(1, size[1], size[0])
    x = [t.get_params(img, t.scale, t.ratio, [0.0])[:4] for _ in range(N)]
    fail = [b[2] == size[1] and b[3] == size[0] for b in x]
    columns = boxes([b for b, f in zip(x, fail) if not f], size)
    if any(fail):
        columns["none"] = (fail, 1)
    draw(spec, size, columns)

json.dump(dict(pixels=pixels, colours=colours, printed=printed, draws=draws), open("golden.json", "w"), separators=(",", ":"))
print(len(pixels), "pictures,", os.path.getsize("golden.json"), "bytes")
