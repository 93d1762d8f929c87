"""A Poisson sample's release by whole-number noise or randomized response, from its two laws."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from dpjax.accounting.leaks import REMOVE_ADD
from dpjax.accounting.leaks._amplified import log_mixed_ratio, posterior
from dpjax.accounting.leaks._table import Table, TabulatedLeak

_UNIT = np.finfo(float).eps
_MOST, _TABLE = 1 << 22, 1 << 15  # losses of a law, and those of one table
_REACH = 40.0  # standard deviations kept on each side: exp(-40^2 / 2) is below every float


class Laws(NamedTuple):
    """B, of a release with the record, and A, of one without it, where both are positive.

    Attributes:
        loss: log B / A.
        log_a: Log of A.
        b_alone: Chance under B of what A does not give.
        a_alone: Chance under A of what B does not give.
    """

    loss: np.ndarray
    log_a: np.ndarray
    b_alone: float
    a_alone: float


class SampledTable(TabulatedLeak):
    """(1-q) A + q B against A, for `remove`, and A against (1-q) A + q B, for `add`.

    If (B, A) dominates a release when a record is removed, and (A, B) when one is added, then
    these pairs dominate the same release of a sample in which each record takes part with
    probability q (Zhu, Dong, Wang 2022, Theorem 11). Subclasses name the laws of their parameters.
    """

    directions = REMOVE_ADD
    laws: ClassVar[Callable[..., Laws]]

    def _tables(self, shape: tuple[int, ...], direction: str) -> list[Table | None]:
        """One for each row of the parameters."""
        columns = (np.broadcast_to(v, shape).ravel() for v in self._parameters().values())
        rows = zip(*columns, strict=True)
        return [_table(type(self).laws, direction, *map(float, row)) for row in rows]

    def supremum(self, direction: str) -> np.ndarray:
        """The last loss; a law that has no end is infinite, though its table is not."""
        tables = self._tables(self.shape, direction)
        largest = [0.0 if table is None else float(table.losses[-1]) for table in tables]
        return np.array(largest).reshape(self.shape)

    def infinite_mass(self, direction: str) -> np.ndarray:
        """For `remove` q times what B alone gives; for `add` what A alone gives if q = 1."""
        columns = (np.broadcast_to(v, self.shape).ravel() for v in self._parameters().values())
        found = [
            _infinite_mass(type(self).laws(*map(float, row)), float(q), direction)
            for q, *row in zip(*columns, strict=True)
        ]
        return np.array(found, float).reshape(self.shape)


def discrete_laplace_laws(scale: float, sensitivity: float) -> Laws:
    """Noise around 0 and around D: all x <= 0 have one loss, and all x >= D another."""
    rate = 1 / scale if scale > 0 else np.inf
    if sensitivity * rate in (0, np.inf) or np.isnan(sensitivity * rate):
        return _same() if sensitivity == 0 or rate == 0 else _apart()
    _require_few(sensitivity + 1, sensitivity=sensitivity)
    x = np.arange(sensitivity + 1)
    log_a = -x * rate - np.log1p(np.exp(-rate))
    log_a[1:-1] += np.log(-np.expm1(-rate))
    return _spread(Laws((2 * x - sensitivity) * rate, log_a, 0.0, 0.0))


def discrete_gaussian_laws(scale: float, sensitivity: float, bound: float) -> Laws:
    """Discrete Gaussian noise around 0 and around D, no larger than the bound."""
    if sensitivity == 0 or np.isinf(scale):
        return _same()
    reach = min(bound, np.ceil(_REACH * scale) + sensitivity)
    if scale == 0:
        return _apart()
    _require_few(2 * reach, scale=scale, sensitivity=sensitivity)
    noise = np.arange(-reach, reach + 1)
    log_p = -((noise / scale) ** 2) / 2
    log_p -= np.log(np.exp(log_p).sum())
    both = noise >= sensitivity - reach  # where noise around D reaches
    alone = np.exp(log_p[~both]).sum() if reach == bound else 0.0
    x, variance = noise[both], scale**2
    loss = sensitivity * (2 * x - sensitivity) / (2 * variance)
    return _spread(Laws(loss, log_p[both], alone, alone))


def response_laws(epsilon: float, num_categories: float, delta: float) -> Laws:
    """Two people's answers, of k, and with chance delta everything."""
    if np.isinf(epsilon) or delta == 1:
        return _apart()
    log_own = np.log1p(-delta) - np.log1p((num_categories - 1) * np.exp(-epsilon))
    with np.errstate(divide="ignore"):
        log_a = log_own + np.array([0.0, np.log(num_categories - 2) - epsilon, -epsilon])
    return Laws(np.array([-epsilon, 0.0, epsilon]), log_a, delta, delta)


def _same() -> Laws:
    """Nothing leaks."""
    return Laws(np.zeros(1), np.zeros(1), 0.0, 0.0)


def _apart() -> Laws:
    """Nothing is given by both."""
    return Laws(np.zeros(0), np.zeros(0), 1.0, 1.0)


def _spread(laws: Laws) -> Laws:
    """Laws of many losses with each block of them spread to its two ends, keeping both masses.

    As if every outcome told by chance which end it belongs to: who sees that can only learn more,
    of a sample too. What is learned is of second order in a block's width.
    """
    number = laws.loss.size
    if number <= _TABLE:
        return laws
    starts = np.arange(0, number, -(-number // _TABLE))
    ends = laws.loss[np.append(starts, number - 1)]
    log_a = np.logaddexp.reduceat(laws.log_a, starts)
    log_b = np.logaddexp.reduceat(laws.log_a + laws.loss, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.expm1(log_b - log_a - ends[:-1]) / np.expm1(np.diff(ends))
        right = np.clip(np.nan_to_num(right, nan=1.0), 0, 1)
        to_left = np.append(log_a + np.log1p(-right), -np.inf)
        to_right = np.append(-np.inf, log_a + np.log(right))
    return Laws(ends, np.logaddexp(to_left, to_right), laws.b_alone, laws.a_alone)


def _require_few(size: float, **parameters: float) -> None:
    """Refuse what takes a table of very many losses."""
    if size > _MOST:
        shown = ", ".join(f"{name} = {value:g}" for name, value in parameters.items())
        raise ValueError(f"{shown}: expected at most {_MOST} different losses of a sample")


def _infinite_mass(laws: Laws, q: float, direction: str) -> float:
    """The chance of an infinite loss."""
    return q * laws.b_alone if direction == "remove" else (q == 1) * laws.a_alone


@lru_cache(maxsize=64)
@np.errstate(all="ignore")  # log 0 is the right limit throughout
def _table(make: Callable[..., Laws], direction: str, q: float, *parameters: float) -> Table | None:
    """The losses and their chances, given that they are finite."""
    laws = make(*parameters)
    if q == 0:
        laws = _same()
    loss, log_a, ratio = laws.loss, laws.log_a, log_mixed_ratio(laws.loss, np.asarray(q))
    far = np.abs(loss) + np.where(loss < 1, 0, -np.log(q))
    slip = 4 * _UNIT * (np.abs(ratio) + posterior(loss, np.asarray(q)) * far)
    # what A alone gives counts less by 1 - q
    losses, log_a = np.append(ratio, np.log1p(-q)), np.append(log_a, np.log(laws.a_alone))
    slip = np.append(slip, 4 * _UNIT * abs(np.log1p(-q)))
    infinite = _infinite_mass(laws, q, direction)
    other = _infinite_mass(laws, q, "add" if direction == "remove" else "remove")
    log_p = (losses + log_a if direction == "remove" else log_a) - np.log1p(-infinite)
    losses = losses if direction == "remove" else -losses
    order = np.argsort(losses)
    order = order[np.isfinite(log_p[order]) & np.isfinite(losses[order])]
    if not order.size:
        return None
    wrong = _UNIT * (16 + 4 * np.abs(log_p[order]).max())
    gap = (other - infinite) / (1 - infinite)
    return Table(losses[order], log_p[order], slip[order], wrong, gap)


@dataclass(frozen=True, eq=False)
class SampledDiscreteLaplace(SampledTable):
    """Discrete Laplace noise: see `DiscreteLaplace` for why this pair dominates."""

    sampling_probability: np.ndarray
    scale: np.ndarray
    sensitivity: np.ndarray

    laws = staticmethod(discrete_laplace_laws)


@dataclass(frozen=True, eq=False)
class SampledDiscreteGaussian(SampledTable):
    """Discrete Gaussian noise, up to a bound; a log-concave law, as `DiscreteGaussian` says.

    Without a bound the table ends where what is left is less than any float.
    """

    sampling_probability: np.ndarray
    scale: np.ndarray
    sensitivity: np.ndarray
    whole_bound: np.ndarray

    laws = staticmethod(discrete_gaussian_laws)

    def log_delta_once(self, epsilon: np.ndarray, direction: str) -> np.ndarray:
        """As the sum; less than any float is left beyond the table."""
        value = super().log_delta_once(epsilon, direction)
        return np.where(epsilon < self.supremum(direction), np.maximum(value, -800.0), value)

    def supremum(self, direction: str) -> np.ndarray:
        """Where the noise goes on past the table: infinite, and for `add` -log(1-q)."""
        leaks = (self.sensitivity > 0) & (self.sampling_probability > 0) & np.isfinite(self.scale)
        past = self.whole_bound > _REACH * self.scale + self.sensitivity
        endless = leaks & (self.scale > 0) & past
        q = self.sampling_probability + np.zeros(self.shape)
        with np.errstate(divide="ignore"):
            end = np.inf if direction == "remove" else -np.log1p(-q)
        return np.where(endless, end, super().supremum(direction))


@dataclass(frozen=True, eq=False)
class SampledResponse(SampledTable):
    """Randomized response, and so whatever is (epsilon, delta)-private: see `Response`."""

    sampling_probability: np.ndarray
    epsilon: np.ndarray
    num_categories: np.ndarray
    delta: np.ndarray

    laws = staticmethod(response_laws)
