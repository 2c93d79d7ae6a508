"""Exporters of functions. Each weight is an input, so that no exporter folds it into other numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._graph import weight_input

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, Any]

Function = Callable[..., Any]


def _names(weights: Sequence[Array], inputs: Sequence[Array]) -> list[str]:
    return [*map(weight_input, range(len(weights))), *(f"swagwrap_input_{i}" for i in range(len(inputs)))]


def of_jax(network: Function, weights: Sequence[Array], inputs: Sequence[Array]) -> onnx.ModelProto:
    """A function of JAX, by jax2onnx."""
    import jax
    import jax2onnx

    shapes = [jax.ShapeDtypeStruct(w.shape, w.dtype) for w in weights] + [jax.ShapeDtypeStruct(("batch", *x.shape[1:]), x.dtype) for x in inputs]
    try:
        model: onnx.ModelProto = jax2onnx.to_onnx(network, inputs=shapes, input_names=_names(weights, inputs))
    except TypeError as e:
        if "positional argument" in str(e) and "patched_" in str(e):
            raise TypeError(f"{e}: jax2onnx takes no positional arguments of pooling. Write max_pool(x, window_shape=(2, 2), strides=(2, 2))") from e
        raise
    return model


def of_tensorflow(network: Function, weights: Sequence[Array], inputs: Sequence[Array]) -> onnx.ModelProto:
    """A function of TensorFlow, by tf2onnx."""
    import tensorflow as tf

    try:
        from keras.src.export.tf2onnx_lib import patch_tf2onnx

        patch_tf2onnx()  # tf2onnx 1.17 uses names that NumPy 2 does not have
    except ImportError:
        pass
    import tf2onnx

    shapes = [*(w.shape for w in weights), *((None, *x.shape[1:]) for x in inputs)]
    signature = [tf.TensorSpec(shape, a.dtype, name=name) for shape, a, name in zip(shapes, [*weights, *inputs], _names(weights, inputs))]
    model: onnx.ModelProto = tf2onnx.convert.from_function(tf.function(network, input_signature=signature, autograph=False), signature)[0]
    return model


def of_torch(network: Function, weights: Sequence[Array], inputs: Sequence[Array]) -> onnx.ModelProto:
    """A function of PyTorch, by its exporter. It optimises what does not depend on weights."""
    import torch

    class Function(torch.nn.Module):
        def forward(self, weights: list[torch.Tensor], inputs: list[torch.Tensor]) -> Any:
            return network(*weights, *inputs)

    device = torch.get_default_device()
    tensors = [[torch.from_numpy(a).to(device) for a in some] for some in (weights, inputs)]
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about names of dimensions
        program = torch.onnx.export(
            Function(), tuple(tensors), dynamo=True, optimize=True, verbose=False, input_names=_names(weights, inputs),
            dynamic_shapes=([None] * len(weights), [{0: batch}] * len(inputs)),
        )
    assert program is not None
    return program.model_proto
