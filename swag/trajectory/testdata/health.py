"""Writes health.json: small trajectories and their health.

    python health.py        (Python 3.11, NumPy 2.4, SciPy 1.17)

Where the Go code works on squared distances, this works on the vectors: means,
variances and singular values from NumPy, the shortest path among all paths
(Held and Karp's dynamic programme), and the fewest misplaced checkpoints among
all subsets. Groups are SciPy's single linkage, the trend is its Spearman's ρ. The tolerance of the Go test, 1e-9, is for rounding; distances
squared lose half the digits of what is small against them.
"""

import itertools
import json
import pathlib

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import spearmanr

RANK = 5


def effective(x):
    n = len(x)

    def correlations(window):
        far = [((x[i] - x[j]) ** 2).sum() / 2 for i in range(n) for j in range(i) if i - j > window]
        return [1 - np.mean([((x[t] - x[t + k]) ** 2).sum() / 2 for t in range(n - k)]) / np.mean(far) for k in range(window + 1)]

    window = 1
    while window + 2 <= n // 2 and sum(correlations(window + 2)[-2:]) > 0:
        window += 2
    time = 1 + 2 * sum((1 - k / n) * r for k, r in enumerate(correlations(window)) if k > 0)
    return min(n, n / time) if time > 0 else n


def drift(x):
    half = len(x) // 2
    first, second = x[:half], x[len(x) - half :]
    both = np.concatenate([first, second])
    return len(both) / 4 * ((second.mean(0) - first.mean(0)) ** 2).sum() / (len(both) * both.var(0).sum())


def start(x):
    n = len(x)
    errors = [x[s:].var(0).sum() / (n - s) for s in range(n // 2 + 1)]
    best = int(np.argmin(errors))
    return best if n >= 8 and best < n // 2 and errors[best] <= errors[0] / 2 else 0


def straight(x):
    """The first iterate at which the weights turn, if they went in one direction before."""
    n, steps = len(x), np.diff(x, axis=0)
    if n < 5:
        return 0
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in itertools.pairwise(steps)]
    turn = 1 + next((i for i, c in enumerate(cosines) if c < 0.5), n - 2)
    straight = np.linalg.norm(x[turn] - x[0]) >= 0.5 * np.linalg.norm(steps[:turn], axis=1).sum()  # a smooth curve comes back
    return min(turn, n - min(5, (n + 1) // 2)) if turn >= 3 and 4 * turn > n and straight else 0


def shortest(x, nodes):
    """The path with the least sum of squared steps; Held and Karp."""
    step = lambda a, b: ((x[a] - x[b]) ** 2).sum()
    best = {(frozenset([v]), v): (0.0, (v,)) for v in nodes}
    for size in range(2, len(nodes) + 1):
        for subset in map(frozenset, itertools.combinations(nodes, size)):
            for last in subset:
                rest = subset - {last}
                best[subset, last] = min((best[rest, v][0] + step(v, last), best[rest, v][1] + (last,)) for v in rest)
    return list(min(best[frozenset(nodes), v] for v in nodes)[1])


def jumps(x, path):
    steps = [np.linalg.norm(x[a] - x[b]) for a, b in zip(path, path[1:])]
    near = lambda i: steps[max(0, min(i - 4, len(steps) - 9)) :][:9]
    return [i for i, s in enumerate(steps) if s > 4 * np.median(near(i))]


def reorder(x):
    given = list(range(len(x)))
    outliers = []
    if jumps(x, given):
        path = shortest(x, given)
        ends = [0] + [j + 1 for j in jumps(x, path)] + [len(x)]
        lo, hi = max(zip(ends, ends[1:]), key=lambda s: (s[1] - s[0], s[0]))
        outliers = sorted(set(given) - set(path[lo:hi]))
    rest = [t for t in given if t not in outliers]
    if len(rest) < 8:
        return outliers, [], []
    path = shortest(x, rest)
    length = lambda p: sum(((x[a] - x[b]) ** 2).sum() for a, b in zip(p, p[1:]))
    n = len(rest)
    apart = lambda k: np.median([((x[a] - x[b]) ** 2).sum() for a, b in zip(path, path[k:])])
    steps = [x[b] - x[a] for a, b in zip(path, path[1:])]
    cosines = [u @ v / np.sqrt(u @ u * (v @ v)) for i, u in enumerate(steps) for v in steps[: max(0, i - 1)]]
    shorter = max(0.05, 2.2 * np.sqrt(np.mean(np.square(cosines))))
    if length(path) > (1 - shorter) * length(rest) or apart(4) <= 1.4 * apart(2):
        return outliers, [], []

    def misplaced(path):
        for m in range(n):
            for out in itertools.combinations(rest, m):
                left = [t for t in path if t not in out]
                if left == sorted(left):
                    return list(out)

    path = min(path, path[::-1], key=lambda p: len(misplaced(p)))
    return outliers, path, misplaced(path)


def groups(x):
    """The partition with the widest gap, of those whose sets have two members and more."""
    links = linkage(x, "single")
    best, widest = [], 3
    for short, long in itertools.pairwise(links[:, 2]):
        labels = fcluster(links, (short + long) / 2, "distance")
        sets = sorted(np.flatnonzero(labels == k).tolist() for k in set(labels))
        if long / short >= widest and min(map(len, sets)) > 1:
            best, widest = sets, long / short
    return best


def restarts(x):
    distance = lambda a, b: np.linalg.norm(x[a] - x[b])
    steps = [distance(t, t + 1) for t in range(len(x) - 1)]
    found = [0]
    for t in range(1, len(x)):
        if steps[t - 1] > 2 * np.median(steps) and distance(found[-1], t) < steps[t - 1] / 2:
            found.append(t)
    lengths = np.diff(found + [len(x)])
    beside = [steps[k] for t in found[1:] for k in (t - 2, min(t, len(steps) - 1))]
    if 2 * effective(x) >= len(x) or min(lengths) < 3 or any(s > 2 * np.median(steps) for s in beside):
        return []
    return found[1:]


def health(x):
    n = len(x)
    running = np.cumsum(x, 0) / np.arange(1, n + 1)[:, None]
    deviations = (x - running).astype(np.float32)[-RANK:]
    k = len(deviations)
    eigenvalues = np.linalg.svd(deviations.astype(float), compute_uv=False) ** 2
    shares = eigenvalues / eigenvalues.sum()
    norm = np.sqrt((x**2).sum(1).mean())
    steps = np.linalg.norm(np.diff(x, axis=0), axis=1)
    quarter = len(steps) // 4
    sets, again = groups(x), restarts(x)
    again = [] if sets else again
    outliers, order, misplaced = ([], [], []) if sets or again else reorder(x)
    return {
        "checkpoints": n,
        "effective": effective(x),
        "drift": drift(x),
        "start": max(start(x), straight(x)),
        "spread": np.sqrt(x.var(0).sum()) / norm,
        "step": np.median(steps) / norm,
        "slowing": np.median(steps[len(steps) - quarter :]) / np.median(steps[:quarter]),
        "frozen": 0.125,
        "sub_ulp": 0.25,
        "trend": spearmanr(steps, np.arange(len(steps))).statistic,
        "groups": sets,
        "restarts": again,
        "outliers": outliers,
        "order": order,
        "misplaced": misplaced,
        "spectrum": list(shares),
        "dimensions": 1 / (shares**2).sum(),
        "low_rank": eigenvalues.sum() / (k - 1) / x.var(0).sum(),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(2019)
    M = 48
    walk = lambda n: 3 + np.cumsum(rng.standard_normal((n, M)), 0)
    swapped = walk(11)
    swapped[[3, 8]] = swapped[[8, 3]]
    apart = walk(11)
    apart[6] += 12
    runs = np.concatenate([walk(6) + 40 * k for k in range(2)])
    three = np.concatenate([walk(4) + rng.standard_normal(M) * 30 for k in range(3)])[[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]
    settling = 5 + rng.standard_normal((12, M)) + 30 * np.exp(-1.5 * np.arange(12))[:, None]
    trajectories = {
        "walk": walk(12),
        "independent": 1 + 0.1 * rng.standard_normal((11, M)),
        "line": np.outer(np.arange(10), rng.standard_normal(M)) + 0.3 * rng.standard_normal((10, M)),
        "two swapped": swapped,
        "one apart": apart,
        "settling": settling,
        "two runs": runs,
        "three runs, in turns": three,
        "two runs from one place": np.concatenate([walk(6), walk(6)]),
        "slowing": np.cumsum(rng.standard_normal((12, M)) * 0.75 ** np.arange(12)[:, None], 0),
        "approach": np.cumsum(np.where(np.arange(9) < 4, 3, 0)[:, None] + rng.standard_normal((9, M)), 0),
    }
    cases = []
    for name, x in trajectories.items():
        x = np.round(x, 2).astype(np.float32)
        text = ",".join("[" + ",".join(f"{v:.2f}" for v in row) + "]" for row in x)
        cases.append(f'{{"name": {json.dumps(name)}, "rank": {RANK},\n "health": {json.dumps(health(x.astype(float)))},\n "iterates": [{text}]}}')
    pathlib.Path(__file__).with_name("health.json").write_text("[\n" + ",\n".join(cases) + "\n]\n")
