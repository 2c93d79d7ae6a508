"""What the program says, in the words of Python: what a message proposes can be typed there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ._program import ProgramError

_COMMAND = r"\bswagwrap [a-z]+\b[^:;,]*"  # a line for a shell, which stays one
_WORDS = (
    "auto|binary|classes|cpu|drop|given|iterates|keep|labels|logits|log-probabilities|none|number|pixels|probabilities|recompute"
    "|regression|seen|skip|text"
)  # the values that hints propose
_VALUE = rf"""'[^']*'|"[^"]*"|[a-z]+(?:-[a-z]+)*=[\w.,=-]*\w|(?:{_WORDS})(?![\w|=-])"""
_NAMES = r"""(?:(?<=--unused )|(?<=--state-dict ))[^\s:;'"]*[^\s:;,'"]"""  # they may be any
_FLAG = re.compile(rf"(?P<command>{_COMMAND})|(?P<flag>--[a-z][a-z-]+) (?P<value>{_NAMES}|{_VALUE})")


@dataclass(frozen=True)
class Words:
    """How the caller of a function types what the program proposes."""

    arguments: Mapping[str, str] = field(default_factory=dict)
    """What stands for a flag. {} is its value, and {list} a list of its values."""
    args: bool = True
    """The function hands other flags on."""

    def of(self, text: str) -> str:
        """The text with flags as arguments. Lines of a whole command for a shell are left out: they name files that are gone."""
        lines = [line for line in text.splitlines() if not line.startswith("the whole command: ")]
        return "\n".join(_FLAG.sub(self._argument, line) for line in lines)

    def _argument(self, found: re.Match[str]) -> str:
        flag = found["flag"]
        if flag is None or not self.args and flag not in self.arguments:
            return found[0]
        value = " ".join(shlex.split(found["value"]))
        if flag not in self.arguments:
            return f"args={json.dumps([flag, value], ensure_ascii=False)}"
        return self.arguments[flag].format(json.dumps(value, ensure_ascii=False), list=json.dumps(value.split(","), ensure_ascii=False))


ARGS = Words()
TRAINING = Words({"--unused": "unused={list}"})
LOADED = Words({"--arrays": "load(path, arrays={})", "--file-order": "load(path, file_order={})"}, args=False)


@contextmanager
def spoken(words: Words, files: Mapping[str, str] | None = None) -> Iterator[None]:
    """Errors of the program in the words of the caller. `files` has expressions for paths that the caller does not know, and what
    they are."""
    try:
        yield
    except ProgramError as e:

        def told(text: str) -> str:
            text = words.of(text)
            for path, name in (files or {}).items():
                text = re.sub(path, name, text)
            return text

        raise ProgramError(e.command, told(e.message), told(e.hint), e.code) from None
