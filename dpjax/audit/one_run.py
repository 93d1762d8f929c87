"""A lower bound on epsilon from a single run, by guessing which of many canaries were in it.

Each of m canaries joins the data by a fair coin of its own. After one run someone who sees only
its outcome guesses for some of them whether they were in, and abstains from the rest. Under
(epsilon, delta)-DP the right guesses are hardly more than binomial with chance e^epsilon /
(1 + e^epsilon), however they are made (Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One
(1) Training Run").

The coins must be fair and independent, and the guesses, their number too, may not look at the
coins. Trying several numbers of guesses and keeping the best bound needs the confidence of a union
bound: 1 - (1 - confidence) / tries for each. NumPy and SciPy only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.accounting._roots import bracketed_root


class Guesses(NamedTuple):
    """How many guesses were made and how many of them were right."""

    num_correct: int
    num_guesses: int


def guess(scores: ArrayLike, included: ArrayLike, *, num_in: int, num_out: int) -> Guesses:
    """Guess "in" for the canaries of the highest scores, "out" for the lowest, and count.

    Args:
        scores: (canaries,), higher for canaries that seem to have been in; made without knowledge
            of `included`. Equal scores are taken in their order.
        included: (canaries,) of bool: which were in.
        num_in: guesses of "in", chosen beforehand.
        num_out: guesses of "out", chosen beforehand; with `num_in` at most all canaries.

    Raises:
        ValueError: shapes that differ, NaN scores, more guesses than canaries or none at all.

    >>> guess([0.9, 0.1, 0.5, 0.7], [True, False, True, False], num_in=2, num_out=1)
    Guesses(num_correct=2, num_guesses=3)
    """
    scores, included = _validate.real(scores=scores), np.asarray(included)
    if scores.ndim != 1 or included.shape != scores.shape or included.dtype != bool:
        raise ValueError(
            f"included = {included.dtype} of shape {list(included.shape)}: expected a bool for each"
            f" of the scores of shape {list(scores.shape)}"
        )
    num_in = int(_validate.count(num_in=num_in))
    num_out = int(_validate.count(num_out=num_out))
    if not 1 <= num_in + num_out <= scores.size:
        raise ValueError(
            f"num_in + num_out = {num_in + num_out}: expected 1 to {scores.size} guesses"
        )
    order = np.argsort(scores, kind="stable")
    right = np.sum(included[order[scores.size - num_in :]]) + np.sum(~included[order[:num_out]])
    return Guesses(int(right), num_in + num_out)


def p_value(
    num_correct: int, num_guesses: int, num_canaries: int, *, epsilon: float, delta: float
) -> float:
    """Chance at most of that many right guesses or more, if the run were (epsilon, delta)-DP.

    With v right of r guesses, B ~ Binomial(r, e^epsilon / (1 + e^epsilon)) and m canaries it is
    P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i.

    Args:
        num_correct: right guesses, at most `num_guesses`.
        num_guesses: at least 1, at most `num_canaries`.
        num_canaries: all of them, those abstained from too.
        epsilon: at least 0, infinity allowed (then the answer is 1).
        delta: in [0, 1].

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{p_value(60, 100, 100, epsilon=0, delta=0):.6f}")
    0.028444

    Source: Steinke, Nasr, Jagielski 2023, Theorem 5.2.
    """
    counts = _checked(num_correct, num_guesses, num_canaries)
    epsilon = float(_validate.non_negative_or_infinite(epsilon=epsilon))
    return _p_value(*counts, epsilon, float(_validate.probability(delta=delta)))


def epsilon_lower_bound(
    num_correct: int, num_guesses: int, num_canaries: int, *, delta: float, confidence: float
) -> float:
    """The epsilon below which no (epsilon, delta)-DP run would let so many guesses be right.

    If the run is (epsilon, delta)-DP, the bound exceeds epsilon with probability at most
    1 - confidence. Errs low, by less than a relative 1e-14. Never above `limit`.

    Args:
        num_correct: right guesses, at most `num_guesses`.
        num_guesses: at least 1, at most `num_canaries`; chosen without looking at the coins.
        num_canaries: all of them, those abstained from too.
        delta: in [0, 1].
        confidence: in (0, 1), such as 0.95.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{epsilon_lower_bound(95, 100, 1000, delta=1e-5, confidence=0.95):.4f}")
    2.1652

    Source: Steinke, Nasr, Jagielski 2023, Theorem 5.2.
    """
    counts = _checked(num_correct, num_guesses, num_canaries)
    delta = float(_validate.probability(delta=delta))
    level = 1 - float(_validate.open_probability(confidence=confidence))

    def excess(epsilon: np.ndarray) -> np.ndarray:
        return np.array([_p_value(*counts, float(epsilon[0]), delta) - level])

    low, high = np.zeros(1), np.array([_limit(counts[1], level) + 1.0])
    if excess(low)[0] > 0:
        return 0.0
    # An epsilon is contradicted along with all below it, so any sign change is a valid bound.
    contradicted, _ = bracketed_root(excess, low, high, excess(low), excess(high), 0.0)
    return float(contradicted[0])


def limit(num_guesses: int, *, confidence: float) -> float:
    """The largest bound that so many guesses can give, all of them right and delta 0.

    >>> print(f"{limit(100, confidence=0.95):.4f}")
    3.4930
    """
    guesses = _validate.positive_count(num_guesses=num_guesses)
    return _limit(guesses, 1 - float(_validate.open_probability(confidence=confidence)))


def _checked(num_correct: int, num_guesses: int, num_canaries: int) -> tuple[int, int, int]:
    """The counts as ints, if they fit together."""
    correct = int(_validate.count(num_correct=num_correct))
    guesses = _validate.positive_count(num_guesses=num_guesses)
    canaries = _validate.positive_count(num_canaries=num_canaries)
    if correct > guesses:
        raise ValueError(f"num_correct = {correct}: expected at most num_guesses = {guesses}")
    if guesses > canaries:
        raise ValueError(f"num_guesses = {guesses}: expected at most num_canaries = {canaries}")
    return correct, guesses, canaries


def _p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """`p_value` without checks."""
    chance = special.expit(epsilon)
    upper = _at_least(np.asarray(correct), guesses, chance)
    if delta == 0 or correct == 0:
        return float(upper)
    slack = 2 * canaries * delta * _densest(correct, guesses, chance, float(upper))
    return min(float(upper) + slack, 1.0)


def _densest(correct: int, guesses: int, chance: float, upper: float) -> float:
    """The largest P(correct > B >= correct - i) / i over i = 1, 2, ..., correct."""
    best, done = 0.0, 0
    while done < correct and best * (done + 1) < 1:  # no probability is above 1
        fewer = np.arange(done + 1, min(2 * done + 64, correct) + 1)
        between = _at_least(correct - fewer, guesses, chance) - upper
        best, done = max(best, float(np.max(between / fewer))), int(fewer[-1])
    return best


def _at_least(successes: np.ndarray, trials: int, chance: float) -> np.ndarray:
    """P(Binomial(trials, chance) >= successes), the incomplete beta function."""
    positive = np.maximum(successes, 1)
    return np.where(successes > 0, special.betainc(positive, trials - positive + 1, chance), 1.0)


def _limit(guesses: int, level: float) -> float:
    """Where the chance of all guesses being right, (1 + e^-epsilon)^-guesses, is the level."""
    log_chance = np.log(level) / guesses
    return max(float(log_chance - np.log(-np.expm1(log_chance))), 0.0)
