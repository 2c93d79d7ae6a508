#!/bin/sh
# Expected: to_bytes keeps the numbers of an array, or refuses it; from_bytes refuses a file that does not fit its template.
# Happens: an array of big-endian numbers (FITS, older HDF5, some NumPy files) is stored with the name of its type and without its byte
#   order: 1.0 comes back as 4.6e-41, all weights are zero in effect. from_bytes takes any shape and any type, and leaves further keys out.
# Versions: flax 0.12.8, numpy 2.4.6.
# Matters: a restored network runs, and gives one answer for every input. Its checkpoint has the right names and shapes.
# Source: seen by running, and _ndarray_to_bytes in serialization.py.
. "$(dirname "$0")/lib.sh"
packages $JAX ml-dtypes==0.6.0
check <<'END'
from seen import near, seen, versions
from flax import serialization
import ml_dtypes, numpy as np

versions("flax", "numpy")
x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
back = lambda value: serialization.msgpack_restore(serialization.msgpack_serialize({"w": value}))["w"]
arrays = {"transposed": x.T, "Fortran order": np.asfortranarray(x), "every second": x[:, ::2], "bfloat16": x.astype(ml_dtypes.bfloat16)}
for words, value in arrays.items():
    seen(f"{words}: the same numbers", np.array_equal(back(value), value), True)
for kind in ">f4", ">f8", ">i4":
    got = back(x.astype(kind))
    seen(f"{kind}: 1, 2, 3 come back as {got.dtype}", got[0].tolist(), not np.array_equal(got, x))
seen(">f4: largest number", float(np.abs(back(x.astype('>f4'))).max()), lambda v: v < 1e-30)
template = {"w": np.zeros((2, 3), np.float32)}
for words, stored in ("another shape", {"w": np.ones(5)}), ("a further key", {"w": x, "bias": x}):
    got = serialization.from_bytes(template, serialization.to_bytes(stored))
    held = [*got, got["w"].shape, str(got["w"].dtype)]
    seen(f"from_bytes, {words}: keys, shape, type", held, lambda v: v[:2] == ["w", stored["w"].shape])
END
