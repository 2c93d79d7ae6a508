"""ONNX Runtime in this process, without its telemetry."""

from __future__ import annotations

import os
from typing import Any

# Its library looks at the variable once, when it is loaded.
if not os.environ.get("ORT_DISABLE_TELEMETRY"):
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"


def onnxruntime() -> Any:
    """The package onnxruntime."""
    import onnxruntime

    return onnxruntime
