"""What the program proposes, as a caller in Python types it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from swagwrap._inputs import _plain_of, _stored_names
from swagwrap._program import ProgramError
from swagwrap._words import ARGS, LOADED, TRAINING, Words, spoken

UNUSED = "if the network does not use it, as an auxiliary head or the weights of a loss: --unused "


@pytest.mark.parametrize(
    "words, said, want",
    [
        (TRAINING, UNUSED + "'aux_head.*'", UNUSED.replace("--unused ", 'unused=["aux_head.*"]')),
        (TRAINING, UNUSED + "'aux.*,loss.w'", UNUSED.replace("--unused ", 'unused=["aux.*", "loss.w"]')),
        (TRAINING, UNUSED + "scale", UNUSED.replace("--unused ", 'unused=["scale"]')),
        (TRAINING, "--unused none.w: no checkpoint has a tensor of this name", 'unused=["none.w"]: no checkpoint has a tensor of this name'),
        (TRAINING, "--averages keep takes them: they are weights that SGD moved", 'args=["--averages", "keep"] takes them: they are weights that SGD moved'),
        (TRAINING, "--state-dict online_model. takes the others", 'args=["--state-dict", "online_model."] takes the others'),
        (TRAINING, "left out (--averages keep takes it): a.pt", 'left out (args=["--averages", "keep"] takes it): a.pt'),
        (TRAINING, "the whole command: swagwrap try --unused 'aux.*' /tmp/x\nand more", "and more"),
        (TRAINING, '--targets "mean=M std=S"', 'args=["--targets", "mean=M std=S"]'),
        (TRAINING, "--targets head=variance: half of them", 'args=["--targets", "head=variance"]: half of them'),
        (ARGS, "--file-order text: y.npy has the order of the names as text (1, 10, 2)", 'args=["--file-order", "text"]: y.npy has the order of the names as text (1, 10, 2)'),
        (ARGS, "--on-error skip goes on with the others", 'args=["--on-error", "skip"] goes on with the others'),
        (LOADED, "--file-order number: it has", 'load(path, file_order="number"): it has'),
        (LOADED, "--arrays seen", 'load(path, arrays="seen")'),
        *(  # nothing that stands for a value, and lines for a shell
            (words, text, text)
            for words in (ARGS, TRAINING, LOADED)
            for text in (
                "swagwrap list --file-order text|number|given FOLDER", "make it again: swagwrap fit --averages keep x", "fit --file-order remembers it",
                "--template, the exported graph", "--memory SIZE allows more, --batch-size N needs less", "--force overwrites",
            )
        ),
        (LOADED, "--preprocess none", "--preprocess none"),  # load has no such argument
    ],
)
def test_words(words: Words, said: str, want: str) -> None:
    assert words.of(said) == want


def test_names_of_stored_files() -> None:
    with pytest.raises(ProgramError) as e, spoken(LOADED, _stored_names("/tmp/swagwrap-1/X.npy")):
        raise ProgramError("prepare", "/tmp/swagwrap-1/X.npy: a dimension is missing; save it again as a[None]", "--arrays pixels: /tmp/swagwrap-1/12 is a picture", 64)
    assert e.value.message == "X: a dimension is missing; want X[None]" and e.value.code == 64
    assert e.value.hint == 'load(path, arrays="pixels"): X[12] is a picture'
    assert re.match("swagwrap prepare: X: a dim", str(e.value))


def test_numbers_of_numpy_in_lists() -> None:
    assert json.loads(json.dumps([[np.int64(3), np.float32(0.5)], np.array([1, 2])], default=_plain_of)) == [[3, 0.5], [1, 2]]
    with pytest.raises(TypeError, match="object in a list, want numbers"):
        json.dumps([object()], default=_plain_of)
