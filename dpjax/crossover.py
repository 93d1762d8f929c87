"""Where one error curve drops below another and stays there.

>>> import functools
>>> from dpjax import curves
>>> from dpjax.accounting import rdp
>>> classic = functools.partial(rdp.epsilon, conversion="classic")
>>> for accountant in (classic, rdp.epsilon):
...     challenger = curves.gaussian(1.0, 1e-5, accountant=accountant)
...     where = crossover(curves.laplace_basic(1.0), challenger, up_to=1000)
...     print(f"{where.k_star:.3f} {where.first_integer}")
12.008 13
8.182 9
"""

from typing import NamedTuple

import numpy as np

from dpjax import _validate
from dpjax.accounting._roots import bracketed_root
from dpjax.curves import ErrorCurve

_BLOCK = 4096  # whole k compared at once
_TIE = 1e-11  # relative difference of two errors that calibration does not resolve


class Crossover(NamedTuple):
    """Where the challenger takes the lead for good.

    Attributes:
        k_star: the real k >= 1 at which the curves cross. None where a curve takes whole k only,
            where the challenger leads from k = 1 on, and where it does not lead at the upper end.
        first_integer: the first whole k from which the challenger is no worse, at every whole k up
            to the upper end. None if it is worse at the upper end.
    """

    k_star: float | None
    first_integer: int | None


class CrossoverMap(NamedTuple):
    """`Crossover` over a grid: float64 arrays of the grid's shape, NaN where it has None."""

    k_star: np.ndarray
    first_integer: np.ndarray


def crossover(incumbent: ErrorCurve, challenger: ErrorCurve, *, up_to: int) -> Crossover:
    """Where the challenger's error drops below the incumbent's and stays there.

    Every whole k from 1 to up_to is compared, so the answer holds for curves that cross more than
    once; beyond up_to nothing is claimed.

    Args:
        incumbent: an error curve, or any that `dpjax.curves.ErrorCurve` wraps; no grid.
        challenger: the curve to overtake it, in the same error measure.
        up_to: the largest k compared, at least 1.

    Returns:
        Crossover(k_star, first_integer).

    Raises:
        ValueError: the measures differ, a curve has a grid (see `crossover_map`), or up_to is not a
            whole number of at least 1.
    """
    if incumbent.shape or challenger.shape:
        shape = np.broadcast_shapes(incumbent.shape, challenger.shape)
        raise ValueError(f"a grid of curves {shape}: expected single curves; see crossover_map")
    k_star, first = (float(v) for v in crossover_map(incumbent, challenger, up_to=up_to))
    return Crossover(
        None if np.isnan(k_star) else k_star, None if np.isnan(first) else round(first)
    )


def crossover_map(incumbent: ErrorCurve, challenger: ErrorCurve, *, up_to: int) -> CrossoverMap:
    """`crossover` over the grid of the curves' budgets, all at once.

    >>> from dpjax import curves
    >>> from dpjax.accounting import rdp
    >>> challenger = curves.gaussian([0.1, 1, 10], 1e-5, accountant=rdp.epsilon)
    >>> crossover_map(curves.laplace_basic([0.1, 1, 10]), challenger, up_to=100).first_integer
    array([ 6.,  9., 15.])
    """
    up_to = _validate.positive_count(up_to=up_to)
    if incumbent.measure != challenger.measure:
        raise ValueError(
            f"challenger measures {challenger.measure}: expected {incumbent.measure},"
            " as the incumbent does"
        )
    shape = np.broadcast_shapes(incumbent.shape, challenger.shape)

    def lead(k: np.ndarray) -> np.ndarray:
        """Log of the incumbent's error over the challenger's, at k of shape (n, *grid or 1s)."""
        with np.errstate(divide="ignore"):
            value = np.log(incumbent(k)) - np.log(challenger(k))
        return np.broadcast_to(value, (k.shape[0], *shape))

    def behind(k: np.ndarray) -> np.ndarray:
        """Whether the challenger's error is the larger one, with one calibration at most."""
        if incumbent.allows is not None:
            answer = incumbent.allows(k, challenger(k) * (1 - _TIE))
        elif challenger.allows is not None:
            answer = ~challenger.allows(k, incumbent(k) * (1 + _TIE))
        else:
            answer = challenger(k) > incumbent(k)
        return np.broadcast_to(answer, (k.shape[0], *shape))

    last_behind = np.zeros(shape)
    for start in range(1, up_to + 1, _BLOCK):
        k = np.arange(start, min(start + _BLOCK, up_to + 1)).reshape(-1, *(1 for _ in shape))
        last_behind = np.maximum(last_behind, np.max(np.where(behind(k), k, 0), axis=0))
    never = last_behind == up_to
    first = np.where(never, np.nan, last_behind + 1)
    crosses = ~never & (last_behind > 0)
    if not (incumbent.takes_real and challenger.takes_real and np.any(crosses)):
        return CrossoverMap(np.full(shape, np.nan), np.asarray(first))
    low = np.where(crosses, last_behind, 1.0)
    high = np.where(crosses, last_behind + 1, 1.0)
    _, k_star = bracketed_root(
        lambda k: lead(k[None])[0], low, high, lead(low[None])[0], lead(high[None])[0], 0.0
    )
    return CrossoverMap(np.where(crosses, k_star, np.nan), np.asarray(first))
