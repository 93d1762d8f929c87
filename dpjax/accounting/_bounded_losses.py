"""The losses of staircase noise and of Laplace noise with bounds; public in `accounting.loss`."""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.response import Response
from dpjax.accounting.leaks.truncated_laplace import TruncatedLaplace


def staircase(noise_multiplier: Any, gamma: Any) -> PrivacyLoss:
    """One number with staircase noise, which is 1/noise_multiplier-DP at any gamma.

    Neighbours whose answers differ by a share of the sensitivity move the density by at most one
    step: the losses are epsilon, -epsilon and 0. Their chances follow from the total variation,
    largest at the whole sensitivity D, as the density falls on both sides: P(|noise| < D / 2).

    Args:
        noise_multiplier: Scale of the noise over the sensitivity, which is the width of its steps;
            0 to infinity. At 0 (in fact below 1/600) the loss counts as `pure`.
        gamma: Share of a step at the higher density, in [0, 1]. 1/2 leaks as randomized response,
            all others less.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(staircase(1.0, 0.5).cumulant(1.0, "both").round(6))
    0.735326
    >>> print(staircase(1.0, 0.3).cumulant(1.0, "both").round(6))
    0.690921
    """
    noise = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    g = _validate.probability(gamma=gamma)
    with np.errstate(divide="ignore", over="ignore"):
        epsilon = np.asarray(1 / noise)
    epsilon, g = np.broadcast_arrays(epsilon, g)
    b = np.exp(-np.minimum(epsilon, 600))
    # as a response of k categories, whose own answer has the chance 1 / (1 + (k - 1) b)
    others = np.where(g < 0.5, 1 / (2 * g + b * (1 - 2 * g)), (2 * g - 1) / b + 2 * (1 - g))
    categories = np.where(epsilon < 600, 1 + np.maximum(others, 1), 2.0)
    return once(Response(np.asarray(epsilon), categories, np.zeros(())))


def truncated_laplace(noise_multiplier: Any, bound: Any) -> PrivacyLoss:
    """One release with truncated Laplace noise, which may leak all near the ends of its noise.

    Args:
        noise_multiplier: Scale of the noise over the L1 sensitivity, 0 to infinity.
        bound: Of the noise, over the L1 sensitivity; at least 1, infinity allowed.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(truncated_laplace(1.0, 6.757).infinite_mass("both").round(6))
    0.001
    """
    noise = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    end = _validate.non_negative_or_infinite(bound=bound)
    if np.any(end < 1):
        raise ValueError(f"bound = {bound}: expected at least 1, the sensitivity")
    return once(TruncatedLaplace(noise, end))


def bounded_laplace(noise_multiplier: Any, width: Any) -> PrivacyLoss:
    """One answer by bounded Laplace noise: that of its epsilon, as `pure`.

    The mass C(v) of the noise inside of the domain depends on the value v; its logarithm is concave
    and nowhere steeper than 1 / scale. So the loss is largest between an end of the domain and the
    value one sensitivity D further in: D / scale + log C(D) / C(0), more than D / scale and at most
    twice that.

    Args:
        noise_multiplier: Scale of the noise over the L1 sensitivity D, 0 to infinity.
        width: Of the domain, upper - lower, over D; at least 0. Values differ by no more than it.

    Raises:
        ValueError: An argument is negative, infinite (the width) or NaN.

    Source: Holohan, Antonatos, Braghin and Mac Aonghusa 2020, Section 3.

    >>> print(bounded_laplace(2.0, 10.0).supremum("both").round(6))
    0.830553
    """
    noise = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    wide = _validate.non_negative(width=width)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step, whole = np.minimum(1, wide) / noise, wide / noise
        # C(D) = 1 - (exp(-step) + exp(step - whole)) / 2 and C(0) = (1 - exp(-whole)) / 2
        gain = -np.expm1(-step) - (np.exp(step - whole) - np.exp(-whole))
        epsilon = step + np.log1p(gain / -np.expm1(-whole))
    epsilon = np.where(noise == 0, np.where(wide == 0, 0, np.inf), epsilon)
    epsilon = np.where((wide == 0) | np.isinf(noise), 0, epsilon)
    return once(Response(np.asarray(epsilon), np.asarray(2.0), np.zeros(())))
