"""What can be done: a mechanism together with the way its budget is counted.

>>> [design.name for design in DESIGNS if design.mechanism == "gaussian"]
['gaussian basic', 'gaussian zcdp', 'gaussian renyi', 'gaussian exact']
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


_FINEST = 100.0


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


_classic = functools.partial(rdp.epsilon, conversion="classic")

DESIGNS = (
    Design("laplace", "basic", basic.epsilon, 1, "epsilons add up: error as k, and no delta spent"),
    Design("laplace", "advanced", basic.best_of, None, "advanced composition, or basic if better"),
    Design("laplace", "optimal", basic.optimal, None, "the most that pure guarantees prove", True),
    Design("laplace", "renyi", rdp.epsilon, None, "Rényi bound on Laplace noise itself"),
    Design(
        "laplace", "exact", exact.epsilon, None, "Laplace noise, nothing lost in counting", True
    ),
    Design(
        "gaussian", "basic", basic.epsilon, None, "epsilon and delta split over the queries: as k"
    ),
    Design("gaussian", "zcdp", _classic, 2, "as sqrt(k), zCDP with its classic conversion"),
    Design("gaussian", "renyi", rdp.epsilon, 2, "as sqrt(k), Rényi with the improved conversion"),
    Design("gaussian", "exact", exact.epsilon, 2, "as sqrt(k), nothing lost in counting"),
    Design("discrete_laplace", "basic", basic.epsilon, 1, "as Laplace, on whole numbers"),
    Design(
        "discrete_laplace",
        "exact",
        exact.epsilon,
        1,
        "whole numbers, nothing lost in counting",
        True,
    ),
    Design("discrete_gaussian", "renyi", rdp.epsilon, 2, "as Gaussian, on whole numbers"),
    Design(
        "discrete_gaussian",
        "exact",
        exact.epsilon,
        2,
        "whole numbers, nothing lost in counting",
        True,
    ),
)
"""Every design there is; of the discrete ones, unequal queries are split as those of their law."""
