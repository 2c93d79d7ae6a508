"""Writes shapes.json: what onnx infers of the values of some networks, without what their exporters noted. onnx 1.23.2.

    python onnxio/testdata/shapes.py
"""
import json
import pathlib

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
NETWORKS = ["exporters/torch-dynamo/ckpt-1.onnx", "exporters/torchvision-mobile/dynamo/ckpt-1.onnx", "exporters/lstm/torchscript-default/ckpt-1.onnx",
            "exporters/keras-tf2onnx/fused-bn/ckpt-1.onnx", "exporters/jax2onnx/nnx/ckpt-1.onnx", "exporters/bn-1d-3d/torchscript-opset7/ckpt-1.onnx",
            "exporters/transformer-tied/dynamo/ckpt-1.onnx", "exporters/f16/dynamo/ckpt-1.onnx", "exporters/control-flow/cond-torchscript/ckpt-1.onnx",
            "exporters/bn-1d-3d/bn3d/ckpt-1.onnx"]
found = {}
for name in NETWORKS:
    m = onnx.load(ROOT / name, load_external_data=False)
    del m.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(m, check_type=True, strict_mode=True, data_prop=True).graph
    known = {v.name: v.type.tensor_type for v in [*inferred.value_info, *inferred.output]}
    values = []
    for o in (o for n in m.graph.node for o in n.output if o):
        t = known.get(o)
        if t is not None and t.HasField("shape"):
            values.append(f"{t.elem_type}:" + ",".join(str(d.dim_value) if d.HasField("dim_value") else "?" for d in t.shape.dim))
        else:
            values.append("")
    found[name] = values
(pathlib.Path(__file__).parent / "shapes.json").write_text(json.dumps(found, separators=(",", ":")).replace("],", "],\n") + "\n")
