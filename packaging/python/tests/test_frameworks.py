"""Graphs of functions, folders of states and converted files, without the frameworks: PyTorch's exporter stands for theirs.

fixtures/frameworks has networks of each framework, which tests of Go read, and a table of all ways.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import swagwrap as sw
from conftest import swagwrap
from onnx import TensorProto, helper
from safetensors import safe_open
from safetensors.numpy import load_file
from swagwrap._convert import _keras_average, _leaves, _of_tree
from swagwrap._exporters import of_torch
from swagwrap._graph import Graph, check
from swagwrap._states import States, changed_rate, input_names, known, unique, write_graph

Array = np.ndarray[Any, Any]


class Affine:
    """A network of another framework: a kernel that is transposed, batch norm written out, and a weight that nothing uses."""

    def __init__(self, seed: int = 1) -> None:
        r = np.random.RandomState(seed)
        self.values = {
            "dense/kernel": r.randn(3, 4).T.astype("f"), "bn/gamma": 1 + r.rand(3).astype("f"), "bn/mean": r.randn(3).astype("f"),
            "bn/variance": 1 + r.rand(3).astype("f"), "head/unused": r.randn(5).astype("f"),
        }
        self.exported = 0

    def weights(self) -> dict[str, Array]:
        return self.values

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        v = self.values
        y: Array = (inputs[0] @ v["dense/kernel"] - v["bn/mean"]) * v["bn/gamma"] / np.sqrt(v["bn/variance"] + np.float32(1e-3))
        return [y.astype("f")]

    def about(self) -> dict[str, Any]:
        return {"versions": {"numpy": np.__version__}}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        self.exported += 1

        def network(kernel: Any, gamma: Any, mean: Any, variance: Any, unused: Any, x: Any) -> Any:
            return (x @ kernel - mean) * (gamma * (variance + 1e-3).rsqrt())

        return Graph.of_function(of_torch(network, list(self.values.values()), inputs), list(self.values), input_names(1, []))


X = np.random.RandomState(2).randn(20, 4).astype("f")


def states(folder: Path, **options: Any) -> States:
    return States(folder, [X], **{"overwrite": False, "reference": True, **options})


def test_the_graph_has_the_frameworks_weights(tmp_path: Path) -> None:
    net = Affine()
    folder = tmp_path / "ck"
    saved, all_weights = states(folder), []
    for epoch in range(3):
        net.values = {name: v + np.float32(0.01 * (epoch + 1)) * np.random.RandomState(epoch).randn(*v.shape).astype("f") for name, v in net.values.items()}
        all_weights.append(net.values)
        assert saved.save(net, epoch) == folder / f"epoch-{epoch:03d}.safetensors"
    assert net.exported == 1
    model = onnx.load(folder / "model.onnx")
    names = {t.name: t for t in model.graph.initializer}
    assert {"dense/kernel", "bn/gamma", "bn/mean", "bn/variance"} <= names.keys() and "head/unused" not in names
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(names["dense/kernel"]), all_weights[0]["dense/kernel"])  # Fortran's order, written by value
    assert [v.name for v in model.graph.input] == ["input"] and model.graph.output[0].name == "output"
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    (got,) = onnxruntime.InferenceSession(folder / "model.onnx").run(None, {"input": X})
    net.values = all_weights[0]
    np.testing.assert_allclose(got, net.outputs([X])[0], rtol=1e-5, atol=1e-6)
    assert set(load_file(folder / "epoch-002.safetensors")) == {"dense/kernel", "bn/gamma", "bn/mean", "bn/variance"}

    posterior = tmp_path / "p.safetensors"
    swagwrap("fit", "--task", "none", "--template", folder / "model.onnx", "-o", posterior, folder)  # with parity of all three
    p = sw.read_posterior(posterior)
    assert p.card["parity"]["held"] == p.card["parity"]["of"] == 3
    mean = p.tensors(p.mean)
    assert set(mean) == {"dense/kernel", "bn/gamma"}  # bn/mean and bn/variance are statistics
    for name in mean:
        np.testing.assert_allclose(mean[name], np.mean([w[name].astype("f8") for w in all_weights], 0), rtol=1e-12, atol=1e-15)


def test_a_run_goes_on(tmp_path: Path) -> None:
    net = Affine()
    states(tmp_path).save(net, 0)
    again = Affine(3)
    states(tmp_path).save(again, 1)
    assert again.exported == 0  # the folder has the graph
    assert [str(n) for n in np.load(tmp_path / "swagwrap-reference.npz")["weights"]] == ["epoch-000.safetensors", "epoch-001.safetensors"]
    with pytest.raises(FileExistsError, match=r"epoch-001\.safetensors"):
        states(tmp_path).save(net, 1)
    states(tmp_path, overwrite=True).save(net, 0)
    assert sorted(p.name for p in tmp_path.glob("epoch*")) == ["epoch-000.safetensors"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.onnx").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="model.onnx"):
        states(tmp_path / "other").save(net, 0)
    assert (tmp_path / "other" / "model.onnx").read_bytes() == b"mine"
    with pytest.raises(ValueError, match=r"shape \(1, 4\)"):
        States(tmp_path, [X[:1]], overwrite=False, reference=True)


def test_a_wrong_graph_is_not_written(tmp_path: Path) -> None:
    net = Affine()
    graph = net.graph([X[:2]])
    net.outputs = lambda inputs: [inputs[0][:, :3] + 5]  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="output 'output' of the exported graph differs from the network's by"):
        write_graph(graph, net, tmp_path / "model.onnx", [X], overwrite=False)
    assert list(tmp_path.iterdir()) == []


def function(nodes: list[Any], x: list[Any], y: list[Any]) -> Graph:
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)])
    return Graph.of_function(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), [], ["input"])


def test_complementary_error_function() -> None:
    """tf2onnx 1.17 writes Erfc, which is no operator of ONNX."""
    import math

    model = function([helper.make_node("Erfc", ["x"], ["y"])], [None, 3], [None, 3]).filled({})
    x = np.array([[-2, 0, 1], [0.5, 3, -1]], "f")
    check(model, [x], [np.vectorize(math.erfc)(x).astype("f")])


@pytest.mark.parametrize("pads", [[0] * 8, [0, 1, 0, 0, 0, 0, 1, 0]])
def test_pooling_over_all_dimensions(pads: list[int]) -> None:
    """jax2onnx 0.17 pools over batch and channels, with a kernel that ONNX Runtime refuses."""
    axes = [helper.make_node("Constant", [], ["zero"], value_ints=[0]), helper.make_node("Constant", [], ["both"], value_ints=[0, 1])]
    g = function(
        [*axes, helper.make_node("Unsqueeze", ["x", "zero"], ["a"]), helper.make_node("Unsqueeze", ["a", "zero"], ["b"]),
         helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[1, 2, 3, 1], strides=[1, 2, 1, 1], pads=pads), helper.make_node("Squeeze", ["c", "both"], ["y"])],
        [None, 6, 5, 2], [None, None, None, 2],
    )
    x = np.random.RandomState(1).randn(3, 6, 5, 2).astype("f")
    padded = np.pad(x, [(0, 0), (pads[1], pads[5]), (pads[2], pads[6]), (0, 0)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (1, 2))[:, ::2]
    check(g.filled({}), [x], [windows.max((-1, -2))])


def test_names() -> None:
    assert unique(["a", "b", "a", "a_2", "a"]) == ["a", "b", "a_2", "a_2_2", "a_3"]
    assert input_names(1, ["x"]) == ["input"] and input_names(2, ["a", "b"]) == ["a", "b"] and input_names(2, ["a", "a"]) == ["input_0", "input_1"]


def test_changed_rate() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert changed_rate(None, 0.1, 0) == 0.1 and changed_rate(0.1, float(np.float32(0.1)), 1) == float(np.float32(0.1))
    with pytest.warns(UserWarning, match="0.05 in epoch 2, and was 0.1"):
        changed_rate(0.1, 0.05, 2)


def test_trees() -> None:
    tree = {"params": {"Dense_0": {"kernel": np.ones((2, 3), "f"), "bias": {"value": np.zeros(3, "f")}}}, "opt_state": [np.ones(3, "f")], "step": np.array(3), "layers": [np.ones(2, "f")]}
    assert [name for name, _ in _leaves(tree, "")] == ["params/Dense_0/kernel", "params/Dense_0/bias", "opt_state/0", "step", "layers/0"]
    assert list(_of_tree(tree).weights) == ["params/Dense_0/kernel", "params/Dense_0/bias", "layers/0"]


def test_the_optimizer_shows_an_average() -> None:
    r = np.random.RandomState(1)
    kernel, bias = r.randn(3, 2).astype("f"), np.zeros(2, "f")
    assert _keras_average({"k": kernel, "b": bias}, [kernel * 0.9, bias]) == {}  # zeros are equal to each other
    assert _keras_average({"k": kernel, "b": bias}, [kernel.copy(), bias + 1])


class Narrow:
    """A bfloat16 of PaddlePaddle: numpy() gives its bits."""

    dtype = "paddle.bfloat16"

    def numpy(self) -> Array:
        return np.array([0x3FC0], np.uint16)

    def astype(self, kind: str) -> Array:
        return np.array([1.5], kind)


def test_bfloat16_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"a.weight": Narrow(), "b.weight": np.ones(2, "f"), "steps": np.ones(1, "i"), "StructuredToParameterName@@": {"a": "b"}}
    monkeypatch.setitem(sys.modules, "paddle", SimpleNamespace(load=lambda path: state))
    path = tmp_path / "a.pdparams"
    path.touch()
    sw.convert(path, tmp_path / "a.safetensors")
    found = load_file(tmp_path / "a.safetensors")
    assert {k: v.tolist() for k, v in found.items()} == {"a.weight": [1.5], "b.weight": [1, 1]}

    arrays = {"v/.ATTRIBUTES/VARIABLE_VALUE": np.ones(2, ml_dtypes.bfloat16), "w": np.ones(2, "f"), "step": np.ones(1, "i")}
    reader = SimpleNamespace(get_variable_to_shape_map=lambda: arrays, get_tensor=arrays.__getitem__)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(train=SimpleNamespace(load_checkpoint=lambda path: reader)))
    (tmp_path / "b.index").touch()
    sw.convert(tmp_path / "b", tmp_path / "b.safetensors")
    assert load_file(tmp_path / "b.safetensors").keys() == {"v", "w"}


def test_convert_refuses(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(FileNotFoundError):
        sw.convert(tmp_path / "gone.keras", tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match=r"a.txt: want .keras"):
        sw.convert([tmp_path / "a.txt"], tmp_path / "out")
    with pytest.raises(ValueError, match="no checkpoint of Keras"):
        sw.convert(tmp_path, tmp_path / "out")
    done = subprocess.run([sys.executable, "-W", "error", "-m", "swagwrap.convert", tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 65 and done.stderr.startswith("error: ") and "no checkpoint of Keras" in done.stderr
    assert callable(sw.convert) and not (tmp_path / "out").exists()


def test_tensors_of_another_network(tmp_path: Path) -> None:
    net = Affine()
    path = states(tmp_path).save(net, 0)
    assert known(path, net.values).keys() < net.values.keys()
    with pytest.raises(ValueError, match="tensor 'bn/gamma': no weight of this network has the name"):
        known(path, ["other"])


def test_the_package_needs_no_framework() -> None:
    """`import swagwrap` imports no framework, and none is needed for it."""
    code = "import sys, swagwrap; print([m for m in ('torch', 'keras', 'jax', 'paddle', 'tensorflow', 'h5py', 'onnx') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_metadata_marks_an_average(tmp_path: Path) -> None:
    from swagwrap._states import AVERAGE, write_weights

    write_weights({"w": np.ones(2, "f")}, tmp_path / "a.safetensors", overwrite=False, metadata={AVERAGE: "why"})
    with safe_open(tmp_path / "a.safetensors", "np") as f:
        assert f.metadata() == {"swagwrap.average": "why"}
