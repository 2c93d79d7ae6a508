"""Graphs whose weights are the variables of a framework: with the framework's names, shapes and values.

An exporter folds weights into other numbers: it merges scale and variance of batch norm, and it transposes kernels. It can only fold
what it knows. So the network is exported as a function of its weights: each weight is an input of the graph. Afterwards the inputs
become initializers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


from ._later import np
from ._runtime import onnxruntime

if TYPE_CHECKING:
    import onnx

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


def weight_input(i: int) -> str:
    """The name of the input for the i-th weight."""
    return f"swagwrap_weight_{i}"


@dataclass
class Graph:
    """A graph without weights, and the names of the weights that its outputs depend on."""

    model: onnx.ModelProto
    names: list[str]

    @classmethod
    def of_function(cls, model: onnx.ModelProto, names: Sequence[str], inputs: Sequence[str]) -> Graph:
        """The graph of a function that was exported. The i-th weight is the input `weight_input(i)`, and gets the i-th name."""
        return cls._named(model, {weight_input(i): name for i, name in enumerate(names)}, inputs)

    @classmethod
    def with_constants(cls, model: onnx.ModelProto, names: Mapping[str, str], inputs: Sequence[str]) -> Graph:
        """The graph of an exporter that keeps the weights. They are initializers, or outputs of Constant nodes. `names` has the new names."""
        g = model.graph
        for node in [n for n in g.node if n.op_type == "Constant" and n.output[0] in names]:
            g.node.remove(node)
        for tensor in [t for t in g.initializer if t.name in names]:
            g.initializer.remove(tensor)
        return cls._named(model, names, inputs)

    @classmethod
    def _named(cls, model: onnx.ModelProto, names: Mapping[str, str], inputs: Sequence[str]) -> Graph:
        g = model.graph
        _portable(g)
        del g.value_info[:]  # jax2onnx 0.17 annotates other shapes than the nodes give
        for value in [v for v in g.input if v.name in names]:
            g.input.remove(value)
        if len(g.input) != len(inputs):
            raise ValueError(f"the exported graph has the inputs {[v.name for v in g.input]}, want {len(inputs)}")
        outputs = ["output"] if len(g.output) == 1 else [f"output_{i}" for i in range(len(g.output))]
        wanted = {v.name: name for v, name in zip((*g.output, *g.input), (*outputs, *inputs))} | dict(names)
        _rename(g, wanted)
        _call_batch(g)
        used = {name for node in g.node for name in node.input}
        return cls(model, [name for name in names.values() if name in used])

    def filled(self, weights: Arrays) -> onnx.ModelProto:
        """The graph with weights."""
        import onnx
        from onnx import numpy_helper

        full = onnx.ModelProto()
        full.CopyFrom(self.model)
        full.graph.initializer.extend(numpy_helper.from_array(np.ascontiguousarray(weights[name]), name) for name in self.names)
        return full


def check(model: onnx.ModelProto, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]) -> None:
    """Raises RuntimeError unless ONNX Runtime takes the graph, and computes what the framework does."""
    ort = onnxruntime()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = session.run(None, {value.name: x for value, x in zip(session.get_inputs(), inputs)})
    for value, ours, theirs in zip(session.get_outputs(), got, outputs):
        if ours.shape != theirs.shape:
            raise RuntimeError(f"output {value.name!r} of the exported graph has shape {ours.shape}, and the network gives {theirs.shape}")
        apart, size = np.abs(ours.astype(np.float64) - theirs).max(initial=0), np.abs(theirs.astype(np.float64)).max(initial=0)
        if not apart <= 1e-2 * max(size, 1e-6):  # fit measures what rounding explains
            raise RuntimeError(f"output {value.name!r} of the exported graph differs from the network's by {apart:.3g}, of {size:.3g}")


def _rename(g: onnx.GraphProto, names: Mapping[str, str]) -> None:
    taken = set(names.values()) - set(names)

    def new(name: str) -> str:
        return names.get(name, name + "_" if name in taken else name)

    for value in (*g.input, *g.output, *g.initializer):
        value.name = new(value.name)
    for node in g.node:
        node.input[:] = map(new, node.input)
        node.output[:] = map(new, node.output)


def _call_batch(g: onnx.GraphProto) -> None:
    """Calls the first dimension of all inputs `batch`, as in other graphs."""
    symbols = {dim.dim_param for v in g.input for dim in v.type.tensor_type.shape.dim[:1] if dim.dim_param}
    for value in (*g.input, *g.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in symbols:
                dim.dim_param = "batch"


def _portable(g: onnx.GraphProto) -> None:
    """Replaces what exporters write and ONNX Runtime refuses."""
    from onnx import helper

    nodes = []
    for node in g.node:
        if node.op_type == "Erfc":  # tf2onnx 1.17, of an exact GELU; ONNX has no such operator
            one, erf = node.output[0] + "_one", node.output[0] + "_erf"
            nodes += [
                helper.make_node("Constant", [], [one + "_"], value_float=1.0), helper.make_node("CastLike", [one + "_", node.input[0]], [one]),
                helper.make_node("Erf", [node.input[0]], [erf]), helper.make_node("Sub", [one, erf], [node.output[0]]),
            ]
        elif node.op_type == "MaxPool" and (pool := _pool(node)):
            nodes += pool
        else:
            nodes.append(node)
    del g.node[:]
    g.node.extend(nodes)


def _pool(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes for a pool over all dimensions, or none for another. jax2onnx 0.17 puts two dimensions before those of the tensor, and
    pools over batch and channels too, by a kernel such as [1, 2, 2, 1]."""
    from onnx import helper, numpy_helper

    a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
    kernel = a["kernel_shape"]
    n = len(kernel)
    strides, dilations, pads = a.get("strides", [1] * n), a.get("dilations", [1] * n), a.get("pads", [0] * 2 * n)
    flat = [i for i in range(n) if (kernel[i], strides[i], pads[i], pads[n + i]) == (1, 1, 0, 0)]
    space = [i for i in range(n) if i not in flat]
    if n <= 3 or len(flat) != 2:  # ONNX Runtime pools over three at most
        return []
    order = [*flat, *space]
    x, y = node.input[0], node.output[0]
    axes, small, turned, pooled, back = (f"{y}_{part}" for part in ("axes", "small", "turned", "pooled", "back"))
    return [
        helper.make_node("Constant", [], [axes], value=numpy_helper.from_array(np.array([0, 1]))),
        helper.make_node("Squeeze", [x, axes], [small]),
        helper.make_node("Transpose", [small], [turned], perm=order),
        helper.make_node(
            "MaxPool", [turned], [pooled], kernel_shape=[kernel[i] for i in space], strides=[strides[i] for i in space],
            dilations=[dilations[i] for i in space], pads=[pads[i] for i in space] + [pads[n + i] for i in space],
        ),
        helper.make_node("Transpose", [pooled], [back], perm=[order.index(i) for i in range(n)]),
        helper.make_node("Unsqueeze", [back, axes], [y]),
    ]
