"""A plan simulated: has its noise the error, and do its intervals hold as often, as it says?"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import dpjax
from dpjax import _validate
from dpjax.plan.designs import LAWS, check_simulated
from dpjax.plan.planner import Plan
from dpjax.statistics import Moments
from dpjax.sweep.progress import Progress

_STANDARD_ERRORS = 5.0  # exceeded by chance once in two million


class Verified(NamedTuple):
    """One kind of query, simulated.

    Attributes:
        name: of the query.
        rmse: simulated.
        rmse_standard_error: of the simulation.
        rmse_expected: by the law.
        coverage: share of the trials within the half-width.
        coverage_expected: by the law; the confidence, for discrete noise at least that.
        agrees: whether both lie within five standard errors of what is expected.
    """

    name: str
    rmse: float
    rmse_standard_error: float
    rmse_expected: float
    coverage: float
    coverage_expected: float
    agrees: bool


def verify(
    plan: Plan,
    *,
    num_trials: int,
    seed: int,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> list[Verified]:
    """Simulate the plan's best design, each kind of query with a key of its own.

    Args:
        plan: with scales from 1e-30 to 1e30, which float32 holds; of discrete noise up to 5e7.
        num_trials: of each kind, at least 2.
        seed: from 0 to 2^32 - 1.
        confidence: of the half-widths, in (0, 1).
        progress: called as `progress(done, total)` with trials of all kinds.

    Raises:
        ValueError: an argument outside its range.

    >>> from dpjax.plan import at_budget, equal
    >>> plan = at_budget(equal(3), epsilon=1.0, delta=1e-5)
    >>> [each.agrees for each in verify(plan, num_trials=100_000, seed=0)]
    [True]
    """
    trials = _validate.positive_count(num_trials=num_trials)
    if trials < 2 or not 0 <= _validate.count(seed=seed) < 2**32:
        raise ValueError(
            f"num_trials, seed = {num_trials}, {seed}: expected at least 2, and below 2^32"
        )
    mechanism, scales = plan.best.design.mechanism, [float(s) for s in plan.best.scales]
    for scale in scales:
        check_simulated(mechanism, scale)
    names = [query.name for query in plan.workload.queries]
    half_widths = [float(width) for width in plan.best.half_widths(confidence)]
    points = [
        _point(name, mechanism, scale, width)
        for name, scale, width in zip(names, scales, half_widths, strict=True)
    ]
    found = dpjax.sweep(jax.random.key(np.uint32(seed)), points, trials, progress=progress)
    return [
        _judged(name, LAWS[mechanism](scale), width, moments, trials)
        for name, scale, width, moments in zip(
            names, scales, half_widths, found.moments, strict=True
        )
    ]


def _point(name: str, mechanism: str, scale: float, half_width: float) -> dpjax.Point:
    """One kind of query, with a bin for what is within the half-width."""
    discrete = mechanism.startswith("discrete")
    edge = half_width + 0.5 if discrete else half_width  # a bin holds its left end
    return dpjax.Point(
        {"query": name},
        partial(getattr(dpjax, mechanism), scale=scale),
        np.int32(0) if discrete else 0.0,
        edges=np.array([-edge, edge]),
    )


def _judged(name: str, law: Any, half_width: float, moments: Moments, trials: int) -> Verified:
    """What was simulated, beside the law."""
    assert moments.histogram is not None  # edges were given
    coverage = float(moments.histogram.counts[1] / trials)
    expected = 1 - float(law.tail(half_width))
    coverage_error = np.sqrt(expected * (1 - expected) / trials)
    agrees = (
        abs(moments.rmse - law.rmse) <= _STANDARD_ERRORS * moments.rmse_standard_error
        and abs(coverage - expected) <= _STANDARD_ERRORS * coverage_error
    )
    return Verified(
        name,
        float(moments.rmse),
        float(moments.rmse_standard_error),
        float(law.rmse),
        coverage,
        expected,
        bool(agrees),
    )
