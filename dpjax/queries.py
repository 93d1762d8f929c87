"""Queries on records, each with its sensitivity.

A query is called on records (the first axis counts people) and knows by how much its answer can
change between neighbours:

- add_remove: one record is added or removed;
- replace_one: one record becomes another, and the number of records is public.

    >>> total = bounded_sum(lower=0, upper=10)
    >>> float(total([3, 4, 250]))
    17.0
    >>> total.sensitivity("replace_one", norm=1)
    10.0

Records are taken on the host in float64 and sums are correctly rounded, so that neither the order
of the records nor their number adds to the sensitivity. Claims are for real arithmetic: an answer
is within a rounding (1e-16 of itself) of it. `sensitivity.worst_change` searches for a larger
change than claimed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.sensitivity import ADJACENCIES

Answer = Float[np.ndarray, "..."] | np.float64


@dataclass(frozen=True)
class Query:
    """A query with a claim on its sensitivity.

    Attributes:
        answer: from records to a number or a vector.
        claims: for each adjacency that it has a claim for, the largest change in the norms
            {1: L1, 2: L2, inf: largest entry}.
    """

    answer: Callable[[Any], Answer]
    claims: Mapping[str, Mapping[float, float]]

    def __call__(self, records: ArrayLike) -> Answer:
        """The true answer."""
        return self.answer(records)

    def sensitivity(self, adjacency: str, *, norm: float) -> float:
        """The largest change of the answer between neighbours.

        Args:
            adjacency: "add_remove" or "replace_one".
            norm: 1 (for Laplace noise), 2 (Gaussian) or infinity (the score of a selection).

        Raises:
            ValueError: an unknown adjacency or norm, or one that the query has no claim for.
        """
        _validate.one_of(ADJACENCIES, adjacency=adjacency)
        if norm not in (1, 2, math.inf):
            raise ValueError(f"norm = {norm!r}: expected 1, 2 or infinity")
        if adjacency not in self.claims:
            raise ValueError(
                f"adjacency = {adjacency!r}: expected {', '.join(self.claims)}, since the number"
                " of records is part of this query"
            )
        return float(self.claims[adjacency][norm])


def clip(records: ArrayLike, *, lower: float, upper: float) -> Float[np.ndarray, "..."]:
    """Records moved into [lower, upper], before a query; NaN becomes what 0 does.

    >>> clip([np.nan, np.inf, -np.inf, 5], lower=0, upper=1)
    array([0., 1., 0., 1.])
    """
    records = np.asarray(records, np.float64)
    return np.clip(np.where(np.isnan(records), 0.0, records), lower, upper)


def clip_norm(records: ArrayLike, *, bound: float) -> Float[np.ndarray, "people dimension"]:
    """Vectors shortened to an L2 norm of at most `bound`; those with NaN or infinity become 0.

    >>> clip_norm([[3.0, 4.0], [0.3, 0.4], [np.inf, 0]], bound=1)
    array([[0.6, 0.8],
           [0.3, 0.4],
           [0. , 0. ]])
    """
    records = np.asarray(records, np.float64)
    finite = np.isfinite(records).all(axis=-1, keepdims=True)
    records = np.where(finite, records, 0.0)
    largest = np.abs(records).max(axis=-1, keepdims=True, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of the rest neither over- nor underflow
    shape = records / unit
    length = np.sqrt((shape**2).sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore"):
        long = length * unit > bound
    # a unit below the exact ratio, so that rounding cannot leave a norm above the bound
    return np.where(long, shape * (bound * (1 - 2**-50) / np.where(long, length, 1)), records)


def count(predicate: Callable[[Any], ArrayLike]) -> Query:
    """How many records satisfy a predicate, which maps records to booleans, one each.

    Sensitivity 1 under both adjacencies.

    >>> count(lambda age: age >= 60)([71, 35, 60])
    np.float64(2.0)
    """

    def answer(records: ArrayLike) -> Answer:
        return np.float64(np.count_nonzero(predicate(np.asarray(records))))

    return Query(answer, {"add_remove": _scalar(1.0), "replace_one": _scalar(1.0)})


def bounded_sum(lower: float, upper: float) -> Query:
    """Sum of the records, each clipped into [lower, upper].

    Sensitivity max(|lower|, |upper|) under add_remove, upper - lower under replace_one.
    """
    lower, upper = _interval(lower, upper)

    def answer(records: ArrayLike) -> Answer:
        return np.float64(math.fsum(clip(records, lower=lower, upper=upper).ravel()))

    largest = max(abs(lower), abs(upper))
    return Query(answer, {"add_remove": _scalar(largest), "replace_one": _scalar(upper - lower)})


def bounded_mean(lower: float, upper: float, *, num_records: int) -> Query:
    """Mean of a public number of records, each clipped into [lower, upper].

    Sensitivity (upper - lower) / num_records under replace_one. Under add_remove the number of
    records is not public, and there is no claim: use `sum_and_count`.

    Raises:
        ValueError: from the query, where it is given another number of records.
    """
    lower, upper = _interval(lower, upper)
    people = _validate.positive_count(num_records=num_records)
    total = bounded_sum(lower, upper)

    def answer(records: ArrayLike) -> Answer:
        if len(np.asarray(records)) != people:
            found = len(np.asarray(records))
            raise ValueError(f"records = {found} records: expected num_records = {people}")
        return np.float64(total(records) / people)

    return Query(answer, {"replace_one": _scalar((upper - lower) / people)})


def sum_and_count(lower: float, upper: float) -> Query:
    """Sum of record - (lower + upper) / 2, and the number of records: a mean without public number.

    Under add_remove the sum changes by up to h = (upper - lower) / 2 and the count by 1, both at
    once: 1 + h in L1, sqrt(1 + h^2) in L2. Under replace_one the sum changes by 2 h alone. Noise on
    both, then `postprocess.mean_from_sum_and_count`.

    >>> sum_and_count(0, 3)([0, 3, 3])
    array([1.5, 3. ])
    """
    lower, upper = _interval(lower, upper)
    middle, half = (lower + upper) / 2, (upper - lower) / 2

    def answer(records: ArrayLike) -> Answer:
        clipped = clip(records, lower=lower, upper=upper).ravel()
        return np.array([math.fsum(clipped - middle), clipped.size])

    added = {1: 1 + half, 2: math.hypot(1, half), math.inf: max(1.0, half)}
    return Query(answer, {"add_remove": added, "replace_one": _scalar(2 * half)})


def norm_bounded_sum(dimension: int, *, bound: float) -> Query:
    """Sum of vectors, each clipped to an L2 norm of at most `bound`.

    Sensitivity in L2: bound under add_remove, twice that under replace_one; in L1 sqrt(dimension)
    times as much.
    """
    dimension = _validate.positive_count(dimension=dimension)
    size = float(_validate.positive(bound=bound))

    def answer(records: ArrayLike) -> Answer:
        clipped = clip_norm(np.asarray(records, np.float64).reshape(-1, dimension), bound=size)
        return np.array([math.fsum(column) for column in clipped.T])

    def change(length: float) -> dict[float, float]:
        return {1: math.sqrt(dimension) * length, 2: length, math.inf: length}

    return Query(answer, {"add_remove": change(size), "replace_one": change(2 * size)})


def histogram(edges: ArrayLike) -> Query:
    """How many records lie in each bin [edge, next edge), the last one closed, as np.histogram.

    A record is in one bin or none. Sensitivity 1 in every norm under add_remove; under replace_one
    two bins change by 1: 2 in L1, sqrt(2) in L2.

    >>> histogram([0, 1, 2])([0.5, 0.7, 2, 9])
    array([2., 1.])
    """
    bounds = _validate.finite(edges=edges)
    if bounds.ndim != 1 or bounds.size < 2 or np.any(np.diff(bounds) <= 0):
        raise ValueError(f"edges = {np.shape(edges)}: expected at least two increasing numbers")

    def answer(records: ArrayLike) -> Answer:
        return np.histogram(np.asarray(records, np.float64), bounds)[0].astype(np.float64)

    moved = _scalar(1.0) if bounds.size == 2 else {1: 2.0, 2: math.sqrt(2), math.inf: 1.0}
    return Query(answer, {"add_remove": _scalar(1.0), "replace_one": moved})


def quantile_scores(p: float, candidates: ArrayLike) -> Query:
    """How well each candidate splits the records at their quantile p: scores for a selection.

    -|(records below + half of those equal) - p records| (Smith 2011, Section 4.2, on a grid), for
    `exponential_mechanism` and its like with twice the largest change of a score over epsilon as
    scale: max(p, 1 - p) under add_remove, 1 under replace_one. Candidates must not depend on the
    records.

    Args:
        p: in [0, 1]; 0.5 for the median.
        candidates: possible answers, (options,), finite.
    """
    share = float(_validate.probability(p=p))
    options = np.atleast_1d(_validate.finite(candidates=candidates))

    def answer(records: ArrayLike) -> Answer:
        ordered = np.sort(np.asarray(records, np.float64))
        left = np.searchsorted(ordered, options, side="left")
        right = np.searchsorted(ordered, options, side="right")
        return -np.abs((left + right) / 2 - share * ordered.size)

    def change(size: float) -> dict[float, float]:
        return {1: options.size * size, 2: math.sqrt(options.size) * size, math.inf: size}

    added = max(share, 1 - share)
    return Query(answer, {"add_remove": change(added), "replace_one": change(1.0)})


def _scalar(size: float) -> dict[float, float]:
    """A change of one number, the same in every norm."""
    return {1: size, 2: size, math.inf: size}


def _interval(lower: float, upper: float) -> tuple[float, float]:
    """Finite ends in order, as floats: halving whole numbers must not truncate."""
    low, high = float(_validate.finite(lower=lower)), float(_validate.finite(upper=upper))
    if not low < high:
        raise ValueError(f"lower = {lower}: expected a number below upper = {upper}")
    return low, high
