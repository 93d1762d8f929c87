"""delta(epsilon) of k Laplace releases as a finite sum of positive terms.

Each loss is e0 with mass 1/2, -e0 with mass exp(-e0)/2, or between them with density
exp((l - e0)/2)/4. Of k draws let d be at the bottom and j between, the latter at e0 (2 s_i - 1)
with s_i in (0, 1). The total is e0 k - 2 e0 w with the deficit w = d + sum (1 - s_i), its weight is
2^-k e0^j exp(-e0 w), and the sum of j uniforms has the B-spline N_j for a density. With
W = (e0 k - epsilon) / (2 e0) the payoff is 1 - exp(-2 e0 (W - w)), and the exponentials collect in
front:

    delta = 2^-k exp(-e0 W) sum over d, j of k! / (d! j! (k-d-j)!) e0^j A_j(W - d),
    A_j(z) = int N_j(s) 2 sinh(e0 (z - s)_+) ds = 2 sum over odd m of e0^m G_{j,m+1}(z),

where G_{j,n}, the n-fold integral of N_j, obeys (j+n-1) G_{j,n}(z) = z G_{j,n-1}(z) +
j G_{j-1,n}(z-1), from G_{0,n}(z) = z_+^(n-1) / (n-1)!. Every term is positive, so the relative
error is no more than a few roundings for each level of the recurrence.
"""

import numpy as np
from scipy import special

MAX_COUNT = 200  # beyond, the tables are large
MAX_EXPONENT = 600.0  # of e0 W: beyond, exp would overflow


@np.errstate(divide="ignore")  # log 0, of terms that are not there
def log_delta(pure_epsilon: np.ndarray, count: int, epsilon: np.ndarray) -> np.ndarray:
    """Log delta for rows of e0 and epsilon < count e0, to `relative_error`; (rows,)."""
    e0 = pure_epsilon[:, None]
    deficit = (count * pure_epsilon - epsilon) / (2 * pure_epsilon)
    down = np.arange(min(int(deficit.max()), count) + 1)  # the values of d
    z = np.maximum(deficit[:, None] - down, 0)
    orders = _orders(pure_epsilon, deficit)
    # table[n] is e0^(j+n-1) G_{j,n} at every z; those at z - 1 are its neighbours in d
    table = np.empty((orders + 1, *z.shape))
    table[1] = z > 0
    for n in range(2, orders + 1):
        table[n] = table[n - 1] * (e0 * z) / (n - 1)
    spline = np.zeros_like(z)
    logs = []
    for j in range(count + 1):
        if j > 0:
            spline = _next_spline(spline, z, j)
            table = _next_integrals(table, spline * e0 ** (j - 1.0), z, e0, j)
        multiplicity = (
            special.gammaln(count + 1)
            - special.gammaln(down + 1)
            - special.gammaln(j + 1)
            - special.gammaln(np.maximum(count - down - j + 1, 1))
        )
        multiplicity = np.where(down + j <= count, multiplicity, -np.inf)
        logs.append(multiplicity + np.log(2 * table[2::2].sum(0)))
    total = special.logsumexp(np.concatenate(logs, 1), 1)
    return total - count * np.log(2) - pure_epsilon * deficit


def relative_error(pure_epsilon: np.ndarray, count: int, epsilon: np.ndarray) -> float:
    """Bound on the relative error of delta, apart from that of epsilon's last digit."""
    deficit = (count * pure_epsilon - epsilon) / (2 * pure_epsilon)
    logs = 8 * (count * np.log(count + 1.0) + float(np.max(pure_epsilon * deficit)))
    return float(np.finfo(float).eps * (6 * (count + _orders(pure_epsilon, deficit)) + logs + 30))


def _orders(pure_epsilon: np.ndarray, deficit: np.ndarray) -> int:
    """How many integrals: G_{j,m+1} <= G_{j,2} z^(m-1) / m!, so the rest is below exp(-40)."""
    return int(np.e * float(np.max(pure_epsilon * deficit)) + 45)


def _next_spline(spline: np.ndarray, z: np.ndarray, j: int) -> np.ndarray:
    """N_j from N_{j-1}: (j-1) N_j(z) = z N_{j-1}(z) + (j-z) N_{j-1}(z-1)."""
    if j == 1:
        return ((z > 0) & (z <= 1)).astype(float)
    return (z * spline + np.maximum(j - z, 0) * _less_one(spline)) / (j - 1)


def _next_integrals(
    table: np.ndarray, density: np.ndarray, z: np.ndarray, e0: np.ndarray, j: int
) -> np.ndarray:
    """The integrals of N_j from those of N_{j-1}, and from `density`, the table's row 0."""
    result = np.empty_like(table)
    result[0] = density
    for n in range(1, len(table)):
        result[n] = (z * e0 * result[n - 1] + j * e0 * _less_one(table[n])) / (j + n - 1)
    return result


def _less_one(values: np.ndarray) -> np.ndarray:
    """Values at z - 1: those of the next d, 0 past the last."""
    return np.concatenate([values[:, 1:], np.zeros_like(values[:, :1])], 1)
