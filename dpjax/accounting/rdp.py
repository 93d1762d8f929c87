"""Rényi accounting: from the cumulant of a loss to (epsilon, delta), over all real orders.

The Rényi divergence of order a = 1 + t is K(t) / t. For every t > 0 and pair (P, Q) with loss L,

    delta <= exp(K(t) - t epsilon + c(t)),      epsilon <= (K(t) + c(t) - log delta) / t

classic     c(t) = 0                                    Mironov 2017, Proposition 3
improved    c(t) = t log t - (1 + t) log(1 + t)         Balle et al. 2020, Theorem 21; Canonne,
                                                        Kamath, Steinke 2020, Proposition 12
optimal     the largest epsilon of any pair with that divergence (Asoodeh et al. 2020); see
            `_optimal.py`

K and c are convex, so the bound on log delta is convex in t and the bound on epsilon is convex in
1/t: the best order is found by continuous search and is never the end of a grid. As the order goes
to infinity the bound tends to the largest loss, so a pure guarantee is never exceeded.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.accounting._minimum import quasi_convex_minimum
from dpjax.accounting._optimal import optimal_epsilon
from dpjax.accounting._typing import Reals
from dpjax.accounting.composition import as_loss
from dpjax.accounting.loss import PrivacyLoss

CONVERSIONS = ("classic", "improved", "optimal")
_LOG_T = (-7.0, 7.0)  # of t, scanned first: orders from 1.001 to 1100
_LIMITS = (-42.0, 42.0)  # orders from 1 + 1e-18 to 1e18: beyond, float64 tells no difference
_STEP = 2.4
_NEAR = 0.6  # of log t, around a first guess


class RenyiBound(NamedTuple):
    """An epsilon and the Rényi order that gave it (infinity: the pure guarantee)."""

    epsilon: np.ndarray
    order: np.ndarray


def divergence(loss: PrivacyLoss, order: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """The Rényi divergence of a loss, the larger of its directions: its Rényi curve.

    Args:
        loss: any loss.
        order: at least 1, infinity allowed; broadcast with the loss's grid. Infinity gives the
            largest loss, and 1 the Kullback-Leibler divergence, read at 1 + 1e-12, above it by as
            little.

    Returns:
        The divergence; infinite where the loss has mass at infinity.

    Raises:
        ValueError: order below 1 or NaN.

    >>> from dpjax.accounting import loss
    >>> print(divergence(10 * loss.gaussian(5.0), [2, 8]).round(12))
    [0.4 1.6]

    Source: Mironov 2017, Definition 3.
    """
    order = _validate.non_negative_or_infinite(order=order)
    if np.any(order < 1):
        raise ValueError(f"order = {order}: expected a number of at least 1")
    shape = np.broadcast_shapes(order.shape, as_loss(loss).shape)
    t = np.broadcast_to(np.maximum(order - 1, 1e-12), shape)[..., None]
    result = np.zeros(shape)
    for direction in loss.directions:
        finite = np.where(np.isinf(t), 1.0, t)
        value = loss.cumulant(finite, direction)[..., 0] / finite[..., 0]
        value = np.where(np.isinf(t[..., 0]), loss.supremum(direction), value)
        value = np.where(loss.infinite_mass(direction) > 0, np.inf, value)
        result = np.maximum(result, value)
    return np.asarray(result)


def to_epsilon(
    order: ArrayLike, divergence: ArrayLike, *, delta: ArrayLike, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """Epsilon of whatever has this Rényi divergence at this one order.

    Args:
        order: above 1 and finite.
        divergence: Rényi divergence of that order, at least 0.
        delta: in [0, 1]; 0 gives infinity.
        conversion: "classic", "improved" or "optimal".

    Returns:
        The smallest epsilon the conversion proves, at least 0; an upper bound of the true one.

    Raises:
        ValueError: an argument outside its range or NaN, or an unknown conversion.

    >>> classic, improved = (to_epsilon(8, 0.5, delta=1e-5, conversion=c) for c in CONVERSIONS[:2])
    >>> print(f"{classic:.6f} {improved:.6f}")
    2.144704 1.714109
    """
    _validate.one_of(CONVERSIONS, conversion=conversion)
    t = _finite_order(order) - 1
    divergence = _validate.non_negative_or_infinite(divergence=divergence)
    delta = _validate.probability(delta=delta)
    return np.asarray(np.maximum(_bound(t, divergence * t, delta, conversion), 0))


def to_delta(
    order: ArrayLike, divergence: ArrayLike, *, epsilon: ArrayLike, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """Delta of whatever has this Rényi divergence at this one order: "classic" or "improved".

    >>> print(f"{to_delta(8, 0.5, epsilon=1.0):.6g}")
    0.0014823
    """
    _validate.one_of(CONVERSIONS[:2], conversion=conversion)
    t = _finite_order(order) - 1
    divergence = _validate.non_negative_or_infinite(divergence=divergence)
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    exponent = t * (divergence - epsilon) + _correction(t, conversion)
    return np.asarray(np.exp(np.minimum(exponent, 0)))


def optimum(loss: PrivacyLoss, delta: ArrayLike, *, conversion: str = "improved") -> RenyiBound:
    """The smallest epsilon over all real orders, and the order that gives it.

    Args:
        loss: any loss; only its cumulant at real t is used, per direction.
        delta: in [0, 1], broadcast with the loss's grid. 0 gives the largest loss (infinity for a
            Gaussian).
        conversion: "classic", "improved" or "optimal". With mass at infinity, "optimal" uses
            "improved", which holds for any part of a pair.

    Returns:
        RenyiBound(epsilon, order): epsilon at least 0 and an upper bound of the true one.

    Raises:
        ValueError: delta outside [0, 1] or NaN, or an unknown conversion.

    >>> from dpjax.accounting import loss
    >>> epsilon, order = optimum(12 * loss.gaussian(10.0), 1e-5)
    >>> print(f"epsilon {epsilon:.6f} at order {order:.4f}")
    epsilon 1.445408 at order 13.2015
    """
    _validate.one_of(CONVERSIONS, conversion=conversion)
    delta = _validate.probability(delta=delta)
    shape = np.broadcast_shapes(as_loss(loss).shape, delta.shape)
    epsilon, order = np.zeros(shape), np.full(shape, np.inf)
    delta = np.broadcast_to(delta, shape)
    for direction in loss.directions:
        if direction != loss.directions[0]:
            # at any order the bound is one on this direction: at the other's it may be low enough
            there = _at(loss, delta, direction, conversion, order - 1)
            if np.all(there <= epsilon):
                break
        value, t = _minimum(loss, delta, direction, conversion)
        epsilon, order = np.maximum(epsilon, value), np.where(value >= epsilon, 1 + t, order)
    return RenyiBound(np.asarray(epsilon), np.asarray(order))


def epsilon(
    loss: PrivacyLoss, delta: ArrayLike, *, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """An accountant: the smallest epsilon over all real orders; see `optimum`.

    >>> from dpjax.accounting import loss
    >>> print(f"{epsilon(50 * loss.laplace(10.0), 1e-5):.6f}")
    2.997659
    """
    return optimum(loss, delta, conversion=conversion).epsilon


def delta(
    loss: PrivacyLoss, epsilon: ArrayLike, *, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """The smallest delta over all real orders: "classic" or "improved"; an upper bound.

    >>> from dpjax.accounting import loss
    >>> print(f"{delta(50 * loss.laplace(10.0), 2.997659):.4g}")
    1e-05
    """
    _validate.one_of(CONVERSIONS[:2], conversion=conversion)
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    shape = np.broadcast_shapes(as_loss(loss).shape, epsilon.shape)
    epsilon = np.broadcast_to(epsilon, shape)
    result = np.zeros(shape)
    for direction in loss.directions:

        def exponent(log_t: Reals, direction: str = direction) -> Reals:
            t = np.exp(log_t)
            with np.errstate(invalid="ignore", over="ignore"):
                value = loss.cumulant(t, direction) - t * epsilon[..., None]
            return value + _correction(t, conversion)

        _, least = quasi_convex_minimum(exponent, *_ends(shape), _STEP, _LIMITS)
        finite = np.exp(np.minimum(least, 0))
        finite = np.where(epsilon >= loss.supremum(direction), 0, finite)
        mass = loss.infinite_mass(direction)
        result = np.maximum(result, mass + (1 - mass) * finite)
    return np.asarray(result)


def _finite_delta(loss: PrivacyLoss, delta: Reals, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """The mass m of infinite loss, and the rest in delta = m + (1 - m) rest."""
    mass = np.broadcast_to(loss.infinite_mass(direction), delta.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mass, np.asarray(np.clip((delta - mass) / (1 - mass), 0, 1))


def _at(loss: PrivacyLoss, delta: Reals, direction: str, conversion: str, t: Reals) -> Reals:
    """Epsilon of these t, the largest loss where t is infinite; NaN where that fails."""
    mass, rest = _finite_delta(loss, delta, direction)
    finite = np.isfinite(t)
    nodes = np.where(finite, t, 1.0)[..., None]
    cumulant = _cumulant(loss, nodes, direction, conversion)
    bound = _bound(nodes, cumulant, rest[..., None], conversion)
    value = np.asarray(bound)[..., 0]
    value = np.where(finite, value, loss.supremum(direction))
    return np.where(delta >= 1, 0, np.where(mass > 0, np.nan, value))


def _minimum(
    loss: PrivacyLoss, delta: Reals, direction: str, conversion: str
) -> tuple[Reals, Reals]:
    """Least epsilon and its t in one direction."""
    mass, rest = _finite_delta(loss, delta, direction)
    if np.any(mass > 0) and conversion == "optimal":
        conversion = "improved"

    def bound(log_t: Reals, conversion: str) -> Reals:
        t = np.exp(log_t)
        return _bound(t, _cumulant(loss, t, direction, conversion), rest[..., None], conversion)

    cheap = "improved" if conversion == "optimal" else conversion
    log_t, value = quasi_convex_minimum(
        lambda x: bound(x, cheap), *_ends(delta.shape), _STEP, _LIMITS
    )
    if conversion == "optimal":  # its best order is near that of the improved one
        ends = np.maximum(log_t - _NEAR, _LIMITS[0]), np.minimum(log_t + _NEAR, _LIMITS[1])
        log_t, value = quasi_convex_minimum(
            lambda x: bound(x, conversion), *ends, _NEAR / 2, _LIMITS
        )
    pure = np.broadcast_to(loss.supremum(direction), delta.shape)
    is_pure = ~(value < pure * (1 - 1e-15))  # nearer than that is rounding
    value, t = np.where(is_pure, pure, value), np.where(is_pure, np.inf, np.exp(log_t))
    impossible, trivial = delta < mass, delta >= 1
    return np.where(trivial, 0, np.where(impossible, np.inf, np.maximum(value, 0))), t


def _cumulant(loss: PrivacyLoss, t: Reals, direction: str, conversion: str) -> Reals:
    """K(t), and above it where the conversion still counts on it when it falls below rounding."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if conversion != "optimal":  # they have log(1 / delta) on top, whatever t is
            return loss.cumulant(t, direction)
        value, error = loss.cumulant_with_error(np.asarray(t), direction)
        return np.maximum(value - np.log1p(-np.expm1(error)), 0)


def _bound(t: Reals, cumulant: Reals, delta: Reals, conversion: str) -> Reals:
    """Epsilon of one t, before clamping at 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if conversion == "optimal":
            return optimal_epsilon(t, cumulant, delta)
        return np.asarray((cumulant + _correction(t, conversion) - np.log(delta)) / t)


def _correction(t: Reals, conversion: str) -> Reals:
    """c(t) of the module docstring."""
    if conversion == "classic":
        return np.zeros_like(t)
    return -np.log1p(t) - t * np.log1p(1 / t)


def _ends(shape: tuple[int, ...]) -> tuple[Reals, Reals]:
    """The range of log t to scan first."""
    return np.full(shape, _LOG_T[0]), np.full(shape, _LOG_T[1])


def _finite_order(order: ArrayLike) -> np.ndarray:
    """Finite orders above 1."""
    checked = _validate.finite(order=order)
    if np.any(checked <= 1):
        raise ValueError(f"order = {order}: expected a finite number above 1")
    return checked
