"""Losses of which only a bound on the cumulant is known, for `rdp` and not for `exact`.

No single pair of output laws dominates every mechanism with such a guarantee, so that `exact`
refuses them by name: a Gaussian of the same rho, say, would understate.

    >>> from dpjax.accounting import loss, rdp
    >>> queries = 5 * bounded_range(0.1) + 10 * zcdp(0.002) + loss.gaussian(10.0)
    >>> print(f"{rdp.epsilon(queries, 1e-5):.6f}")
    1.007995
"""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting._repeated_losses import repeat_and_select as repeat_and_select
from dpjax.accounting._selection_losses import selection_epsilon
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.bound import BoundedRange, Concentrated, Curve


def zcdp(rho: Any) -> PrivacyLoss:
    """One release that is rho-zCDP: a Rényi divergence of at most rho times the order.

    Args:
        rho: 0 to infinity.

    Raises:
        ValueError: Rho is negative or NaN.

    Source: Bun and Steinke 2016, Definition 1.1.

    >>> print(zcdp(0.5).cumulant(3.0, "both"))
    6.0
    """
    return once(Concentrated(_validate.non_negative_or_infinite(rho=rho)))


def bounded_range(epsilon: Any) -> PrivacyLoss:
    """One release whose losses lie in some interval of length epsilon: the exponential mechanism.

    Permute-and-flip and report-noisy-max with Laplace noise are not of bounded range: count them as
    `loss.pure`.

    Args:
        epsilon: Length of the range, 0 to infinity. With scores of sensitivity D it is 2 D / scale
            for weights exp(score / scale), and D / scale if a record moves all scores one way.

    Raises:
        ValueError: Epsilon is negative or NaN.

    Source: Durfee and Rogers 2019, Definition 4.1; Dong, Durfee, Rogers 2020, Section 3.

    >>> print(bounded_range(1.0).supremum("both"), zcdp(1 / 8).cumulant(1.0, "both"))
    1.0 0.25
    >>> print(bounded_range(1.0).cumulant(1.0, "both").round(6))
    0.240229
    """
    return once(BoundedRange(_validate.non_negative_or_infinite(epsilon=epsilon)))


def renyi_curve(orders: Any, divergences: Any) -> PrivacyLoss:
    """One release with known Rényi divergences at some orders, in both directions.

    Between orders the cumulant is bounded by its chord, for it is convex and 0 at order 1; beyond
    the last order nothing is known, unless that is infinity. Where the last finite order is the
    best, `rdp` stops short of it: `rdp.to_epsilon` on the orders alone is then a little lower.

    Args:
        orders: Above 1 and rising, (n,); infinity, the largest loss, may come last.
        divergences: At least 0, (*grid, n); infinite where unknown.

    Raises:
        ValueError: An argument is outside its range, the orders do not rise, or the shapes differ.

    >>> curve = renyi_curve([2, 4, np.inf], [0.1, 0.2, 0.5])
    >>> print(curve.cumulant(2.0, "both").round(6), curve.cumulant(5.0, "both").round(6))
    0.35 1.6
    """
    order = np.atleast_1d(_validate.non_negative_or_infinite(orders=orders))
    known = np.atleast_1d(_validate.non_negative_or_infinite(divergences=divergences))
    return once(Curve(known, tuple(order.ravel().tolist())))


def exponential_mechanism(scale: Any, sensitivity: Any, *, monotone: bool = False) -> PrivacyLoss:
    """One choice by the exponential mechanism, weights exp(score / scale): a bounded range.

    Args:
        scale: In units of the score, as the mechanism takes it; 0 to infinity.
        sensitivity: Largest change of any score by one record, 0 to infinity.
        monotone: Whether a record moves all scores one way, as with counts under add_remove: then
            the range is sensitivity / scale, and otherwise twice that.

    Raises:
        ValueError: An argument is negative or NaN.

    Source: Dong, Durfee, Rogers 2020, Section 3.

    >>> choice = exponential_mechanism(4.0, 1.0)
    >>> print(choice.supremum("both"), choice.cumulant(1.0, "both") <= 0.5**2 / 4)
    0.5 True
    """
    return bounded_range(selection_epsilon(scale, sensitivity, monotone=monotone))
