#!/usr/bin/env python3
"""Small ONNX models for the command tests: what users get wrong, one file each.

    python make.py        with onnx 1.23, NumPy 2 and PyArrow 26

The good ones are a network of one convolution, one batch norm and one linear layer on 1x4x4 images with
3 classes, as an exporter would write it with batch norm kept. The values are random; the tests only look at what
the program says of the files.
"""

import pathlib

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent


def model(seed, channels=2, dtype=np.float32, weight="conv.weight", folded=False, batch="batch", softmax=False, classes=3):
    """One checkpoint; checkpoints of a network differ in seed alone."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(dtype), name)
    pos = lambda name, *shape: numpy_helper.from_array(r.uniform(0.5, 2, size=shape).astype(dtype), name)
    init = [t(weight, channels, 1, 3, 3), t("fc.weight", classes, channels), t("fc.bias", classes)]
    nodes = [helper.make_node("Conv", ["input", weight] + (["onnx::Conv_8"] if folded else []), ["conv"], pads=[1, 1, 1, 1])]
    if folded:
        init.append(t("onnx::Conv_8", channels))
    else:
        init += [pos("bn.weight", channels), t("bn.bias", channels), t("bn.running_mean", channels), pos("bn.running_var", channels)]
        nodes.append(helper.make_node("BatchNormalization", ["conv", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["bn"]))
    nodes += [
        helper.make_node("Relu", ["conv" if folded else "bn"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["scores" if softmax else "logits"], transB=1),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["scores"], ["logits"], axis=1))
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(nodes, "tiny",
                              [helper.make_tensor_value_info("input", elem, [batch, 1, 4, 4])],
                              [helper.make_tensor_value_info("logits", elem, [batch, classes])], init)
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def training(m):
    """The same model as exported in training mode: batch norm by batch, and a Dropout that drops."""
    for n in m.graph.node:
        if n.op_type == "BatchNormalization":
            n.attribute.append(helper.make_attribute("training_mode", 1))
            n.output.extend(["bn.running_mean_out", "bn.running_var_out"])
        if n.op_type == "Conv":  # before the batch norm, whose statistics it would change
            n.input[0] = "dropped"
    m.graph.node.insert(0, helper.make_node("Dropout", ["input", "ratio", "training"], ["dropped"], seed=1))
    m.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "ratio"))
    m.graph.initializer.append(numpy_helper.from_array(np.array(True), "training"))
    onnx.checker.check_model(m, full_check=True)
    return m


def head(m, scores, *nodes, outputs=("logits",)):
    """The same model with other nodes behind the linear layer, whose output gets the name scores."""
    m.graph.node[-1].output[0] = scores
    m.graph.node.extend(nodes)
    old = m.graph.output.pop()
    for name in outputs:
        m.graph.output.append(helper.make_tensor_value_info(name, old.type.tensor_type.elem_type, ["batch", old.type.tensor_type.shape.dim[1].dim_value]))
    onnx.checker.check_model(m, full_check=True)
    return m


def brightest(m):
    """The same model, which adds the logarithm of the brightest pixel to all logits: a black image has none."""
    return head(m, "scores",
                helper.make_node("ReduceMax", ["input"], ["max"], axes=[1, 2, 3], keepdims=0),
                helper.make_node("Log", ["max"], ["log"]),
                helper.make_node("Unsqueeze", ["log", "one"], ["column"]),
                helper.make_node("Add", ["scores", "column"], ["logits"]))


def before(m, *nodes):
    """The same model with nodes in front, from "pixels" to "input"."""
    m.graph.input[0].name = "pixels"
    for n in reversed(nodes):
        m.graph.node.insert(0, n)
    onnx.checker.check_model(m, full_check=True)
    return m


def single(m):
    """The same model as exported for one image, with that number in the graph and in the shapes between the nodes."""
    at = next(i for i, n in enumerate(m.graph.node) if n.op_type == "Flatten")
    flatten = m.graph.node.pop(at)
    for n in reversed([  # as a list, and put together as PyTorch's exporter does it
        helper.make_node("Reshape", [flatten.input[0], "flat_shape"], ["flatter"]),
        helper.make_node("Constant", [], ["one"], value_ints=[1]),
        helper.make_node("Constant", [], ["two"], value_ints=[2]),
        helper.make_node("Concat", ["one", "two"], ["again_shape"], axis=0),
        helper.make_node("Reshape", ["flatter", "again_shape"], list(flatten.output), allowzero=1),
    ]):
        m.graph.node.insert(at, n)
    m.graph.initializer.append(numpy_helper.from_array(np.array([1, 2]), "flat_shape"))
    return onnx.shape_inference.infer_shapes(m)


def mixing(m):
    """The same model, which takes the mean of all pixels of a batch from them: of a batch of 1, each image's own."""
    return before(m, helper.make_node("ReduceMean", ["pixels"], ["mean"], axes=[0, 1, 2, 3]), helper.make_node("Sub", ["pixels", "mean"], ["input"]))


def pooled(m):
    """The model of mixing, whose batch norm comes after the pooling: one image has one value for each channel."""
    nodes = {n.op_type: n for n in m.graph.node}
    pool, bn, relu = nodes["GlobalAveragePool"], nodes["BatchNormalization"], nodes["Relu"]
    pool.input[0], bn.input[0], relu.output[0] = bn.input[0], pool.output[0], "positive"
    nodes["Flatten"].input[0] = "positive"
    order = ["Conv", "GlobalAveragePool", "BatchNormalization", "Relu", "Flatten", "Gemm"]
    m.graph.node.sort(key=lambda n: order.index(n.op_type))
    return mixing(m)


def keeping(m, above=0):
    """The model of mixing, which gives only the scores above a limit: as many rows as there are, as a detector keeps boxes."""
    m.graph.node[-1].output[0] = "scores"
    m.graph.node.extend([
        helper.make_node("Reshape", ["scores", "line"], ["each"]),
        helper.make_node("Greater", ["each", "zero"], ["found"]),
        helper.make_node("Compress", ["each", "found"], ["kept"], axis=0),
        helper.make_node("Unsqueeze", ["kept", "column"], ["boxes"]),
    ])
    for name, value in (("line", np.array([-1])), ("zero", np.float32(above)), ("column", np.array([1]))):
        m.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    m.graph.output.pop()
    m.graph.output.append(helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["found", 1]))
    return mixing(m)


def across(m):
    """The same model, which takes the mean of all images of a batch from each."""
    return before(m, helper.make_node("ReduceMean", ["pixels"], ["mean"], name="mean", axes=[0]), helper.make_node("Sub", ["pixels", "mean"], ["input"]))


def without_statistics(m):
    """The same model with batch norm that has no running statistics, as PyTorch's older exporter writes it: the batch's own, in training mode."""
    bn = next(n for n in m.graph.node if n.op_type == "BatchNormalization")
    bn.name = "bn"
    bn.attribute.append(helper.make_attribute("training_mode", 1))
    bn.output.extend(["mean_out", "var_out"])
    bn.input[3], bn.input[4] = "mean", "var"
    at = list(m.graph.node).index(bn)
    for n in reversed([
            helper.make_node("ReduceMean", ["conv"], ["mean"], axes=[0, 2, 3], keepdims=0),
            helper.make_node("ReduceMean", ["conv"], ["mean_kept"], axes=[0, 2, 3]),
            helper.make_node("Sub", ["conv", "mean_kept"], ["rest"]),
            helper.make_node("Mul", ["rest", "rest"], ["squares"]),
            helper.make_node("ReduceMean", ["squares"], ["var"], axes=[0, 2, 3], keepdims=0)]):
        m.graph.node.insert(at, n)
    for t in [t for t in m.graph.initializer if t.name.startswith("bn.running")]:
        m.graph.initializer.remove(t)
    onnx.checker.check_model(m, full_check=True)
    return m


def unmasked(seed):
    """A network of embeddings and the mean of all of them, also of those that fill a list up."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
    nodes = [helper.make_node("Gather", ["embedding", "ids"], ["words"]), helper.make_node("ReduceMean", ["words"], ["mean"], axes=[1], keepdims=0),
             helper.make_node("Gemm", ["mean", "fc.weight", "fc.bias"], ["logits"], transB=1)]
    graph = helper.make_graph(nodes, "unmasked", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
                              [t("embedding", 12, 4), t("fc.weight", 3, 4), t("fc.bias", 3)])
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def noisy(m):
    """The same model, which adds noise to its input."""
    return before(m, helper.make_node("RandomNormalLike", ["pixels"], ["noise"], name="noise", scale=0.1), helper.make_node("Add", ["pixels", "noise"], ["input"]))


def frozen(m, like):
    """The same model with the batch-norm statistics of another: training left them alone."""
    for t in m.graph.initializer:
        if t.name.startswith("bn.running"):
            t.CopyFrom(next(o for o in like.graph.initializer if o.name == t.name))
    return m


def beside(m, batch="batch"):
    """The same model, which takes three numbers beside the image and has a larger linear layer."""
    r = np.random.default_rng(int(numpy_helper.to_array(m.graph.initializer[0]).view(np.uint32).sum()))
    gemm = m.graph.node[-1]
    m.graph.node.insert(len(m.graph.node) - 1, helper.make_node("Concat", [gemm.input[0], "meta"], ["both"], axis=1))
    gemm = m.graph.node[-1]
    gemm.input[0] = "both"
    weight = next(t for t in m.graph.initializer if t.name == "fc.weight")
    a = numpy_helper.to_array(weight)
    weight.CopyFrom(numpy_helper.from_array(np.concatenate([a, r.normal(size=(len(a), 3))], 1).astype(a.dtype), "fc.weight"))
    m.graph.input.append(helper.make_tensor_value_info("meta", TensorProto.FLOAT, [batch, 3]))
    onnx.checker.check_model(m, full_check=True)
    return m


def float16(seed):
    r = np.random.default_rng(seed)
    weights = [numpy_helper.from_array(r.standard_normal(shape).astype(np.float16), name) for name, shape in {"fc.weight": (3, 4), "fc.bias": 3}.items()]
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT16), helper.make_node("Gemm", ["c", "fc.weight", "fc.bias"], ["g"], transB=1),
             helper.make_node("Cast", ["g"], ["logits"], to=TensorProto.FLOAT)]
    graph = helper.make_graph(nodes, "float16", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tokens(seed, mask=TensorProto.BOOL):
    """A network of embeddings, their mean where a mask says so, one batch norm and one linear layer."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
    pos = lambda name, *shape: numpy_helper.from_array(r.uniform(0.5, 2, size=shape).astype(np.float32), name)
    init = [t("embedding", 12, 4), pos("bn.weight", 4), t("bn.bias", 4), t("bn.running_mean", 4), pos("bn.running_var", 4),
            t("fc.weight", 3, 4), t("fc.bias", 3), numpy_helper.from_array(np.array([2]), "last"), numpy_helper.from_array(np.array([1]), "second")]
    nodes = [
        helper.make_node("Gather", ["embedding", "ids"], ["words"]),
        helper.make_node("Cast", ["mask"], ["weight"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weight", "last"], ["weights"]),
        helper.make_node("Mul", ["words", "weights"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "second"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["weights", "second"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("BatchNormalization", ["mean", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["bn"]),
        helper.make_node("Gemm", ["bn", "fc.weight", "fc.bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(nodes, "tokens", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"]),
                                                helper.make_tensor_value_info("mask", mask, ["batch", "sequence"])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])], init)
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def language(seed):
    """A language model of twelve words that looks at the last word only, and its log-probabilities for each word."""
    r = np.random.default_rng(seed)
    words, out = r.normal(size=(12, 5)).astype(np.float32), r.normal(size=(5, 12)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Gather", ["embedding", "x"], ["h"]), helper.make_node("MatMul", ["h", "decoder"], ["y"])], "language",
                              [helper.make_tensor_value_info("x", TensorProto.INT64, ["batch", "time"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "time", 12])],
                              [numpy_helper.from_array(words, "embedding"), numpy_helper.from_array(out, "decoder")])
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    logits = words.astype(np.float64) @ out
    return m, logits - np.log(np.exp(logits).sum(1, keepdims=True))


def write_language():
    """language-1.onnx and language-2.onnx, a text with its vocabulary, and the perplexities of the networks, of the mean of
    their probabilities, and of windows that overlap."""
    vocabulary = ["<unk>", "<eos>", "=", "Title"] + [f"w{i}" for i in range(8)]
    (HERE / "language.vocab").write_text("\n".join(vocabulary) + "\n")
    r = np.random.default_rng(5)
    lines = []
    for title in range(8):
        lines += [f" = Title {title} = "] + [" ".join(f"w{i}" for i in r.integers(0, 9, size=r.integers(2, 12))) for _ in range(r.integers(1, 5))]
    (HERE / "language.txt").write_text("\n".join(lines) + "\n")
    ids = [vocabulary.index(w) if w in vocabulary else 0 for line in lines for w in line.split() + ["<eos>"]]
    np.save(HERE / "language.npy", np.array(ids, np.int32))
    models = []
    for seed in (1, 2):
        m, logs = language(seed)
        onnx.save(m, HERE / f"language-{seed}.onnx")
        models.append(np.exp(logs))
    rows = np.array(ids[:len(ids) // 4 * 4]).reshape(4, -1)
    pairs = np.stack([rows[:, :-1].ravel(), rows[:, 1:].ravel()])
    perplexity = lambda p, x: np.exp(-np.log(p[x[0], x[1]]).mean())
    whole = np.array([ids[:-1], ids[1:]])
    print(len(ids), "tokens,", pairs.shape[1], "predictions in 4 rows;", [perplexity(p, pairs) for p in models],
          "together", perplexity(np.mean(models, 0), pairs), "in windows", perplexity(np.mean(models, 0), whole))


def table(seed):
    """Three numbers, which it calls x, and one linear layer."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["logits"], transB=1)], "table",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])], [t("fc.weight", 2, 3), t("fc.bias", 2)])
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def hashes(seed):
    """The mean of embeddings of large whole numbers by their remainders, and one linear layer."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
    init = [t("embedding", 7, 4), t("fc.weight", 2, 4), t("fc.bias", 2), numpy_helper.from_array(np.array(7), "seven")]
    nodes = [helper.make_node("Mod", ["hash", "seven"], ["rest"]), helper.make_node("Gather", ["embedding", "rest"], ["words"]),
             helper.make_node("ReduceMean", ["words"], ["mean"], axes=[1], keepdims=0), helper.make_node("Gemm", ["mean", "fc.weight", "fc.bias"], ["logits"], transB=1)]
    graph = helper.make_graph(nodes, "hashes", [helper.make_tensor_value_info("hash", TensorProto.INT64, ["batch", "length"])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])], init)
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def single_row(seed, how):
    """A table of one row at a time. It goes through a Reshape to [1, 2, -1] with allowzero=1, whose shape is a list, or joined from three. Or it
    goes to [2, 4], which has no place for more rows."""
    r = np.random.default_rng(seed)
    t = lambda name, *shape: numpy_helper.from_array(r.normal(size=shape).astype(np.float32), name)
    i = lambda name, *values: numpy_helper.from_array(np.array(values), name)
    init = [t("fc.weight", 8, 3), t("fc.bias", 8), t("out.weight", 4)]
    init += {"list": [i("shape", 1, 2, -1)], "joined": [i("one", 1), i("two", 2), i("last", -1)], "alone": [i("shape", 2, 4), i("rows", 1, 2)]}[how]
    nodes = [helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["hidden"], transB=1)]
    nodes += [helper.make_node("Concat", ["one", "two", "last"], ["shape"], axis=0)] if how == "joined" else []
    nodes += [helper.make_node("Reshape", ["hidden", "shape"], ["parts"], allowzero=1), helper.make_node("MatMul", ["parts", "out.weight"], ["scores"])]
    nodes += [helper.make_node("Reshape", ["scores", "rows"], ["logits"])] if how == "alone" else [helper.make_node("Identity", ["scores"], ["logits"])]
    graph = helper.make_graph(nodes, "table", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2])], init)
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def first(seed):
    """The scores of the first token of a list. They lie in [-1, 1] for tokens 0 and 1."""
    r = np.random.default_rng(seed)
    scores = r.normal(size=(12, 2)).astype(np.float32)
    scores[:2], scores[2:] = r.uniform(-1, 1, (2, 2)), scores[2:] * 3
    graph = helper.make_graph([helper.make_node("Gather", ["scores", "ids"], ["words"]), helper.make_node("Gather", ["words", "zero"], ["logits"], axis=1)],
                              "first", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
                              [numpy_helper.from_array(scores, "scores"), numpy_helper.from_array(np.array(0), "zero")])
    m = helper.make_model(graph, producer_name="make.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    return m


def save(name, m):
    (HERE / name).write_bytes(m.SerializeToString())


def poison(m, tensor, index, value):
    for t in m.graph.initializer:
        if t.name == tensor:
            a = numpy_helper.to_array(t).copy()
            a.flat[index] = value
            t.CopyFrom(numpy_helper.from_array(a, tensor))
    return m


def external(m):
    """The same model with one tensor in another file, as exporters write it by default."""
    t = m.graph.initializer[0]
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    t.external_data.add(key="location", value="../secret.bin")
    return m


for seed in (1, 2, 10):  # 2 before 10: natural order
    save(f"ckpt-{seed}.onnx", model(seed))
save("wider.onnx", model(3, channels=4))
save("renamed.onnx", model(3, weight="backbone.weight"))
save("double.onnx", model(3, dtype=np.float64))
save("nan.onnx", poison(model(3), "fc.weight", 4, np.nan))
save("inf.onnx", poison(model(3), "bn.bias", 1, np.inf))
for seed in (1, 2):
    save(f"folded-{seed}.onnx", model(seed, folded=True, weight="onnx::Conv_7"))
    save(f"fixed-batch-{seed}.onnx", model(seed, batch=4))
    save(f"single-{seed}.onnx", single(model(seed, batch=1)))
    save(f"mixing-{seed}.onnx", mixing(model(seed, batch=1)))
    save(f"pooled-{seed}.onnx", pooled(model(seed, batch=1)))
    save(f"keeping-{seed}.onnx", keeping(model(seed, batch=1)))
    save(f"nothing-{seed}.onnx", keeping(model(seed, batch=1), above=1e9))
    save(f"across-{seed}.onnx", across(model(seed)))
    save(f"across-fixed-{seed}.onnx", across(model(seed, batch=4)))
    save(f"without-statistics-{seed}.onnx", without_statistics(model(seed)))
    save(f"unmasked-{seed}.onnx", unmasked(seed))
    save(f"noisy-{seed}.onnx", noisy(model(seed)))
    save(f"training-{seed}.onnx", training(model(seed)))
    save(f"softmax-{seed}.onnx", model(seed, softmax=True))
    save(f"four-classes-{seed}.onnx", model(seed, classes=4))
save("external.onnx", external(model(3)))
for seed in (1, 2):
    save(f"binary-{seed}.onnx", model(seed, classes=1))
    save(f"sigmoid-{seed}.onnx", head(model(seed, classes=1), "scores", helper.make_node("Sigmoid", ["scores"], ["logits"])))
    save(f"labels-{seed}.onnx", head(model(seed), "logits", helper.make_node("Sigmoid", ["logits"], ["each"]),
                                     helper.make_node("Softmax", ["logits"], ["soft"], axis=1), helper.make_node("Identity", ["soft"], ["probs"]),
                                     outputs=("each", "logits", "probs")))
    bright = model(seed)
    bright.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    save(f"brightest-{seed}.onnx", brightest(bright))

r = np.random.default_rng(0)
images = r.integers(0, 256, (10, 1, 4, 4), dtype=np.uint8)
np.savez_compressed(HERE / "images.npz", images=images, labels=r.integers(0, 3, 10))
np.savez_compressed(HERE / "short-labels.npz", images=images, labels=r.integers(0, 3, 9))
np.savez_compressed(HERE / "five-by-five.npz", images=r.integers(0, 256, (10, 1, 5, 5), dtype=np.uint8), labels=r.integers(0, 3, 10))
np.savez_compressed(HERE / "class-seven.npz", images=images, labels=np.full(10, 7))
np.save(HERE / "unlabelled.npy", images)
np.savez_compressed(HERE / "two.npz", images=images, labels=np.array([0, 1, 0, 1, 0, 1, 0, 0, 0, 1]))  # one of two classes
each = np.array([[i % 2, i // 2 % 2, i % 3 == 0] for i in range(10)], np.int8)  # no label is the same for all
np.savez_compressed(HERE / "each.npz", images=images, labels=each.astype(bool))
each[3, 1] = -1
np.savez_compressed(HERE / "some.npz", images=images, labels=each)
y = np.round(np.sin(np.arange(10.0)) * 3 + 20, 3)
np.savez_compressed(HERE / "numbers.npz", images=images, targets=y)
np.savez_compressed(HERE / "pairs.npz", images=images, targets=np.stack([y, -y / 8], 1).astype(np.float32))
np.savez_compressed(HERE / "nan-target.npz", images=images, targets=np.where(np.arange(10) == 4, np.nan, y))
np.savez_compressed(HERE / "half.npz", images=images, labels=np.full((10, 3), 0.5))
black = images.copy()
black[3] = 0
np.savez_compressed(HERE / "black.npz", images=black, labels=r.integers(0, 3, 10))
for seed in (1, 2):
    save(f"frozen-{seed}.onnx", frozen(model(seed), model(1)))
# What the training loader of fixtures/mnist yields: its first 128 images, normalised as make.py there does it.
images = np.load(HERE.parents[2] / "fixtures/mnist/train.npz")["images"][:128]
np.save(HERE / "seen.npy", ((images / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)).astype(np.float32))

# Networks that compute in float16.
for seed in (1, 2):
    save(f"float16-{seed}.onnx", float16(seed))

# Networks of two inputs, with 40 examples for each, of other types than the inputs' own where that is allowed. In a
# folder an array may be pictures.
for seed in (1, 2):
    save(f"beside-{seed}.onnx", beside(model(seed)))
    save(f"beside-fixed-{seed}.onnx", beside(model(seed, batch=4), batch=4))
    save(f"tokens-{seed}.onnx", tokens(seed))
    save(f"tokens-i32-{seed}.onnx", tokens(seed, mask=TensorProto.INT32))
r = np.random.default_rng(2)
n = 40
beside = {"input": r.normal(size=(n, 1, 4, 4)).astype(np.float32), "meta": r.normal(size=(n, 3)), "labels": r.integers(0, 3, n)}
lengths = r.integers(1, 8, n)
lengths[0] = 7
text = {"ids": r.integers(1, 12, (n, 7)), "mask": np.arange(7) < lengths[:, None], "labels": r.integers(0, 3, n)}
text["ids"][~text["mask"]] = 0
np.savez_compressed(HERE / "beside.npz", **beside)
np.savez_compressed(HERE / "tokens.npz", **text)
bad = {
    "extra": {**text, "token_type_ids": text["ids"]},
    "missing": {k: v for k, v in text.items() if k != "mask"},
    "short": {**text, "mask": text["mask"][:39]},
    "shorter": {**text, "mask": text["mask"][:, :6]},
    "floats": {**text, "ids": text["ids"].astype(np.float32)},
    "huge": {**text, "ids": np.where(np.arange(7) == 3, 1 << 25, text["ids"])},
    "negative": {**text, "ids": np.where((np.arange(n) == 7)[:, None] & (np.arange(7) == 2), -1, text["ids"])},
    "twos": {**text, "mask": text["mask"] * np.int8(2)},
    "flat": {**text, "mask": text["mask"].ravel()},
}
for name, arrays in bad.items():
    np.savez_compressed(HERE / f"tokens-{name}.npz", **arrays)
beside["meta"][5, 1] = np.nan
np.savez_compressed(HERE / "beside-nan.npz", **beside)
(HERE / "beside").mkdir(exist_ok=True)
np.save(HERE / "beside/meta.npy", beside["meta"][:2])

# Networks for tables, and token ids in lists of other lengths, as PyArrow writes them.
for seed in (1, 2):
    save(f"table-{seed}.onnx", table(seed))
    save(f"hash-{seed}.onnx", hashes(seed))
    for how in ("list", "joined", "alone"):
        save(f"row-{how}-{seed}.onnx", single_row(seed, how))
    save(f"first-{seed}.onnx", first(seed))
lists = {"ids": [row[:k].tolist() for row, k in zip(text["ids"], lengths)], "mask": [[True] * int(k) for k in lengths], "label": text["labels"]}
pq.write_table(pa.table(lists), HERE / "tokens.parquet", row_group_size=9)

write_language()
