"""What a guarantee means to an attacker who asks whether one record is in the data.

The attacker sees the output and decides; the guarantee bounds every pair of error rates. A
trade-off curve gives the least miss rate (false negatives) at each false positive rate; the true
positive rate is one less it. Curves are the attacker's best case: a risk is overstated, never
understated. At 1 % of false positives and (4, 1e-6), of any mechanism and of the Gaussian:

    >>> from dpjax.accounting import gaussian
    >>> bound = 1 - tradeoff_of_guarantee(0.01, epsilon=4, delta=1e-6)
    >>> exact = 1 - tradeoff_of_gaussian(0.01, mu=gaussian.mean_shift(4, 1e-6))
    >>> print(f"true positives: {bound:.1%} {exact:.1%}")
    true positives: 54.6% 6.8%
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.accounting import exact, tradeoff
from dpjax.accounting._minimum import quasi_convex_minimum
from dpjax.accounting._typing import Reals
from dpjax.accounting.loss import PrivacyLoss

_MAX_EPSILON = 60.0  # beyond, e^-epsilon is below rounding


def tradeoff_of_guarantee(
    fpr: ArrayLike, *, epsilon: ArrayLike, delta: ArrayLike
) -> Float64[np.ndarray, "*grid"]:
    """Least miss rate at a false positive rate under (epsilon, delta), for any mechanism.

    Args:
        fpr: false positive rate in [0, 1].
        epsilon: at least 0, infinity allowed.
        delta: in [0, 1].

    Returns:
        max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)), broadcast.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{tradeoff_of_guarantee(0.01, epsilon=1, delta=0.01):.6f}")
    0.962817

    Source: Kairouz, Oh, Viswanath 2015, Theorem 2.1; Dong, Roth, Su 2022, Section 2.
    """
    fpr = _validate.probability(fpr=fpr)
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    delta = _validate.probability(delta=delta)
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.where(fpr > 0, 1 - delta - np.exp(epsilon) * fpr, 1 - delta)
    return np.asarray(np.maximum(np.maximum(steep, np.exp(-epsilon) * (1 - delta - fpr)), 0))


def advantage_of_guarantee(epsilon: ArrayLike, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Largest true less false positive rate under (epsilon, delta), for any mechanism.

    The balanced accuracy is at most (1 + advantage) / 2. Of one mechanism, the advantage is its
    delta at epsilon 0, such as `gaussian.delta(0, mu=mu)`.

    Args:
        epsilon: at least 0, infinity allowed.
        delta: in [0, 1].

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{advantage_of_guarantee(1, 0.01):.6f}")
    0.467496

    Source: Kairouz, Oh, Viswanath 2015, Theorem 2.1, at equal rates of error.
    """
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    delta = _validate.probability(delta=delta)
    return np.asarray(delta + (1 - delta) * np.tanh(epsilon / 2))


def tradeoff_of_gaussian(fpr: ArrayLike, *, mu: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Least miss rate at a false positive rate for Gaussian noise of mean shift `mu`: exact.

    Args:
        fpr: false positive rate in [0, 1].
        mu: mean shift in standard deviations (of a composition, see `gaussian`), at least 0.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{tradeoff_of_gaussian(0.001, mu=1):.6f}")
    0.981702

    Source: Dong, Roth, Su 2022, Section 2.
    """
    fpr = _validate.probability(fpr=fpr)
    mu = _validate.non_negative_or_infinite(mu=mu)
    with np.errstate(invalid="ignore"):
        miss = special.ndtr(-special.ndtri(fpr) - mu)
    return np.asarray(np.where(fpr == 0, np.where(np.isinf(mu), 0, 1), miss))


def tradeoff_of_laplace(
    fpr: ArrayLike, *, noise_multiplier: ArrayLike
) -> Float64[np.ndarray, "*grid"]:
    """Least miss rate at a false positive rate for one release of Laplace noise: exact.

    Args:
        fpr: false positive rate in [0, 1].
        noise_multiplier: scale over sensitivity, above 0.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{tradeoff_of_laplace(0.2, noise_multiplier=1):.6f}")
    0.459849

    Source: Dong, Roth, Su 2022, Section 2.
    """
    fpr = _validate.probability(fpr=fpr)
    e0 = 1 / _validate.positive(noise_multiplier=noise_multiplier)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        middle = np.exp(-e0) / (4 * fpr)
        miss = np.where(fpr < np.exp(-e0) / 2, 1 - np.exp(e0) * fpr, middle)
    return np.asarray(np.where(fpr > 0.5, np.exp(-e0) * (1 - fpr), np.where(fpr == 0, 1, miss)))


def tradeoff_of_profile(
    fpr: ArrayLike, profile: Callable[[np.ndarray], np.ndarray]
) -> Float64[np.ndarray, "*points"]:
    """Least miss rate at a false positive rate, from a privacy profile.

    Args:
        fpr: false positive rates in [0, 1], a scalar or one axis.
        profile: from an array of epsilons to their deltas in both directions of the adjacency, such
            as `functools.partial(rdp.delta, loss)`; an upper bound serves.

    Returns:
        The largest miss rate that (epsilon, profile(epsilon)) proves over epsilon >= 0. Where the
        profile is an upper bound, or has kinks between which the search must choose, it is a lower
        bound of the true curve: the safe side.

    Raises:
        ValueError: fpr outside [0, 1] or NaN.

    >>> import functools
    >>> from dpjax.accounting import gaussian
    >>> profile = functools.partial(gaussian.delta, mu=1)
    >>> print(f"{tradeoff_of_profile(0.001, profile):.6f}")
    0.981702

    Source: Dong, Roth, Su 2022, Section 2 (the primal-dual relation).
    """
    fpr = np.asarray(_validate.probability(fpr=fpr))

    def missed_by(side: Callable[[np.ndarray, np.ndarray], Reals]) -> np.ndarray:
        """Largest of one side; concave in e^epsilon or in e^-epsilon."""

        def negative(epsilon: np.ndarray) -> Reals:
            epsilon = np.asarray(np.maximum(epsilon, 0))
            return -side(epsilon, np.asarray(profile(epsilon)))

        low = np.zeros(fpr.shape)
        _, least = quasi_convex_minimum(negative, low, low + _MAX_EPSILON, 0.5)
        return np.asarray(-least)

    x = fpr[..., None]
    steep = missed_by(lambda epsilon, delta: 1 - delta - np.exp(epsilon) * x)
    flat = missed_by(lambda epsilon, delta: np.exp(-epsilon) * (1 - delta - x))
    return np.asarray(np.clip(np.maximum(steep, flat), 0, 1))


def tradeoff_of_loss(fpr: ArrayLike, loss: PrivacyLoss) -> Float64[np.ndarray, "*points"]:
    """Least miss rate at a false positive rate, from the exact profile of one composition.

    Args:
        fpr: false positive rates in [0, 1].
        loss: one composition of pairs.

    Returns:
        The lower end of `tradeoff.bracket`: proven, and within about 1e-9 of the truth.

    Raises:
        ValueError: fpr outside [0, 1] or NaN, or a loss that is a grid or only a bound.

    >>> from dpjax.accounting import loss
    >>> print(f"{tradeoff_of_loss(0.001, 10_000 * loss.sampled_gaussian(0.01, 1.0)):.6f}")
    0.961987
    """
    return tradeoff.bracket(loss, fpr).lower


def advantage_of_loss(loss: PrivacyLoss) -> Float64[np.ndarray, "*grid"]:
    """Largest true less false positive rate against a composition: its delta at epsilon 0.

    Args:
        loss: a composition of pairs, or a grid of them.

    Returns:
        The total variation distance, from above.

    Raises:
        ValueError: a loss that is only a bound.

    >>> from dpjax.accounting import loss
    >>> print(f"{advantage_of_loss(10_000 * loss.sampled_gaussian(0.01, 1.0)):.6f}")
    0.480072
    """
    return exact.delta(loss, 0.0)


def positive_predictive_value(
    *, fpr: ArrayLike, tpr: ArrayLike, prior: ArrayLike = 0.5
) -> Float64[np.ndarray, "*grid"]:
    """Share of an attacker's positives that are right, when a fraction `prior` of records is in.

    Args:
        fpr: false positive rate in [0, 1].
        tpr: true positive rate in [0, 1].
        prior: in [0, 1]; 0 / 0 (no positives at all) gives the prior.

    Raises:
        ValueError: an argument outside [0, 1] or NaN.

    >>> print(f"{positive_predictive_value(fpr=0.001, tpr=0.051):.6f}")
    0.980769
    """
    fpr, tpr = _validate.probability(fpr=fpr), _validate.probability(tpr=tpr)
    prior = _validate.probability(prior=prior)
    right, wrong = prior * tpr, (1 - prior) * fpr
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(right + wrong > 0, right / (right + wrong), prior))


def posterior(prior: ArrayLike, *, epsilon: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Largest belief that a record is in after an epsilon-private output: odds times e^epsilon.

    Args:
        prior: belief before, in [0, 1].
        epsilon: of a pure guarantee; at least 0, infinity allowed. Under (epsilon, delta) it may be
            exceeded by outputs of small probability.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{posterior(0.5, epsilon=1):.6f} {posterior(0.01, epsilon=1):.6f}")
    0.731059 0.026724

    Source: Kasiviswanathan and Smith 2014 (the semantics of differential privacy).
    """
    prior = _validate.probability(prior=prior)
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    with np.errstate(invalid="ignore"):
        value = prior / (prior + (1 - prior) * np.exp(-epsilon))
    return np.asarray(np.where(prior == 0, 0.0, value))
