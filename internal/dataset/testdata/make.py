"""Writes the files beside it and golden.json. NumPy 2.4.6, Python 3.11.7.

    python make.py

The expected values are what torchvision's ToTensor + Normalize compute, done
with NumPy in float32; the shuffles are computed by a PCG-DXSM of our own, not
by Go. Both are compared bit for bit.
"""
import gzip, json, os, struct
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
rng = np.random.default_rng(1)
N, C, H, W = 5, 3, 4, 2
u8 = rng.integers(0, 256, (N, C, H, W), dtype=np.uint8)
u8[0, :, 0, 0] = [0, 128, 255]
y = np.array([3, 0, 9, 1, 200])
f32 = rng.standard_normal((N, C, H, W)).astype(np.float32)
f64 = rng.standard_normal((N, C, H, W))
grey = rng.integers(0, 256, (N, H, W), dtype=np.uint8)
mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

np.save("u8.npy", u8)
np.save("f32.npy", f32)
np.save("f64.npy", f64)
np.save("f32be.npy", f32.astype(">f4"))
with open("v2.npy", "wb") as f:
    np.lib.format.write_array(f, f32, version=(2, 0))
with open("v3.npy", "wb") as f:
    np.lib.format.write_array(f, f32, version=(3, 0))
np.save("grey.npy", grey)
np.save("table.npy", f32.reshape(N, -1))
np.save("nhwc.npy", np.ascontiguousarray(u8.transpose(0, 2, 3, 1)))
for t in "u1 i1 u2 i2 u4 i4 u8 i8 >i2 >i8".split():
    np.save("y_%s.npy" % t.replace(">", "be_"), np.minimum(y, 127).astype(t))
np.save("y_column.npy", y.reshape(N, 1))
np.savez("plain.npz", images=u8, labels=y)
np.savez_compressed("splits.npz", x_test=u8, y_test=y, x_train=u8[:2], y_train=y[:2])
np.savez("medmnist.npz", test_images=u8, test_labels=y.reshape(N, 1).astype(np.uint8))
np.savez("unlabelled.npz", X=f32)
np.savez("positional.npz", u8)
np.savez("two.npz", u8, y)

# Refused.
nan = f32.copy(); nan[3, 2, 1, 0] = np.nan
np.save("nan.npy", nan)
big = f64.copy(); big[1, 0, 0, 1] = 1e300
np.save("big.npy", big)
np.save("fortran.npy", np.asfortranarray(f32))
np.save("f16.npy", f32.astype(np.float16))
np.save("i64.npy", u8.astype(np.int64))
np.save("bool.npy", u8 > 0)
np.save("object.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
np.save("record.npy", np.zeros(3, dtype=[("a", "<f4", (2,)), ("b", "<i4")]))
np.save("scalar.npy", np.float32(1))
np.save("empty.npy", np.zeros((0, 1, 2, 2), np.float32))
np.save("y_float.npy", y.astype(np.float64))
np.save("y_negative.npy", np.array([0, 1, -1, 2, 3], np.int16))
np.save("y_huge.npy", np.full(N, 2**63, np.uint64))
np.save("y_short.npy", y[:4])
np.save("y_onehot.npy", np.eye(10, dtype=np.int64)[np.minimum(y, 9)])


def idx(path, a, code, opener=open):
    with opener(path, "wb") as f:
        f.write(bytes([0, 0, code, a.ndim]) + struct.pack(">%dI" % a.ndim, *a.shape))
        f.write(a.tobytes())


gz = lambda path, mode: gzip.GzipFile(path, mode, mtime=0)
idx("t10k-images-idx3-ubyte", grey, 8)
idx("t10k-labels-idx1-ubyte.gz", y.astype(np.uint8), 8, gz)
idx("train-images.idx3-ubyte.gz", grey, 8, gz)
idx("train-labels.idx1-ubyte", y.astype(np.uint8), 8)
idx("float.idx", f32.astype(">f4"), 0x0d)


def normalise(a, scale255, mean=(0,), std=(1,)):
    a = a.astype(np.float32)
    if scale255:
        a = a / np.float32(255)
    m = np.array(mean, np.float32).reshape(-1, 1, 1)
    s = np.array(std, np.float32).reshape(-1, 1, 1)
    r = (a - m) / s
    assert r.dtype == np.float32
    return [struct.unpack("<I", v.tobytes())[0] for v in r.ravel()]


class PCG:
    """math/rand/v2's PCG: 128-bit LCG, DXSM output."""
    def __init__(self, hi, lo):
        self.s = hi << 64 | lo
    def next(self):
        self.s = (self.s * 0x2360ED051FC65DA44385DF649FCCF645 + 0x5851F42D4C957F2D14057B7EF767814F) % 2**128
        hi, lo = self.s >> 64, self.s % 2**64
        hi ^= hi >> 32
        hi = hi * 0xDA942042E4DD58B5 % 2**64
        hi ^= hi >> 48
        return hi * (lo | 1) % 2**64


def shuffle(n, seed):
    a, rng = list(range(n)), PCG(seed, 0x64617461736574)
    for i in range(n - 1, 0, -1):
        while True:
            m = rng.next() * (i + 1)
            if m % 2**64 >= 2**64 % (i + 1):
                break
        j = m >> 64
        a[i], a[j] = a[j], a[i]
    return a


json.dump({
    "values": {  # float32 bit patterns of all examples
        "u8": normalise(u8, True),
        "u8 mean std": normalise(u8, True, mean, std),
        "u8 one mean": normalise(u8, True, [0.5], [0.25]),
        # Hugging Face: float64 product with rescale_factor, then float32.
        "u8 rescale": normalise((u8.astype(np.float64) * 0.00392156862745098).astype(np.float32), False, mean, std),
        "f32": normalise(f32, False),
        "f32 mean std": normalise(f32, False, mean, std),
        "f64": normalise(f64, False),
        "grey": normalise(grey, True),
        "nhwc": normalise(u8.transpose(0, 2, 3, 1), True),
    },
    "shuffle": {str(s): shuffle(20, s) for s in (0, 1, 2**64 - 1)},
    # n = 1000, seed 7
    "first10": shuffle(1000, 7)[:10],
}, open("golden.json", "w"), separators=(",", ":"))
