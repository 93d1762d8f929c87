"""What counts of an event prove about epsilon: Clopper-Pearson bounds on both of its chances.

Under (epsilon, delta)-DP an event has P <= e^epsilon Q + delta, with P and Q its chances on two
neighbours. A lower bound on P and an upper bound on Q, each wrong with at most half of what the
confidence leaves, prove epsilon >= log((P - delta) / Q). The event must not have been chosen by
the same counts. NumPy and SciPy only.
"""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate

Reals = Float64[np.ndarray, "*grid"]


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, level: ArrayLike
) -> tuple[Reals, Reals]:
    """Lower and upper bound on a chance, each wrong with probability at most `level`.

    Exact binomial tails, so conservative: no approximation to the normal.

    Args:
        successes: whole, at most `trials`; 0 has lower bound 0, all of them upper bound 1.
        trials: at least 1.
        level: of each bound, in (0, 1): a two-sided interval of 95 % has 0.025.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> lower, upper = clopper_pearson(5, 100, level=0.025)
    >>> print(f"{lower:.6f} {upper:.6f}")
    0.016432 0.112835

    Source: Clopper and Pearson 1934.
    """
    hits, trials = _validate.count(successes=successes), _validate.count(trials=trials)
    if np.any(trials < 1) or np.any(hits > trials):
        raise ValueError(f"successes = {successes}, trials = {trials}: expected 0 to trials >= 1")
    level = _validate.open_probability(level=level)
    return _lower(hits, trials, level), _upper(hits, trials, level)


def epsilon_lower_bound(
    hits: ArrayLike,
    trials: ArrayLike,
    other_hits: ArrayLike,
    other_trials: ArrayLike,
    *,
    delta: ArrayLike,
    confidence: ArrayLike,
) -> Reals:
    """The epsilon that an event's counts on two neighbours prove; 0 where they prove none.

    Of an (epsilon, delta)-DP mechanism it exceeds epsilon with probability at most
    1 - confidence, if event and order of the neighbours were chosen without these counts.

    Args:
        hits: trials with the event on the neighbour where it is likelier.
        trials: there, at least 1.
        other_hits: trials with the event on the other neighbour.
        other_trials: there, at least 1.
        delta: in [0, 1].
        confidence: in (0, 1), such as 0.95.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> laplace = epsilon_lower_bound(50_000, 1e5, 18_394, 1e5, delta=0, confidence=0.95)
    >>> print(f"{laplace:.5f}")  # of Laplace noise with epsilon 1, the event answer >= 1
    0.98072

    Source: Jagielski, Ullman and Oprea 2020.
    """
    level = (1 - _validate.open_probability(confidence=confidence)) / 2
    lower, _ = clopper_pearson(hits, trials, level=level)
    _, upper = clopper_pearson(other_hits, other_trials, level=level)
    proven = log_ratio(lower, upper, _validate.probability(delta=delta))
    return np.asarray(np.maximum(proven, 0.0))


def limit(trials: ArrayLike, *, delta: ArrayLike, confidence: ArrayLike) -> Reals:
    """The largest epsilon that so many trials on each neighbour can prove.

    Every trial has the event on one, none on the other.

    Args:
        trials: on each neighbour, at least 1; without those that chose the event.
        delta: in [0, 1].
        confidence: in (0, 1).

    >>> print(np.round(limit([1e3, 1e6], delta=0, confidence=0.95), 2))
    [ 5.6  12.51]
    """
    return epsilon_lower_bound(trials, trials, 0, trials, delta=delta, confidence=confidence)


def trials_needed(epsilon: ArrayLike, *, delta: ArrayLike, confidence: ArrayLike) -> Reals:
    """The trials on each neighbour whose `limit` is epsilon: fewer can never contradict it.

    Not rounded. A mechanism that leaks just a little more than epsilon needs many times more.

    Args:
        epsilon: the claim, at least 0.
        delta: of the claim, in [0, 1); the nearer to 1, the more.
        confidence: in (0, 1).

    >>> print(f"{trials_needed(20.0, delta=1e-5, confidence=0.95):.2g}")
    1.8e+09
    """
    level = (1 - _validate.open_probability(confidence=confidence)) / 2
    epsilon = _validate.non_negative(epsilon=epsilon)
    delta = _validate.probability(delta=delta)
    # With s = level^(1/trials) the bounds are s on P and 1 - s on Q: (s - delta) / (1 - s) is
    # e^epsilon for 1 - s = (1 - delta) / (1 + e^epsilon).
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(level) / np.log1p(-(1 - delta) * special.expit(-epsilon)))


def log_ratio(lower: Reals, upper: Reals, delta: ArrayLike) -> Reals:
    """log((lower - delta) / upper), negative numbers too; -infinity for lower at most delta."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(lower - delta, 0)) - np.log(upper))


def _lower(hits: np.ndarray, trials: np.ndarray, level: ArrayLike) -> Reals:
    """The chance under which that many hits or more have probability `level`."""
    some = np.maximum(hits, 1)
    return np.where(hits > 0, special.betaincinv(some, trials - some + 1, level), 0.0)


def _upper(hits: np.ndarray, trials: np.ndarray, level: ArrayLike) -> Reals:
    """The chance under which that many hits or fewer have probability `level`."""
    misses = np.maximum(trials - hits, 1)
    # the complement: 1 - level has too few digits where level is small
    bound = special.betainccinv(trials - misses + 1, misses, level)
    return np.where(hits < trials, bound, 1.0)
