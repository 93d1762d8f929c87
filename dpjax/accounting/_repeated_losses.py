"""The loss of the best of many runs; public in `dpjax.accounting.bounds`."""

from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting import rdp
from dpjax.accounting.composition import PrivacyLoss, once
from dpjax.accounting.leaks.bound import Curve

_ORDERS = np.append(1 + np.geomspace(1e-2, 1e5, 127), np.inf)
_HALVINGS = 60


def repeat_and_select(release: Any, mean: Any, shape: Any) -> PrivacyLoss:
    """Many runs of one release, of which the best one's output alone is seen: a bound.

    So a private training's hyperparameters are chosen: each run draws its own at random, and the
    score that says which one is best is part of its output. The number of runs must be drawn at
    random, from the law named here, and stay secret; a fixed number can leak as much as all runs.

    Args:
        release: The loss of one run.
        mean: Of the number of runs, at least 1.
        shape: Of its law: infinity for Poisson, which may be no run at all; otherwise truncated
            negative binomial, of which 1 is the geometric law, with heavier tails and less loss
            for less. At least 0, the logarithmic law.

    Returns:
        A Rényi curve at 128 orders, a bound between and not beyond them.

    Raises:
        ValueError: An argument is outside its range or NaN.

    Source: Papernot and Steinke 2022, Theorem 2 and, for Poisson, Theorem 6.

    >>> from dpjax.accounting.loss import gaussian, pure
    >>> print(repeat_and_select(pure(0.1), 1000, 1).supremum("both").round(12))
    0.3
    >>> best = repeat_and_select(gaussian(4.0), 20, np.inf)
    >>> print(rdp.epsilon(gaussian(4.0), 1e-6).round(3), rdp.epsilon(best, 1e-6).round(3))
    1.143 3.727
    """
    runs = _validate.non_negative(mean=mean)
    if np.any(runs < 1):
        raise ValueError(f"mean = {mean}: expected a number of at least 1")
    eta = _validate.non_negative_or_infinite(shape=shape)
    if not isinstance(release, PrivacyLoss):
        raise TypeError(f"release = {release!r}: expected a privacy loss")
    grid = np.broadcast_shapes(release.shape, runs.shape, eta.shape)
    own, t = int(np.prod(release.shape)), _ORDERS - 1
    each = release.take(np.repeat(np.arange(own), t.size))
    near = np.zeros(each.shape)  # what a Poisson number needs besides the divergence
    if np.any(np.isinf(eta)):
        near = rdp.delta(each, np.tile(np.log1p(1 / t), own))
    one = rdp.divergence(each, np.tile(_ORDERS, own))
    one, near = (value.reshape(*release.shape, t.size) for value in (one, near))
    runs, eta = (np.broadcast_to(value, grid)[..., None] for value in (runs, eta))
    negative = np.where(np.isinf(eta), 1.0, eta)
    with np.errstate(invalid="ignore"):
        other = (1 - 1 / _ORDERS) * one + _log_inverse_stop(runs, negative) / _ORDERS
    least = (1 + negative) * other.min(-1, keepdims=True)
    curve = one + np.where(np.isinf(eta), runs * near, least) + np.log(runs) / t
    # a divergence rises with its order
    curve = np.minimum.accumulate(curve[..., ::-1], -1)[..., ::-1]
    return once(Curve(np.asarray(curve), tuple(_ORDERS.tolist())))


def _log_inverse_stop(mean: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Log(1 / gamma), rounded up: the u = log(1 / gamma) of a mean.

    The mean is eta (exp(u) - 1) / (1 - exp(-eta u)), at least (exp(u) - 1) / u: from 2 log mean + 2
    on it is more than wanted.
    """
    low, high = np.zeros(mean.shape), 2 * np.log(mean) + 2
    for _ in range(_HALVINGS):
        u = (low + high) / 2
        share = np.where(eta == 0, u, -np.expm1(-eta * u) / np.where(eta == 0, 1, eta))
        below = np.expm1(u) < mean * share
        low, high = np.where(below, u, low), np.where(below, high, u)
    return np.asarray(high * (1 + 1e-15))
