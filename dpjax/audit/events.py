"""Events: sets of scores, found on a first part of the trials. NumPy only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpjax.audit.counting import Reals, clopper_pearson

EDGES = 1023
"""Edges of the histogram of scores: bisection in ten steps."""

_OFTEN = 8  # a score that so many of the sample share is an atom, with a bin of its own
_MOST_ATOMS = 256
_MARGIN = 0.01  # chance of each of an event's two rates being worse than it is judged by

Proof = Callable[[Reals, Reals], Reals]
"""From a lower bound on an event's chance and an upper bound on the other to what they prove."""


@dataclass(frozen=True)
class Event:
    """A set of scores, likelier on one neighbour than on the other.

    Attributes:
        intervals: disjoint [low, high) in increasing order; one that begins at -infinity takes
            NaN too.
        likelier_on: "value" or "neighbour".
    """

    intervals: tuple[tuple[float, float], ...]
    likelier_on: str

    def __str__(self) -> str:
        """In words, the first three intervals of it.

        >>> print(Event(((-np.inf, 0.0), (2.5, np.inf)), "value"))
        score < 0 or score >= 2.5, likelier on value
        """
        parts = [_in_words(low, high) for low, high in self.intervals[:3]]
        more = len(self.intervals) - len(parts)
        end = f" or {more} more intervals" if more else ""
        return f"{' or '.join(parts) or 'none'}{end}, likelier on {self.likelier_on}"


def _in_words(low: float, high: float) -> str:
    """One interval; a single number where no other float lies in it."""
    if high <= np.nextafter(np.float32(low), np.float32(np.inf)):
        return f"score = {low:.6g}"
    if np.isinf(high):
        return "any score" if np.isinf(low) else f"score >= {low:.6g}"
    return f"score < {high:.6g}" if np.isinf(low) else f"{low:.6g} <= score < {high:.6g}"


class Choice(NamedTuple):
    """An event to count.

    Attributes:
        event: in words and intervals.
        bins: (bins,) of bool, those of the histogram that make it up.
        likelier: the world where it is likelier, 0 or 1.
        promise: what it may prove, by the counts that chose it.
    """

    event: Event
    bins: np.ndarray
    likelier: int
    promise: float


def edges_between(samples: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Edges at the quantiles of both samples, close together in the tails, and around atoms.

    Args:
        samples: scores of each world, NaN and infinities among them.

    Returns:
        (EDGES,) in the samples' dtype, not decreasing, filled with infinity at the end.
    """
    finite = [np.sort(sample[np.isfinite(sample)]) for sample in samples]
    found = [_at_ranks(sample) for sample in finite if sample.size]
    values, counts = np.unique(np.concatenate(finite), return_counts=True)
    atoms = values[counts >= _OFTEN]
    atoms = atoms[np.argsort(-counts[counts >= _OFTEN], kind="stable")[:_MOST_ATOMS]]
    edges = np.unique(np.concatenate([*found, atoms, np.nextafter(atoms, np.inf)]))
    edges = edges[np.isfinite(edges)]
    return np.append(edges, np.full(EDGES - edges.size, np.inf)).astype(samples[0].dtype)


def _at_ranks(ordered: np.ndarray) -> np.ndarray:
    """Entries at evenly spaced ranks, and at ranks that double towards either end, and more."""
    last = ordered.size - 1
    tail = np.geomspace(1, max(last / 2, 1), 60) - 1
    ranks = np.concatenate([np.linspace(0, last, 64), tail, last - tail])
    return ordered[np.unique(np.round(ranks).astype(int))]


def choose(
    first: np.ndarray,
    second: np.ndarray,
    edges: np.ndarray,
    proof: Proof,
    *,
    trials: int,
    level: float,
) -> Choice:
    """The event that promises most from so many trials: a tail, or the bins of greatest ratios.

    Bins are put in the order of their ratios by one set of counts and judged by another, for among
    hundreds of bins the first by luck look best in the counts that put them there. That only guides
    the choice: what is claimed comes from yet other trials.

    Args:
        first: (2, bins) trials of each world.
        second: (2, bins) other trials of each world.
        edges: (bins - 1,).
        proof: what is to be made large.
        trials: of each world that the event will be counted on.
        level: of each bound then.

    Returns:
        The event and what it promises.
    """
    upwards = np.arange(first.shape[1])
    best, chosen, where = -np.inf, np.zeros(upwards.size, bool), 0
    for world in (0, 1):
        candidates = (
            (upwards, first + second),
            (upwards[::-1], first + second),
            (_by_ratio(first[world], first[1 - world]), second),
        )
        for order, counts in candidates:
            hits, others = counts[:, order].cumsum(axis=1)[[world, 1 - world]]
            ends = np.flatnonzero(np.append(np.diff(hits + others) > 0, True))  # of empty bins
            hits, others = hits[ends], others[ends]
            totals = counts.sum(axis=1)[[world, 1 - world]]
            # With a margin for luck: the best of many events is best partly by that.
            sure, _ = clopper_pearson(hits, totals[0], level=_MARGIN)
            _, rare = clopper_pearson(others, totals[1], level=_MARGIN)
            lower, _ = clopper_pearson(np.floor(trials * sure), trials, level=level)
            _, upper = clopper_pearson(np.ceil(trials * rare), trials, level=level)
            promised = proof(lower, upper)
            if promised.max() > best:
                best, where = promised.max(), world
                chosen = np.zeros(upwards.size, bool)
                chosen[order[: ends[np.argmax(promised)] + 1]] = True
    event = Event(_intervals(chosen, edges), ("value", "neighbour")[where])
    return Choice(event, chosen, where, float(best))


def _by_ratio(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Bins by their log ratio less its standard error, so that rare ones do not come first."""
    log_ratio = np.log(here + 0.5) - np.log(there + 0.5)
    return np.argsort(np.sqrt(1 / (here + 0.5) + 1 / (there + 0.5)) - log_ratio, kind="stable")


def _intervals(chosen: np.ndarray, edges: ArrayLike) -> tuple[tuple[float, float], ...]:
    """Neighbouring bins joined, empty ones between equal edges left out."""
    bounds = np.concatenate([[-np.inf], np.asarray(edges, np.float64), [np.inf]])
    found: list[tuple[float, float]] = []
    for index in np.flatnonzero(chosen):
        low, high = float(bounds[index]), float(bounds[index + 1])
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        elif low < high:
            found.append((low, high))
    return tuple(found)
