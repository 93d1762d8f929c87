"""PrivacyLoss: what a composition of releases leaks, the one object every accountant reads.

    >>> from dpjax.accounting import loss
    >>> queries = 12 * loss.gaussian(4.0) + 3 * loss.laplace(10.0)
    >>> print(f"{queries.cumulant(1.0, 'both'):.6f}")
    0.778933

Parameters may be arrays: the loss then stands for a grid of compositions.

The loss of each mechanism has its name here, with these exceptions:

    exponential_mechanism    bounds.exponential_mechanism (only a bound: not for `exact`)
    l2_laplace, linf_laplace                     pure(sensitivity / scale)
    a mechanism known by (epsilon, delta)        approximate(epsilon, delta)
    by rho, a range or a Rényi curve             bounds.zcdp, bounded_range, renyi_curve
    the best of a random number of runs          bounds.repeat_and_select
    on a Poisson sample, as DP-SGD               sampled_gaussian, sampled_laplace, sampled
    on a sample of fixed size                    subset_gaussian, subset_laplace
    many people's reports, shuffled              shuffled
"""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import saved
from dpjax.accounting._bounded_losses import bounded_laplace, staircase, truncated_laplace
from dpjax.accounting._sampled_losses import (
    gaussian_mixture,
    sampled,
    sampled_gaussian,
    sampled_laplace,
    shuffled,
    subset_gaussian,
    subset_laplace,
    truncated_discrete_gaussian,
)
from dpjax.accounting._selection_losses import (
    above_threshold,
    permute_and_flip,
    report_noisy_max,
)
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.response import Response, UniformResponse

__all__ = [
    "PrivacyLoss",
    "above_threshold",
    "approximate",
    "bounded_laplace",
    "discrete_gaussian",
    "discrete_laplace",
    "from_json",
    "gaussian",
    "gaussian_mixture",
    "k_ary_response",
    "laplace",
    "optimized_unary",
    "permute_and_flip",
    "pure",
    "randomized_response",
    "report_noisy_max",
    "sampled",
    "sampled_gaussian",
    "sampled_laplace",
    "shuffled",
    "staircase",
    "subset_gaussian",
    "subset_laplace",
    "symmetric_unary",
    "truncated_discrete_gaussian",
    "truncated_laplace",
]


def gaussian(noise_multiplier: Any) -> PrivacyLoss:
    """One Gaussian release.

    Args:
        noise_multiplier: Standard deviation of the noise over the L2 sensitivity, 0 to infinity. At
            0 the loss is infinite, at infinity nothing leaks.

    Raises:
        ValueError: The noise multiplier is negative or NaN.

    >>> print(gaussian(2.0).cumulant(1.0, "both"))
    0.25
    """
    checked = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return once(Gaussian(checked))


def laplace(noise_multiplier: Any) -> PrivacyLoss:
    """One Laplace release, which is 1/noise_multiplier-DP.

    Args:
        noise_multiplier: Scale b of the noise over the L1 sensitivity, 0 to infinity. At 0 the
            loss is infinite, at infinity nothing leaks.

    Raises:
        ValueError: The noise multiplier is negative or NaN.

    >>> print(laplace(2.0).supremum("both"))
    0.5
    """
    checked = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return once(Laplace(checked))


def pure(epsilon: Any) -> PrivacyLoss:
    """One release of which only its guarantee is known: epsilon-private.

    It counts as randomized response of that epsilon, which dominates every such release, so that
    `exact` of a sum of these is optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.2).

    Args:
        epsilon: 0 to infinity.

    Raises:
        ValueError: Epsilon is negative or NaN.

    >>> print(pure(0.5).supremum("both"))
    0.5
    """
    return approximate(epsilon, 0.0)


def approximate(epsilon: Any, delta: Any) -> PrivacyLoss:
    """One release of which only its guarantee is known: (epsilon, delta)-private.

    As `pure`, with everything revealed with chance delta.

    Args:
        epsilon: 0 to infinity.
        delta: In [0, 1].

    Raises:
        ValueError: Epsilon or delta is outside its range or NaN.

    >>> print(approximate(0.5, 1e-6).infinite_mass("both"))
    1e-06
    """
    checked = _validate.non_negative_or_infinite(epsilon=epsilon)
    return once(Response(checked, np.asarray(2.0), _validate.probability(delta=delta)))


def randomized_response(scale: Any) -> PrivacyLoss:
    """One person's yes or no by randomized response: `k_ary_response` with two categories.

    >>> print(randomized_response(2.0).supremum("both"))
    0.5
    """
    return k_ary_response(scale, 2)


def k_ary_response(
    scale: Any, num_categories: Any, *, adjacency: str = "replace_one"
) -> PrivacyLoss:
    """One person's category, answered with exp(1/scale) times the chance of each other one.

    Args:
        scale: 1/epsilon, as the mechanism takes it; 0 to infinity. At 0 the loss is infinite.
        num_categories: Whole and at least 2.
        adjacency: "replace_one", two answers of one person; or "add_remove", where a person who is
            not there answers uniformly.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> leak = k_ary_response(1.0, 3, adjacency="add_remove")
    >>> print(leak.supremum("remove").round(6), leak.supremum("add").round(6))
    0.547168 0.452832
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    k = _validate.count(num_categories=num_categories).astype(np.float64)
    if np.any(k < 2):
        raise ValueError(
            f"num_categories = {num_categories}: expected a whole number of at least 2"
        )
    _validate.one_of(("replace_one", "add_remove"), adjacency=adjacency)
    with np.errstate(divide="ignore", over="ignore"):
        epsilon = np.asarray(1 / checked)
    replaced = adjacency == "replace_one"
    return once(Response(epsilon, k, np.zeros(())) if replaced else UniformResponse(epsilon, k))


def symmetric_unary(scale: Any) -> PrivacyLoss:
    """One person's category by symmetric unary encoding, when it becomes another one.

    Two bits differ, each a randomized response of half the epsilon, 1 / scale.

    Args:
        scale: 1/epsilon, as the mechanism takes it; 0 to infinity. At 0 the loss is infinite.

    Raises:
        ValueError: The scale is negative or NaN.

    >>> print(symmetric_unary(2.0).supremum("both"))
    0.5
    """
    return 2 * randomized_response(2 * _validate.non_negative_or_infinite(scale=scale))


def optimized_unary(scale: Any) -> PrivacyLoss:
    """One person's category by optimized unary encoding, when it becomes another one.

    Of the two bits that differ, (1, 0) is answered with chance p / 2 in place of (1 - p) / 2,
    p = 1 / (1 + exp(-epsilon)), and (0, 1) the other way around: the losses are epsilon, -epsilon
    and 0, as of a response with exp(epsilon) + 3 categories.

    Args:
        scale: 1/epsilon, as the mechanism takes it; 0 to infinity. At 0 the loss is infinite.

    Raises:
        ValueError: The scale is negative or NaN.

    >>> print(optimized_unary(1.0).cumulant(1.0, "both").round(6))
    0.433781
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    with np.errstate(divide="ignore", over="ignore"):
        epsilon = np.asarray(1 / checked)
    categories = np.exp(np.minimum(epsilon, 600)) + 3  # fewer leak more
    return once(Response(epsilon, np.asarray(categories), np.zeros(())))


def discrete_laplace(scale: Any, sensitivity: Any) -> PrivacyLoss:
    """One whole number with discrete Laplace noise: sensitivity/scale-private.

    Args:
        scale: Of the noise, P(x) proportional to exp(-|x|/scale); 0 to infinity.
        sensitivity: Largest change of the number, whole and at least 0.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(discrete_laplace(4.0, 2).supremum("both"))
    0.5
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    whole = _validate.count(sensitivity=sensitivity).astype(np.float64)
    return once(DiscreteLaplace(checked, whole))


def discrete_gaussian(scale: Any, sensitivity: Any) -> PrivacyLoss:
    """One whole number with discrete Gaussian noise.

    Where the scale is small the losses lie far apart, and delta at one epsilon may rise with it.

    Args:
        scale: Of the noise, P(x) proportional to exp(-x^2/(2 scale^2)); 0 to infinity.
        sensitivity: Largest change of the number, whole and at least 0.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(discrete_gaussian(2.0, 1).cumulant(1.0, "both").round(12))
    0.25
    """
    checked = _validate.non_negative_or_infinite(scale=scale)
    whole = _validate.count(sensitivity=sensitivity).astype(np.float64)
    return once(DiscreteGaussian(checked, whole))


def from_json(text: Any) -> PrivacyLoss:
    """The loss in a text of `PrivacyLoss.to_json`, with every parameter checked as by its family.

    Raises:
        ValueError: The text is no such loss, of another version, or has a parameter out of range.
        TypeError: The text is none, or a parameter is not a number.

    >>> print(from_json((12 * gaussian(4.0)).to_json()).cumulant(1.0, "both"))
    0.75
    """
    terms = [PrivacyLoss((term,)) for term in saved.load(text)]
    return sum(terms, PrivacyLoss())
