"""The losses of releases of a sample; public in `dpjax.accounting.loss`."""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.replaced_gaussian import ReplacedGaussian, SubsetGaussian
from dpjax.accounting.leaks.replaced_laplace import ReplacedLaplace, SubsetLaplace
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace
from dpjax.accounting.leaks.shuffled import Shuffled

_ADJACENCIES = ("add_remove", "replace_one")


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
    return once((PoissonGaussian if adjacency == "add_remove" else ReplacedGaussian)(q, s))


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
    return once((PoissonLaplace if adjacency == "add_remove" else ReplacedLaplace)(q, b))


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
    return once(SubsetGaussian(q, s))


def subset_laplace(sampled_fraction: Any, noise_multiplier: Any) -> PrivacyLoss:
    """One Laplace release of a sample of fixed size, drawn without replacement.

    As `subset_gaussian`, with noise of a scale b over one record's L1 clip norm. Below 1/300 only
    the largest loss is known.

    >>> print(subset_laplace(1.0, 4.0).supremum("both"))
    0.5
    """
    q = _validate.probability(sampled_fraction=sampled_fraction)
    b = _validate.non_negative_or_infinite(noise_multiplier=noise_multiplier)
    return once(SubsetLaplace(q, b))


def shuffled(epsilon: Any, num_reports: Any) -> PrivacyLoss:
    """The reports of many people, each by the same private local randomizer, in random order.

    It holds for the report of one person that changes, whatever the randomizer: an upper bound,
    which those of some randomizers do not reach.

    Args:
        epsilon: Of the local randomizer, 0 to infinity.
        num_reports: Whole and at least 1: one is not hidden by any other.

    Raises:
        ValueError: An argument is outside its range or NaN.

    Source: Feldman, McMillan, Talwar 2021, Section 3.

    >>> from dpjax.accounting import exact
    >>> print(exact.epsilon(shuffled(2.0, 10_000), 1e-6).round(3))
    0.155
    """
    e = _validate.non_negative_or_infinite(epsilon=epsilon)
    n = _validate.count(num_reports=num_reports).astype(np.float64)
    if np.any(n < 1):
        raise ValueError(f"num_reports = {num_reports}: expected a whole number of at least 1")
    return once(Shuffled(e, n))
