"""Where the program is, and the variables that it is started with.

It is told where the Python package onnxruntime has its library. That needs no import of it.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "swagwrap")
REINSTALL = "python -m pip install --force-reinstall swagwrap"
_LIBRARY = "SWAGWRAP_PYTHON_ORT_LIB"


def _library() -> str | None:
    """The shared library of the package onnxruntime, or None where it has none."""
    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec and spec.submodule_search_locations) or ():
        for name in ("libonnxruntime.so*", "libonnxruntime*.dylib"):
            for found in sorted(glob.glob(os.path.join(glob.escape(folder), "capi", name))):
                return found
    return None


def environment() -> dict[str, str]:
    """The variables that the program is started with."""
    env = {k: v for k, v in os.environ.items() if k != _LIBRARY}
    library = _library()
    if library is not None:
        env[_LIBRARY] = library
    env["SWAGWRAP_PYTHON"] = sys.executable  # for the lines that the program writes for a shell
    return env
