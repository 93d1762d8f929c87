"""Privacy filters: rules that hold when each query may depend on the answers so far.

Accountants for a fixed plan do not apply then, since the losses themselves are random. A privacy
filter says, before each query, whether it still fits, and its theorem gives the total guarantee
however the queries were chosen. Each rule here has one, and lets queries through while the sum of
their costs is within its budget:

    BasicRule       the epsilons and deltas             Rogers, Roth, Ullman, Vadhan 2016
    AdvancedRule    the squares of the epsilons         Whitehouse, Ramdas, Rogers, Wu 2023
    RenyiRule       divergences at one fixed order      Feldman, Zrnic 2021; Lécuyer 2021
    GaussianRule    mu^2 = 1 / noise_multiplier^2       Smith, Thakurta 2022

Optimal composition and the exact accountant have none: `ledger` shows them as hindsight only.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpjax import _validate
from dpjax.accounting import gaussian, gdp, rdp
from dpjax.accounting.loss import PrivacyLoss


@dataclass(frozen=True)
class BasicRule:
    """Epsilons and deltas add up; for bounded losses.

    Args:
        epsilon: the total, finite and above 0.
        delta: the total, in [0, 1); spent by masses at infinity only.

    Source: Rogers, Roth, Ullman, Vadhan 2016 (the basic composition filter).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _check_target(self.epsilon, self.delta)

    @property
    def budget(self) -> tuple[float, float]:
        """Epsilon and delta."""
        return self.epsilon, self.delta

    def cost(self, loss: PrivacyLoss) -> tuple[float, float]:
        """The largest loss and the mass at infinity."""
        return _bounded(loss, power=1)


@dataclass(frozen=True)
class AdvancedRule:
    """Squares of epsilons add up to S; sqrt(2 S log(1/slack)) + S/2 is the epsilon. Bounded losses.

    Args:
        epsilon: the total, finite and above 0.
        delta: the total, in (0, 1).
        slack: the part of delta paid for the square-root law, in (0, delta]; the rest is for masses
            at infinity. All of delta if left out.

    Source: Whitehouse, Ramdas, Rogers, Wu 2023 (the filter of their fully adaptive composition; for
    pure losses it is the zCDP filter at rho = S / 2).
    """

    epsilon: float
    delta: float
    slack: float | None = None

    def __post_init__(self) -> None:
        _check_target(self.epsilon, self.delta)
        slack = _validate.open_probability(slack=self.delta if self.slack is None else self.slack)
        if slack > self.delta:
            raise ValueError(f"slack = {self.slack}: expected at most delta, {self.delta}")

    @property
    def budget(self) -> tuple[float, float]:
        """The largest S, and the delta left for masses at infinity."""
        slack = self.delta if self.slack is None else self.slack
        price = -2 * math.log(slack)
        root = 2 * self.epsilon / (math.sqrt(price + 2 * self.epsilon) + math.sqrt(price))
        return root**2, self.delta - slack

    def cost(self, loss: PrivacyLoss) -> tuple[float, float]:
        """The square of the largest loss, and the mass at infinity."""
        return _bounded(loss, power=2)


@dataclass(frozen=True)
class RenyiRule:
    """Rényi divergences of one order, fixed beforehand, add up; for any loss.

    Args:
        epsilon: the total, finite and above 0.
        delta: the total, in (0, 1).
        order: above 1 and finite. `rdp.optimum` of the plan one has in mind gives a good one.

    Raises:
        ValueError: an argument outside its range, or an order at which the conversion alone costs
            more than epsilon.

    Source: Feldman and Zrnic 2021 (the Rényi filter); Lécuyer 2021.
    """

    epsilon: float
    delta: float
    order: float

    def __post_init__(self) -> None:
        _check_target(self.epsilon, self.delta)
        _validate.open_probability(delta=self.delta)
        if not self.budget[0] > 0:
            raise ValueError(
                f"order = {self.order}: expected one whose conversion leaves some of epsilon"
            )

    @property
    def budget(self) -> tuple[float]:
        """The divergence whose improved conversion is epsilon."""
        far = self.epsilon - math.log(self.delta) + 10  # where the conversion, a shift, is positive
        shift = float(rdp.to_epsilon(self.order, far, delta=self.delta)) - far
        return (self.epsilon - shift - 1e-15 * far,)

    def cost(self, loss: PrivacyLoss) -> tuple[float]:
        """The divergence of that order."""
        return (float(rdp.divergence(loss, self.order)),)


@dataclass(frozen=True)
class GaussianRule:
    """Squares of mu add up, as if the plan had been fixed: nothing is lost. For Gaussian losses.

    Args:
        epsilon: the total, finite and above 0.
        delta: the total, in (0, 1).

    Source: Smith and Thakurta 2022 (fully adaptive composition for Gaussian differential privacy).
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check_target(self.epsilon, self.delta)
        _validate.open_probability(delta=self.delta)

    @property
    def budget(self) -> tuple[float]:
        """The square of the largest mean shift that is (epsilon, delta)-private."""
        return (float(gaussian.mean_shift(self.epsilon, self.delta)) ** 2,)

    def cost(self, loss: PrivacyLoss) -> tuple[float]:
        """The square of its mean shift."""
        return (float(gdp.mu(loss)) ** 2,)


Rule = BasicRule | AdvancedRule | RenyiRule | GaussianRule


def _bounded(loss: PrivacyLoss, power: int) -> tuple[float, float]:
    """Sums over the releases of the largest loss to a power, and of the masses at infinity."""
    largest = mass = 0.0
    for leak, count in loss.terms:
        if count == 0:
            continue
        single = PrivacyLoss(((leak, np.asarray(1)),))
        top = max(float(single.supremum(direction)) for direction in single.directions)
        lost = max(float(single.infinite_mass(direction)) for direction in single.directions)
        if math.isinf(top) and lost < 1:  # at 1 there is no noise, and no bound is the right cost
            raise ValueError(f"loss has a {type(leak).__name__}: expected losses with a bound")
        largest += float(count) * top**power
        mass += float(count) * lost
    return largest, mass


def _check_target(epsilon: float, delta: float) -> None:
    """A total guarantee is a finite epsilon above 0 and a delta in [0, 1)."""
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    if delta == 1:
        raise ValueError(f"delta = {delta}: expected a number in [0, 1)")
