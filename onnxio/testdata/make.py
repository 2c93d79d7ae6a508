"""Makes the models of onnxio's tests, and golden.json: what Python's onnx says about each of them.

Run in this folder; reads ../../fixtures/mnist/checkpoints. Last made with Python 3.11, onnx 1.23.2, numpy 2.4.6,
ml_dtypes 0.6.0. All values are multiples of 1/8 below 8, exact in every float type.
"""

import hashlib
import json
import pathlib
import zipfile

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

golden = {}


def values(n, seed):
    """n values, of which the Go tests make the replacements too: see replacement in onnxio_test.go."""
    return (((np.arange(n) + seed) * 37 % 101) - 50) / 8


def raw(name, shape, seed=0, dtype=np.float32):
    return numpy_helper.from_array(values(int(np.prod(shape)), seed).reshape(shape).astype(dtype), name)


def listed(name, shape, kind, seed=0):
    """Elements in the field that is named after the type, not in raw_data."""
    t = helper.make_tensor(name, kind, shape, values(int(np.prod(shape)), seed).tolist())
    assert not t.HasField("raw_data")
    return t


def io(name, shape, kind=T.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, initializers, inputs=None, outputs=None, opset=18, ir=8, **graph):
    graph = helper.make_graph(
        nodes, "g", inputs or [io("x", ["batch", 3, 4, 4])], outputs or [io("y", ["batch", 3, 4, 4])], initializers, **graph
    )
    return helper.make_model(
        graph, producer_name="make.py", producer_version="1", ir_version=ir, opset_imports=[helper.make_opsetid("", opset)]
    )


def norm(prefix, n=3, seed=0):
    """The four tensors of a batch norm; variances are positive."""
    out = [raw(f"{prefix}.{part}", [n], seed + i) for i, part in enumerate(["weight", "bias", "running_mean"])]
    return out + [numpy_helper.from_array(np.arange(1, n + 1, dtype=np.float32) / 4, f"{prefix}.running_var")]


def bn(name, inputs, outputs, **attributes):
    return helper.make_node("BatchNormalization", inputs, outputs, name, **attributes)


def names(prefix):
    return [f"{prefix}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]


def gemm(w, b, kind=T.FLOAT, **options):
    dense = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "dense", alpha=0.5)
    return model([dense], [w, b], [io("x", ["batch", 4], kind)], [io("y", ["batch", 3], kind)], **options)


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def unpacked(data, tensor):
    """Rewrites the bytes of a model so that a tensor's float_data come one element a field, as a proto2 writer may."""
    old = tensor.SerializeToString()
    t = T()
    t.CopyFrom(tensor)
    t.ClearField("float_data")
    new = t.SerializeToString() + b"".join(b"\x25" + np.float32(v).tobytes() for v in tensor.float_data)
    graph = onnx.load_from_string(data).graph.SerializeToString()
    patched = graph.replace(b"\x2a" + varint(len(old)) + old, b"\x2a" + varint(len(new)) + new)
    assert patched != graph
    return data.replace(b"\x3a" + varint(len(graph)) + graph, b"\x3a" + varint(len(patched)) + patched)


def describe_value(v):
    t = v.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else -1 for d in t.shape.dim] if t.HasField("shape") else None
    return {"name": v.name, "type": t.elem_type, "shape": shape, "dims": [d.dim_param for d in t.shape.dim]}


def describe_graph(g):
    def graphs(a):
        return [describe_graph(s) for s in ([a.g] if a.HasField("g") else []) + list(a.graphs)]

    return {
        "name": g.name,
        "nodes": [
            {
                "name": n.name,
                "op": n.op_type,
                "domain": "" if n.domain == "ai.onnx" else n.domain,
                "inputs": list(n.input),
                "outputs": list(n.output),
                "attributes": [
                    {"name": a.name, "type": a.type, "int": a.i, "float": a.f, "tensor": list(a.t.dims), "graphs": graphs(a)}
                    for a in n.attribute
                ],
            }
            for n in g.node
        ],
        "initializers": [{"name": t.name, "type": t.data_type, "shape": list(t.dims)} for t in g.initializer],
        "inputs": [describe_value(v) for v in g.input],
        "outputs": [describe_value(v) for v in g.output],
    }


def describe(m, parameters, statistics, replaced):
    opset = [o.version for o in m.opset_import if o.domain in ("", "ai.onnx")]
    return {
        "ir": m.ir_version,
        "producer": [m.producer_name, m.producer_version],
        "opset": opset[-1],
        "functions": len(m.functions),
        "graph": describe_graph(m.graph),
        "parameters": parameters,
        "statistics": statistics,
        "replaced_sha256": replaced,
    }


def replaced_sha256(data, parameters, statistics):
    """Hash of the model as Python's onnx writes it after an exchange of the weights."""
    m = onnx.load_from_string(data)
    assert m.SerializeToString() == data, "Python does not write what it read: the hash would prove nothing"
    by_name = {t.name: t for t in m.graph.initializer}
    for seed, role in ((1000, parameters), (2000, statistics)):
        at = 0
        for name in role:
            t = by_name[name]
            old = numpy_helper.to_array(t)
            v = values(old.size, seed + at).astype(old.dtype).reshape(old.shape)
            at += old.size
            if t.HasField("raw_data"):
                t.raw_data = v.tobytes()
            elif t.data_type == T.FLOAT:
                t.float_data[:] = v.flatten().tolist()
            else:
                t.double_data[:] = v.flatten().tolist()
    return hashlib.sha256(m.SerializeToString()).hexdigest()


def save(name, m, parameters=None, statistics=(), check=True, replaced=True):
    """Writes a model. parameters lists what a lone file has for parameters; None where the file must be refused.

    replaced is off where Go writes raw data in the place of what Python keeps elsewhere."""
    data = m if isinstance(m, bytes) else m.SerializeToString()
    m = onnx.load_from_string(data)
    if check:
        onnx.checker.check_model(m, full_check=True)
    pathlib.Path(name + ".onnx").write_bytes(data)
    sha = None if parameters is None or not replaced else replaced_sha256(data, parameters, statistics)
    golden[name + ".onnx"] = describe(m, parameters, list(statistics), sha)


# Every way in which elements are stored.
for kind, dtype in (("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64)):
    w, b = raw("w", [4, 3], 0, dtype), raw("b", [3], 9, dtype)
    save("raw-" + kind, gemm(w, b, w.data_type), ["w", "b"])
for kind in ("FLOAT", "DOUBLE"):
    k = getattr(T, kind)
    save("packed-" + kind.lower(), gemm(listed("w", [4, 3], k), listed("b", [3], k, 9), k), ["w", "b"])
save("int32-f16", gemm(listed("w", [4, 3], T.FLOAT16), raw("b", [3], 9, np.float16), T.FLOAT16), ["w", "b"], replaced=False)
w = listed("w", [4, 3], T.FLOAT)
save("unpacked-float", unpacked(gemm(w, raw("b", [3], 9)).SerializeToString(), w), ["w", "b"], replaced=False)
w = raw("w", [4, 3])
pathlib.Path("weights.bin").write_bytes(w.raw_data)
w.ClearField("raw_data")
w.data_location = T.EXTERNAL
w.external_data.add(key="location", value="weights.bin")
save("external", gemm(w, raw("b", [3], 9)), ["w", "b"], check=False, replaced=False)

# Batch norm in all its forms.
several = [
    bn("bn1", ["x", *names("a")], ["a"], epsilon=1e-4, momentum=0.8),
    helper.make_node("Relu", ["a"], ["r"], "relu"),
    bn("bn2", ["r", *names("b")], ["b"], momentum=0.75, epsilon=1e-3),
    # Statistics computed in the graph, as exporters write InstanceNorm: not ours to recompute.
    helper.make_node("ReduceMean", ["b", "axes"], ["m"], "mean", keepdims=0),
    helper.make_node("Mul", ["m", "m"], ["v"], "square"),
    bn("instance", ["b", "b.weight", "b.bias", "m", "v"], ["y"]),
]
axes = numpy_helper.from_array(np.array([0, 2, 3], np.int64), "axes")
limit = numpy_helper.from_array(np.float32(0.5), "scalar")
save(
    "batchnorm",
    model(several, [*norm("a"), axes, limit, *norm("b", seed=20)]),
    ["a.weight", "a.bias", "b.weight", "b.bias"],
    ["a.running_mean", "a.running_var", "b.running_mean", "b.running_var"],
)
save(
    "batchnorm-opset9",
    model([bn("bn", ["x", *names("a")], ["y"], epsilon=1e-4, momentum=0.8)], norm("a"), opset=9, ir=4),
    names("a")[:2],
    names("a")[2:],
)
save(
    "batchnorm-training",
    model([bn("bn", ["x", *names("a")], ["y", "mean", "var"], training_mode=1, momentum=0.8)], norm("a"), opset=15),
    names("a")[:2],
    names("a")[2:],
)
merged = [
    helper.make_node("Identity", ["a.running_mean"], ["alias"], "id0"),
    helper.make_node("Identity", ["alias"], ["b.running_mean"], "id1"),
    bn("bn1", ["x", "a.weight", "a.bias", "b.running_mean", "a.running_var"], ["y"]),
]
save("batchnorm-identity", model(merged, norm("a")), names("a")[:2], names("a")[2:])
shared = [bn("bn1", ["x", *names("a")], ["h"]), bn("bn2", ["h", *names("a")], ["y"])]
save("batchnorm-shared", model(shared, norm("a")))
inner = helper.make_graph([bn("deep", ["x", *names("a")], ["z"])], "then", [], [io("z", None)])
other = helper.make_graph([helper.make_node("Identity", ["x"], ["z2"], "skip")], "else", [], [io("z2", None)])
branch = helper.make_node("If", ["cond"], ["y"], "if", then_branch=inner, else_branch=other)
save("batchnorm-if", model([branch], norm("a"), [io("x", ["batch", 3, 4, 4]), io("cond", [], T.BOOL)]))

# Old and odd files.
old = gemm(raw("w", [4, 3]), raw("b", [3], 9), opset=9, ir=3)
old.graph.input.extend([io("w", [4, 3]), io("b", [3])])
save("ir3", old, ["w", "b"])
folded = [
    helper.make_node("Conv", ["x", "onnx::Conv_36", "onnx::Conv_37"], ["c"], "/conv1/Conv"),
    helper.make_node("Relu", ["c"], ["y"], "/relu/Relu"),
]
save(
    "folded",
    model(folded, [raw("onnx::Conv_36", [3, 3, 1, 1]), raw("onnx::Conv_37", [3], 9)]),
    ["onnx::Conv_36", "onnx::Conv_37"],
)
constant = helper.make_node("Constant", [], ["k"], "constant", value=raw("", [2, 2], 3))
shape = helper.make_node("Reshape", ["x", "k2"], ["y"], "custom", domain="com.example")
shape.attribute.extend([helper.make_attribute("mode", "fast"), helper.make_attribute("axes", [1, 2])])
odd = model([constant, shape], [raw("w", [2, 0, 3]), raw("s", [], 5)], [io("x", None)], [io("y", ["n", 2, None])])
odd.opset_import.add(domain="com.example", version=3)
odd.doc_string = "ünïcode"
odd.functions.add(name="f", domain="com.example", input=["a"], output=["a"])
save("odd", odd, ["w"], check=False)

# Files that are refused outright.
sparse = gemm(raw("w", [4, 3]), raw("b", [3]))
sparse.graph.sparse_initializer.append(
    helper.make_sparse_tensor(raw("s", [1]), numpy_helper.from_array(np.array([2], np.int64), "i"), [5])
)
training = gemm(raw("w", [4, 3]), raw("b", [3]))
training.training_info.add()
for name, m in (("sparse", sparse), ("training-info", training)):
    pathlib.Path(name + ".onnx").write_bytes(m.SerializeToString())
with zipfile.ZipFile("zip.onnx", "w") as z:
    z.writestr(zipfile.ZipInfo("archive/data.pkl"), b"not a model")

# A real export. Its weights may be trained anew, so no hash of them.
path = "../../fixtures/mnist/checkpoints/epoch-30.onnx"
m = onnx.load(path)
stats = [n for node in m.graph.node if node.op_type == "BatchNormalization" for n in node.input[3:]]
params = [t.name for t in m.graph.initializer if t.name not in stats]
golden[path] = describe(m, params, [t.name for t in m.graph.initializer if t.name in stats], None)

pathlib.Path("golden.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
