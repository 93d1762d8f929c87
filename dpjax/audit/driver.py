"""`audit` and `audit_gaussian`: a mechanism run on two neighbours, and what its outputs prove.

A quarter of the trials of each neighbour finds the score, its histogram's edges, the event and the
direction; the rest, with random numbers of their own, give one pair of counts. So nothing was
chosen by what the bound is computed from, and the confidence needs no correction.

There are no checkpoints: on two cores 1e9 trials of each neighbour take half a minute, and as many
as anyone waits for take a night.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array

from dpjax import _validate, prng
from dpjax.audit import events, outcomes, scores
from dpjax.audit.counting import clopper_pearson, log_ratio
from dpjax.audit.events import Event, Proof
from dpjax.audit.result import Audit, GaussianAudit, normal_shift
from dpjax.audit.worlds import World, count, sample
from dpjax.simulate import as_pytree, as_seed, as_value, block_trials
from dpjax.sweep.progress import Progress

_SAMPLE = 2**18  # trials that find the score and the edges
_SAMPLE_NUMBERS = 2**24  # the most that they may hold


def audit(
    key: Array,
    mechanism: Callable[..., Any],
    value: ArrayLike,
    neighbour: ArrayLike,
    num_trials: float,
    *,
    delta: float,
    confidence: float = 0.95,
    score: Callable[[Any], Array] | None = None,
    float_bits: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Prove a lower bound on epsilon by a mechanism's outputs on two neighbouring values.

    Events are unions of intervals of a score: the answer itself if it is a number, a whole number
    or a category; a linear score, fitted to tell the neighbours apart, if it is a vector. The bound
    is by Clopper-Pearson, each of its two chances at half of the error. Memory does not grow with
    the trials, and every local device takes part.

    Args:
        key: one typed threefry2x32 key, used once.
        mechanism: pure `(key, value) -> answer`, as `dpjax.simulate` takes it: the value comes
            repeated along a leading axis of trials, and every trial is answered independently.
        value: the true answer, or whatever the mechanism takes, on one data set.
        neighbour: the same on a neighbouring data set; the shapes of the answers must agree.
        num_trials: of each neighbour, at least 8; a quarter of them chooses the event.
        delta: of the claim, in [0, 1].
        confidence: in (0, 1).
        score: pure, from answers with trials in front to one number for each, of answers alone.
            None: by the shape of the answers. Whole numbers beyond 2^24 are rounded.
        float_bits: look at the representation instead of the size: sign, exponent, and either
            the trailing zeros of the fraction, where textbook noise betrays what it was added to,
            or its last four bits, where noise on a grid betrays an answer that was off the grid; or
            all of it, which tells answers that one neighbour gave before and the other never, once
            the trials are so many that most come again (4e8 for the 2^23 outcomes of a textbook
            float32 sampler, in 16 MB more on each device; holes among the outcomes of float64
            stay unseen). Needs a score for vectors.
        progress: called as `progress(done, total)` with trials of both neighbours, those that
            choose counted for each code of `float_bits`.

    Returns:
        The bound, the event and its counts, the largest bound that so many trials can give, and
        `verdict(epsilon)`. It errs low: an audit finds faults and proves no privacy.

    Raises:
        TypeError: `key` is no typed key; answers or scores that are no numbers; `float_bits` of
            what is no float.
        ValueError: a number out of range; answers without trials in front, or of different shapes;
            the same noise for every trial of a block.

    >>> import jax, dpjax
    >>> half = functools.partial(dpjax.laplace, scale=0.5)  # where a count needs 1 for epsilon 1
    >>> found = audit(jax.random.key(0), half, 319.0, 320.0, 100_000, delta=0.0)
    >>> found.contradicts(1.0), found.epsilon <= 2.0 <= found.limit
    (True, True)
    """
    delta = float(_validate.probability(delta=delta))
    proof = functools.partial(log_ratio, delta=delta)
    found = _prove(
        key, mechanism, value, neighbour, num_trials, confidence, proof, score, float_bits, progress
    )
    return Audit(
        epsilon=found.proven,
        limit=found.limit,
        delta=delta,
        confidence=float(confidence),
        event=found.event,
        hits=found.hits,
        other_hits=found.other_hits,
        num_trials=found.num_trials,
        float_bits=float_bits,
    )


def audit_gaussian(
    key: Array,
    mechanism: Callable[..., Any],
    value: ArrayLike,
    neighbour: ArrayLike,
    num_trials: float,
    *,
    confidence: float = 0.95,
    score: Callable[[Any], Array] | None = None,
    progress: Progress | None = None,
) -> GaussianAudit:
    """Prove a lower bound on mu, assuming that the neighbours have a Gaussian trade-off.

    The same trials, events and Clopper-Pearson bounds as in `audit`, but read as mu >=
    Phi^-1(P) - Phi^-1(Q). So epsilons are within reach whose events are too rare to count, for
    mechanisms of which the trade-off is known: Gaussian noise and its compositions.

    Args:
        key: one typed threefry2x32 key, used once.
        mechanism: as in `audit`.
        value: as in `audit`.
        neighbour: as in `audit`.
        num_trials: as in `audit`.
        confidence: in (0, 1).
        score: as in `audit`.
        progress: as in `audit`.

    Raises:
        TypeError: as in `audit`.
        ValueError: as in `audit`.

    >>> import jax, dpjax
    >>> noise = functools.partial(dpjax.gaussian, scale=0.25)
    >>> found = audit_gaussian(jax.random.key(0), noise, 0.0, 1.0, 100_000)
    >>> bool(3.9 < found.mu <= 4.0 < found.limit)
    True

    Source: Dong, Roth, Su 2022 (Gaussian differential privacy); Nasr et al. 2023 audit by it.
    """
    found = _prove(
        key,
        mechanism,
        value,
        neighbour,
        num_trials,
        confidence,
        normal_shift,
        score,
        False,
        progress,
    )
    return GaussianAudit(
        mu=found.proven,
        limit=found.limit,
        confidence=float(confidence),
        event=found.event,
        hits=found.hits,
        other_hits=found.other_hits,
        num_trials=found.num_trials,
    )


class _Found(NamedTuple):
    """What both audits report."""

    proven: float
    limit: float
    event: Event
    hits: int
    other_hits: int
    num_trials: int


class _Choice(NamedTuple):
    """A score, the edges of its histogram, and the best event of it."""

    scoring: Partial
    edges: np.ndarray
    event: events.Choice


def _prove(
    key: Array,
    mechanism: Callable[..., Any],
    value: ArrayLike,
    neighbour: ArrayLike,
    num_trials: float,
    confidence: float,
    proof: Proof,
    score: Callable[[Any], Array] | None,
    float_bits: bool,
    progress: Progress | None,
) -> _Found:
    """Choose an event on the first trials, count it on the rest."""
    trials = _validate.positive_count(num_trials=num_trials)
    if trials < 8:
        raise ValueError(f"num_trials = {trials}: expected at least 8, a quarter of them to choose")
    level = (1 - float(_validate.open_probability(confidence=confidence))) / 2
    prng.unroll(key)  # to check it
    seeds = [as_seed(each) for each in jax.random.split(key, 6)]  # spends the key
    mechanism = as_pytree(mechanism)
    values = as_value(value), as_value(neighbour)
    check_differ(values, (value, neighbour))
    first, second, last = (
        [World(seed, mechanism, each) for seed, each in zip(part, values, strict=True)]
        for part in (seeds[:2], seeds[2:4], seeds[4:])
    )
    order, judge = trials // 8, trials // 4 - trials // 8
    left = trials - order - judge
    samples = _samples(first, order)
    scoring = scores.choose(samples, score, float_bits=float_bits)
    codes = [scores.then(scoring, code) for code in scores.CODES] if float_bits else [scoring]
    names = _names(scoring, samples[0], order) if float_bits else None
    total = left + len(codes) * (order + judge) + (order + 2 * judge if names else 0)
    report = _reporter(progress, 2 * total)

    def choose(scoring: Partial, ordering: list[World], number: int) -> _Choice:
        edges = events.edges_between(
            (np.asarray(scoring(samples[0])), np.asarray(scoring(samples[1])))
        )
        ordered = count(ordering, scoring, edges, number, report)
        judged = count(second, scoring, edges, judge, report)
        event = events.choose(ordered, judged, edges, proof, trials=left, level=level)
        return _Choice(scoring, edges, event)

    choices = [choose(code, first, order) for code in codes]
    if names:  # the first trials make this score, and cannot order its bins
        choices.append(choose(outcomes.seen(first, names, order, report), second, judge))
    scoring, edges, choice = max(choices, key=lambda each: each.event.promise)
    event, bins, likelier, _ = choice
    hits = count(last, scoring, edges, left, report)[:, bins].sum(axis=1)
    lower, _ = clopper_pearson([hits[likelier], left], left, level=level)
    _, upper = clopper_pearson([hits[1 - likelier], 0], left, level=level)
    proven, limit = np.maximum(proof(lower, upper), 0.0)
    return _Found(
        float(proven), float(limit), event, int(hits[likelier]), int(hits[1 - likelier]), left
    )


def check_differ(
    arrays: tuple[Array, Array], given: tuple[ArrayLike, ArrayLike]
) -> tuple[int, str]:
    """How many coordinates that differ as given are the same as arrays, and in which dtype.

    Raises:
        ValueError: all of them are, so that there would be nothing to tell apart.
    """
    dtype = arrays[0].dtype.name
    if np.shape(arrays[0]) != np.shape(arrays[1]):  # data sets of unequal size
        return 0, dtype
    apart, left = np.not_equal(*map(np.asarray, given)), np.not_equal(*map(np.asarray, arrays))
    if np.any(apart) and not np.any(left):
        raise ValueError(
            f"value = {np.asarray(given[0]).tolist()}: it and neighbour ="
            f" {np.asarray(given[1]).tolist()} are the same in {dtype}; expected two that differ"
            " there, such as their differences from one of them"
        )
    return int(np.sum(apart & ~left)), dtype


def _names(scoring: Partial, sample: Any, trials: int) -> Partial | None:
    """Names of the outcomes, if so many trials see most of them."""
    names = scores.then(scoring, outcomes.name)
    return names if outcomes.support(np.asarray(names(sample))) <= trials else None


def _samples(worlds: list[World], trials: int) -> tuple[Any, Any]:
    """Answers of both worlds that find the score, at most so many."""
    blocks = [list(sample(world, _sample_size(world, trials))) for world in worlds]
    for each in blocks:
        # constant within blocks, and not the same in both: one noise for a whole block
        ends = [[np.asarray(leaf) for leaf in jax.tree.leaves(block)] for block in each[:2]]
        for one, two in zip(*ends, strict=True):
            alike = [np.all(block == block[:1]) for block in (one, two)]
            if all(alike) and not np.array_equal(one[0], two[0]):
                raise ValueError(
                    "mechanism gives the same answer for every trial of a block and another in the"
                    " next: expected independent noise; dpjax.per_trial(mechanism) gives each trial"
                    " a key"
                )
    one, two = (
        jax.tree.map(lambda *parts: jnp.asarray(np.concatenate(parts)[:trials]), *each)
        for each in blocks
    )
    shapes = [[np.shape(leaf)[1:] for leaf in jax.tree.leaves(each)] for each in (one, two)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"mechanism gives answers of shape {shapes[0]} on value and {shapes[1]} on neighbour:"
            " expected the same"
        )
    return one, two


def _sample_size(world: World, trials: int) -> int:
    """Two whole blocks at least, so that they can be compared."""
    least = 2 * block_trials(world.value)
    most = max(_SAMPLE_NUMBERS // world.value.size, least)
    return max(least, min(trials, _SAMPLE, most))


def _reporter(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Adds up finished trials for the caller's progress."""
    done = 0

    def report(trials: int) -> None:
        nonlocal done
        done += trials
        if progress:
            progress(done, total)

    if progress:
        progress(0, total)
    return report
