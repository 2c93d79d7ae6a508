"""Small ONNX graphs for the findings about runtimes: one float32 input "x", one float32 output "y". Wants onnx and numpy."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def graph(path, x, nodes, opset=17, **constants):
    """Writes a graph of nodes (operator, inputs, outputs, attributes). The name - is an input that is left out."""
    names = lambda text: [name.strip("-") for name in text.split()]
    nodes = [helper.make_node(op, names(i), names(o), **dict(*attributes)) for op, i, o, *attributes in nodes]
    give = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [give("x", x.shape)], [give("y", None)], held),
        opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    try:  # the shape of y, which some compilers want; some operators have none
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        pass
    onnx.save(model, path)
    return path


def ort(path, x):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def openvino(path, x):
    import openvino as ov

    core = ov.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}  # not bfloat16 where the processor has it
    return core.compile_model(core.read_model(path), "CPU", options)(x)[0]


def tract(path, x):
    import tract as engine

    return engine.onnx().load(path).into_model().into_runnable().run([x])[0].to_numpy()


def tvm(path, x):
    import tvm as engine
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    machine = relax.VirtualMachine(engine.compile(from_onnx(onnx.load(path)), engine.target.Target("llvm")), engine.cpu())
    return machine["main"](engine.runtime.tensor(x)).numpy()


def reference(path, x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(path).run(None, {"x": x})[0]
