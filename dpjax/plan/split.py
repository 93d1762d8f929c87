"""How a design shares one budget among unequal queries: the least weighted square error.

With scales s, sensitivities D, weights w, n published numbers and c releases of each kind of query,

    minimise sum n w s^2    where epsilon(s) is the budget.

At the best split every kind has the same n w s^2 / (-d epsilon / d log s). Where epsilon depends
on sum c (D / s)^p alone, that is s^(p+2) proportional to c D^p / (n w): a cube root of the budget
for Laplace noise under basic composition (p = 1), a fourth root for Gaussian noise (p = 2).
"""

from collections.abc import Callable

import numpy as np

from dpjax.plan.workload import MOST, RANGE, Query, Workload

_MOST_KINDS = 40  # searched for one by one; more go in groups, and lose under 1e-6 of the error
_STEP = 1e-4  # of the logarithm of a scale, for slopes
_ROUNDS = 60
_SETTLED = 1e-5  # error is flat around the best split: its square is what is lost


def closed_form(workload: Workload, power: float) -> np.ndarray:
    """Scales up to a common factor, where epsilon depends on sum c (D / s)^power; (queries,).

    >>> from dpjax.plan.workload import Query
    >>> two = Workload((Query("fine"), Query("coarse", sensitivity=8.0)))
    >>> closed_form(two, 1.0)
    array([1., 2.])
    """
    sensitivity = workload.each("sensitivity")
    size = workload.each("answers") * workload.each("weight")
    log = np.log(workload.each("releases") / size) + power * np.log(sensitivity)
    return np.exp((log - log[0]) / (power + 2))


def searched(
    workload: Workload,
    aim: Callable[[np.ndarray, float, float], np.ndarray],
    epsilon: Callable[[np.ndarray], np.ndarray],
    cost: Callable[[np.ndarray], float],
) -> np.ndarray:
    """The best scales, by going where all kinds of queries have the same error for their privacy.

    A step is exact for p = 2, and for any other p it leaves (2 - p) / 4 of the way.

    Args:
        workload: of several kinds of queries.
        aim: from scales, their epsilon and its slope -d epsilon / d log(all scales) to scales that
            are nearer to the wish, all multiplied by one factor.
        epsilon: the accountant's, of scales of shape (queries, *grid).
        cost: of scales once the wish is met: the error if epsilon is wished, else epsilon.

    Returns:
        Scales, (queries,), near the wish.
    """
    size = workload.each("answers") * workload.each("weight")
    ends = []
    for power in (1.0, 2.0):  # an accountant that is the least of several may have two valleys
        scales = closed_form(workload, power)
        for _ in range(_ROUNDS):
            spent, slopes = _slopes(epsilon, scales)
            if not np.all(np.isfinite(slopes) & (slopes > 0)):
                break
            nearer = aim(scales, spent, float(slopes.sum()))
            move = (np.log(slopes / size) - 2 * np.log(scales)) / 4
            after = nearer * np.exp(move - move.mean())
            far = float(np.max(np.abs(np.log(after / scales))))
            scales = after
            if far < _SETTLED:
                break
        ends.append(scales)
    return min(ends, key=cost)


def grouped(workload: Workload) -> Workload:
    """A workload of few kinds of queries for which the best split is nearly the same.

    The best noise multiplier of a kind depends on its `_ratio` alone, so that kinds of like ratio
    make one group: their releases, their weight, and the sensitivity that keeps their ratio.
    """
    ratio = _ratio(workload)
    if ratio.size <= _MOST_KINDS:
        return workload
    group = np.digitize(ratio, np.linspace(ratio.min(), ratio.max(), _MOST_KINDS + 1)[1:-1])
    releases, sensitivity = workload.each("releases"), workload.each("sensitivity")
    size = workload.each("answers") * workload.each("weight")
    found = []
    for each in np.unique(group):
        members = group == each
        count, total = releases[members].sum(), size[members].sum()
        change = np.sqrt(np.sum(size[members] / total * sensitivity[members] ** 2))
        count = min(count, MOST)  # ends of what is possible, where the split need not be the best
        found.append(Query(f"{each}", change, int(count), weight=np.clip(total / count, *RANGE)))
    return Workload(tuple(found), workload.adjacency)


def ungrouped(workload: Workload, few: Workload, scales: np.ndarray) -> np.ndarray:
    """Scales for all kinds of queries from those of their groups; (queries,)."""
    if few is workload:
        return scales
    power = 1.5  # of the multipliers' fall with the ratio: between 1 and 2, see `closed_form`
    straight = np.log(scales / few.each("sensitivity")) + _ratio(few) / (power + 2)
    log = np.interp(_ratio(workload), _ratio(few), straight) - _ratio(workload) / (power + 2)
    return np.exp(log) * workload.each("sensitivity")


def _ratio(workload: Workload) -> np.ndarray:
    """Log of the square error that one release has at noise multiplier 1; (queries,)."""
    size = workload.each("answers") * workload.each("weight")
    square = 2 * np.log(workload.each("sensitivity"))
    return np.log(size / workload.each("releases")) + square


def _slopes(
    epsilon: Callable[[np.ndarray], np.ndarray], scales: np.ndarray
) -> tuple[float, np.ndarray]:
    """Epsilon, and -d epsilon / d log s for each kind of query."""
    step = _STEP * np.hstack([np.zeros((scales.size, 1)), np.eye(scales.size)])
    step = np.hstack([step, -step[:, 1:]])
    spent = epsilon(scales[:, None] * np.exp(step))
    above, below = spent[1 : 1 + scales.size], spent[1 + scales.size :]
    return float(spent[0]), (below - above) / (2 * _STEP)
