"""Starts the program: `swagwrap` and `python -m swagwrap` are this.

The program takes this process's place: its signals and its exit code are its own. Nothing else imports this module, since Python
warns if `python -m` runs what is already imported.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import NoReturn

from ._launch import PROGRAM, REINSTALL, environment


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
