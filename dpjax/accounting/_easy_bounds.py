"""Bounds from above that need no search: tight where a composition hardly leaks, or far out.

The total variation of a composition is at most the sum of those of its releases. And where each
has K(t) <= rho_i t (t + 1) for t > 0, rho = sum rho_i bounds as Bun and Steinke 2016,
Proposition 1.3, say: log delta <= -(epsilon - rho)^2 / (4 rho) for epsilon above rho.
"""

import numpy as np

from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.discrete import DiscreteGaussian
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.loss import PrivacyLoss

_LEAST = 5e-324
_SLACK = 1e-9  # relative, for rounding
_BELOW = 1e-9  # how far below the largest loss its chance is looked for, relative
_LESS = 0.01  # of the log of that chance: rounding of losses is that much of so small a distance
_SMALL = 1e-290  # losses above this are precise


@np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
def log_delta(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> np.ndarray:
    """At least log delta of the finite part; flat arrays, (rows,)."""
    rho = _rho(loss)
    far = np.maximum(epsilon - rho, 0)
    tail = np.where(far > 0, -far / (4 * rho) * far * (1 - _SLACK), 0)
    tail = np.where(np.isnan(tail), 0, np.where(rho > 0, np.maximum(tail, -1e300), tail))
    variation = np.log(_variation(loss, direction))
    return np.minimum(tail, np.where(np.isnan(variation), 0, variation))


@np.errstate(all="ignore")
def epsilon(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> np.ndarray:
    """At least epsilon, where delta of the finite part is exp(log_delta); flat arrays, (rows,)."""
    rho = _rho(loss)
    bound = (rho + 2 * np.sqrt(rho) * np.sqrt(np.maximum(-log_delta, 0))) * (1 + _SLACK)
    bound = np.where(np.isnan(bound), np.inf, bound)
    return np.where(_variation(loss, direction) <= np.exp(log_delta) * (1 - _SLACK), 0, bound)


@np.errstate(all="ignore")
def least_epsilon(loss: PrivacyLoss, direction: str, log_delta: np.ndarray) -> np.ndarray:
    """At most epsilon, and next to the largest loss where delta is below the chance of about that.

    With l just below the largest loss m of one release, P(L > l) is at least
    delta_1(l) / (1 - exp(l - m)). So n releases lose more than n l with a chance of at least the
    n-th power p of that, and delta(epsilon) >= p (1 - exp(epsilon - n l)). Flat arrays, (rows,).
    """
    place, log_chance = np.zeros((2, *loss.shape))
    for leak, count in loss.terms:
        most, slip = leak.supremum(direction), leak.loss_slip(direction)
        at = most * (1 - _BELOW)
        once = leak.log_delta_once(at * (1 + 2 * slip) + np.zeros(loss.shape), direction)
        if once is None:
            return np.zeros(loss.shape)
        chance = once - np.log(-np.expm1(at - most * (1 + 2 * slip))) - _LESS
        usable = (most > _SMALL) & (leak.infinite_mass(direction) == 0)
        place = place + np.where(count == 0, 0, count * at)
        log_chance = log_chance + np.where(count == 0, 0, np.where(usable, count * chance, -np.inf))
    rest = np.log1p(-np.exp(log_delta - log_chance + _SLACK))
    bound = (place + rest * (1 + _SLACK)) * (1 - 1e-15)
    return np.where(bound > 0, bound, 0)  # and where it is NaN


def _variation(loss: PrivacyLoss, direction: str) -> np.ndarray:
    """The sum of the total variations; infinite where one has no formula, or infinite losses."""
    total = np.zeros(loss.shape)
    for leak, count in loss.terms:
        once = leak.log_delta_once(np.zeros(loss.shape), direction)
        if once is None:
            once = np.full(loss.shape, np.inf)
        each = np.where(np.isneginf(once), 0, np.exp(once) + _LEAST)  # of underflow
        each = np.where(leak.infinite_mass(direction) > 0, np.inf, each)
        total = total + np.where(count == 0, 0, count * each)
    return total * (1 + _SLACK)


def _rho(loss: PrivacyLoss) -> np.ndarray:
    """The sum of the rho_i; infinite where one is not known."""
    total = np.zeros(loss.shape)
    for leak, count in loss.terms:
        total = total + np.where(count == 0, 0, count * (_rho_once(leak) + _LEAST))
    return total * (1 + _SLACK)


def _rho_once(leak: Leak) -> np.ndarray:
    """1 / (2 s^2) of Gaussian noise, sampled or not, and epsilon^2 / 2 of bounded losses.

    Sampled, by convexity E[(1 - q + q exp(z))^p] <= 1 - q + q E[exp(p z)] at powers p outside of
    (0, 1). For bounded losses see Bun and Steinke 2016, Proposition 1.4; discrete Gaussian noise
    has no more than the other (Canonne, Kamath, Steinke 2020).
    """
    if isinstance(leak, Gaussian | PoissonGaussian):
        return np.asarray(1 / leak.noise_multiplier / leak.noise_multiplier / 2)
    if isinstance(leak, DiscreteGaussian):
        return np.asarray((leak.sensitivity / leak.scale) ** 2 / 2)
    largest = np.maximum(*(leak.supremum(way) for way in (leak.directions * 2)[:2]))
    mass = np.maximum(*(leak.infinite_mass(way) for way in (leak.directions * 2)[:2]))
    return np.where(mass > 0, np.inf, largest**2 / 2)
