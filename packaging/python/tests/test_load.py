"""swagwrap.load: the rows are those of score, for every task and kind of data."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import swagwrap as sw
from conftest import swagwrap
from ensembles import COLUMNS, Made
from PIL import Image

Maker = Callable[[str], Made]
CLOSE: dict[str, Any] = {"rtol": 0, "atol": 1e-6}


def test_arrays(made: Maker) -> None:
    m = made("unnamed")
    model, rows = sw.load(m.model), m.score()
    np.testing.assert_allclose(model.predict_proba(m.x), rows["probs"], **CLOSE)
    np.testing.assert_array_equal(model.predict(m.x), rows["prediction"])
    found = model.uncertainty(m.x)
    np.testing.assert_allclose(found.mutual_information, rows["mutual_information"], **CLOSE)
    np.testing.assert_allclose(found.entropy, rows["predictive_entropy"], **CLOSE)
    assert model.task == "classes" and model.classes_.tolist() == [0, 1, 2] and model.n_features_in_ == 3
    same: list[Any] = [m.x.astype(np.float64), m.x.tolist(), np.asfortranarray(m.x), m.x[::-1][::-1], np.repeat(m.x, 2, axis=0)[::2], m.x.astype(object), {"x": m.x}]
    for x in same:
        np.testing.assert_array_equal(model.predict_proba(x), model.predict_proba(m.x))
    whole = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(model.predict_proba(whole), model.predict_proba(whole.astype(np.float32)))
    assert model.predict_proba(m.x[:1]).shape == (1, 3)
    for size in (1, 7, 60, 1000):
        np.testing.assert_allclose(sw.load(m.model, batch_size=size).predict_proba(m.x), rows["probs"], **CLOSE)


@pytest.mark.parametrize("kind", ["unnamed", "pictures", "pixels", "regression"])
def test_verify(made: Maker, kind: str, tmp_path: Path) -> None:
    """A model gives what it gave when it was exported. One with other weights, or without outputs inside, does not pass."""
    path = made(kind).model
    assert sw.load(path, verify=True).verify() < 2e-3
    changed = onnx.load(path)
    weights = max(changed.graph.initializer, key=lambda t: len(t.raw_data))
    values = np.frombuffer(weights.raw_data, np.float32) * np.float32(1.1)
    weights.raw_data = values.tobytes()
    onnx.save(changed, tmp_path / "changed.onnx")
    with pytest.raises(ValueError, match="does not give what it gave when it was exported: example"):
        sw.load(tmp_path / "changed.onnx", verify=True)
    bare = onnx.load(path)
    kept = [p for p in bare.metadata_props if p.key != "swagwrap.reference"]
    del bare.metadata_props[:]
    bare.metadata_props.extend(kept)
    onnx.save(bare, tmp_path / "bare.onnx")
    with pytest.raises(ValueError, match="has no outputs to compare with"):
        sw.load(tmp_path / "bare.onnx", verify=True)


def test_verify_elsewhere(made: Maker, tmp_path: Path) -> None:
    """A function or the name of a runtime takes the place of the module's session. The folder may have any name."""
    path = made("unnamed").model
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]

    def run(feeds: dict[str, Any], by: float = 1.0) -> dict[str, Any]:
        return {n: v * np.float32(by) if v.dtype == np.float32 else v for n, v in zip(names, session.run(names, feeds))}

    assert sw.verify(path, run) < 2e-3
    folder = tmp_path / "tab\tline\nend é"
    folder.mkdir()
    shutil.copy(path, folder / "a b.onnx")
    for name in ("onnxruntime", "all"):
        assert 0 <= sw.verify(folder / "a b.onnx", name) < 2e-3
    with pytest.raises(ValueError, match="does not give what it gave"):
        sw.verify(path, lambda feeds: run(feeds, 1.1))
    with pytest.raises(ValueError, match="run gives no output 'prob'"):
        sw.verify(path, lambda feeds: {})
    with pytest.raises(sw.ProgramError, match="want one of all, onnxruntime"):
        sw.verify(path, "abacus")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "I;16", "I;16B"])
def test_images_of_pillow(made: Maker, mode: str) -> None:
    """An image of any mode is read as its file, or as convert("RGB"), which for these modes is the same."""
    model = sw.load(made("pictures").model)
    r = np.random.default_rng(5)
    rgba = Image.fromarray(r.integers(0, 256, (9, 12, 4), dtype=np.uint8))
    if mode.startswith("I;16"):
        image = Image.fromarray(r.integers(0, 400, (9, 12)).astype(np.uint16))
        plain = Image.fromarray(np.minimum(np.asarray(image), 255).astype(np.uint8))  # as Pillow shows them
        image = image if mode == "I;16" else image.convert("I").convert(mode)
    else:
        image = {"P": lambda: rgba.convert("RGB").quantize(16), "PA": lambda: rgba.convert("RGB").quantize(16).convert("PA"), "La": lambda: rgba.convert("LA").convert("La"), "RGBa": lambda: rgba.convert("RGBa")}.get(
            mode, lambda: (rgba if "A" in mode else rgba.convert("RGB")).convert(mode)
        )()
        plain = (image.convert(mode.upper()) if mode in ("La", "RGBa") else image).convert("RGB")
    assert image.mode == mode
    stream = BytesIO()
    plain.save(stream, "PNG")
    want = model.predict_proba([stream.getvalue()] * 2)
    for X in ([image, image], (image, image), np.array([None, image, image], dtype=object)[1:], {model.reader.inputs[0].name: [image, image]}):
        np.testing.assert_array_equal(model.predict_proba(X), want)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_of_images(made: Maker, kind: str) -> None:
    """An image and its file have the same orientation, and a person is told of those that are not applied."""
    model = sw.load(made("pictures").model)
    image = Image.fromarray(np.random.default_rng(6).integers(0, 256, (12, 9, 3), dtype=np.uint8))
    for tag in range(1, 9):
        exif, stream = Image.Exif(), BytesIO()
        exif[0x112] = tag
        image.save(stream, kind, exif=exif)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            want = model.predict_proba([stream.getvalue()])
            got = model.predict_proba([Image.open(BytesIO(stream.getvalue()))])
        np.testing.assert_array_equal(got, want)
        said = [str(w.message) for w in told if "Exif orientation" in str(w.message)]
        assert len(said) == (2 if tag > 1 and kind != "TIFF" else 0) and all(s.startswith("1 of 1 pictures have an Exif orientation that is not applied") for s in said)


def test_images_that_are_refused(made: Maker) -> None:
    model = sw.load(made("pictures").model)
    rgb = Image.fromarray(np.zeros((9, 12, 3), np.uint8))
    for X, want in (
        ([rgb.convert("L").convert("F")], r"X\[0\]: a picture of mode F"),
        ([rgb, rgb.convert("L").convert("I")], r"X\[1\]: a picture of mode I,"),
        ([Image.frombytes("LAB", (12, 9), rgb.tobytes())], "mode LAB"),
        (rgb, r"a picture, want a list of pictures: \[X\]"),
        ([rgb, 3], "row 1: int"),
    ):
        with pytest.raises(TypeError, match=want):
            model.predict(X)
    table = sw.load(made("unnamed").model)  # takes no pictures: NumPy would drop the palette
    with pytest.raises(TypeError, match=r'X\[0\]: a picture of mode P, want \[x.convert\("RGB"\) for x in X\]'):
        table.predict([rgb.quantize(4)])


@pytest.mark.parametrize("kind", ["folder", "paths", "Path", "array of paths", "bytes", "array", "npz", "table", "polars", "list", "one"])
@pytest.mark.parametrize("name", ["pictures", "bytes"])
def test_pictures(made: Maker, tmp_path: Path, name: str, kind: str) -> None:
    import pandas as pd
    import polars as pl

    m = made(name)
    model = sw.load(m.model)
    big = [Image.fromarray(np.asarray(Image.fromarray(p).resize((11 + i, 9)))) for i, p in enumerate(m.x[:7])]
    folder = tmp_path / "some pictures, 'and' more"
    folder.mkdir()
    for i, p in enumerate(big):
        p.save(folder / f"={i}.png")
    files = sorted(str(p) for p in folder.iterdir())
    if kind in ("array", "npz"):
        data: Any = m.x if kind == "array" else m.data
        want = m.score()
    else:
        want = Made(m.ensemble, m.model, folder if kind != "one" else Path(files[2]), None).score()
        stream = BytesIO()
        Image.open(files[0]).save(stream, "PNG")
        (tmp_path / "list.txt").write_text("\n".join(files) + "\n")
        data = {
            "folder": folder, "paths": files, "Path": [Path(f) for f in files], "array of paths": np.array(files), "bytes": [Path(f).read_bytes() for f in files],
            "table": pd.DataFrame({"label": 0, "path": files}), "polars": pl.DataFrame({"file": files}), "list": tmp_path / "list.txt", "one": files[2],
        }[kind]
    np.testing.assert_allclose(model.predict_proba(data), want["probs"], **CLOSE)
    np.testing.assert_array_equal(model.predict_set(data), want["set"])
    if kind == "paths":
        assert list(model.table(data)["path"]) == files
        np.testing.assert_array_equal(model.predict_proba(files[::-1]), model.predict_proba(files)[::-1])


def test_the_order_of_files(made: Maker, tmp_path: Path) -> None:
    """Rows of y belong to the files of a folder by their place. Where text and numbers differ, the caller says the order."""
    m = made("pictures")
    model = sw.load(m.model)
    for i, p in enumerate(m.x[:12]):
        Image.fromarray(p).save(tmp_path / f"{i}.png")
    y = model.predict([tmp_path / f"{i}.png" for i in range(12)])
    assert len(set(y.tolist())) > 1
    with pytest.raises(sw.ProgramError) as e:
        model.score(tmp_path, y)
    assert e.value.code == 64 and 'load(path, file_order="text")' in e.value.hint and 'load(path, file_order="number")' in e.value.hint
    assert sw.load(m.model, file_order="number").score(tmp_path, y) == 1
    texts = sorted(range(12), key=str)
    assert sw.load(m.model, file_order="text").score(tmp_path, y[texts]) == 1 and sw.load(m.model, file_order="text").score(tmp_path, y) < 1
    assert len(model.predict(tmp_path)) == 12  # without rows of y there is nothing to ask
    padded = tmp_path / "padded"
    padded.mkdir()
    for i in range(12):
        (tmp_path / f"{i}.png").rename(padded / f"{i:02}.png")
    assert model.score(padded, y) == model.score([padded / f"{i:02}.png" for i in range(12)], y) == 1
    with pytest.raises(ValueError, match="file_order: 'size', want text, number or given"):
        sw.load(m.model, file_order="size")  # type: ignore[arg-type]


def test_paths(made: Maker, tmp_path: Path) -> None:
    """Other ways to hold paths, and what no picture is."""
    import pandas as pd
    import polars as pl

    m = made("pictures")
    model = sw.load(m.model)
    for i, p in enumerate(m.x[:3]):
        Image.fromarray(p).save(tmp_path / f"{i}.png")
    files = sorted(str(p) for p in tmp_path.iterdir())
    want = model.predict_proba(files)
    same: list[Any] = [pd.Series(files, index=[5, 3, 5]), pl.Series(files), np.array(files)[:, None], {"x": files}, pd.DataFrame({"Image": files}, index=[1, 1, 1])]
    for X in same:
        np.testing.assert_array_equal(model.predict_proba(X), want)
    np.testing.assert_array_equal(model.predict_proba(files * 2), np.concatenate([want, want]))
    sizes = [p[: 3 + i] for i, p in enumerate(m.x[:3])]
    for X, error, message in (
        ([b"no picture"], sw.ProgramError, r"prepare: X\[0\]: not an image"), ([b""], sw.ProgramError, r"X\[0\]: empty file"), (sizes, ValueError, "Of pictures of different sizes, want their paths"),
        (pd.DataFrame({"path": [files[0], None]}), TypeError, 'row 1, column "path": empty'), (m.x[0], sw.ProgramError, r"want X\[None\]"),
        (m.x.transpose(0, 2, 1, 3)[..., None], sw.ProgramError, "X: "), (m.x.astype(np.float32) / 255, sw.ProgramError, r"channels come last; want np.ascontiguousarray\(X.transpose\(0, 3, 1, 2\)\)"),
    ):
        with pytest.raises(error, match=message):
            model.predict(X)


def test_seen(made: Maker) -> None:
    """Floats are what score takes them for."""
    m = made("pictures")
    model, want = sw.load(m.model), m.score()["probs"]
    mean, std = (np.array(v, dtype=np.float32).reshape(3, 1, 1) for v in ([0.4, 0.5, 0.6], [0.2, 0.25, 0.3]))
    unit = m.x.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    for x in (unit, (unit - mean) / std):
        np.testing.assert_allclose(model.predict_proba(x), want, **CLOSE)
    np.testing.assert_allclose(sw.load(m.model, arrays="seen").predict_proba((unit - mean) / std), want, **CLOSE)
    with pytest.raises(sw.ProgramError, match=r'load\(path, arrays="pixels"\)'):
        model.predict_proba(unit * 255)
    with pytest.raises(sw.ProgramError, match="prepare: X: examples of type int64"):
        model.predict_proba(m.x.astype(np.int64))
    with pytest.raises(sw.ProgramError):
        model.predict_proba(m.x[:, :, :, :2])


@pytest.mark.parametrize("name", ["table", "binary", "regression"])
@pytest.mark.parametrize("kind", ["pandas", "reordered", "polars", "lazy", "nullable", "float32", "array", "csv"])
def test_tables(made: Maker, name: str, kind: str) -> None:
    import pandas as pd
    import polars as pl

    m = made(name)
    model, want = sw.load(m.model), m.score()
    frame = pd.read_csv(m.data)
    data: Any = {
        "pandas": frame, "reordered": frame[sorted(frame.columns)], "polars": pl.read_csv(m.data), "lazy": pl.scan_csv(m.data), "nullable": frame.convert_dtypes(),
        "float32": frame.astype(np.float32), "array": frame[COLUMNS].to_numpy(), "csv": m.data,
    }[kind]
    assert model.feature_names_in_.tolist() == COLUMNS
    if name == "regression":
        np.testing.assert_allclose(model.predict(data), want["mean"], **CLOSE)
        np.testing.assert_allclose(model.predict_std(data), want["std"], **CLOSE)
        np.testing.assert_allclose(model.predict_interval(data), (want["lower"], want["upper"]), rtol=0, atol=4e-6)
        return
    if name == "binary":
        assert model.threshold != 0.5 and model.predict_proba(data).shape == (60, 2)
        np.testing.assert_allclose(model.predict_proba(data)[:, 1], want["class_1_probability"], **CLOSE)
    np.testing.assert_allclose(model.predict_proba(data), want["probs"], **CLOSE)
    np.testing.assert_array_equal(model.predict(data), want["prediction"])


def test_other_tasks(made: Maker) -> None:
    m = made("labels")
    model, rows = sw.load(m.model), m.score()
    np.testing.assert_allclose(model.predict_proba(m.x), rows["probabilities"], **CLOSE)
    np.testing.assert_array_equal(model.predict(m.x), rows["probabilities"] >= 0.5)
    np.testing.assert_array_equal(model.predict_set(m.x), rows["set"])
    assert 0 <= model.score(m.x, model.predict(m.x)) <= 1 and model.table(m.x).shape[0] == 60

    m = made("two")
    model, rows = sw.load(m.model), m.score()
    mean, std = model.predict(m.x, return_std=True)
    np.testing.assert_allclose(mean, rows["mean"], **CLOSE)
    np.testing.assert_allclose(std, rows["std"], **CLOSE)
    assert model.predict_interval(m.x)[0].shape == (60, 2) and {"mean_0", "upper_1"} <= set(model.table(m.x).columns)

    m = made("abstaining")
    np.testing.assert_array_equal(sw.load(m.model).abstain(m.x), m.score()["abstain"])


def test_pixels(made: Maker) -> None:
    m = made("pixels")
    model, rows = sw.load(m.model), m.score()
    prob = model.predict_proba(m.x)
    assert prob.shape == (20, 4, 6, 5) and model.predict(m.x).shape == (20, 6, 5) and model.predict_set(m.x).dtype == bool
    np.testing.assert_allclose(prob.max(axis=1).mean(axis=(1, 2)), rows["confidence"], **CLOSE)
    np.testing.assert_allclose(model.uncertainty(m.x).mutual_information.mean(axis=(1, 2)), rows["mutual_information"], **CLOSE)
    with pytest.raises(ValueError, match="use outputs"):
        model.table(m.x)


def test_tokens_and_several_inputs(tmp_path: Path) -> None:
    """Networks of the repository: lists of tokens, and a picture with numbers beside it."""
    import pandas as pd

    root = Path(__file__).parents[3]
    tokens, small, at = root / "fixtures/dense/tokens", root / "cmd/swagwrap/testdata", tmp_path.joinpath
    swagwrap("fit", "-q", "--task", "classes", "--pad", "ids=0", "--template", tokens / "model.onnx", "-o", at("t.safetensors"), *sorted(tokens.glob("*.pt")))
    swagwrap("fit", "-q", "--task", "classes", "--preprocess", "crop-mode=squash", "-o", at("b.safetensors"), small / "beside-1.onnx", small / "beside-2.onnx")
    for name, args, data in (("t", [], tokens / "test.jsonl"), ("b", ["--bn-data", small / "beside.npz"], small / "beside.npz")):
        swagwrap("sample", "-q", "-n", "2", *args, "-o", at(f"{name}e.safetensors"), at(f"{name}.safetensors"))
        swagwrap("export", "-q", "-o", at(f"{name}.onnx"), at(f"{name}e.safetensors"))
        swagwrap("score", "-q", "-o", at(f"{name}.jsonl" if name == "t" else f"{name}.npz"), at(f"{name}e.safetensors"), data)

    model = sw.load(at("t.onnx"))
    want = [json.loads(line)["each_confidence"] for line in at("t.jsonl").read_text().splitlines()]
    for X in (tokens / "test.jsonl", pd.read_json(tokens / "test.jsonl", lines=True)):
        got = model.predict_proba(X).max(axis=2)
        for i, row in enumerate(want):
            np.testing.assert_allclose(got[i, : len(row)], row, **CLOSE)
    assert model.classes_.tolist() == list(range(5))

    model = sw.load(at("b.onnx"))
    with np.load(small / "beside.npz") as file:
        arrays: dict[str, Any] = {i.name: file[i.name] for i in model.reader.inputs}
    with np.load(at("b.npz")) as rows:
        np.testing.assert_allclose(model.predict_proba(small / "beside.npz"), rows["probs"], **CLOSE)
        np.testing.assert_allclose(model.predict_proba(arrays), rows["probs"], **CLOSE)
    # 8-bit pictures of one input are pixels, as in a file.
    (picture,) = [i.name for i in model.reader.inputs if len(i.shape) == 3]
    pixels = arrays | {picture: (np.arange(arrays[picture].size) % 256).astype(np.uint8).reshape(arrays[picture].shape)}
    np.savez(at("pixels.npz"), **pixels)
    swagwrap("score", "-q", "-o", at("rows.npz"), at("be.safetensors"), at("pixels.npz"))
    with np.load(at("rows.npz")) as rows:
        np.testing.assert_allclose(model.predict_proba(pixels), rows["probs"], **CLOSE)
    with pytest.raises(ValueError, match="takes 2 inputs, want a dict or a table"):
        model.predict_proba(next(iter(arrays.values())))
    with pytest.raises(ValueError, match="no array"):
        model.predict_proba({})


def test_table_of_rows(made: Maker) -> None:
    m = made("table")
    model = sw.load(m.model)
    rows, want = model.table(m.data), m.score()
    assert list(rows["path"]) == want["path"].tolist() and rows["set_size"].tolist() == want["set_size"].tolist()
    np.testing.assert_allclose(rows["confidence"], want["confidence"], **CLOSE)
    code = "import sys; sys.modules['pandas'] = None; import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, p=None: None if n == 'pandas' else f(n, p);"
    code += f"import swagwrap as s; r = s.load({str(m.model)!r}).table({str(m.data)!r}); print(type(r).__name__, len(r), sorted(r[0])[:2])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "list 60 ['confidence', 'mutual_information']\n"


@pytest.mark.parametrize(("x", "error", "message"), [
    (np.zeros((0, 3)), ValueError, "no examples"),
    ([], ValueError, "no examples"),
    (np.zeros(3), ValueError, r"shape \[3\], want float32 \[examples, 3\]: for one example X\[None\], of a table X.iloc\[\[0\]\]"),
    (np.float32(3), ValueError, "a single number"),
    (np.zeros((2, 4)), ValueError, r"shape \[2, 4\], want float32 \[examples, 3\]"),
    (np.zeros((2, 3, 3)), ValueError, r"shape \[2, 3, 3\]"),
    (np.array([[0, 0, 0], [0, np.nan, 0]]), ValueError, r"row 1, element \[1\]: nan, want a finite number"),
    (np.array([[0, 0, np.inf]]), ValueError, "inf, want a finite number"),
    (np.array([[0, 1e300, 0]]), ValueError, "want a number that float32 holds"),
    (np.array([[0, 2**40, 0]]), ValueError, "float32 does not hold larger whole numbers"),
    ([[1, 2, 3], [4, 5]], ValueError, "rows of different lengths"),
    ([["a", "b", "c"]], TypeError, r"want numbers: X.astype\(float\)"),
    ([{"age": 1}], TypeError, r"want a table: pandas.DataFrame\(X\)"),
    (np.zeros(2, dtype=[("age", float), ("bmi", float)]), TypeError, r"want a table: pandas.DataFrame\(X\)"),
    (None, TypeError, "NoneType, want an array, a table, or paths"),
    (iter([[1, 2, 3]]), TypeError, r"list_iterator, want .*: list\(X\)"),
    ({(0, 0, 0)}, TypeError, r"set, want .*: list\(X\)"),
    (["a.png", None], TypeError, "row 1: empty, want the path"),
    ([Path(__file__).parent], FileNotFoundError, "tests: a folder, want a file"),
    (np.array([[1, None, 3]]), ValueError, "nan"),
    (np.array([[1, {}, 3]]), TypeError, "an array of objects"),
    (np.zeros((2, 3), dtype=complex), TypeError, "an array of complex128"),
    (np.zeros((2, 3), dtype="datetime64[s]"), TypeError, "datetime64"),
    ({"y": np.zeros((2, 3))}, ValueError, "no array x among y"),
    (np.ma.masked_array(np.zeros((2, 3)), mask=[[0, 1, 0], [0, 0, 0]]), TypeError, "a masked array"),
    (b"x", TypeError, "a list of the bytes"),
    ("missing.csv", FileNotFoundError, "missing.csv: no such file"),
    (["missing.png"], FileNotFoundError, "missing.png: no such file"),
    (["a.png", 3], TypeError, "row 1: int, want the path"),
])
def test_refusals(made: Maker, x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sw.load(made("unnamed").model).predict_proba(x)


def test_what_is_not_promised(made: Maker) -> None:
    m = made("unnamed")
    model = sw.load(m.model)
    for call in (model.predict_set, model.abstain):
        with pytest.raises(AttributeError, match="swagwrap calibrate"):
            call(m.x)
    assert not hasattr(sw.load(made("two").model), "predict_proba")


def test_other_models(made: Maker, tmp_path: Path) -> None:
    m = made("unnamed")
    with pytest.raises(FileNotFoundError, match=r"no such model. If it is elsewhere now: set_params\(path=...\)"):
        sw.load(tmp_path / "none.onnx")
    with pytest.raises(FileNotFoundError, match="a folder, want the .onnx file"):
        sw.load(tmp_path)
    for path in (None, b"model"):
        with pytest.raises(TypeError, match="want the path of a model"):
            sw.load(path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a model that swagwrap did not write"):
        sw.load(m.model.with_name("0.onnx"))
    with pytest.raises(ValueError, match="no readable ONNX model. swagwrap export"):
        sw.load(m.ensemble)
    one = tmp_path / "member.onnx"
    subprocess.run([sys.executable, "-m", "swagwrap", "export", "-q", "--member", "1", "-o", one, m.ensemble], check=True)
    with pytest.raises(ValueError, match="one network, want the model of an ensemble"):
        sw.load(one)
@pytest.mark.parametrize(("how", "error", "message"), [
    ({"batch_size": 0}, ValueError, "batch_size: 0, want a whole number"),
    ({"batch_size": None}, ValueError, "batch_size: None"),
    ({"batch_size": 2.5}, ValueError, "batch_size: 2.5"),
    ({"threads": "2"}, ValueError, "threads: '2'"),
    ({"threads": -1}, ValueError, "threads: -1"),
    ({"arrays": "x"}, ValueError, "arrays: 'x'"),
    ({"names": True}, ValueError, "has no names of classes. swagwrap fit --class-names"),
    ({"providers": "CPUExecutionProvider"}, TypeError, r"want a list: \['CPUExecutionProvider'\]"),
    ({"providers": ["cuda"]}, ValueError, "providers: 'cuda', want some of .*CUDAExecutionProvider"),
    ({"columns": "age,bmi,bp"}, TypeError, r"want a list such as \["),
    ({"columns": ["age", "bmi"]}, ValueError, "columns: 2 names, want 3"),
    ({"columns": {"z": COLUMNS}}, ValueError, "columns: no input z, the model has x"),
])
def test_refused_arguments(made: Maker, how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sw.load(made("unnamed").model, **how)


def test_arguments(made: Maker) -> None:
    m = made("unnamed")
    want = sw.load(m.model).predict_proba(m.x)
    for how in ({"providers": [("CPUExecutionProvider", {"use_arena": "1"})]}, {"threads": 1}, {"batch_size": np.int64(7)}):
        np.testing.assert_allclose(sw.load(m.model, **how).predict_proba(m.x), want, **CLOSE)
    with pytest.raises(TypeError):
        sw.load(m.model, batchsize=3)  # type: ignore[call-arg]


def test_sessions_are_shared(made: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = made("unnamed")
    monkeypatch.chdir(tmp_path)
    shutil.copy(m.model, "here.onnx")
    model = sw.load("here.onnx")
    again = pickle.loads(pickle.dumps(model))
    assert again._session is model._session
    monkeypatch.chdir("/")  # the copy has an absolute path
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).predict_proba(m.x), model.predict_proba(m.x))
    # A replaced file is another model.
    shutil.copy(made("table").model, tmp_path / "here.onnx")
    assert sw.load(tmp_path / "here.onnx")._session is not model._session


def test_the_page_of_a_model(made: Maker) -> None:
    m = made("pictures")
    page = sw.load(m.model)._repr_html_()
    assert "sets contain the true class of at least 80 % of new examples" in page and "classes" in page and "<script" not in page
    strange = m.model.with_name("<b>&.onnx")
    shutil.copy(m.model, strange)
    assert "<b>&.onnx" not in sw.load(strange)._repr_html_() and "&lt;b&gt;&amp;.onnx" in sw.load(strange)._repr_html_()


def test_shares(made: Maker, tmp_path: Path) -> None:
    """Probabilities for other class shares are those of score --shares, and of a model that was exported with them."""
    m = made("unnamed")
    val, cal, out, known = tmp_path / "val.npz", tmp_path / "c.safetensors", tmp_path / "out.npz", tmp_path / "shares.json"
    swagwrap("score", "-q", "--probs", "-o", val, m.ensemble, m.data)
    with np.load(val) as rows:
        ranked = rows["probs"].argsort(axis=1)
    np.save(tmp_path / "labels.npy", ranked[np.arange(60), np.where(np.arange(60) % 4, 2, 1)])  # three of four are right
    swagwrap("calibrate", "-q", "-o", cal, "--labels", tmp_path / "labels.npy", "--ensemble", m.ensemble, val)
    known.write_text(json.dumps({"0": 0.2, "1": 0.7, "2": 0.1}))
    swagwrap("score", "-q", "--shares", known, "-o", out, cal, m.data)
    swagwrap("export", "-q", "-o", tmp_path / "plain.onnx", cal)
    swagwrap("export", "-q", "--shares", known, "-o", tmp_path / "shares.onnx", cal)
    plain, corrected = sw.load(tmp_path / "plain.onnx"), sw.load(tmp_path / "shares.onnx")
    with np.load(out) as rows:
        wanted = rows["probs"]
    np.testing.assert_allclose(plain.predict_proba(m.x, shares=[0.2, 0.7, 0.1]), wanted, **CLOSE)
    np.testing.assert_allclose(plain.predict_proba(m.x, shares={2: 0.1, 0: 0.2, 1: 0.7}), wanted, **CLOSE)
    np.testing.assert_allclose(corrected.predict_proba(m.x), wanted, **CLOSE)
    np.testing.assert_allclose(corrected.training_shares, [0.2, 0.7, 0.1])
    np.testing.assert_allclose(corrected.predict_proba(m.x, shares=plain.training_shares), plain.predict_proba(m.x), **CLOSE)
    for bad, why in ([0.5, 0.5], "want 3 numbers"), ([0.5, 0.6, 0.2], "add up to 1"), ({0: 1.0}, "1 of 3 classes"), ({"cat": 1.0}, "no class 'cat'"):
        with pytest.raises(ValueError, match=why):
            plain.predict_proba(m.x, shares=bad)
    with pytest.raises(ValueError, match="guarantee"):
        sw.load(made("pictures").model).predict_proba(made("pictures").x, shares=[0.25] * 4)
    with pytest.raises(ValueError, match="does not know those of training"):
        sw.load(m.model).predict_proba(m.x, shares=[0.2, 0.7, 0.1])
    with pytest.raises(ValueError, match="one class each"):
        sw.load(made("labels").model).predict_proba(made("labels").x, shares=[0.5, 0.5])
