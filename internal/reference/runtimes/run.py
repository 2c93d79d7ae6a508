"""Runs a model in a runtime of Python. Arguments: the runtime, and a file that says what to run: internal/reference/elsewhere.go."""
import os
import sys
from importlib import import_module, metadata

name, request = sys.argv[1:]
try:
    module = import_module(name)
    import numpy as np
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(69)
sys.excepthook = lambda kind, e, _: print(kind.__name__ + ":", *str(e).split("Stack backtrace:")[0].split(), file=sys.stderr)
fields = os.fsdecode(open(request, "rb").read()).split("\0")
lines = [fields[i : i + 5] for i in range(0, len(fields) - 1, 5)]
path = lines[0][1]
feeds = {n: np.fromfile(f, t).reshape([int(d) for d in s.split(",") if d]) for _, n, t, s, f in (x for x in lines if x[0] == "input")}
wanted = [x for x in lines if x[0] == "output"]
if name == "onnxruntime":
    session = module.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = dict(zip((x[1] for x in wanted), session.run([x[1] for x in wanted], feeds)))
elif name == "openvino":
    compiled = module.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    given = compiled(feeds)
    results = {x[1]: given[x[1]] for x in wanted}
else:  # tract
    model = module.onnx().load(path)
    short = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8", "bool": "bool"}
    for k, x in enumerate(feeds.values()):
        model.set_input_fact(k, ",".join([*map(str, x.shape), short[str(x.dtype)]]))
    given = model.into_model().into_runnable().run(list(feeds.values()))
    results = {x[1]: given[int(x[2])].to_numpy() for x in wanted}
for _, output, _, file, _ in wanted:
    np.asarray(results[output]).astype("<f8").tofile(file)
try:
    print(metadata.version(name))
except metadata.PackageNotFoundError:  # such as that of onnxruntime-gpu
    print(module.__version__)
