"""Makes the files of weights/statefile's tests, and golden.json: what PyTorch itself says they hold.

    python make.py            torch 2.15.0, safetensors 0.8.0, numpy 2.4.6, Python 3.11
    python make.py old        torch 1.13.1 (Debian 12's python3-torch), after the other: the files old-*

Every tensor has the first 16 digits of the SHA-256 of its elements in row-major order, little-endian, as Python holds them before saving.
"""

import argparse
import collections
import hashlib
import io
import json
import os
import pathlib
import pickle
import sys
import tarfile
import types
import zipfile

import numpy as np
import torch
from torch import nn

os.chdir(pathlib.Path(__file__).parent)
OLD = sys.argv[1:] == ["old"]
KINDS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64", torch.uint8: "U8", torch.int8: "I8",
         torch.int16: "I16", torch.int32: "I32", torch.int64: "I64", torch.bool: "BOOL"}
golden = json.loads(pathlib.Path("golden.json").read_text()) if OLD else {}


def raw(t):
    """The elements' bytes; NumPy knows no bfloat16."""
    t = t.detach().contiguous().resolve_neg()
    return (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()


def facts(state, key="", prefix="", skip=()):
    """What the Go test is to find: float tensors in their order, and names of the rest."""
    tensors, ignored = [], []
    for name, t in state.items():
        if torch.is_tensor(t) and t.is_floating_point() and not name.startswith(tuple(skip)) and not name.endswith("num_batches_tracked"):
            tensors.append({"name": name, "shape": list(t.shape), "dtype": KINDS[t.dtype], "sha256": hashlib.sha256(raw(t)).hexdigest()[:16]})
        else:
            ignored.append(name)
    return {"key": key, "prefix": prefix, "tensors": tensors, "ignored": ignored}


def note(name, *dicts, epoch=-1, step=-1, ignored=(), tied=()):
    golden[name] = {"epoch": epoch, "step": step, "ignored": list(ignored), "tied": list(tied), "dicts": list(dicts)}


def save(name, obj, *dicts, epoch=-1, step=-1, ignored=(), tied=(), **how):
    torch.save(obj, name, **how)
    note(name, *dicts, epoch=epoch, step=step, ignored=ignored, tied=tied)


def refuse(name, *words):
    """The file's error must hold these words."""
    golden[name] = {"error": words}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.bn = nn.BatchNorm2d(3)
        self.fc = nn.Linear(3, 2, bias=False)
        self.register_buffer("scale", torch.rand(1))
        self.register_buffer("scratch", torch.rand(2), persistent=False)
        self.register_buffer("absent", None)
        self.gain = nn.Parameter(torch.rand(()))

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).mean((2, 3))) * self.gain


class Whole(nn.Module):
    """Tied weights, weight_norm, an LSTM, and a list of modules one of which stands twice."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.rnn = nn.LSTM(4, 2, bidirectional=True)
        self.old = nn.utils.weight_norm(nn.Linear(2, 3))
        block = Net()
        self.blocks = nn.ModuleList([block, nn.Identity(), block])


class OmegaDict(dict):
    """Stands for omegaconf's and other libraries' classes that a reader does not have."""

    def __init__(self, *args, **attributes):
        super().__init__(*args)
        self.__dict__.update(attributes)


OmegaDict.__module__ = "omegaconf.dictconfig"
OmegaDict.__qualname__ = OmegaDict.__name__ = "DictConfig"
sys.modules["omegaconf"] = types.ModuleType("omegaconf")
sys.modules["omegaconf.dictconfig"] = types.ModuleType("omegaconf.dictconfig")
sys.modules["omegaconf.dictconfig"].DictConfig = OmegaDict


class Marked(torch.Tensor):
    """A subclass that adds nothing to the elements."""


class Evil:
    """torch.load would run this: see TestAttackRunsCode."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


def views():
    base = torch.arange(60, dtype=torch.float32)
    grid = base.view(5, 12)
    return collections.OrderedDict(
        whole=base, slice=base[7:19], column=grid[:, 3], transposed=grid.t(), steps=base[::3], block=grid[1:4, 2:9:2],
        last=torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), one=base[59], expanded=base[4:7].expand(4, 3),
        none=base[10:10], empty=torch.zeros(0, 3), ones=torch.rand(1, 3, 1)[:, 1:], flat=grid[2:4].reshape(-1), half=base[::2].half(),
        permuted=torch.rand(2, 3, 4).permute(2, 0, 1), column_of_one=grid[:, 5:6], row_of_one=grid[3:4, ::4])


def trained(net):
    """An optimizer's state, with tensors under integer keys."""
    opt = torch.optim.Adam(net.parameters())
    net(torch.rand(2, 2, 5, 5)).sum().backward()
    opt.step()
    return opt.state_dict()


def rewrite(source, name, change, compression=zipfile.ZIP_STORED):
    """A zip file's entries, through change(name, bytes), written by Python: no alignment at all."""
    with zipfile.ZipFile(source) as z, zipfile.ZipFile(name, "w", compression) as out:
        for e in z.namelist():
            for n, data in change(e, z.read(e)):
                out.writestr(zipfile.ZipInfo(n), data, compression)


def old():
    net = Net()
    save("old-zip.pt", net.state_dict(), facts(net.state_dict()))
    save("old-legacy.pth", {"state_dict": nn.DataParallel(net).state_dict(), "epoch": 3, "optimizer": trained(net)},
         facts(nn.DataParallel(net).state_dict(), "state_dict", "module."), epoch=3, ignored=["optimizer"], _use_new_zipfile_serialization=False)
    whole = Whole()
    save("old-module.pt", whole, facts(whole.state_dict()), tied=[["embedding.weight", "head.weight"]])
    v = views()
    save("old-views.pth", v, facts(v), _use_new_zipfile_serialization=False)


def new():
    net = Net()
    state = net.state_dict()
    save("zip.pt", state, facts(state))
    save("protocol4.pt", state, facts(state), pickle_protocol=4)
    save("protocol5.pt", state, facts(state), pickle_protocol=5)
    save("legacy.pth", state, facts(state), _use_new_zipfile_serialization=False)
    save("legacy-protocol4.pth", state, facts(state), _use_new_zipfile_serialization=False, pickle_protocol=4)
    torch.utils.serialization.config.save.storage_alignment = 512
    save("aligned512.pt", {"a": torch.rand(3), "b": torch.rand(2, 2)}, facts({}))
    torch.utils.serialization.config.save.storage_alignment = 64
    aligned = torch.load("aligned512.pt")
    note("aligned512.pt", facts(aligned))

    many = {str(d): (torch.rand(3, 2) * 50).to(d) for d in KINDS} | {"unsigned": torch.ones(4).to(torch.uint16)}
    save("dtypes.pt", many, facts(many))
    save("dtypes-legacy.pth", many, facts(many), _use_new_zipfile_serialization=False)

    def swap(name, data):
        """As a big-endian machine writes it."""
        if name.endswith("/byteorder"):
            data = b"big"
        elif "/data/" in name:
            data = np.frombuffer(data, sizes[name.rpartition("/")[2]]).byteswap().tobytes()
        return [(name, data)]

    torch.save(views(), "big.pt")
    big = torch.load("big.pt")
    places = list(dict.fromkeys(t.untyped_storage().data_ptr() for t in big.values()))  # as torch.save numbers them
    sizes = collections.defaultdict(lambda: "f4", {str(places.index(big["half"].untyped_storage().data_ptr())): "f2"})
    rewrite("big.pt", "big-endian.pt", swap)
    note("big-endian.pt", facts(big))
    rewrite("big.pt", "unaligned.pt", lambda n, d: [(n.replace("big/", "archive/deep/"), d)])
    note("unaligned.pt", facts(big))
    rewrite("big.pt", "compressed.pt", lambda n, d: [(n, d)], zipfile.ZIP_DEFLATED)
    refuse("compressed.pt", "compressed")
    pathlib.Path("big.pt").unlink()

    v = views()
    save("views.pt", v, facts(v))
    save("views-legacy.pth", v, facts(v), _use_new_zipfile_serialization=False)

    marked = nn.Parameter(torch.rand(2))
    marked.role = "bias"
    kinds = {"parameter": nn.Parameter(torch.rand(2, 2)), "with_state": marked, "buffer": nn.Buffer(torch.rand(3)),
             "subclass": torch.rand(2).as_subclass(Marked), "nested": nn.Parameter(torch.rand(2).as_subclass(Marked))}
    save("parameters.pt", kinds, facts(kinds))

    tied = {"e.weight": torch.rand(3, 2)}
    tied |= {"out.weight": tied["e.weight"], "t.weight": tied["e.weight"].t()}
    save("tied.pt", tied, facts(tied), tied=[["e.weight", "out.weight"]])

    ema = {k: v * 0.5 for k, v in state.items()}
    save("script.pt.tar", {"epoch": 7, "model": state, "state_dict_ema": ema, "optimizer": trained(net), "args": argparse.Namespace(lr=0.1, shape=torch.Size([3])),
                      "metric": np.float64(91.5), "history": np.arange(3), "amp_scaler": {"scale": torch.tensor([2.0])}, "version": 2},
         facts(state, "model"), facts(ema, "state_dict_ema"), epoch=7, ignored=["optimizer", "args", "metric", "history", "amp_scaler", "version"])
    averaged = torch.optim.swa_utils.AveragedModel(nn.DataParallel(net)).state_dict()
    save("averaged.pt", averaged, facts(averaged, "", "module.module."))
    compiled = torch.compile(nn.Sequential(torch.compile(net))).state_dict()
    save("compiled.pt", compiled, facts(compiled, "", "0."))
    golden["compiled.pt"]["dicts"][0]["prefix"] = ""
    golden["compiled.pt"]["short"] = ["0." + n for n, t in state.items() if t.is_floating_point()]

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = net
            self.criterion = nn.CrossEntropyLoss(weight=torch.rand(2))

    lightning = Module().state_dict()
    save("lightning.ckpt", {
        "epoch": 4, "global_step": 500, "pytorch-lightning_version": "2.5.0", "state_dict": lightning,
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 5}}}},
        "callbacks": {"ModelCheckpoint{'monitor': 'val'}": {"best_model_score": torch.tensor(0.5), "kth_best": {"a.ckpt": torch.tensor([0.25])}}},
        "optimizer_states": [trained(net)], "lr_schedulers": [{"base_lrs": [0.1]}], "hparams_name": "cfg",
        "hyper_parameters": OmegaDict({"lr": 0.1, "loss": nn.CrossEntropyLoss(weight=torch.rand(2))}, _metadata=pathlib.PurePosixPath("a"), _flags=None)},
         facts(lightning, "state_dict", "model.", skip=["criterion."]), epoch=4, step=500,
         ignored=["pytorch-lightning_version", "loops", "callbacks", "optimizer_states", "lr_schedulers", "hparams_name", "hyper_parameters"])
    pair = {"generator": net, "nets": OmegaDict({"critic": state}), "scores": [1.0, 2.0]}
    save("several.pt", pair, facts(state, "generator"), facts(state, "nets/critic"), ignored=["scores"])
    save("meta.pth", {"meta": {"epoch": 12, "iter": 1200, "CLASSES": ("a", "b")}, "state_dict": state}, facts(state, "state_dict"), epoch=12, step=1200, ignored=["meta"])
    save("tuple.pt", (state, {"lr": 0.1}, 3), facts(state, "0"))
    save("never-run.pt", {"model": state, "evil": Evil()}, facts(state, "model"), ignored=["evil"])
    extra = dict(state) | {"fc._extra_state": {"scale": torch.rand(2)}}
    save("extra.pt", extra, facts(extra))

    whole = Whole()
    save("module.pt", whole, facts(whole.state_dict()), tied=[["embedding.weight", "head.weight"], ["blocks.0.fc.weight", "blocks.2.fc.weight"]])
    lines = torch.serialization.get_source_lines_and_file

    def ours(c, *args):
        """The legacy format holds the source of each class: ours will do."""
        if c.__module__ != "__main__":
            raise OSError
        return lines(c, *args)

    torch.serialization.get_source_lines_and_file = ours
    save("module-legacy.pth", whole, facts(whole.state_dict()), _use_new_zipfile_serialization=False)
    save("module-half.pt", {"epoch": -1, "best_fitness": None, "model": nn.DataParallel(Net()).half(), "ema": None},
         facts({}), ignored=["best_fitness", "ema"])
    half = torch.load("module-half.pt", weights_only=False)["model"]
    golden["module-half.pt"]["dicts"] = [facts(half.state_dict(), "model", "module.")]
    graph = torch.fx.symbolic_trace(net)
    save("fx.pt", graph, facts(graph.state_dict()))

    import safetensors.torch as st

    st.save_file({k: v.contiguous() for k, v in state.items()}, "plain.safetensors", {"format": "pt"})
    note("plain.safetensors", facts(st.load_file("plain.safetensors")))
    st.save_model(whole, "tied.safetensors")
    with st.safe_open("tied.safetensors", "pt") as f:
        order = f.offset_keys()
        alias = sorted(k for k in f.metadata() if k in whole.state_dict())
    note("tied.safetensors", facts({k: whole.state_dict()[k] for k in order + alias}), tied=[["embedding.weight", "head.weight"]])

    for kind, write in {"safetensors": st.save_file, "bin": torch.save}.items():
        folder = pathlib.Path("shards-" + kind)
        folder.mkdir(exist_ok=True)
        stem = {"safetensors": "model", "bin": "pytorch_model"}[kind]
        names = sorted(state)
        parts = {f"{stem}-00001-of-00002.{kind}": names[:-1], f"{stem}-00002-of-00002.{kind}": names[-1:]}
        parts = {f"{stem}-00001-of-00002.{kind}": [n for n in names if n != "gain"], f"{stem}-00002-of-00002.{kind}": ["gain"]}
        for file, held in parts.items():
            write({n: state[n].contiguous().clone() for n in held}, folder / file)
        index = {"metadata": {"total_size": sum(t.nbytes for t in state.values())}, "weight_map": {n: f for f, held in parts.items() for n in held}}
        (folder / f"{stem}.{kind}.index.json").write_text(json.dumps(index))
        (folder / "trainer_state.json").write_text(json.dumps({"epoch": 2.0, "global_step": 40, "log_history": [{"loss": 1.5}]}))
        read = {}
        for file in parts:
            read |= st.load_file(folder / file) if kind == "safetensors" else torch.load(folder / file)
        if kind == "safetensors":
            read = {n: read[n] for file in parts for n in st.safe_open(folder / file, "pt").offset_keys()}
        note("shards-" + kind, facts(read), epoch=2, step=40)

    for path in pathlib.Path().rglob("*.safetensors"):
        path.chmod(0o644)
    refusals(state)


def refusals(state):
    torch.jit.script(nn.Linear(2, 2)).save("torchscript.pt")
    refuse("torchscript.pt", "TorchScript", "want a state_dict")
    one = {
        "quantised": (torch.quantize_per_tensor(torch.rand(2), 0.1, 0, torch.qint8), "quantised"),
        "channels": (torch.quantize_per_channel(torch.rand(2, 2), torch.ones(2), torch.zeros(2), 0, torch.qint8), "quantised"),
        "sparse": (torch.eye(2).to_sparse(), "sparse"),
        "csr": (torch.eye(2).to_sparse_csr(), "sparse"),
        "complex": (torch.ones(2, dtype=torch.complex64), "complex64"),
        "float8": (torch.ones(2).to(torch.float8_e4m3fn), "float8_e4m3fn"),
        "meta": (torch.ones(2, device="meta"), "meta device"),
        "nested": (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
        "lazy": (nn.LazyLinear(3).weight, "uninitialised"),
        "negative": (torch.ones(2, dtype=torch.complex64).conj().imag, "neg"),
    }
    for name, (t, words) in one.items():
        torch.save({"good": torch.ones(2), "bad": t}, f"{name}.pt")
        refuse(f"{name}.pt", 'tensor "bad": ', words)
    with open("plain.pkl", "wb") as f:
        pickle.dump({"coefficients": np.arange(3)}, f)
    refuse("plain.pkl", "a Python pickle")
    torch.save({"epoch": 3, "lr": 0.1}, "nothing.pt")
    refuse("nothing.pt", "holds no state_dict", '"lr" (0.1)')
    np.savez("arrays.npz", a=np.arange(3))
    refuse("arrays.npz", "NumPy")
    with tarfile.open("old.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in ["storages", "tensors", "pickle"]:
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"\x80\x02N."))
    refuse("old.tar", "tar file", "0.4")


torch.manual_seed(0)
(old if OLD else new)()
pathlib.Path("golden.json").write_text(json.dumps(golden, separators=(",", ":")).replace("\"dicts\":", "\n\"dicts\":").replace("},\"", "},\n\"") + "\n")
