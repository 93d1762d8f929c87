"""The lossless conversion from one Rényi divergence to (epsilon, delta).

Of all pairs with a given divergence of order a, one with two outcomes has the largest epsilon at a
given delta (Asoodeh, Liao, Calmon, Kosut, Sankar 2020, Theorem 2). With P = (p, 1 - p) and
Q = (q, 1 - q), delta = p - e^epsilon q and

    (a - 1) D = log(p^a q^(1-a) + (1 - p)^a (1 - q)^(1-a)),

so epsilon = max over p of log((p - delta) / q(p)), q(p) being the smaller q with that divergence.
Dropping the second term gives the "improved" conversion. The pairs of bounded divergence form a
convex set and log((p - delta) / q) is quasi-concave on it, so the search over p is safe. In log q
the divergence is convex (a log-sum-exp of convex functions), so Newton from the small side stays
there, where epsilon is overstated and never understated.
"""

import numpy as np

from dpjax.accounting._minimum import quasi_convex_minimum
from dpjax.accounting._typing import Reals

_NEWTON = 30
_STEP = 2.4


def optimal_epsilon(t: Reals, cumulant: Reals, delta: Reals) -> Reals:
    """Largest epsilon of a pair with E_P[exp(t L)] = exp(cumulant), before clamping at 0."""
    t, cumulant, delta = np.broadcast_arrays(t, cumulant, delta)
    # what rounding can do to the divergence below: it counts where t, and so the cumulant, is tiny
    cumulant = cumulant + 16 * np.finfo(float).eps * (1 + t + cumulant)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_delta = np.log(delta)
        improved = (cumulant - np.log1p(t) - t * np.log1p(1 / t) - log_delta) / t
        certain = cumulant / t + np.log1p(-delta)  # p = 1
    # the improved conversion has p - delta = t delta; the second term only moves p up
    low = np.clip(np.log(t) + log_delta - 1, -745, 34)
    usable = np.isfinite(improved) & (delta < 1)
    low = np.where(usable, low, 0.0)

    def negative(logit: Reals) -> Reals:
        parameters = (v[..., None] for v in (t, cumulant, delta))
        return np.where(usable[..., None], -_epsilon(logit, *parameters), 0.0)

    _, least = quasi_convex_minimum(negative, low, np.maximum(low, 0) + 36, _STEP)
    # the search may miss the maximum by its own rounding, of a difference of logs near log delta
    slack = 1e-14 * (1 + np.abs(least)) + 16 * np.finfo(float).eps * np.abs(log_delta)
    found = np.maximum(-least + slack, certain)
    return np.where(usable, np.minimum(found, improved), improved)


def _epsilon(logit: Reals, t: Reals, cumulant: Reals, delta: Reals) -> Reals:
    """log((p - delta) / q(p)) with p = delta + (1 - delta) / (1 + exp(-logit))."""
    log_share = -np.logaddexp(0, -logit)
    log_rest = np.log1p(-delta) - np.logaddexp(0, logit)  # log(1 - p)
    log_p = np.log(delta + (1 - delta) * np.exp(log_share))
    log_q = (1 + 1 / t) * log_p - cumulant / t  # the first term alone: q too small
    log_q = _newton(log_q, *np.broadcast_arrays(t, cumulant, log_p, log_rest))
    return np.log1p(-delta) + log_share - log_q


def _newton(log_q: Reals, t: Reals, cumulant: Reals, log_p: Reals, log_rest: Reals) -> Reals:
    """The log q of the given divergence, from below; only the open ones are worked on."""
    shape = log_q.shape
    result = np.minimum(log_q, log_p).ravel()
    lanes = np.arange(result.size)
    known = [v.ravel() for v in (t, cumulant, log_p, log_rest)]
    for _ in range(_NEWTON):
        t, cumulant, log_p, log_rest = known
        log_q = result[lanes]
        first = (1 + t) * log_p - t * log_q
        second = (1 + t) * log_rest - t * np.log1p(-np.exp(log_q))
        total = np.logaddexp(first, second)
        weight = np.exp(second - total)
        slope = t * (weight * np.exp(log_q) / -np.expm1(log_q) - (1 - weight))
        step = (cumulant - total) / slope
        # false where rounding has the last word, or q = p
        is_open = step > 1e-15 * np.maximum(1, -log_q)
        lanes, known = lanes[is_open], [v[is_open] for v in known]
        if not lanes.size:
            break
        result[lanes] = np.minimum(log_q + step, log_p)[is_open]
    return result.reshape(shape)
