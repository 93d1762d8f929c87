"""Losses of different sizes brought to one lattice, from above and from below.

Randomized response of a larger epsilon dominates that of a smaller one. So does the discrete
Laplace of a larger rate 1 / scale, at the same sensitivity: its law is a difference of geometric
ones, so that the wider law is the narrower one with independent noise added. So rates that are
whole multiples of some g, rounded up, give an upper bound on all that their sum leaks, and rounded
down a lower one. Of the equal ones only the count matters, which keeps the sum cheap.
"""

import numpy as np

from dpjax.accounting._lattice_line import Lattice, lattice_releases
from dpjax.accounting.leaks.discrete import DiscreteLaplace
from dpjax.accounting.leaks.response import Response
from dpjax.accounting.loss import PrivacyLoss

_UNIT = np.finfo(float).eps
_FEW = 1 << 18  # nodes of the line, about, times how many different rates there are
_MANY = 1 << 22  # nodes times different multiples


def applies(loss: PrivacyLoss) -> bool:
    """Whether all leaks are randomized response with two answers, or discrete Laplace."""
    return all(
        isinstance(leak, DiscreteLaplace)
        or (isinstance(leak, Response) and np.all(leak.num_categories == 2))
        for leak, _ in lattice_releases(loss)
    )


def rounded(loss: PrivacyLoss) -> list[tuple[PrivacyLoss, Lattice]]:
    """One composition, in an array of one, rounded down and up, with its lattice."""
    rates, steps, counts = _releases(loss)  # the largest loss is rate times steps
    largest = counts * steps * rates
    # a period is about so wide, and has period / 2g nodes; different multiples are no more than
    # the releases, nor than their range in units of g
    period = min(2 * np.sum(largest), 24 * np.sqrt(np.sum(largest * steps * rates)) + 24)
    by_number = period * rates.size / 2 / _FEW
    by_range = np.sqrt(period * np.ptp(rates) / 2 / _MANY)
    g = float(min(max(by_number, _UNIT), max(by_range, _UNIT)))
    g = max(g, float(rates.max()) * 2.0**-40)
    answers = []
    for up in (False, True):
        whole = np.ceil(rates / g) if up else np.floor(rates / g)
        whole = whole + np.where(up, whole * g < rates, -1.0 * (whole * g > rates))
        terms, total = [], 0.0
        for d in np.unique(steps):
            here = steps == d
            multiples, place = np.unique(whole[here], return_inverse=True)
            times = np.zeros(multiples.size, np.int64)
            np.add.at(times, place, counts[here])
            if d == 1:  # two losses, whatever the noise
                leak = Response(g * multiples[None], np.asarray(2.0), np.asarray(0.0))
            else:
                with np.errstate(divide="ignore"):
                    leak = DiscreteLaplace(1 / (g * multiples[None]), np.asarray(d))
            terms += PrivacyLoss(((leak, times[None]),)).sum(-1).terms
            total += float(np.sum(times * d * (g * multiples)))
        lattice = Lattice(
            np.full(1, 2 * g), np.full(1, total), np.ones(1, bool), np.full(1, 16 * _UNIT * total)
        )
        answers.append((PrivacyLoss(tuple(terms)), lattice))
    return answers


def _releases(loss: PrivacyLoss) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rates, the largest losses in units of them, and the counts of what leaks."""
    found = []
    for leak, count in lattice_releases(loss):
        if isinstance(leak, DiscreteLaplace):
            with np.errstate(divide="ignore"):
                rate, steps = 1 / leak.scale, leak.sensitivity
        else:
            assert isinstance(leak, Response)
            rate, steps = leak.epsilon, np.asarray(1.0)
        found.append([v.ravel() for v in np.broadcast_arrays(rate, steps, count)])
    rates, steps, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    used = (counts > 0) & (rates > 0) & np.isfinite(rates) & (steps > 0)
    return rates[used], steps[used], counts[used]
