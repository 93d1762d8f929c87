"""The losses of choices by noisy scores; public in `dpjax.accounting.loss`.

All are known by their epsilon alone. Only the exponential mechanism is of bounded range, with a
quarter of the concentrated loss: see `bounds.exponential_mechanism`.
"""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.response import Response


def permute_and_flip(scale: Any, sensitivity: Any, *, monotone: bool = False) -> PrivacyLoss:
    """One choice by permute-and-flip: that of its epsilon, as `pure`.

    Args:
        scale: In units of the score, as the mechanism takes it; 0 to infinity.
        sensitivity: Largest change of any score by one record, 0 to infinity.
        monotone: Whether a record moves all scores one way, as with counts under add_remove: then
            epsilon is sensitivity / scale, and otherwise twice that.

    Raises:
        ValueError: An argument is negative or NaN.

    Source: McKenna and Sheldon 2020, Theorem 2; Dwork and Roth 2014, Section 3.3.

    >>> print(permute_and_flip(4.0, 1.0).supremum("both"))
    0.5
    """
    return _pure(selection_epsilon(scale, sensitivity, monotone=monotone))


def report_noisy_max(scale: Any, sensitivity: Any, *, monotone: bool = False) -> PrivacyLoss:
    """One choice by report noisy max with Laplace noise: that of its epsilon, as `pure`.

    Args and errors as for `permute_and_flip`. Source: Dwork and Roth 2014, Claim 3.9.

    >>> print(report_noisy_max(4.0, 1.0, monotone=True).supremum("both"))
    0.25
    """
    return _pure(selection_epsilon(scale, sensitivity, monotone=monotone))


def above_threshold(
    scale: Any, threshold_scale: Any, sensitivity: Any, *, monotone: bool = False
) -> PrivacyLoss:
    """One run of the sparse vector technique up to its first query above, however many there are.

    Args:
        scale: Of the noise on each query, as the mechanism takes it; 0 to infinity.
        threshold_scale: Of the noise on the threshold, likewise.
        sensitivity: Largest change of any query by one record, 0 to infinity.
        monotone: Whether a record moves all queries one way: then the part of the queries in
            epsilon is sensitivity / scale, and otherwise twice that.

    Raises:
        ValueError: An argument is negative or NaN.

    Source: Dwork and Roth 2014, Theorem 3.23; Lyu, Su and Li 2017, Algorithm 7.

    >>> print(above_threshold(8.0, 4.0, 1.0).supremum("both"))
    0.5
    """
    threshold = _validate.non_negative_or_infinite(threshold_scale=threshold_scale)
    once_only = selection_epsilon(threshold, sensitivity, monotone=True)
    queries = selection_epsilon(scale, sensitivity, monotone=monotone)
    return _pure(np.asarray(once_only + queries))


def selection_epsilon(scale: Any, sensitivity: Any, *, monotone: bool) -> np.ndarray:
    """Sensitivity / scale, twice if scores move both ways; 0 where nothing moves."""
    noise = _validate.non_negative_or_infinite(scale=scale)
    change = _validate.non_negative_or_infinite(sensitivity=sensitivity)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        epsilon = (1 if monotone else 2) * (change / noise)
    unmoved = (change == 0) | (np.isinf(noise) & np.isfinite(change))
    return np.asarray(np.where(unmoved, 0, np.where(np.isnan(epsilon), np.inf, epsilon)))


def _pure(epsilon: np.ndarray) -> PrivacyLoss:
    """As `loss.pure`."""
    return once(Response(epsilon, np.asarray(2.0), np.zeros(())))
