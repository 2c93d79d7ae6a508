"""Prints the golden intervals of TestWilson. Written with SciPy 1.17.1."""
from scipy.stats import binomtest

for right, n in [(0, 10), (10, 10), (5, 10), (190, 200), (1, 1), (4999, 5000)]:
    ci = binomtest(right, n).proportion_ci(0.95, "wilson")
    print(f"{{{right}, {n}, {ci.low!r}, {ci.high!r}}},")
