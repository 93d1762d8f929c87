"""The privacy loss of shuffled local reports."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpjax.accounting.leaks._table import Table, TabulatedLeak

_UNIT = np.finfo(float).eps
_REACH = 13.0  # standard deviations kept on each side: exp(-13^2 / 2) = exp(-84)
_ATOMS = 1 << 12  # losses of one table
_MOST = 1 << 21  # losses before they are gathered
_LEVELS = 128  # numbers of clones told apart
_MOST_REPORTS = 1e9  # of reports: more count as that many
_SLIP = 1e-11  # relative error of the chances


@dataclass(frozen=True, eq=False)
class Shuffled(TabulatedLeak):
    """The reports of n people by one epsilon-private local randomizer R, in random order.

    With e = exp(epsilon) the laws R(x), R(x') of the report that differs are d Q0 + (1 - d) Q1 and
    (1 - d) Q0 + d Q1, d = e / (1 + e) (Kairouz, Oh, Viswanath 2015). Any other report's law is at
    least max(R(x), R(x')) / e, and so at least (Q0 + Q1) / (2 e): with chance 1/e, by itself, it is
    a clone drawn from Q0 or Q1 alike. Hence the shuffled reports are made from nothing but the
    numbers (a, b) drawn from Q0 and Q1, of which a + b - 1 = c is binomial (n - 1, 1/e) and a is
    binomial (c, 1/2) plus one with chance d, or 1 - d: the pair of Feldman, McMillan, Talwar 2021,
    Section 3. (The smaller one of their article of 2023 does not hold for every randomizer, as its
    erratum says.) The loss is log((e a + b) / (a + e b)).

    Fewer clones leak more, as clones can be added. So c is rounded down to one of 128 values at
    most. Of the losses, where they are many, each is spread to the two points of a grid around it,
    its exp(-L) kept, which only raises what leaks (see `discretized`).
    """

    epsilon: np.ndarray
    num_reports: np.ndarray

    once_error = 3 * _SLIP

    def supremum(self, direction: str) -> np.ndarray:
        """Epsilon: there may be no clone."""
        return np.broadcast_to(self.epsilon, self.shape)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """1 where epsilon is infinite."""
        return np.where(np.isinf(self.epsilon), 1.0, np.zeros(self.shape))

    def _tables(self, shape: tuple[int, ...], direction: str) -> list[Table | None]:
        """One for each pair of parameters; none where nothing, or everything, leaks."""
        pairs = zip(
            np.broadcast_to(self.epsilon, shape).ravel(),
            np.broadcast_to(self.num_reports, shape).ravel(),
            strict=True,
        )
        return [_table(float(e), float(n)) if 0 < e < np.inf else None for e, n in pairs]


@lru_cache(maxsize=64)
@np.errstate(all="ignore")  # log 0 is the right limit throughout
def _table(epsilon: float, num_reports: float) -> Table:
    """The losses, rising, and the logs of their chances under P."""
    others = int(min(num_reports, _MOST_REPORTS)) - 1
    levels, (rare, log_rare) = _clones(others, min(np.exp(-epsilon), 1 - _UNIT))
    losses, chances, beyond, log_beyond = [], [], [], []
    own = 1 / (1 + np.exp(-epsilon))
    for c, weight in zip(*levels, strict=True):
        reach = np.ceil(_REACH * np.sqrt(c + 1) / 2)
        first, last = (
            max(0.0, np.floor((c + 1) / 2 - reach)),
            min(c + 1, np.ceil((c + 1) / 2 + reach)),
        )
        a = np.arange(first, last + 1)
        b = c + 1 - a
        # binomial (c + 1, 1/2), of which a share (e a + b) / (1 + e) over (c + 1) / 2 is P
        rises = np.concatenate([[0.0], np.cumsum(np.log(b[:-1]) - np.log(a[1:]))])
        mass = np.exp(rises - rises.max())
        losses.append(_loss((a - b) / (c + 1), epsilon))
        chances.append(weight * mass / mass.sum() * 2 * (own * a + (1 - own) * b) / (c + 1))
        if first > 0:
            at, log_mass = _rings(c, _REACH)
            beyond.append(_loss(at, epsilon))
            log_beyond.append(np.log(weight) + log_mass)
    for c, log_weight in zip(rare, log_rare, strict=True):
        at, log_mass = _rings(c, 1.0)
        beyond.append(_loss(np.append(min(1.0, 1 / np.sqrt(c + 1)), at), epsilon))
        log_beyond.append(log_weight + np.append(0.0, log_mass))
    losses, chances = _gathered(np.concatenate(losses), np.concatenate(chances))
    every = np.concatenate([losses, *beyond]), np.concatenate([np.log(chances), *log_beyond])
    order = np.argsort(every[0])
    losses, size = every[0][order], np.abs(every[0][order])
    return Table(losses, every[1][order], 8 * _UNIT * np.where(size < 2, size, epsilon), _SLIP)


def _loss(ratio: np.ndarray, epsilon: float) -> np.ndarray:
    """Log of (e a + b) / (a + e b) from (a - b) / (a + b)."""
    near = 2 * np.arctanh(np.clip(ratio * np.tanh(epsilon / 2), -0.9, 0.9))
    log_a, log_b = np.log1p(ratio), np.log1p(-ratio)
    far = np.logaddexp(epsilon + log_a, log_b) - np.logaddexp(log_a, epsilon + log_b)
    return np.clip(np.where(np.abs(near) < 2, near, far), -epsilon, epsilon)


def _rings(c: float, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Far values of (a - b) / (c + 1), and logs of bounds on the chances that they stand for.

    By Hoeffding's bound there is at most twice exp(-r^2 / 2) of P beyond r sqrt(c + 1) / 2 on each
    side of (c + 1) / 2. What lies up to the next r counts as there.
    """
    number = 1 + int(np.ceil(2 * np.log2(max(np.sqrt(c + 1) / start, 1))))
    r = start * 2 ** (np.arange(number + 1) / 2)
    return np.minimum(r[1:] / np.sqrt(c + 1), 1), np.log(4) - r[:-1] ** 2 / 2


def _clones(others: int, chance: float) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Numbers of clones, rounded down to a few, with their chances; and rare ones with their logs.

    By Bernstein's bound there is at most exp(-r^2 / 2) below the mean by r deviations and r^2 / 2.
    """
    centre, spread = others * chance, np.sqrt(others * chance * (1 - chance))
    r = _REACH * 2 ** (np.arange(60) / 2)
    below = np.maximum(np.floor(centre - r * spread - r**2 / 2), 0)
    number = int(np.argmin(below))  # the first that is 0
    reach = _REACH * spread + _REACH**2 / 2
    c = np.arange(below[0], min(others, np.ceil(centre + reach)) + 1)
    odds = np.log(chance) - np.log1p(-chance)
    rises = np.log(others - c[:-1]) - np.log(c[1:]) + odds
    rises = np.concatenate([[0.0], np.cumsum(rises)])
    mass = np.exp(rises - rises.max())
    atoms = 2 * (_REACH * np.sqrt(c[-1] + 1) / 2 + 3)
    levels = int(np.clip(_MOST / atoms, 8, _LEVELS))
    starts = np.unique(np.linspace(0, c.size, levels, endpoint=False).astype(int))
    rare = below[1 : number + 1], -(r[:number] ** 2) / 2
    return (c[starts], np.add.reduceat(mass, starts) / mass.sum()), rare


def _gathered(losses: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same losses, or, where they are many, spread to a grid."""
    if losses.size <= _ATOMS:
        return losses, chances
    largest = np.max(losses)
    step = 2 * largest / (_ATOMS - 1)
    grid = np.linspace(-largest, largest, _ATOMS)
    cell = np.clip(np.floor((losses + largest) / step).astype(int), 0, _ATOMS - 2)
    share = np.clip(np.expm1(-(losses - grid[cell])) / np.expm1(-step), 0, 1)
    masses = np.bincount(cell, chances * (1 - share), _ATOMS)
    return grid, masses + np.bincount(cell + 1, chances * share, _ATOMS)
