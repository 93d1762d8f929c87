"""A search for neighbours that change an answer by more than is claimed of it."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpjax import _validate

ADJACENCIES = ("add_remove", "replace_one")


class Change(NamedTuple):
    """Two neighbours whose answers differ by `size`."""

    size: float
    records: tuple
    neighbour: tuple


def worst_change(
    query: Callable[[Any], ArrayLike],
    domain: Sequence,
    *,
    adjacency: str,
    norm: float,
    max_records: int = 3,
) -> Change:
    """Search all small data sets for the neighbours whose answers differ most.

    Exhaustive over data sets of up to `max_records` records from the domain, so that what it finds
    is a lower end of the sensitivity, and a claim below it is wrong. Choose a domain with the
    extremes, values between and values out of range. For any callable, not only `Query`; it must
    not depend on the order of the records.

    Args:
        query: from a list of records to a number or a vector.
        domain: records to build data sets of, about len(domain)^max_records / max_records! of them.
        adjacency: "add_remove" or "replace_one".
        norm: 1, 2 or infinity.
        max_records: of the larger neighbour, at least 1.

    Returns:
        The largest change with its two data sets; NaN with the first two that give it.

    >>> def mean(ages):  # of people whose number is private
    ...     return sum(ages) / max(len(ages), 1)
    >>> worst_change(mean, domain=[0, 100], adjacency="add_remove", norm=1)
    Change(size=100.0, records=(), neighbour=(100,))
    """
    _validate.one_of(ADJACENCIES, adjacency=adjacency)
    largest = _validate.positive_count(max_records=max_records)

    def answered(records: tuple) -> tuple[tuple, np.ndarray]:
        return records, np.ravel(np.asarray(query(list(records)), np.float64))

    worst = Change(0.0, (), ())
    for common in itertools.chain.from_iterable(
        itertools.combinations_with_replacement(domain, n) for n in range(largest)
    ):
        longer = [answered((*common, record)) for record in domain]
        if adjacency == "add_remove":
            pairs = itertools.product([answered(common)], longer)
        else:
            pairs = itertools.combinations(longer, 2)
        for (one, before), (other, after) in pairs:
            found = float(np.linalg.norm(after - before, ord=norm))
            if not found <= worst.size:
                worst = Change(found, one, other)
            if math.isnan(found):
                return worst
    return worst
