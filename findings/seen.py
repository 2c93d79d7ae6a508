"""What a finding saw, and whether it is as its head describes. A finding imports this module first; see lib.sh."""

import atexit
import importlib.metadata
import os
import sys
import warnings

warnings.simplefilter("ignore")
_changed = []
_count = 0


def versions(*names):
    """Prints the versions of packages."""
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))


def seen(what, got, as_described):
    """Prints what was seen. as_described is a bool, or a function of got."""
    global _count
    _count += 1
    ok = bool(as_described(got) if callable(as_described) else as_described)
    print(f"{'as described' if ok else 'CHANGED     '}  {what}: {got}")
    if not ok:
        _changed.append(what)


def near(want, tolerance=1e-3):
    """Returns a function that holds a number, or an array, against want."""
    import numpy as np

    return lambda got: np.allclose(np.asarray(got, float), want, rtol=0, atol=tolerance)


def _end():
    sys.stdout.flush()
    if getattr(sys, "last_type", None) is not None or _count == 0:
        os._exit(2)  # the program failed before it saw anything, or at a later step
    if _changed:
        os._exit(1)


atexit.register(_end)
