"""Files that the module writes: whole or not at all, and in the place of none that it was not told to replace."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_files(folder: Path, *, overwrite: bool, last: str = "", replaces: Callable[[Path, Path], bool] | None = None) -> Iterator[Path]:
    """Yields an empty folder. What is put there is moved into `folder` at the end, the file `last` after the others.

    Raises `FileExistsError`, and moves nothing, if a file is there with another content. `overwrite` replaces it. `replaces` says
    whether a new file may take the place of an old one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".swagwrap-") as made:
        yield Path(made)
        names = sorted(os.listdir(made), key=lambda name: (name == last, name))
        for name in names:
            new, old = Path(made, name), folder / name
            if old.is_dir() and not old.is_symlink():
                raise FileExistsError(f"{old}: is a folder. Name another file")
            if not overwrite and os.path.lexists(old) and not _same(new, old) and not (replaces and replaces(new, old)):
                raise FileExistsError(f"{old}: is there, with another content. Name another file, or say overwrite=True")
        for name in names:
            os.replace(Path(made, name), folder / name)


def _same(new: Path, old: Path) -> bool:
    """Whether a regular file has the same content as a new one."""
    return old.is_file() and not old.is_symlink() and filecmp.cmp(new, old, shallow=False)


@contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Sets a folder aside while another takes its place. After an error it comes back."""
    aside = None
    if folder.exists():
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        os.rename(folder, aside / folder.name)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if aside is not None:
            os.rename(aside / folder.name, folder)
            aside.rmdir()
        raise
    if aside is not None:
        shutil.rmtree(aside)
