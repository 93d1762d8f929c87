"""The losses of releases of a sample; public in `dpjax.accounting.loss`."""

import dataclasses
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.gaussian_mixture import GaussianMixture
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.replaced_gaussian import ReplacedGaussian, SubsetGaussian
from dpjax.accounting.leaks.replaced_laplace import ReplacedLaplace, SubsetLaplace
from dpjax.accounting.leaks.response import Response, UniformResponse, two_answers
from dpjax.accounting.leaks.sampled_discrete import (
    SampledDiscreteGaussian,
    SampledDiscreteLaplace,
    SampledResponse,
)
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace
from dpjax.accounting.leaks.shuffled import Shuffled

_ADJACENCIES = ("add_remove", "replace_one")
_SAMPLED: dict[type[Leak], type[Leak]] = {
    Gaussian: PoissonGaussian,
    Laplace: PoissonLaplace,
    DiscreteLaplace: SampledDiscreteLaplace,
    DiscreteGaussian: SampledDiscreteGaussian,
    Response: SampledResponse,
}


def sampled(sampling_probability: Any, release: Any) -> PrivacyLoss:
    """One release of a Poisson sample, for one record more or less.

    Args:
        sampling_probability: Chance of each record to take part, in [0, 1].
        release: The loss of one release for a record that is in the sample for sure, and may be
            added or removed: `gaussian`, `laplace`, `discrete_laplace`, `discrete_gaussian` or a
            truncated one, `pure`, `approximate`, what is as `pure` (`staircase`,
            `permute_and_flip`, ...), `k_ary_response` under add_remove, or itself of a sample.
            A loss does not know its adjacency: those of `randomized_response` and
            `optimized_unary`, where a record turns into another, look like `pure` and are not meant
            (use `k_ary_response(scale, 2, adjacency="add_remove")`). Whole-number noise with more
            than 2^15 different losses (a scale beyond 400) counts as a bit less, by 1e-6 or so;
            with more than 2^22 (a scale beyond 50,000) nothing is known.

    Raises:
        TypeError: The release is no loss.
        ValueError: It is another one or more than one, or the probability is outside of [0, 1].

    Source: Zhu, Dong, Wang 2022, Theorem 11.

    >>> from dpjax.accounting.loss import pure
    >>> print(sampled(0.1, pure(1.0)).supremum("remove").round(6))
    0.158565
    >>> print(np.log(1 + 0.1 * (np.exp(1.0) - 1)).round(6))
    0.158565
    """
    q = _validate.probability(sampling_probability=sampling_probability)
    if not isinstance(release, PrivacyLoss):
        raise TypeError(f"release = {release!r}: expected a privacy loss")
    leak, count = release.terms[0] if len(release.terms) == 1 else (None, np.zeros(()))
    sampleable = (*_SAMPLED, *_SAMPLED.values(), UniformResponse)
    if not isinstance(leak, sampleable) or np.any(count != 1):
        names = ", ".join(family.__name__ for family in _SAMPLED)
        shown = ", ".join(f"{n} of {type(each).__name__}" for each, n in release.terms)
        raise ValueError(f"release = {shown or 'nothing'}: expected 1 of {names}, or of a sample")
    if isinstance(leak, Response) and np.any(leak.num_categories > 2):
        raise ValueError(
            "release = k_ary_response where a record turns into another: expected"
            ' adjacency="add_remove"'
        )
    two = two_answers(leak)
    if two is not None:
        return once(two.sampled(q))
    fields = {field.name: getattr(leak, field.name) for field in dataclasses.fields(leak)}
    fields["sampling_probability"] = np.asarray(q * fields.get("sampling_probability", 1.0))
    if isinstance(leak, DiscreteGaussian):
        fields["whole_bound"] = np.asarray(np.inf)
    return once(_SAMPLED.get(type(leak), type(leak))(**fields))


def gaussian_mixture(scale: Any, sensitivities: Any, probabilities: Any) -> PrivacyLoss:
    """One Gaussian release of a sum that one record moves by a random amount.

    So it is where a record takes part several times by chance, as in some matrix mechanisms. With
    sensitivities 0 and 1 it is `sampled_gaussian`.

    Args:
        scale: Standard deviation of the noise, in the sum's units; 0 to infinity.
        sensitivities: What the record may move the sum by, at least 0, (*grid, n).
        probabilities: Their chances, which add up to 1, (*grid, n).

    Raises:
        ValueError: An argument is outside its range or NaN, or the shapes differ.

    Source: Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (arXiv 2310.15526).

    >>> print(gaussian_mixture(1.0, [0, 1, 2], [0.2, 0.6, 0.2]).supremum("add").round(6))
    1.609438
    """
    noise = _validate.non_negative_or_infinite(scale=scale)
    shifts = np.atleast_1d(_validate.non_negative(sensitivities=sensitivities))
    p = np.atleast_1d(_validate.probability(probabilities=probabilities))
    if shifts.shape[-1] != p.shape[-1] or p.shape[-1] == 0:
        raise ValueError(
            f"probabilities have shape {p.shape}: expected (..., {shifts.shape[-1]}), at least one"
        )
    if np.any(np.abs(p.sum(-1) - 1) > 1e-12):
        raise ValueError(f"probabilities = {probabilities}: expected a sum of 1")
    tiny = noise < 1e-100 * shifts.max(-1)  # whose square would underflow: as none
    return once(GaussianMixture(np.where(tiny, 0.0, noise), shifts, p))


def truncated_discrete_gaussian(scale: Any, sensitivity: Any, bound: Any) -> PrivacyLoss:
    """One whole number with discrete Gaussian noise that is drawn anew while beyond a bound.

    Args:
        scale: Of the noise, P(x) proportional to exp(-x^2/(2 scale^2)); 0 to infinity.
        sensitivity: Largest change of the number, whole and at least 0.
        bound: Of the noise, whole; infinity allowed. Below half of the sensitivity all is leaked.

    Raises:
        ValueError: An argument is outside its range or NaN.

    >>> print(truncated_discrete_gaussian(1.0, 1, 2).infinite_mass("remove").round(6))
    0.054489
    """
    noise = _validate.non_negative_or_infinite(scale=scale)
    whole = _validate.count(sensitivity=sensitivity).astype(np.float64)
    end = _validate.non_negative_or_infinite(bound=bound)
    if np.any(end != np.floor(end)):
        raise ValueError(f"bound = {bound}: expected a whole number or infinity")
    return once(SampledDiscreteGaussian(np.ones(()), noise, whole, end))


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

    It holds for one record replaced by another, which keeps the size of the data and moves the sum
    by up to twice the clip norm. It leaks more than a Poisson sample of the same size. Where the
    noise is compared with the most that a replaced record moves the sum, as dp-accounting's event
    does, give twice that multiplier.

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
