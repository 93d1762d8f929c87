"""Losses from the events of the package dp-accounting, which describe what was released.

Events are read by their class names and fields: the package itself is not imported.

    >>> from dp_accounting import dp_event
    >>> step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
    >>> training = from_dp_event(dp_event.SelfComposedDpEvent(step, 1000))
    >>> from dpjax.accounting import exact
    >>> print(f"{exact.epsilon(training, 1e-5):.6f}")
    1.828237
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import bounds, gdp, loss
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.loss import PrivacyLoss

ADJACENCIES = ("add_remove", "replace_one")


def from_dp_event(event: Any, *, adjacency: str = "add_remove") -> PrivacyLoss:
    """What an event of dp-accounting leaks.

    Args:
        event: Gaussian, Laplace, discrete Laplace, randomized response, zCDP with xi = 0, no-op,
            tree aggregation, compositions of these; one of these repeated and the best one kept; a
            Poisson sample of Gaussians, all on the same sample, or of one Laplace; a sample without
            replacement of the same; under add_remove Gaussian mixtures and a Poisson sample of
            whatever `loss.sampled` takes; and anything of class EpsilonDeltaDpEvent with `epsilon`
            and `delta`.
        adjacency: "add_remove", one record more or less, which randomized response takes as an
            answer in place of a uniform one; or "replace_one", one record turned into another,
            which moves a sum of clipped records by up to twice the clip norm, as the package's
            accountant of privacy losses takes it too; its Rényi accountant takes once the clip norm
            (Laplace, sampling without replacement) and says less. A guarantee in itself (zCDP,
            epsilon and delta) is taken to be for it.

    Raises:
        TypeError: `event` is no event of dp-accounting.
        ValueError: The event, or one in it, is of a kind that has no loss here, is not private, or
            has a field out of its range.
    """
    _validate.one_of(ADJACENCIES, adjacency=adjacency)
    terms = _read(event, adjacency).terms
    return sum((PrivacyLoss((term,)) for term in _merged(terms)), PrivacyLoss())


def _read(event: Any, adjacency: str) -> PrivacyLoss:
    """The loss of one event and of those in it."""
    name = type(event).__name__
    if not name.endswith("DpEvent"):
        shown = " ".join(repr(event).split())[:60]
        raise TypeError(f"event = {shown}: expected an event of dp-accounting")
    if name not in _READERS:
        raise ValueError(f"event = {name}: expected one of {', '.join(_READERS)}")
    return _READERS[name](event, adjacency)


def _gaussian(event: Any, adjacency: str) -> PrivacyLoss:
    """Noise over the clip norm."""
    return loss.gaussian(np.asarray(event.noise_multiplier) / _moves(adjacency))


def _laplace(event: Any, adjacency: str) -> PrivacyLoss:
    """Noise over the L1 clip norm."""
    return loss.laplace(np.asarray(event.noise_multiplier) / _moves(adjacency))


def _discrete_laplace(event: Any, adjacency: str) -> PrivacyLoss:
    """A noise parameter that is 1 / scale."""
    rate = _validate.positive(noise_parameter=event.noise_parameter)
    return loss.discrete_laplace(1 / rate, event.sensitivity * _moves(adjacency))


def _response(event: Any, adjacency: str) -> PrivacyLoss:
    """The own answer with chance 1 - p, else any of the k."""
    p = _validate.probability(noise_parameter=event.noise_parameter)
    with np.errstate(divide="ignore"):
        scale = 1 / np.log1p((1 - p) * event.num_buckets / p)  # epsilon is infinite at p = 0
    return loss.k_ary_response(scale, event.num_buckets, adjacency=adjacency)


def _zcdp(event: Any, adjacency: str) -> PrivacyLoss:
    """A Rényi divergence of xi + rho times the order."""
    if event.xi != 0:
        raise ValueError(f"xi = {event.xi}: expected 0, for which there is a loss")
    return bounds.zcdp(event.rho)


def _mixture(event: Any, adjacency: str) -> PrivacyLoss:
    """Gaussian noise on a sum that a record, which is there or not, moves at random."""
    if adjacency != "add_remove":
        raise ValueError(f"adjacency = {adjacency!r}: expected 'add_remove' for a mixture")
    chances = event.sampling_probs
    return loss.gaussian_mixture(event.standard_deviation, event.sensitivities, chances)


def _tree(event: Any, adjacency: str) -> PrivacyLoss:
    """Sums over a binary tree's nodes, of which a record is in one on each level of one tree."""
    steps = _validate.count(step_counts=event.step_counts)
    if np.any(steps < 1):
        raise ValueError(f"step_counts = {event.step_counts}: expected whole numbers of at least 1")
    levels = int(np.max(steps)).bit_length()
    return levels * loss.gaussian(np.asarray(event.noise_multiplier) / _moves(adjacency))


def _repeated(event: Any, adjacency: str) -> PrivacyLoss:
    """One event many times."""
    return _validate.count(count=event.count) * _read(event.event, adjacency)


def _composed(event: Any, adjacency: str) -> PrivacyLoss:
    """A list of events."""
    terms = [term for each in event.events for term in _read(each, adjacency).terms]
    return PrivacyLoss(tuple(terms))


def _poisson(event: Any, adjacency: str) -> PrivacyLoss:
    """A Poisson sample."""
    inside = _read(event.event, "add_remove")
    plain = {Gaussian, Laplace} >= {type(leak) for leak, _ in inside.terms}
    if adjacency == "add_remove" and not plain:
        return loss.sampled(event.sampling_probability, inside)
    options = {
        Gaussian: lambda q, m: loss.sampled_gaussian(q, m, adjacency=adjacency),
        Laplace: lambda q, m: loss.sampled_laplace(q, m, adjacency=adjacency),
    }
    return _sampled(event, event.sampling_probability, options)


def _subset(event: Any, adjacency: str) -> PrivacyLoss:
    """A sample of fixed size, which replace_one leaves as it is and add_remove does not."""
    if adjacency != "replace_one":
        raise ValueError(
            f"adjacency = {adjacency!r}: expected 'replace_one' for {type(event).__name__}"
        )
    size = _validate.positive(source_dataset_size=event.source_dataset_size)
    share = _validate.probability(sampled_fraction=event.sample_size / size)
    return _sampled(event, share, {Gaussian: loss.subset_gaussian, Laplace: loss.subset_laplace})


def _sampled(
    event: Any, share: Any, options: dict[type, Callable[..., PrivacyLoss]]
) -> PrivacyLoss:
    """A sample of Gaussians, as one of less noise, or of one Laplace."""
    inside = _read(event.event, "add_remove")
    kinds = {type(leak) for leak, _ in inside.terms}
    if not kinds:
        return inside
    if kinds == {Gaussian}:
        with np.errstate(divide="ignore"):
            return options[Gaussian](share, 1 / gdp.mu(inside))
    (leak, count), *others = inside.terms
    if not isinstance(leak, Laplace) or others or np.any(count != 1):
        raise ValueError(
            f"event = {type(event.event).__name__} of a sample: expected Gaussians or one Laplace"
        )
    return options[Laplace](share, leak.noise_multiplier)


def _no_loss(event: Any, adjacency: str) -> PrivacyLoss:
    """An event that nothing bounds."""
    raise ValueError(f"event = {type(event).__name__}: expected a private event")


_READERS: dict[str, Callable[[Any, str], PrivacyLoss]] = {
    "NoOpDpEvent": lambda event, adjacency: PrivacyLoss(),
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _response,
    "MixtureOfGaussiansDpEvent": _mixture,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "ZCDpEvent": _zcdp,
    "RepeatAndSelectDpEvent": lambda event, adjacency: bounds.repeat_and_select(
        _read(event.event, adjacency), event.mean, event.shape
    ),
    "EpsilonDeltaDpEvent": lambda event, adjacency: loss.approximate(event.epsilon, event.delta),
    "SelfComposedDpEvent": _repeated,
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": _poisson,
    "SampledWithoutReplacementDpEvent": _subset,
    "NonPrivateDpEvent": _no_loss,
}


def _moves(adjacency: str) -> int:
    """How many clip norms a record can move a sum by."""
    return 1 if adjacency == "add_remove" else 2


def _merged(terms: tuple[Any, ...]) -> list[Any]:
    """Single releases of one family as one array, summed: long lists of events stay quick."""
    kinds: dict[Any, list[Any]] = {}
    for leak, count in terms:
        shapes = (np.shape(getattr(leak, field.name)) for field in dataclasses.fields(leak))
        kinds.setdefault((type(leak), *shapes), []).append((leak, count))
    result = []
    for (kind, *_), group in kinds.items():
        if len(group) == 1:
            result += group
            continue
        counts = np.array([int(count) for _, count in group])
        fields = [field.name for field in dataclasses.fields(kind)]
        stacked = {name: np.array([getattr(leak, name) for leak, _ in group]) for name in fields}
        result += PrivacyLoss(((kind(**stacked), counts),)).sum().terms
    return result
