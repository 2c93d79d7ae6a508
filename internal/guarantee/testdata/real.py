"""Predictions of small networks and regressions on real data, for TestReal: real.json.gz.

    python real.py

Every prediction is of an example that the model was not fitted to. Only predictions and labels are stored, no pictures.

| set | examples | source, licence |
|---|--:|---|
| mnist | 1,000 test pictures | LeCun and Cortes, CC BY-SA 3.0 (fixtures/mnist) |
| cifar | 1,000 test pictures | Krizhevsky 2009, no licence stated (fixtures/cifar) |
| digits | 1,000 | UCI optical recognition of digits, CC BY 4.0, in scikit-learn |
| cancer | 569 | UCI breast cancer Wisconsin, CC BY 4.0, in scikit-learn |
| diabetes | 442 | Efron et al. 2004, in scikit-learn (BSD) |

The labels of `labels` are properties of a digit: even, prime, with a loop, above 4. The digit 1 has none. The pixels of `pixels` are
paper, edge or ink of an MNIST picture. They are predicted from the picture with noise.
"""
import csv
import gzip
import io
import json
import pathlib
import tarfile

import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

here = pathlib.Path(__file__).parent
fixtures = here.parents[2] / "fixtures"
rng = np.random.default_rng(57)


def logistic(c=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=200))


def halves(value, low, high):
    return [high if v > np.median(value) else low for v in value]


def rounded(x, digits=5):
    return np.round(np.asarray(x, float), digits).tolist()


def of(name, task, width, outcomes, labels, groups, positions=1):
    return {"name": name, "task": task, "width": width, "positions": positions, "outcomes": rounded(outcomes), "labels": np.asarray(labels).tolist(), "groups": groups}


def cifar(limit):
    """Pictures of the test set at 8×8, with their labels."""
    x, y = [], []
    with tarfile.open(fixtures / "cifar/pictures.tar.xz") as archive:
        rows = list(csv.reader(io.TextIOWrapper(archive.extractfile("test.csv"))))
        wanted = {}
        for row in rows:
            name = next((v for v in row if v.endswith((".png", ".jpg"))), None)
            if name:
                wanted[name] = pathlib.PurePath(name).parent.name
        keep = set(rng.permutation(sorted(wanted))[:limit])  # the archive is in the order of the classes
        for entry in archive:
            if entry.name in keep:
                picture = Image.open(io.BytesIO(archive.extractfile(entry).read())).convert("RGB").resize((8, 8), Image.BOX)
                x.append(np.asarray(picture, float).ravel() / 255)
                y.append(wanted[entry.name])
    names = sorted(set(y))
    assert len(names) == 10, names
    return np.array(x), np.array([names.index(v) for v in y])


def main():
    sets = []
    train, test = np.load(fixtures / "mnist/train.npz"), np.load(fixtures / "mnist/test.npz")
    small = lambda z: z["images"][:, 0].reshape(-1, 14, 2, 14, 2).mean((2, 4)) / 255
    a, b, at = small(train), small(test), rng.permutation(5000)[:1000]
    x, y = b[at], test["labels"][at]
    ink = halves(x.sum((1, 2)), "site light", "site dark")
    model = logistic(0.01).fit(a.reshape(len(a), -1), train["labels"])
    sets.append(of("mnist", "classes", 10, model.predict_proba(x.reshape(len(x), -1)), y, ink))

    digits = load_digits()
    at = rng.permutation(len(digits.target))[:1000]
    x8, y8 = digits.data[at], digits.target[at]
    light = halves(x8.sum(1), "site light", "site dark")
    sets.append(of("digits", "classes", 10, cross_val_predict(logistic(0.001), x8, y8, cv=5, method="predict_proba"), y8, light))
    properties = np.array([[d % 2 == 0, d in (2, 3, 5, 7), d in (0, 6, 8, 9), d > 4] for d in y8], int)
    p = np.stack([cross_val_predict(logistic(0.001), x8, properties[:, k], cv=5, method="predict_proba")[:, 1] for k in range(4)], 1)
    sets.append(of("digits", "labels", 4, p, properties, light))

    xc, yc = cifar(3000)
    order = rng.permutation(len(xc))
    xc, yc = xc[order], yc[order]
    model = logistic(0.01).fit(xc[1000:], yc[1000:])
    sets.append(of("cifar", "classes", 10, model.predict_proba(xc[:1000]), yc[:1000], halves(xc[:1000].sum(1), "site dark", "site light")))

    cancer = load_breast_cancer()
    p = cross_val_predict(logistic(0.01), cancer.data[:, :4], cancer.target, cv=5, method="predict_proba")
    sets.append(of("cancer", "binary", 2, p, cancer.target, halves(cancer.data[:, 1], "site smooth", "site rough")))

    diabetes = load_diabetes()
    outcomes = np.zeros((len(diabetes.target), 3))  # mean, variance of noise, variance of the mean
    for fit, new in KFold(5, shuffle=True, random_state=1).split(diabetes.data):
        forest = RandomForestRegressor(30, min_samples_leaf=5, oob_score=True, random_state=1).fit(diabetes.data[fit], diabetes.target[fit])
        trees = np.stack([t.predict(diabetes.data[new]) for t in forest.estimators_])
        noise = np.mean((forest.oob_prediction_ - diabetes.target[fit]) ** 2)
        outcomes[new] = np.stack([trees.mean(0), np.full(len(new), noise), trees.var(0)], 1)
    sets.append(of("diabetes", "regression", 3, outcomes, diabetes.target, ["site a" if v > 0 else "site b" for v in diabetes.data[:, 1]]))

    tiny = lambda z: z["images"][:, 0, 2:26, 2:26].reshape(-1, 8, 3, 8, 3).mean((2, 4)) / 255
    a, b = tiny(train)[:200], tiny(test)[rng.permutation(5000)[:150]]
    kind = lambda z: (z > 0.1).astype(int) + (z > 0.5)
    def around(z):
        z = np.pad(z + rng.normal(0, 0.25, z.shape), ((0, 0), (1, 1), (1, 1)))
        return np.stack([z[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)], -1).reshape(-1, 9)
    model = logistic().fit(around(a), kind(a).ravel())
    p = model.predict_proba(around(b)).reshape(len(b), -1)
    sets.append(of("mnist", "pixels", 3, p, kind(b).reshape(len(b), -1), halves(b.sum((1, 2)), "site light", "site dark"), 64))

    with open(here / "real.json.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(sets, separators=(",", ":")).encode())
    for s in sets:
        print(s["name"], s["task"], len(s["labels"]))


main()
