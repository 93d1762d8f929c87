"""Guarantees of different epsilons brought to one lattice, from above and from below.

Randomized response of a larger epsilon dominates that of a smaller one. So whole multiples of some
g, rounded up, give an upper bound on all that their sum leaks, and rounded down a lower one: k
releases of epsilons e_1, e_2, ... change by at most g each. Of the equal ones only the count
matters, which keeps the sum cheap.
"""

import numpy as np

from dpjax.accounting._lattice_line import Lattice, lattice_releases
from dpjax.accounting.leaks.response import Response
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_FEW = 1 << 18  # nodes of the line, about, times how many different epsilons there are
_MANY = 1 << 22  # nodes times different multiples


def applies(loss: PrivacyLoss) -> bool:
    """Whether all leaks of a composition are randomized response with two answers."""
    parts = list(lattice_releases(loss))
    return all(isinstance(leak, Response) and np.all(leak.num_categories == 2) for leak, _ in parts)


def rounded(loss: PrivacyLoss) -> list[tuple[PrivacyLoss, Lattice]]:
    """One composition, in an array of one, rounded down and up, with its lattice."""
    parts = [(leak, count) for leak, count in lattice_releases(loss) if isinstance(leak, Response)]
    flat = [np.broadcast_arrays(leak.epsilon, count) for leak, count in parts]
    epsilons = np.concatenate([epsilon.ravel() for epsilon, _ in flat])
    counts = np.concatenate([count.ravel() for _, count in flat])
    used = (counts > 0) & (epsilons > 0) & np.isfinite(epsilons)
    epsilons, counts = epsilons[used], counts[used]
    # a period is about so wide, and has period / 2g nodes; different multiples are no more than
    # the releases, nor than their range in units of g
    period = min(2 * np.sum(counts * epsilons), 24 * np.sqrt(np.sum(counts * epsilons**2)) + 24)
    by_number = period * epsilons.size / 2 / _FEW
    by_range = np.sqrt(period * np.ptp(epsilons) / 2 / _MANY)
    g = float(min(max(by_number, _UNIT), max(by_range, _UNIT)))
    g = max(g, float(epsilons.max()) * 2.0**-40)
    answers = []
    for up in (False, True):
        whole = np.ceil(epsilons / g) if up else np.floor(epsilons / g)
        whole = whole + np.where(up, whole * g < epsilons, -1.0 * (whole * g > epsilons))
        multiples, place = np.unique(whole, return_inverse=True)
        times = np.zeros(multiples.size, np.int64)
        np.add.at(times, place, counts)
        leak = Response(g * multiples[None], np.asarray(2.0), np.asarray(0.0))
        total = PrivacyLoss(((leak, times[None]),)).sum(-1)
        largest = np.atleast_1d(np.sum(times * (g * multiples)))
        spare = 16 * _UNIT * largest
        answers.append((total, Lattice(np.full(1, 2 * g), largest, np.ones(1, bool), spare)))
    return answers
