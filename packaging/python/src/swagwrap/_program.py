"""Runs the program that is in the package."""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ._launch import PROGRAM, REINSTALL, environment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ProgramError(RuntimeError):
    """The program ended with an error."""

    message: str
    """What the program said after `error:`."""
    hint: str
    """What it proposes, a line for each proposal; may be empty."""
    code: int
    """Its exit code: 64 wrong usage, 65 bad model or data, 69 no ONNX Runtime, 75 disk or memory."""

    def __init__(self, command: str, message: str, hint: str, code: int) -> None:
        super().__init__(f"swagwrap {command}: {message}" + "".join(f"\nhint: {line}" for line in hint.splitlines()))
        self.command, self.message, self.hint, self.code = command, message, hint, code

    def __reduce__(self) -> tuple[type[ProgramError], tuple[str, str, str, int]]:
        return type(self), (self.command, self.message, self.hint, self.code)

    @classmethod
    def of(cls, command: str, code: int, stderr: str) -> ProgramError:
        """The error of a run, from what it printed."""
        found = said(stderr)
        return cls(command, "\n".join(found["error"]) or stderr.strip() or f"exit code {code}", "\n".join(found["hint"]), code)


def said(stderr: str) -> dict[str, list[str]]:
    """The errors, hints, warnings and notes in what the program printed. A long line continues with spaces at its beginning."""
    found: dict[str, list[str]] = {"error": [], "hint": [], "warning": [], "note": []}
    lines: list[str] | None = None
    for line in stderr.splitlines():
        word, colon, rest = line.partition(": ")
        if colon and word in found:
            lines = found[word]
            lines.append(rest)
        elif line.startswith("  ") and lines:
            lines[-1] += " " + line.strip()
        else:
            lines = None
    return found


def _start(args: Sequence[str | os.PathLike[str]], **how: Any) -> subprocess.Popen[Any]:
    """Starts the program. It gets what `python -m swagwrap` would give it."""
    line = [os.fspath(a) for a in args]
    try:
        return subprocess.Popen([PROGRAM, *line], env=environment(), **how)
    except OSError as e:
        raise ProgramError(line[0], f"{PROGRAM}: {e.strerror}", REINSTALL, 69) from e


@dataclass(frozen=True)
class Ran:
    """What the program printed."""

    stdout: str
    stderr: str


def run(*args: str | os.PathLike[str], accept: Sequence[int] = (0,)) -> Ran:
    """Runs the program, and returns what it printed. Raises ProgramError."""
    with _start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            stdout, stderr = process.communicate()
        except BaseException:
            process.terminate()
            raise
    if process.returncode not in accept:
        raise ProgramError.of(os.fspath(args[0]), process.returncode, stderr)
    return Ran(stdout, stderr)


def show(*args: str | os.PathLike[str]) -> None:
    """Runs the program. Its lines are printed one by one, because a notebook has no terminal. Raises ProgramError, which says the error."""
    lines: list[str] = []
    failed = False
    with _start(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                lines.append(text)
                failed = failed or text.startswith("error: ")
                if not failed:
                    print(text, end="", flush=True)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise ProgramError.of(os.fspath(args[0]), process.returncode, "".join(lines))


class _Pipe:
    """A pipe for numpy, which seeks in files."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, n: int) -> bytes:
        return self.file.read(n)


def prepared(inputs: int, *args: str | os.PathLike[str]) -> Iterator[tuple[list[str], list[NDArray[Any]]]]:
    """Yields the batches of `swagwrap prepare`: the examples' names, and an array for each input."""
    from numpy.lib import format as npy

    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        with _start(("prepare", "-o", "-", *args), stdout=subprocess.PIPE, stderr=printed) as process:
            assert process.stdout is not None
            pipe: Any = _Pipe(process.stdout)
            try:
                while process.stdout.peek(1):  # type: ignore[attr-defined]
                    names, *values = [npy.read_array(pipe, allow_pickle=False) for _ in range(inputs + 1)]
                    yield names.tolist(), values
            except ValueError:  # an array is cut off: the program says why
                if process.wait() == 0:
                    raise
            except BaseException:
                process.kill()
                raise
        printed.seek(0)
        stderr = printed.read()
        if process.returncode:
            raise ProgramError.of("prepare", process.returncode, stderr)
        for note in said(stderr)["note"]:
            warnings.warn(note, stacklevel=2)
