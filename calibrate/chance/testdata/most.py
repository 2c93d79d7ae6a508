"""Prints the golden bounds of TestMost. Written with NumPy 2.4.6 and SciPy 1.17.1."""
import numpy as np
from scipy.stats import binomtest, skew, t

for losses in [[0, 0, 0, 1], [0.1, 0.2, 0.3], [3, 3, 3, 0], [0] * 99 + [0.4], [-1, 0.5, 2, 2.5, 9]]:
    x, n = np.array(losses, float), len(losses)
    q = t.ppf(0.95, n - 1)
    third = ((x - x.mean()) ** 3).mean() / x.std(ddof=1) ** 3
    assert np.isclose(third, skew(x) * (1 - 1 / n) ** 1.5)
    print(x.mean() + x.std(ddof=1) / np.sqrt(n) * (q + max(0, third) * (1 + 2 * q * q) / (6 * np.sqrt(n))))
for seen, n in [(0, 100), (3, 2000), (5, 5)]:
    print(seen, n, binomtest(seen, n, alternative="less").proportion_ci(0.95).high)
