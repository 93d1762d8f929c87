"""Error curves: the error of one answer when k queries share one total budget.

A curve is called with k of shape (n,) or, over a grid of budgets, (n, 1, ..., 1), and gives errors
of shape (n, *grid) in units of one query's sensitivity. Name the mechanism, the accountant and the
error measure; any other law of k is wrapped by `ErrorCurve` itself.

    >>> curve = laplace_basic(1.0, measure="mae")
    >>> curve([1, 2, 10])
    array([ 1.,  2., 10.])
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpjax import _validate, theory
from dpjax.accounting import calibrate, exact, loss
from dpjax.accounting.calibrate import Accountant

MEASURES = ("rmse", "mae", "quantile")
MECHANISMS = ("laplace", "gaussian")


@dataclass(frozen=True)
class ErrorCurve:
    """The error of one answer when k queries share a budget.

    Attributes:
        error: from k to errors, as the module says.
        measure: name of the error measure.
        takes_real: whether k may be any real number of at least 1, or whole numbers only.
        shape: the grid of budgets.
        allows: from k and errors to whether the budget allows such an error, where that takes less
            than finding the least: one call of an accountant in place of a calibration.
    """

    error: Callable[[np.ndarray], np.ndarray]
    measure: str
    takes_real: bool
    shape: tuple[int, ...] = ()
    allows: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def __call__(self, k: ArrayLike) -> np.ndarray:
        """The errors at k, which is above 0.

        Raises:
            ValueError: a k that is not, or that is not whole where the curve takes whole k only.
        """
        checked = _validate.positive(k=k) if self.takes_real else _validate.count(k=k)
        return np.asarray(self.error(checked))


def laplace_basic(
    epsilon: ArrayLike, *, measure: str = "rmse", level: float | None = None
) -> ErrorCurve:
    """Laplace noise under basic composition: scale k / epsilon, for real k.

    Args:
        epsilon: total budget, finite and above 0; an array gives a grid of curves.
        measure: "rmse", "mae" or "quantile" (of the absolute error).
        level: in (0, 1): which quantile, for measure "quantile" only.

    Raises:
        ValueError: an argument outside its range.
    """
    epsilon = _validate.positive(epsilon=epsilon)
    unit, name = unit_error("laplace", measure, level)
    return ErrorCurve(lambda k: unit * k / epsilon, name, True, epsilon.shape)


def gaussian(
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    accountant: Accountant,
    measure: str = "rmse",
    level: float | None = None,
) -> ErrorCurve:
    """Gaussian noise under an accountant that reads the whole composition: sqrt(k) sigma_1.

    k releases with sqrt(k) times the noise leak what one leaks with the noise itself, so one
    calibration serves every real k. That does not hold for basic and advanced composition, which
    split the budget: use `calibrated` for those.

    Args:
        epsilon: total budget, finite and above 0.
        delta: total delta in (0, 1); both broadcast to a grid of curves.
        accountant: a function `(loss, delta) -> epsilon` of the total loss, such as `rdp.epsilon`.
        measure: "rmse", "mae" or "quantile" (of the absolute error).
        level: in (0, 1): which quantile, for measure "quantile" only.

    Raises:
        ValueError: an argument outside its range, or an accountant for which the law fails.
    """
    sigma = calibrate.noise_multiplier(loss.gaussian, epsilon, delta, accountant=accountant)
    split = accountant(4 * loss.gaussian(2 * sigma), np.asarray(delta))
    if not np.allclose(split, epsilon, rtol=1e-6):
        raise ValueError(
            f"accountant = {accountant}: expected one that reads the whole composition;"
            " this one splits the budget, so use curves.calibrated"
        )
    unit, name = unit_error("gaussian", measure, level)
    return ErrorCurve(lambda k: unit * np.sqrt(k) * sigma, name, True, sigma.shape)


def calibrated(
    mechanism: str,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    accountant: Accountant,
    measure: str = "rmse",
    level: float | None = None,
) -> ErrorCurve:
    """Any mechanism under any accountant, calibrated anew for every whole k.

    Args:
        mechanism: "laplace" or "gaussian".
        epsilon: total budget, finite and above 0.
        delta: total delta in [0, 1]; both broadcast to a grid of curves.
        accountant: a function `(loss, delta) -> epsilon`.
        measure: "rmse", "mae" or "quantile" (of the absolute error).
        level: in (0, 1): which quantile, for measure "quantile" only.

    Raises:
        ValueError: an argument outside its range, or a budget that no noise meets.
    """
    unit, name = unit_error(mechanism, measure, level)
    leak = {"laplace": loss.laplace, "gaussian": loss.gaussian}[mechanism]
    epsilon = _validate.positive(epsilon=epsilon)
    delta = _validate.probability(delta=delta)
    grid = np.broadcast_shapes(epsilon.shape, delta.shape)

    def error(k: np.ndarray) -> np.ndarray:
        count = _validate.count(k=k)
        shape = np.broadcast_shapes(count.shape, grid)
        return unit * calibrate.noise_multiplier(
            lambda noise: count * leak(noise),
            np.broadcast_to(epsilon, shape),
            delta,
            accountant=accountant,
        )

    def allows(k: np.ndarray, error: np.ndarray) -> np.ndarray:
        queries = _validate.count(k=k) * leak(np.asarray(error / unit))
        if accountant is exact.epsilon:  # delta at an epsilon costs a tenth of the reverse
            return np.asarray(exact.delta(queries, epsilon) <= delta)
        return np.asarray(accountant(queries, delta) <= epsilon)

    return ErrorCurve(error, name, False, grid, allows)


def unit_error(mechanism: str, measure: str, level: float | None) -> tuple[float, str]:
    """Error of a mechanism at scale 1, and the full name of the measure."""
    _validate.one_of(MECHANISMS, mechanism=mechanism)
    _validate.one_of(MEASURES, measure=measure)
    law = theory.Laplace(1.0) if mechanism == "laplace" else theory.Gaussian(1.0)
    if measure != "quantile":
        if level is not None:
            raise ValueError(f"level = {level}: expected None for measure {measure!r}")
        return float(law.rmse if measure == "rmse" else law.mae), measure
    if level is None:
        raise ValueError('level = None: expected a number in (0, 1) for measure "quantile"')
    probability = float(_validate.open_probability(level=level))
    return float(law.abs_quantile(probability)), f"quantile {probability:g}"
