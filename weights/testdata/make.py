"""Makes the golden files of package weights.

  golden.safetensors  written by Python's safetensors: a tensor of every dtype, and rounding as torch does it
  ours.json           what Python's safetensors reads in ours.safetensors, which the Go writer made
                      (go test ./weights -run TestPythonReadsOurs -update)

Run in this folder. Last made with Python 3.11, numpy 2.4.6, torch 2.15.0, safetensors 0.8.0.
Everything is compared bit for bit, NaNs apart: their payload is nobody's promise.
"""

import hashlib
import json
import pathlib

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file


def interesting_floats():
    """float32 bit patterns around every place where rounding to 16 bits changes its ways."""
    bits = set()
    for half in (np.arange(0, 1 << 16, 797), [0, 1, 2, 3, 0x3FF, 0x400, 0x401, 0x7BFE, 0x7BFF]):
        f = np.asarray(half, np.uint16).view(np.float16).astype(np.float32)
        bits |= {int(b) for b in f[np.isfinite(f)].view(np.uint32)}
    bits |= {i << 16 for i in range(0, 1 << 16, 797)}
    ties = {b + d for b in bits for d in (0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0x18000)}
    bits |= ties | {
        0x477FEFFF, 0x477FF000, 0x477FF001, 0x47800000,  # 65519.99, 65520 (ties to infinity), above, 65536
        0x33000000, 0x33000001, 0x32FFFFFF, 0x33C00000,  # half of the least float16 subnormal, and 1.5 of it
        0x387FC000, 0x387FDFFF, 0x387FE000, 0x387FF000, 0x38800000,  # largest subnormal to least normal
        0x7F7FFFFF, 0x7F7F7FFF, 0x7F7F8000,  # bfloat16 overflow
        0x00000001, 0x00007FFF, 0x00008000, 0x00008001,  # float32 subnormals
        0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x7FBFFFFF,  # infinity, NaNs
    }
    bits = np.array(sorted(b & 0x7FFFFFFF for b in bits), np.uint32)
    rng = np.random.default_rng(1)
    bits = np.concatenate([bits, rng.integers(0, 1 << 31, 300, dtype=np.uint32)])
    bits = np.unique(bits)
    return np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)


def widened_sha256(dtype):
    """Hash of all 65,536 patterns but NaNs, widened to float32."""
    all16 = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16)).view(dtype)
    wide = all16.to(torch.float32).numpy()
    return hashlib.sha256(wide[~np.isnan(wide)].astype("<f4").tobytes()).hexdigest()


floats = torch.from_numpy(interesting_floats())
save_file(
    {
        "float32": floats,
        "to_float16": floats.to(torch.float16),
        "to_bfloat16": floats.to(torch.bfloat16),
        "f64": torch.tensor([[0.1, -2.5], [1e300, -0.0]], dtype=torch.float64),
        "u8": torch.tensor([0, 7, 255], dtype=torch.uint8),
        "i8": torch.tensor([-128, 127], dtype=torch.int8),
        "i16": torch.tensor([-300], dtype=torch.int16),
        "i32": torch.tensor([1 << 30], dtype=torch.int32),
        "i64": torch.tensor([-(1 << 62)], dtype=torch.int64),
        "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "näme \"q\" <&>": torch.tensor([1.5], dtype=torch.float16),
    },
    "golden.safetensors",
    metadata={"kind": "golden", "float16": widened_sha256(torch.float16), "bfloat16": widened_sha256(torch.bfloat16)},
)

if pathlib.Path("ours.safetensors").exists():
    with safe_open("ours.safetensors", framework="pt") as f:
        seen = {
            name: {
                "dtype": f.get_slice(name).get_dtype(),
                "shape": list(f.get_tensor(name).shape),
                "values": f.get_tensor(name).to(torch.float64).flatten().tolist(),
            }
            for name in sorted(f.keys())
        }
        metadata = {k: v for k, v in sorted(f.metadata().items()) if not k.startswith("crc32c")}
    pathlib.Path("ours.json").write_text(json.dumps({"metadata": metadata, "tensors": seen}, indent=1, ensure_ascii=False) + "\n")
