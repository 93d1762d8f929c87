"""The budget consumed query by query, in order: a value, not a state.

Spending gives a new ledger and looking changes nothing. The rule decides what fits and proves the
total however adaptively the queries are chosen; see `filters`.

    >>> from dpjax.accounting import loss
    >>> from dpjax.accounting.filters import GaussianRule
    >>> ledger = Ledger(GaussianRule(epsilon=1, delta=1e-5))
    >>> for _ in range(3):
    ...     ledger = ledger.spend(loss.gaussian(10.0))
    >>> print(f"{ledger.fraction_spent:.1%} spent, {ledger.how_many(loss.gaussian(10.0))} more")
    41.8% spent, 4 more
"""

import math
from dataclasses import dataclass, field, replace

from dpjax.accounting.calibrate import Accountant
from dpjax.accounting.filters import Rule
from dpjax.accounting.loss import PrivacyLoss

_ROUNDING = 1e-12  # of the budget, so that ten tenths make one


class BudgetExceededError(ValueError):
    """A query that the rule does not let through."""


@dataclass(frozen=True)
class Ledger:
    """What a rule has let through so far.

    Args:
        rule: one of the rules of `filters`, with the total budget in it.

    Attributes:
        spent: the losses let through.
        used: their costs, in the rule's units.
    """

    rule: Rule
    spent: PrivacyLoss = field(default_factory=PrivacyLoss)
    used: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.used:
            object.__setattr__(self, "used", tuple(0.0 for _ in self.rule.budget))

    def spend(self, loss: PrivacyLoss) -> "Ledger":
        """The ledger after one more release, which may be made if and only if this does not raise.

        Raises:
            BudgetExceededError: The release does not fit; the ledger stays as it is.
            ValueError: The rule has no cost for such a loss, or the loss is a grid.
        """
        if not self.fits(loss):
            raise BudgetExceededError(
                f"loss costs {_short(self.rule.cost(loss))}: expected at most"
                f" {_short(self.remaining)}, what is left of {_short(self.rule.budget)}"
            )
        used = tuple(u + c for u, c in zip(self.used, self._cost(loss), strict=True))
        return replace(self, spent=self.spent + loss, used=used)

    def fits(self, loss: PrivacyLoss) -> bool:
        """Whether one more release fits, to within 1e-12 of the budget (ten tenths make one)."""
        return self.how_many(loss) >= 1

    def how_many(self, loss: PrivacyLoss) -> int | float:
        """How many more releases of this loss fit; infinity for one that costs nothing."""
        left = [b * (1 + _ROUNDING) - u for b, u in zip(self.rule.budget, self.used, strict=True)]
        costs = self._cost(loss)
        counts = [x / c for x, c in zip(left, costs, strict=True) if c > 0]
        return math.floor(max(min(counts), 0)) if counts else math.inf

    @property
    def remaining(self) -> tuple[float, ...]:
        """What is left of the budget, in the rule's units."""
        pairs = zip(self.rule.budget, self.used, strict=True)
        return tuple(max(budget - used, 0.0) for budget, used in pairs)

    @property
    def fraction_spent(self) -> float:
        """The share of the budget that is spent, of its scarcest part."""
        pairs = zip(self.rule.budget, self.used, strict=True)
        return max((used / budget for budget, used in pairs if budget > 0), default=0.0)

    def planned_epsilon(self, accountant: Accountant, delta: float) -> float:
        """Epsilon of the releases so far had the plan been fixed in advance: not a guarantee here.

        >>> from dpjax.accounting import exact, loss
        >>> from dpjax.accounting.filters import RenyiRule
        >>> ledger = Ledger(RenyiRule(1, 1e-5, order=20)).spend(10 * loss.gaussian(20.0))
        >>> print(f"{ledger.planned_epsilon(exact.epsilon, 1e-5):.4f}")
        0.5613
        """
        return float(accountant(self.spent, delta))

    def _cost(self, loss: PrivacyLoss) -> tuple[float, ...]:
        """The rule's cost of a loss that is no grid."""
        if loss.shape:
            raise ValueError(f"loss is a grid of shape {loss.shape}: expected a single loss")
        return self.rule.cost(loss)


def _short(costs: tuple[float, ...]) -> str:
    """Costs on one line."""
    return ", ".join(f"{cost:.6g}" for cost in costs)
