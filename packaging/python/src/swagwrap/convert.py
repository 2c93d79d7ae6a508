"""`python -m swagwrap.convert SOURCE... TARGET`. The package has the function `swagwrap.convert` instead of this module."""

from __future__ import annotations

import argparse
import sys
import warnings

from ._convert import convert


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m swagwrap.convert",
        description="Writes checkpoints of Keras, JAX, PaddlePaddle and TensorFlow as .safetensors files for swagwrap fit.",
    )
    parser.add_argument("source", nargs="+", help=".keras, .weights.h5, .h5, .msgpack, .pdparams, a folder of Orbax, a checkpoint of TensorFlow, or a folder with them")
    parser.add_argument("target", help="a .safetensors file for one checkpoint, or a folder")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    a = parser.parse_args()
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {str(message).removeprefix('swagwrap: ')}", file=sys.stderr)
    try:
        for path in convert(a.source[0] if len(a.source) == 1 else a.source, a.target, overwrite=a.force):
            print(path)
    except ModuleNotFoundError as e:
        print(f"error: {e}\nhint: python -m pip install {_PACKAGES.get(e.name or '', e.name)}", file=sys.stderr)
        return 69
    except FileExistsError as e:
        print(f"error: {str(e).replace('say overwrite=True', 'give --force')}", file=sys.stderr)
        return 64
    except (OSError, ValueError, KeyError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 65
    return 0


_PACKAGES = {"orbax": "orbax-checkpoint", "paddle": "paddlepaddle"}

if __name__ == "__main__":
    sys.exit(main())
