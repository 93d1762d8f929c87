"""Basic, advanced and optimal composition: what the guarantees of single queries alone tell.

A bounded loss counts by its supremum, the pure epsilon of one query; its mass at infinity is spent
from delta. A loss without a bound (Gaussian) has no pure epsilon and must be given a delta of its
own; delta is then split evenly over all such queries (the optimal split differs little), and each
counts by its exact epsilon there. All rules overstate epsilon, by the worse of the directions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.accounting import exact
from dpjax.accounting.composition import as_loss
from dpjax.accounting.leaks.response import Response
from dpjax.accounting.leaks.summed import releases
from dpjax.accounting.loss import PrivacyLoss

FORMS = ("exponential", "tanh", "logarithm")


def epsilon(loss: PrivacyLoss, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Basic composition, an accountant: the epsilons of the queries add up, and so do their deltas.

    Args:
        loss: any loss.
        delta: total delta in [0, 1], broadcast with the loss's grid. Bounded losses need none of
            it: k queries of epsilon each give k epsilon even at delta 0. Unbounded ones share
            what masses at infinity leave evenly: k Gaussians count k epsilon_exact(delta / k).

    Returns:
        Epsilon, an upper bound of the true one; infinite where delta does not suffice.

    Raises:
        ValueError: delta outside [0, 1] or NaN.

    >>> from dpjax.accounting import loss
    >>> laplace, gaussian = 10 * loss.laplace(2.0), 10 * loss.gaussian(8.0)
    >>> print(f"{epsilon(laplace, 0):.4f} {epsilon(gaussian, 1e-5):.4f}")
    5.0000 5.0386

    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, Theorem 1.
    """
    queries = _queries(loss, _validate.probability(delta=delta), share=1.0)
    return _where_delta_suffices(queries, queries.sum(lambda e: e), delta)


def advanced(
    loss: PrivacyLoss, delta: ArrayLike, *, form: str = "exponential"
) -> Float64[np.ndarray, "*grid"]:
    """Advanced composition, an accountant: epsilons add up in squares, at the price of a slack.

    For queries of epsilon_1, epsilon_2, ..., their squares adding up to S, and a slack delta':

    - "exponential": sum epsilon_i (e^epsilon_i - 1) + sqrt(2 S log(1/delta'));
    - "tanh": sum epsilon_i tanh(epsilon_i / 2) + sqrt(2 S log(1/delta'));
    - "logarithm": sum epsilon_i tanh(epsilon_i / 2) + sqrt(2 S log(e + sqrt(S)/delta')).

    It can exceed basic composition, and always does where epsilon_i >= log 2 with the first form:
    `best_of` takes the least. Bounded losses leave all of delta, less masses at infinity, as the
    slack. Unbounded ones (Gaussian) spend half of it on the queries, evenly, and half as slack.

    Args:
        loss: any loss.
        delta: total delta in [0, 1], broadcast with the loss's grid. Where no slack is left, basic
            composition is the answer.
        form: "exponential", "tanh" or "logarithm".

    Returns:
        Epsilon, an upper bound of the true one.

    Raises:
        ValueError: delta outside [0, 1] or NaN, or an unknown form.

    >>> from dpjax.accounting import loss
    >>> queries = 100 * loss.laplace(10.0)
    >>> print(f"{advanced(queries, 1e-5):.5f} {advanced(queries, 1e-5, form='tanh'):.5f}")
    5.85024 5.29811

    Source: Dwork, Rothblum, Vadhan 2010, Theorem III.3 ("exponential"); Kairouz, Oh, Viswanath
    2015, Theorem 3.5 (the others, and different queries).
    """
    _validate.one_of(FORMS, form=form)
    delta = _validate.probability(delta=delta)
    queries = _queries(loss, delta, share=0.5)
    squares = queries.sum(np.square)
    drift = queries.sum(lambda e: e * (np.expm1(e) if form == "exponential" else np.tanh(e / 2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_inverse = -np.log(queries.slack)
        if form == "logarithm":
            log_inverse = np.logaddexp(1, 0.5 * np.log(squares) + log_inverse)
        value = np.where(squares == 0, 0, drift + np.sqrt(2 * squares * log_inverse))
    return np.where(queries.slack > 0, np.where(delta == 1, 0, value), epsilon(loss, delta))


def best_of(loss: PrivacyLoss, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """The least of basic composition and the three forms of advanced: an accountant.

    >>> from dpjax.accounting import loss
    >>> print(best_of(np.array([2, 2000]) * loss.laplace(10.0), 1e-5).round(4))
    [ 0.2    31.4513]

    Source: Kairouz, Oh, Viswanath 2015, Theorems 3.4 and 3.5.
    """
    answers = [epsilon(loss, delta), *(advanced(loss, delta, form=form) for form in FORMS)]
    return np.asarray(np.min(np.stack(np.broadcast_arrays(*answers)), axis=0))


def optimal(loss: PrivacyLoss, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Optimal composition, an accountant: the least epsilon that the guarantees alone can prove.

    Each query counts as randomized response of its epsilon, which dominates it: this is `exact` of
    a sum of `loss.approximate`, never above `epsilon`, `advanced` or `best_of` for bounded losses.
    Unbounded ones (Gaussian) spend half of delta on the queries, evenly.

    Args:
        loss: any loss.
        delta: total delta in [0, 1], broadcast with the loss's grid.

    Returns:
        Epsilon, an upper bound of the true one; infinite where delta does not suffice.

    Raises:
        ValueError: delta outside [0, 1] or NaN.

    >>> from dpjax.accounting import loss
    >>> print(f"{optimal(100 * loss.laplace(10.0), 1e-6):.6f}")
    4.774568

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3; for different queries Murtagh and Vadhan 2016.
    """
    delta = _validate.probability(delta=delta)
    queries = _queries(loss, delta, share=0.5)
    total = PrivacyLoss()
    for count, epsilon, spent in zip(queries.counts, queries.epsilons, queries.spent, strict=True):
        total += PrivacyLoss(((Response(epsilon, np.asarray(2.0), spent), count),)).sum(-1)
    return exact.epsilon(total, delta)


def _where_delta_suffices(queries: "_Queries", value: np.ndarray, delta: ArrayLike) -> np.ndarray:
    """The value; infinity where masses at infinity exceed delta, 0 where delta is 1."""
    return np.where(np.asarray(delta) == 1, 0, np.where(queries.slack < 0, np.inf, value))


@dataclass(frozen=True)
class _Queries:
    """The queries one by one, after delta has paid for what it must."""

    counts: list[np.ndarray]  # the last axis is that of one `sum`
    epsilons: list[np.ndarray]
    spent: list[np.ndarray]  # of delta, by each
    slack: np.ndarray  # what is left of delta; negative where it does not suffice

    def sum(self, term: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Sum of term(epsilon) over all queries, on the grid."""
        total = np.zeros(self.slack.shape)
        for count, epsilon in zip(self.counts, self.epsilons, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                total = total + np.where(count == 0, 0, count * term(epsilon)).sum(-1)
        return np.asarray(total)


def _queries(loss: PrivacyLoss, delta: np.ndarray, share: float) -> _Queries:
    """Epsilon of each query; `share` of delta, less masses at infinity, goes to the unbounded."""
    parts = [releases(leak, count) for leak, count in as_loss(loss).terms]
    counts = [count for _, count in parts]
    singles = [PrivacyLoss(((leak, np.asarray(1)),)) for leak, _ in parts]
    masses = [_worst(single.infinite_mass, single) for single in singles]
    suprema = [_worst(single.supremum, single) for single in singles]
    grid = np.zeros(np.broadcast_shapes(loss.shape, delta.shape))
    left = delta - sum(((k * m).sum(-1) for k, m in zip(counts, masses, strict=True)), grid)
    number = sum(((k * np.isinf(s)).sum(-1) for k, s in zip(counts, suprema, strict=True)), grid)
    each = np.maximum(left, 0) * share / np.maximum(number, 1)
    epsilons, spent = [], []
    for single, mass, supremum in zip(singles, masses, suprema, strict=True):
        if np.any(np.isinf(supremum)):
            alone = exact.epsilon(single, np.minimum(mass + each[..., None], 1))
            mass = np.minimum(np.where(np.isinf(supremum), mass + each[..., None], mass), 1)
            supremum = np.where(np.isinf(supremum), alone, supremum)
        epsilons.append(supremum)
        spent.append(mass)
    spends = (number > 0) & (left > 0)
    return _Queries(counts, epsilons, spent, np.asarray(np.where(spends, (1 - share) * left, left)))


def _worst(value: Callable[[str], np.ndarray], loss: PrivacyLoss) -> np.ndarray:
    """The largest over the directions."""
    return np.asarray(np.max([value(direction) for direction in loss.directions], axis=0))
