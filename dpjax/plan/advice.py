"""What a plan means: the risk of its epsilon, a sound delta, and where the lead changes."""

import math
from typing import NamedTuple

import numpy as np

from dpjax.accounting import exact, gaussian, loss, rdp, risk
from dpjax.accounting.loss import PrivacyLoss
from dpjax.plan import split
from dpjax.plan.measures import Measure
from dpjax.plan.planner import Plan
from dpjax.plan.workload import Workload

_FARTHEST = 10**6  # times k_star: how far a change of the lead is looked for
_FALSE_ALARMS = 0.01
_FOR_ANYONE = 1e-15  # a hundredth of one over more people than there are or were
_LARGEST_EXPONENT = 709.0  # of a finite e^x


class Risk(NamedTuple):
    """What the best attacker learns about one person from the whole release.

    Attributes:
        odds_factor: e^epsilon, the most by which an output multiplies the odds of being in the data
            (but with a chance of about delta); infinity where it overflows.
        belief: the most that a belief of 1/2 becomes.
        true_positive_rate: the most, at 1 % of false alarms, for any mechanism of this guarantee.
        advantage: true less false positive rate, the most for any mechanism of this guarantee.
        advantage_of_release: the same for this very release, an upper bound that is nearly exact;
            None where it is not known (unequal queries with Laplace noise).
    """

    odds_factor: float
    belief: float
    true_positive_rate: float
    advantage: float
    advantage_of_release: float | None


class Lead(NamedTuple):
    """Where Gaussian noise takes the lead over Laplace noise at the plan's epsilon and delta.

    Attributes:
        k_star: number of queries, in the workload's mix, at which Gaussian noise under exact
            accounting meets Laplace noise under basic composition. None where it never does.
        first_integer: the first whole number of equal queries from which the best continuous
            design is Gaussian, with both counted exactly; None for unequal queries.
    """

    k_star: float | None
    first_integer: int | None


def risk_of(plan: Plan) -> Risk:
    """The risk that the plan's guarantee leaves.

    >>> from dpjax.plan import at_budget, equal
    >>> found = risk_of(at_budget(equal(50), epsilon=1.0, delta=1e-5))
    >>> print(f"{found.odds_factor:.3f} {found.advantage:.4f} {found.advantage_of_release:.4f}")
    2.718 0.4621 0.1066
    """
    leak = None
    if "gaussian" in plan.best.design.mechanism or plan.workload.is_equal:
        leak = plan.best.design.loss(plan.workload, plan.best.scales)
    return risk_at(plan.epsilon, plan.delta, leak)


def risk_at(epsilon: float, delta: float, leak: PrivacyLoss | None = None) -> Risk:
    """The risk that (epsilon, delta) leaves, and that of the release itself if its loss is given.

    Args:
        epsilon: at least 0, infinity allowed.
        delta: in [0, 1].
        leak: what the release leaks, no grid.
    """
    missed = risk.tradeoff_of_guarantee(_FALSE_ALARMS, epsilon=epsilon, delta=delta)
    return Risk(
        float(np.exp(epsilon)) if epsilon < _LARGEST_EXPONENT else math.inf,
        float(risk.posterior(0.5, epsilon=epsilon)),
        float(1 - missed),
        float(risk.advantage_of_guarantee(epsilon, delta)),
        None if leak is None or not leak.is_pair else float(exact.delta(leak, 0.0)),
    )


def lead_of(plan: Plan) -> Lead:
    """Where the lead changes near the plan's workload.

    >>> from dpjax.plan import at_budget, equal
    >>> k_star, first = lead_of(at_budget(equal(50), epsilon=1.0, delta=1e-5))
    >>> print(f"{k_star:.4f} {first}")
    6.9588 7
    """
    epsilon, delta = plan.epsilon, plan.delta
    if delta == 0 or epsilon == 0:
        return Lead(None, None)
    # one copy of the workload: errors are as copies for Laplace and sqrt(copies) for Gaussian
    laplace, normal = (_error(plan.workload, plan.measure, m, epsilon, delta) for m in _PAIR)
    k_star = plan.workload.num_queries * (normal / laplace) ** 2
    if not plan.workload.is_equal:
        return Lead(k_star, None)
    query = plan.workload.queries[0]
    units = [float(plan.measure.of(mechanism, np.array(1.0))) for mechanism in _PAIR]
    shift = float(gaussian.mean_shift(epsilon, delta))

    def laplace_leads(k: int) -> bool:
        """Whether Laplace noise of Gaussian noise's error leaks less."""
        multiplier = np.sqrt(k * query.changed) / shift * units[1] / units[0]
        leak = (k * query.changed) * loss.laplace(multiplier)
        if float(rdp.epsilon(leak, delta)) < epsilon:  # as the exact one is then, at less cost
            return True
        return bool(exact.epsilon(leak, delta) < epsilon)

    low, high = 0, max(math.ceil(k_star), 1)
    while laplace_leads(high):
        low, high = high, 2 * high
        if high > _FARTHEST * max(k_star, 1):
            return Lead(k_star, None)
    if low == 0:  # Laplace under basic composition leads below k_star, and under any other
        return Lead(k_star, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if laplace_leads(middle) else (low, middle)
    return Lead(k_star, high)


_PAIR = ("laplace", "gaussian")


def _error(
    workload: Workload, measure: Measure, mechanism: str, epsilon: float, delta: float
) -> float:
    """Of Laplace noise under basic composition, or of Gaussian noise under exact accounting."""
    power = 1.0 if mechanism == "laplace" else 2.0
    scales = split.closed_form(workload, power)
    ratios = (workload.each("sensitivity") / scales) ** power
    spent = float(np.sum(workload.each("releases") * ratios))
    if mechanism == "laplace":
        scales = scales * (spent / epsilon)
    else:
        scales = scales * (np.sqrt(spent) / float(gaussian.mean_shift(epsilon, delta)))
    return measure.overall(workload, mechanism, scales)


def notes_on(plan: Plan) -> list[str]:
    """What to know before the plan is carried out, a sentence each."""
    return [*_on_delta(plan), *_on_epsilon(plan), *_on_split(plan)]


def _on_delta(plan: Plan) -> list[str]:
    """Delta is the chance of a failure of any kind, so it is to be far below one in the people."""
    delta, people = plan.delta, plan.workload.people
    if delta == 0:
        return []
    if people is None and delta < _FOR_ANYONE:
        return [f"delta {delta:g} is well below one over the number of people, however many"]
    if people is None:
        return [
            f"delta {delta:g} is well below one over the number of people (a hundredth) for up to"
            f" {math.floor(1 / (100 * delta) * (1 + 1e-9)):,} people; say how many with --people"
        ]
    if delta * people >= 1:
        return [
            f"WARNING: delta {delta:g} is not below 1/{people:,}: publishing one record outright"
            f" would meet it; take at most {1 / (100 * people):g}"
        ]
    if 100 * delta * people > 1 + 1e-9:
        return [
            f"delta {delta:g} is not well below one over {people:,} people; {1 / (100 * people):g}"
            " (a hundredth) is safer"
        ]
    return [f"delta {delta:g} is well below one over {people:,} people"]


def _on_epsilon(plan: Plan) -> list[str]:
    """An epsilon that protects little, or an error that hides the answers."""
    if plan.epsilon > 10:
        return [
            f"WARNING: epsilon {plan.epsilon:.4g} lets an attacker be nearly certain about anyone;"
            " ask fewer queries or tolerate more error"
        ]
    return []


def _on_split(plan: Plan) -> list[str]:
    """What unequal queries leave out."""
    if plan.workload.is_equal:
        return []
    return [
        "the budget is split for the least weighted square error; for unequal queries Laplace noise"
        " is counted by basic, advanced and Rényi composition, which may overstate its epsilon"
    ]
