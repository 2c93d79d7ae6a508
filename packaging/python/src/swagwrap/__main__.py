"""Starts the program: `swagwrap` and `python -m swagwrap` are this.

All that happens here is that the program is told where the Python package onnxruntime has its library, which needs no
import of it. Then the program takes this process's place: its signals and its exit code are its own.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
import sysconfig
from typing import NoReturn

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


def main() -> NoReturn:
    try:
        os.execve(PROGRAM, ["swagwrap", *sys.argv[1:]], environment())
    except FileNotFoundError:
        print(f"error: this wheel has no program for {sysconfig.get_platform()}", file=sys.stderr)
        print("hint: it runs on Linux (also WSL) and on macOS 14 with Apple's processors; exported models run everywhere", file=sys.stderr)
        sys.exit(69)
    except OSError as e:
        print(f"error: {PROGRAM}: {e.strerror}", file=sys.stderr)
        print(f"hint: {REINSTALL}", file=sys.stderr)
        sys.exit(69)


if __name__ == "__main__":
    main()
