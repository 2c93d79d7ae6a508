"""How often does score warn on five data sets? The table of docs/reference.md, in NumPy and apart from swagwrap's code.

    python five.py mnist=m.0.csv,m.1.csv,...,m.5.csv cifar=c.0.csv,...

Each CSV is what `swagwrap score` writes for clean pictures (0) and for those of severities 1 to 5. Digits, the table and the texts are
made here, with scikit-learn 1.9. The texts are lines of licences in /usr/share/common-licenses (Debian).
"""

import csv
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler


def numbers(members, data):
    """Confidence, entropy, mutual information and class of the average of members."""
    each = np.stack([m.predict_proba(data) for m in members])
    p = each.mean(0)

    def entropy(q):
        return -(q * np.log(np.clip(q, 1e-300, 1))).sum(-1)

    return np.stack([p.max(1), entropy(p), entropy(p) - entropy(each).mean(0), p.argmax(1)], 1)


def noisy(data, target, train, step, hidden):
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data))
    members = [MLPClassifier((hidden,), random_state=s, max_iter=300).fit(data[order[:train]], target[order[:train]]) for s in range(5)]
    rest = data[order[train:]]
    return [numbers(members, rest + step * k * rng.standard_normal(rest.shape)) for k in range(6)]


def texts():
    lines, label = [], []
    for k, name in enumerate(["GPL-3", "Apache-2.0", "Artistic", "GFDL-1.3", "MPL-2.0", "LGPL-2.1"]):
        words = open("/usr/share/common-licenses/" + name).read().split()
        for i in range(0, len(words) - 12, 6):
            lines.append(words[i : i + 12])
            label.append(k)
    label, rng, hashed = np.array(label), np.random.default_rng(0), HashingVectorizer(n_features=2**14)
    order = rng.permutation(len(lines))
    train, rest = np.split(order, [len(order) // 3])
    members = []
    for s in range(5):
        some = np.random.default_rng(s).choice(train, len(train))
        members.append(LogisticRegression(C=30, max_iter=300).fit(hashed.transform([" ".join(lines[i]) for i in some]), label[some]))

    def without(words, share):
        return " ".join([w for w in words if rng.random() >= share] or words[:1])

    return [numbers(members, hashed.transform([without(lines[i], 0.15 * k) for i in rest])) for k in range(6)]


def read(path):
    rows = list(csv.DictReader(open(path)))
    return np.array([[float(r[k]) for k in ("confidence", "predictive_entropy", "mutual_information", "prediction")] for r in rows])


def differs(was, now, classes):
    n, m, level = len(was), len(now), 1e-3 / 4
    each = 1 / n + 1 / m
    for k in range(3):
        grid = np.sort(was[:, k])[(np.arange(1, 64) * (n - 1)) // 64]
        step = 1e-6 * max(abs(grid[0]), abs(grid[-1]))
        distance = max(abs((was[:, k] <= e + step).mean() - (now[:, k] <= e + step).mean()) for e in grid)
        if distance > max(0.05, np.sqrt(np.log(2 / level) / 2 * each)):
            return True
    a, b = (np.bincount(x[:, 3].astype(int), minlength=classes) for x in (was, now))
    p = (a + b) / (n + m)
    chance = np.sqrt(p * (1 - p) * each).sum() / 2 + np.sqrt(np.log(1 / level) / 2 * each)
    return abs(a / n - b / m).sum() / 2 > max(0.05, chance)


def main():
    sets = {name: [read(p) for p in paths.split(",")] for name, _, paths in (a.partition("=") for a in sys.argv[1:])}
    digits = load_digits()
    sets["digits"] = noisy(digits.data / 16, digits.target, 600, 0.08, 32)
    table = load_breast_cancer()
    sets["table"] = noisy(StandardScaler().fit_transform(table.data), table.target, 170, 0.25, 16)
    sets["texts"] = texts()
    rng = np.random.default_rng(1)
    for name, severities in sets.items():
        clean = severities[0]
        classes, half = int(clean[:, 3].max()) + 1, len(clean) // 2
        for n in (20, 500):
            line = []
            for k, data in enumerate(severities):
                runs, found = 1000 if k == 0 else 200, 0
                for _ in range(runs):
                    order = rng.permutation(len(clean))
                    others = order[half:][order[half:] < len(data)]
                    found += differs(clean[order[:half]], data[others[:n]], classes)
                line.append(f"{found}/{runs}")
            print(name, f"validation {half}, {n} examples:", *line, flush=True)


if __name__ == "__main__":
    main()
