"""PrivacyLoss: what a composition of releases leaks, the one object every accountant reads.

    >>> from dpjax.accounting import loss
    >>> queries = 12 * loss.gaussian(4.0) + 3 * loss.laplace(10.0)
    >>> print(f"{queries.cumulant(1.0, 'both'):.6f}")
    0.778933

Parameters may be arrays: the loss then stands for a grid of compositions.
"""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import saved
from dpjax.accounting.composition import PrivacyLoss as PrivacyLoss
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.replaced_gaussian import ReplacedGaussian, SubsetGaussian
from dpjax.accounting.leaks.replaced_laplace import ReplacedLaplace, SubsetLaplace
from dpjax.accounting.leaks.response import Response, UniformResponse
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace

_ADJACENCIES = ("add_remove", "replace_one")


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
    return _once(Gaussian(checked))


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
    return _once(Laplace(checked))


def sampled_gaussian(
    sampling_probability: Any, noise_multiplier: Any, *, adjacency: str = "add_remove"
) -> PrivacyLoss:
    """One Gaussian release of a Poisson sample: DP-SGD's step.

    Args:
        sampling_probability: Chance of each record to take part, in [0, 1].
        noise_multiplier: Standard deviation of the noise over one record's clip norm, 0 to
            infinity.
        adjacency: "add_remove", one record more or less; or "replace_one", one record turned into
            another, which moves the sum by up to twice the clip norm.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> step = sampled_gaussian(0.01, 1.0)
    >>> step.directions
    ('remove', 'add')
    >>> sampled_gaussian(0.01, 1.0, adjacency="replace_one").directions
    ('both',)
    """
    q = _validate.probability(sampling_probability=sampling_probability)
    s = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    _validate.one_of(_ADJACENCIES, adjacency=adjacency)
    return _once((PoissonGaussian if adjacency == "add_remove" else ReplacedGaussian)(q, s))


def sampled_laplace(
    sampling_probability: Any, noise_multiplier: Any, *, adjacency: str = "add_remove"
) -> PrivacyLoss:
    """One Laplace release of a Poisson sample.

    Args:
        sampling_probability: Chance of each record to take part, in [0, 1].
        noise_multiplier: Scale b of the noise over one record's L1 clip norm, 0 to infinity. Below
            1/600 only the largest loss is known, not the cumulant.
        adjacency: "add_remove" or "replace_one", as for `sampled_gaussian`.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> query = sampled_laplace(0.2, 1.0)
    >>> print(query.supremum("remove").round(6), query.supremum("add").round(6))
    0.295395 0.13516
    """
    q = _validate.probability(sampling_probability=sampling_probability)
    b = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    _validate.one_of(_ADJACENCIES, adjacency=adjacency)
    return _once((PoissonLaplace if adjacency == "add_remove" else ReplacedLaplace)(q, b))


def subset_gaussian(sampled_fraction: Any, noise_multiplier: Any) -> PrivacyLoss:
    """One Gaussian release of a sample of fixed size, drawn without replacement.

    It holds for one record replaced by another, which keeps the size of the data. It leaks more
    than a Poisson sample of the same size.

    Args:
        sampled_fraction: Size of the sample over that of the data, in [0, 1].
        noise_multiplier: Standard deviation of the noise over one record's clip norm, 0 to
            infinity.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(subset_gaussian(1.0, 4.0).cumulant(1.0, "both").round(12))
    0.25
    """
    q = _validate.probability(sampled_fraction=sampled_fraction)
    s = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return _once(SubsetGaussian(q, s))


def subset_laplace(sampled_fraction: Any, noise_multiplier: Any) -> PrivacyLoss:
    """One Laplace release of a sample of fixed size, drawn without replacement.

    As `subset_gaussian`, with noise of a scale b over one record's L1 clip norm. Below 1/300 only
    the largest loss is known.

    >>> print(subset_laplace(1.0, 4.0).supremum("both"))
    0.5
    """
    q = _validate.probability(sampled_fraction=sampled_fraction)
    b = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return _once(SubsetLaplace(q, b))


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
    return _once(Response(checked, np.asarray(2.0), _validate.probability(delta=delta)))


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
    return _once(Response(epsilon, k, np.zeros(())) if replaced else UniformResponse(epsilon, k))


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
    return _once(DiscreteLaplace(checked, whole))


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
    return _once(DiscreteGaussian(checked, whole))


def from_json(text: str) -> PrivacyLoss:
    """The loss in a text of `PrivacyLoss.to_json`, with every parameter checked as by its family.

    Raises:
        ValueError: The text is no such loss, of another version, or has a parameter out of range.
        TypeError: A parameter is not a number.

    >>> print(from_json((12 * gaussian(4.0)).to_json()).cumulant(1.0, "both"))
    0.75
    """
    terms = [PrivacyLoss((term,)) for term in saved.load(text)]
    return sum(terms, PrivacyLoss())


def _once(leak: Leak) -> PrivacyLoss:
    """One release of a leak."""
    return PrivacyLoss(((leak, np.asarray(1)),))
