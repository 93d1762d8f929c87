"""Whether a plan keeps a tolerable error, and if not, the nearest wishes that are possible."""

from dataclasses import replace

import numpy as np

from dpjax import _validate
from dpjax.accounting import calibrate
from dpjax.plan.planner import ImpossibleError, Plan, at_error, one_number

_SAME = 1e-9  # relative difference of errors that count as equal


def check(plan: Plan, error: float) -> Plan:
    """The plan itself, if its best error is within the tolerable one.

    Args:
        plan: of `at_budget`.
        error: tolerable, in the plan's measure.

    Raises:
        ImpossibleError: it is not; the message names the nearest wishes that are possible.
    """
    tolerated = one_number(error=_validate.positive(error=error))
    if plan.best.error <= tolerated * (1 + _SAME):
        return plan
    designs = tuple(option.design for option in plan.options)
    other = at_error(
        plan.workload,
        error=tolerated,
        delta=plan.delta,
        measure=plan.measure.kind,
        level=plan.measure.level,
        designs=designs,
    )
    fewer = _most_queries(plan, tolerated)
    fewer_text = f", {fewer} {'query' if fewer == 1 else 'queries'} at both" if fewer else ""
    raise ImpossibleError(
        f"{plan.measure.named(tolerated)} at epsilon {plan.target:g}, delta {plan.delta:g}: the"
        f" least is {plan.best.error:.6g} ({plan.best.design.name}); nearest possible:"
        f" {plan.measure.named(_above(plan.best.error))} at this epsilon{fewer_text}, or epsilon"
        f" {_above(other.epsilon):g} for this error ({other.best.design.name})"
    )


def _most_queries(plan: Plan, error: float) -> int:
    """The most equal queries with this error within the budget; 0 for none, and unequal ones."""
    if not plan.workload.is_equal:
        return 0
    one = replace(plan.workload, queries=(replace(plan.workload.queries[0], count=1),))
    counts = []
    for design in (option.design for option in plan.options):
        scales = plan.measure.reach(one, design.mechanism, np.ones(1), error)
        counts.append(
            calibrate.max_count(
                design.loss(one, scales),
                plan.target,
                plan.delta,
                accountant=design.accountant,
                up_to=plan.workload.num_queries,
            )
        )
    return int(max(counts))


def _above(value: float) -> float:
    """Rounded up to six digits, so that a wish for it can be fulfilled."""
    if value == 0:
        return 0.0
    digits = 10.0 ** (np.floor(np.log10(value)) - 5)
    return float(np.ceil(value / digits * (1 - 1e-12)) * digits)
