"""The exact (epsilon, delta) of Gaussian noise, in closed form and in the log domain.

One number says it all: `mu`, the shift of the mean in units of the noise's standard deviation (the
sensitivity over the scale, 1 / noise multiplier). `count` releases make one Gaussian with
mu sqrt(count), different ones mu = sqrt(mu_1^2 + mu_2^2 + ...). Then (Balle and Wang 2018, Thm 8)

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)
          = phi(x) (R(x) - R(y)),   x = epsilon/mu - mu/2,   y = epsilon/mu + mu/2,

with the Mills ratio R(x) = Phi(-x) / phi(x), which neither underflows nor hides a huge e^epsilon.
With the midpoint m = epsilon/mu and half the step h = mu/2,

    R(m - h) - R(m + h) = 2 integral_0^inf sinh(h s) exp(-m s - s^2/2) ds,

all of one sign, so nothing cancels. The integral also says why the two solvers below are plain
Newton iterations that need no bracket: (R(x) - R(y)) / mu grows with mu at fixed epsilon, as
sinh(h s)/h and exp(-m s) do, so log delta is concave in log mu; and log delta is concave in epsilon
(a positive part smoothed by a log-concave law). A Newton step on a concave function lands on the
same side of the root from wherever it starts: here, the private one.
"""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.accounting._roots import bracketed_root

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
_NODES, _WEIGHTS = (0.5 * v for v in special.roots_legendre(24))  # on [0, 1]: 1e-17 off
_NODES = _NODES + 0.5
_MAX_NEWTON = 200  # some 6 are used; tens where 1 - delta is near rounding


def log_delta(epsilon: ArrayLike, *, mu: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Natural logarithm of the smallest delta at which mean shift `mu` is (epsilon, delta)-private.

    Args:
        epsilon: at least 0, infinity allowed.
        mu: mean shift in standard deviations, at least 0; 0 gives minus infinity (nothing leaks)
            and infinity gives 0.

    Returns:
        log delta, broadcast over the arguments, to a few units of rounding: as good at delta
        1e-100000 as near 1. Below -5e299 it stays there, minus infinity being no delta at all.

    Raises:
        ValueError: an argument is negative or NaN.

    >>> print(f"{log_delta(50, mu=1) / np.log(10):.6f}")
    -535.862534

    Source: Balle and Wang 2018, Theorem 8.
    """
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    mu = _validate.non_negative_or_infinite(mu=mu)
    epsilon, mu = np.broadcast_arrays(epsilon, mu)
    return _log_delta(epsilon.ravel(), mu.ravel()).reshape(epsilon.shape)


def delta(epsilon: ArrayLike, *, mu: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Smallest delta at which mean shift `mu` is (epsilon, delta)-private; see `log_delta`.

    >>> print(f"{delta(1, mu=1):.8f}")
    0.12693674
    """
    return np.asarray(np.exp(log_delta(epsilon, mu=mu)))


def epsilon(delta: ArrayLike, *, mu: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Smallest epsilon at which mean shift `mu` is (epsilon, delta)-private.

    Args:
        delta: in [0, 1]. 0 gives infinity; the total variation 2 Phi(mu/2) - 1 or more gives
            exactly 0.
        mu: mean shift in standard deviations, at least 0; 0 gives 0, infinity gives infinity unless
            delta is 1.

    Returns:
        epsilon, broadcast over the arguments; a few units of rounding above the true value, never
        below.

    Raises:
        ValueError: delta outside [0, 1], mu negative, or NaN.

    >>> print(f"{epsilon(1e-5, mu=1):.7f}")
    4.3771781

    Source: Balle and Wang 2018, Theorem 8, solved for epsilon.
    """
    delta = _validate.probability(delta=delta)
    mu = _validate.non_negative_or_infinite(mu=mu)
    delta, mu = np.broadcast_arrays(delta, mu)
    with np.errstate(divide="ignore"):
        target = np.log(delta)
    result = np.where(mu == 0, 0.0, np.inf)
    is_zero = target >= _log_delta(np.zeros(mu.size), mu.ravel()).reshape(mu.shape)
    result[is_zero] = 0.0
    todo = ~is_zero & np.isfinite(target) & (mu > 0) & np.isfinite(mu)
    result[todo] = _solve_epsilon(target[todo], mu[todo])
    return result


def mean_shift(epsilon: ArrayLike, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Largest mean shift that is (epsilon, delta)-private: the least noise is 1 / mean_shift.

    Args:
        epsilon: at least 0; infinity gives infinity.
        delta: in [0, 1]; 0 gives 0 (no Gaussian is purely private), 1 gives infinity.

    Returns:
        mu, broadcast over the arguments; a few units of rounding below the true value, never above.

    Raises:
        ValueError: epsilon negative, delta outside [0, 1], or NaN.

    >>> print(f"{mean_shift(1, 1e-5):.8f}")
    0.26805112

    Source: Balle and Wang 2018, Theorem 8, solved for mu.
    """
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    delta = _validate.probability(delta=delta)
    epsilon, delta = np.broadcast_arrays(epsilon, delta)
    result = np.where((delta == 1) | (np.isinf(epsilon) & (delta > 0)), np.inf, 0.0)
    todo = np.isfinite(epsilon) & (delta > 0) & (delta < 1)
    result[todo] = _solve_mu(epsilon[todo], delta[todo])
    return result


def noise_multiplier(epsilon: ArrayLike, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Least noise multiplier that is (epsilon, delta)-private for one release.

    `count` releases need sqrt(count) times it. It is 1 / `mean_shift`, with its edges: delta 0
    gives infinity and delta 1 gives 0.

    >>> print(f"{noise_multiplier(1, 1e-5):.7f}")
    3.7306316
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / mean_shift(epsilon, delta))


def customary_noise_multiplier(
    epsilon: ArrayLike, delta: ArrayLike
) -> Float64[np.ndarray, "*grid"]:
    """The customary sqrt(2 ln(1.25 / delta)) / epsilon: loose at small epsilon, UNSAFE at large.

    Its theorem covers epsilon < 1. Beyond, see `customary_delta` for what it gives and
    `customary_unsafe_epsilon` for where it stops keeping its promise.

    Args:
        epsilon: finite and above 0.
        delta: in (0, 1).

    Raises:
        ValueError: an argument is outside its range or NaN.

    >>> print(f"{customary_noise_multiplier(1, 1e-5):.7f}")
    4.8448053

    Source: Dwork and Roth 2014, Appendix A, Theorem A.1.
    """
    epsilon = _validate.positive(epsilon=epsilon)
    delta = _validate.open_probability(delta=delta)
    return np.asarray(np.sqrt(2 * np.log(1.25 / delta)) / epsilon)


def customary_delta(epsilon: ArrayLike, delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """The delta that `customary_noise_multiplier(epsilon, delta)` really gives at `epsilon`.

    >>> print(f"{customary_delta(1, 1e-5):.3g} {customary_delta(10, 1e-5):.3g}")
    4.11e-08 2.27e-05
    """
    return np.asarray(np.exp(log_delta(epsilon, mu=1 / customary_noise_multiplier(epsilon, delta))))


def customary_unsafe_epsilon(delta: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """Epsilon from which `customary_noise_multiplier` no longer gives `delta`; below it, it does.

    Args:
        delta: in (0, 1).

    Returns:
        The threshold, a rounding below the true one.

    Raises:
        ValueError: delta outside (0, 1) or NaN.

    >>> print(f"{customary_unsafe_epsilon(1e-5):.5f}")
    8.41977
    """
    delta = _validate.open_probability(delta=delta)
    target = np.log(delta)
    ratio = np.sqrt(2 * np.log(1.25 / delta))  # epsilon / mu of the customary rule

    def excess(epsilon: ArrayLike) -> np.ndarray:
        return np.asarray(log_delta(epsilon, mu=epsilon / ratio) - target)

    low = np.zeros_like(ratio)  # delta falls to 0 with epsilon
    high = 2 * ratio * (ratio + 10)  # 1 - delta is some Phi(-10), less than any double's
    low, _ = bracketed_root(excess, low, high, np.full_like(low, -np.inf), excess(high), 0.0)
    return np.asarray(low)


def _log_delta(epsilon: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Log delta of flat arrays."""
    with np.errstate(all="ignore"):  # overflow to infinity is right everywhere below
        middle, half = epsilon / mu, mu / 2
        x = middle - half
        result = -0.5 * x**2 - _LOG_SQRT_2PI + np.log(_mills_drop(middle, half))
        # where delta is near 1, 1 - delta = Phi(x) + phi(x) R(y) is the sum that does not cancel
        low = x < -1
        xl, yl = x[low], (middle + half)[low]
        rest = np.exp(-0.5 * xl**2 - _LOG_SQRT_2PI) * _mills(yl)
        result[low] = np.log1p(-(special.ndtr(xl) + rest))
    result[np.isfinite(mu) & (x > 1e150)] = -5e299  # x^2 overflows; delta is below exp(-x^2 / 2)
    result[(mu == 0) | (np.isfinite(mu) & np.isinf(epsilon))] = -np.inf
    result[np.isinf(mu)] = 0.0
    return result


def _mills(x: np.ndarray) -> np.ndarray:
    """Mills ratio Phi(-x) / phi(x)."""
    return np.sqrt(np.pi / 2) * special.erfcx(x / np.sqrt(2))


def _mills_drop(middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    """R(middle - half) - R(middle + half), without cancellation; for middle - half >= -1."""
    result = _mills(middle - half) - _mills(middle + half)
    close = half < 0.1 * (1 + middle)  # the difference would lose a digit
    m, h = middle[close][:, None], half[close][:, None]
    s = 88 / (m + np.sqrt(m**2 + 88)) * _NODES  # exp(-m s - s^2/2) falls to exp(-44)
    integrand = np.sinh(h * s) * np.exp(-m * s - 0.5 * s**2)
    result[close] = 2 * (integrand @ _WEIGHTS) * s[:, -1] / _NODES[-1]
    return result


def _solve_epsilon(target: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Newton for log delta = target, down to the root from above; flat arrays that have one."""
    # delta < Phi(-x), whose root in x is from above; ndtri_exp takes the log of a probability
    x = -special.ndtri_exp(target)
    epsilon = mu * (mu / 2 + x + 4e-15 * (10 + mu + np.abs(x)))
    for _ in range(_MAX_NEWTON):
        value, density, rounding = _newton_terms(epsilon, mu)
        slope = density * _mills(epsilon / mu + mu / 2)
        step = np.maximum(target - rounding - value, 0) / slope
        step = np.where(mu > 1e10, 0, step)  # the start is within 1/mu of the root, relatively
        epsilon = np.maximum(epsilon - step, 0)
        if np.all(step <= 1e-15 * epsilon):
            break
    return epsilon


def _solve_mu(epsilon: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Newton in log mu for log delta, up to the root from below; flat arrays that have one."""
    target = np.log(delta)
    # two lower bounds: the zCDP conversion, and the answer at epsilon 0
    zcdp = np.sqrt(2) * epsilon / (np.sqrt(epsilon - target) + np.sqrt(-target))
    mu = np.maximum(zcdp, 2 * np.sqrt(2) * special.erfinv(delta)) * (1 - 4e-15)
    for _ in range(_MAX_NEWTON):
        value, density, rounding = _newton_terms(epsilon, mu)
        step = np.maximum(target - rounding - value, 0) / (mu * density)
        mu = mu * np.exp(step)
        if np.all(step <= 1e-15):
            break
    return mu


def _newton_terms(epsilon: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log delta, phi(x) / delta (slopes are made of it) and a bound on log delta's rounding."""
    value = _log_delta(epsilon, mu)
    middle, half = epsilon / mu, mu / 2
    x = middle - half
    density = np.exp(-0.5 * x**2 - _LOG_SQRT_2PI - value)
    through_x = 10 + (middle + half) * (1 + np.abs(x))  # x = middle - half loses digits
    rounding = 1e-15 * np.minimum(1, -value) * through_x - 4e-16 * value
    return value, density, rounding
