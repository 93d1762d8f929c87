"""What can be done: a mechanism together with the way its budget is counted.

>>> [design.name for design in DESIGNS if design.mechanism == "gaussian"]
['gaussian basic', 'gaussian renyi_classic', 'gaussian renyi_improved', 'gaussian exact']
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpjax import theory
from dpjax.accounting import basic, exact, loss, rdp
from dpjax.accounting.calibrate import Accountant
from dpjax.accounting.loss import PrivacyLoss
from dpjax.plan.workload import Workload

LAWS: dict[str, Callable[..., Any]] = {
    "laplace": theory.Laplace,
    "gaussian": theory.Gaussian,
    "discrete_laplace": theory.DiscreteLaplace,
    "discrete_gaussian": theory.DiscreteGaussian,
}

ACCOUNTANTS: dict[str, Accountant] = {
    "basic": basic.epsilon,
    "advanced": basic.best_of,
    "optimal": basic.optimal,
    "renyi_classic": functools.partial(rdp.epsilon, conversion="classic"),
    "renyi_improved": rdp.epsilon,
    "renyi_optimal": functools.partial(rdp.epsilon, conversion="optimal"),
    "exact": exact.epsilon,
}
"""Every way to count a budget by its name, from the loosest to the exact one."""

_FINEST = 100.0
_SIMULATED = (1e-30, 1e30)  # scales of which float32 holds all noise and its squares
_MOST_WHOLE = 2**31 / 40  # discrete noise beyond 40 scales is rarer than anyone can simulate


@dataclass(frozen=True)
class Design:
    """A mechanism with an accountant.

    Attributes:
        mechanism: "laplace", "gaussian", "discrete_laplace" or "discrete_gaussian".
        accounting: how its budget is counted.
        accountant: the same as a function `(loss, delta) -> epsilon`, an upper bound.
        power: p where the split depends on the sum of (sensitivity / scale)^p alone, so that the
            best one is known in closed form; None where it is searched for.
        reason: why its error is what it is.
        for_equal: whether it is for queries of one kind only.
    """

    mechanism: str
    accounting: str
    accountant: Accountant
    power: float | None
    reason: str
    for_equal: bool = False

    @property
    def name(self) -> str:
        """Both, on one line."""
        return f"{self.mechanism} {self.accounting}"

    def why_not(self, workload: Workload, delta: float) -> str | None:
        """Why the design does not apply, or None if it does."""
        if self.mechanism.startswith("discrete") and not all(q.whole for q in workload.queries):
            return "needs whole answers"
        if "gaussian" in self.mechanism and delta == 0:
            return "needs a delta above 0"
        if self.for_equal and not workload.is_equal:
            return "needs queries of one kind"
        if self.accounting == "exact" and self.mechanism.startswith("discrete"):
            if workload.queries[0].sensitivity > _FINEST:  # as many steps of its lattice
                return f"needs a sensitivity of at most {_FINEST:g} (above it is as without steps)"
        return None

    def loss(self, workload: Workload, scales: np.ndarray) -> PrivacyLoss:
        """What the whole release leaks, at scales of shape (queries, *grid)."""
        scales = np.asarray(scales, np.float64)
        along = (-1, *[1] * (scales.ndim - 1))
        sensitivities = workload.each("sensitivity").reshape(along)
        releases = np.array([query.releases for query in workload.queries]).reshape(along)
        if self.mechanism.startswith("discrete"):
            each = getattr(loss, self.mechanism)(scales, sensitivities)
        elif self.mechanism == "laplace" or self.power is None or workload.is_equal:
            each = getattr(loss, self.mechanism)(scales / sensitivities)
        else:  # Gaussian releases leak what a single one does, unless they are counted one by one
            with np.errstate(divide="ignore", over="ignore"):
                squares = np.sum(releases * (sensitivities / scales) ** 2, axis=0)
                return loss.gaussian(1 / np.sqrt(squares))
        return (releases * each).sum(0)


def check_simulated(mechanism: str, scale: float) -> float:
    """The scale, if noise of it can be simulated in 32 bits.

    Raises:
        ValueError: it cannot; the message has the range.
    """
    discrete = mechanism.startswith("discrete")
    low, high = (0.0, _MOST_WHOLE) if discrete else _SIMULATED
    if not low <= scale <= high:
        raise ValueError(
            f"scale = {scale:.6g} of {mechanism} noise: expected from {low:g} to {high:.3g} to be"
            " simulated in 32 bits; state sensitivities in another unit"
        )
    return scale


DESIGNS = tuple(
    Design(mechanism, accounting, ACCOUNTANTS[accounting], power, reason, for_equal)
    for mechanism, accounting, power, for_equal, reason in (
        ("laplace", "basic", 1, False, "epsilons add up: error as k, and no delta spent"),
        ("laplace", "advanced", None, False, "advanced composition, or basic if better"),
        ("laplace", "optimal", None, True, "the most that pure guarantees prove"),
        ("laplace", "renyi_improved", None, False, "Rényi bound on Laplace noise itself"),
        ("laplace", "exact", None, True, "Laplace noise, nothing lost in counting"),
        ("gaussian", "basic", None, False, "epsilon and delta split over the queries: as k"),
        ("gaussian", "renyi_classic", 2, False, "as sqrt(k), Rényi with the classic conversion"),
        ("gaussian", "renyi_improved", 2, False, "as sqrt(k), Rényi with the improved conversion"),
        ("gaussian", "exact", 2, False, "as sqrt(k), nothing lost in counting"),
        ("discrete_laplace", "basic", 1, False, "as Laplace, on whole numbers"),
        ("discrete_laplace", "exact", 1, True, "whole numbers, nothing lost in counting"),
        ("discrete_gaussian", "renyi_improved", 2, False, "as Gaussian, on whole numbers"),
        ("discrete_gaussian", "exact", 2, True, "whole numbers, nothing lost in counting"),
    )
)
"""Every design there is; of the discrete ones, unequal queries are split as those of their law."""
