"""The least noise that meets a target, and the most queries: always from the private side.

An accountant is any function `(loss, delta) -> epsilon`: `rdp.epsilon`, `basic.epsilon`,
`exact.epsilon`, or one of them with its options bound by functools.partial.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting._typing import Reals
from dpjax.accounting.composition import as_loss
from dpjax.accounting.loss import PrivacyLoss

Accountant = Callable[..., np.ndarray]
Family = Callable[[np.ndarray], PrivacyLoss]

_TOLERANCE = 1e-12  # in log noise; epsilon moves by at most about twice that, relatively
_MAX_LOG_NOISE = 90.0  # noise multipliers from 1e-39 to 1e39 are tried


def noise_multiplier(
    family: Family, target_epsilon: ArrayLike, target_delta: ArrayLike, *, accountant: Accountant
) -> Float64[np.ndarray, "*grid"]:
    """Least noise multiplier that the accountant finds (target_epsilon, target_delta)-private.

    Args:
        family: from an array of noise multipliers to a loss of that shape, such as
            `lambda m: 50 * loss.gaussian(m)`.
        target_epsilon: finite and above 0.
        target_delta: in [0, 1]; broadcast with target_epsilon.
        accountant: a function `(loss, delta) -> epsilon`.

    Returns:
        Noise multipliers of the shape of the targets, each with accountant(family(it)) at most the
        target (checked) and within 1e-9 of it relatively, where the accountant's answer is
        continuous. 0 where no noise is needed. Where epsilon is not monotone in the noise (the
        discrete Gaussian) it meets the target, and some smaller noise may too.

    Raises:
        ValueError: a target outside its range or NaN, or out of reach of any noise, such as a
            Gaussian at target_delta 0.

    >>> from dpjax.accounting import loss, rdp
    >>> noise = noise_multiplier(lambda m: 12 * loss.gaussian(m), 1, 1e-5, accountant=rdp.epsilon)
    >>> print(f"{noise:.6f}")
    14.012743
    """
    epsilon = _validate.positive(target_epsilon=target_epsilon)
    delta = _validate.probability(target_delta=target_delta)
    epsilon, delta = np.broadcast_arrays(epsilon, delta)

    def excess(log_less_noise: Reals) -> np.ndarray:
        """Log of epsilon over its target, which rises as the noise falls."""
        answer = accountant(family(np.asarray(np.exp(-log_less_noise))), delta)
        answer = np.where(np.isnan(answer), np.inf, answer)
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.log(answer / epsilon))

    bracket = _bracket(excess, epsilon, delta)
    low, _ = bracketed_root(excess, *bracket, _TOLERANCE)
    noise = np.asarray(np.exp(-low))
    for ulps in 2.0 ** np.arange(40):  # exp may round differently in another place of an array
        is_over = accountant(family(noise), delta) > epsilon
        if not np.any(is_over):
            break
        noise = np.where(is_over, noise * (1 + ulps * np.finfo(float).eps), noise)
    if np.any(low >= _MAX_LOG_NOISE):  # private with next to no noise, and perhaps with none
        noise = np.where(accountant(family(0 * noise), delta) <= epsilon, 0.0, noise)
    return np.asarray(noise)


def max_count(
    loss: PrivacyLoss,
    target_epsilon: ArrayLike,
    target_delta: ArrayLike,
    *,
    accountant: Accountant,
    up_to: int = 10**9,
) -> Int64[np.ndarray, "*grid"]:
    """Most repetitions of a loss that the accountant finds (target_epsilon, target_delta)-private.

    Args:
        loss: what one query, or one round of several, leaks.
        target_epsilon: finite and above 0.
        target_delta: in [0, 1]; both broadcast with the loss's grid.
        accountant: a function `(loss, delta) -> epsilon` that does not fall as the count rises.
        up_to: the largest count tried, and the answer where it is private too.

    Returns:
        Counts, from 0 (not even one) to up_to.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> from dpjax.accounting import loss, rdp
    >>> int(max_count(loss.gaussian(20.0), 1, 1e-5, accountant=rdp.epsilon))
    24
    """
    epsilon = _validate.positive(target_epsilon=target_epsilon)
    delta = _validate.probability(target_delta=target_delta)
    up_to = _validate.positive_count(up_to=up_to)
    shape = np.broadcast_shapes(epsilon.shape, delta.shape, as_loss(loss).shape)

    def is_private(count: np.ndarray) -> np.ndarray:
        return np.asarray(accountant(count * loss, delta) <= epsilon)

    low, high = np.zeros(shape, np.int64), np.full(shape, up_to + 1, np.int64)
    probe = np.ones(shape, np.int64)
    while np.any(high - low > 1):  # low is private, high is not
        ok = is_private(probe)
        low, high = np.where(ok, probe, low), np.where(ok, high, probe)
        growing = high > up_to
        middle = low + (high - low) // 2
        probe = np.where(growing, np.minimum(8 * np.maximum(low, 1), up_to), middle)
        probe = np.where(high - low > 1, probe, low)
    return np.asarray(low)


def _bracket(
    excess: Callable[[Reals], np.ndarray], epsilon: np.ndarray, delta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends in minus log noise with excess(low) <= 0 < excess(high), and the excess there."""
    low = high = np.zeros(epsilon.shape)
    value_low = value_high = excess(low)
    upward = value_low <= 0
    step = np.full(epsilon.shape, np.log(4.0))
    while True:
        is_open = np.where(upward, value_high <= 0, value_low > 0)
        edge = np.where(upward, high, -low) >= _MAX_LOG_NOISE
        if not np.any(is_open & ~edge):
            break
        # epsilon falls as fast as the noise grows, or faster: so far at most, in most families
        excess_now = np.abs(np.where(upward, value_high, value_low))
        far = np.where(np.isfinite(excess_now), 1.01 * excess_now + 0.01, step)
        probe = np.where(upward, high + far, low - far)
        probe = np.clip(probe, -_MAX_LOG_NOISE, _MAX_LOG_NOISE)
        probe = np.where(is_open, probe, high)
        value = excess(probe)
        up, down = is_open & upward, is_open & ~upward
        low, value_low = np.where(up, high, low), np.where(up, value_high, value_low)
        high, value_high = np.where(down, low, high), np.where(down, value_low, value_high)
        high, value_high = np.where(up, probe, high), np.where(up, value, value_high)
        low, value_low = np.where(down, probe, low), np.where(down, value, value_low)
        step = 2 * np.maximum(far, step)
    impossible = value_low > 0
    if np.any(impossible):
        raise ValueError(
            f"target_epsilon = {epsilon[impossible][0]} with target_delta = {delta[impossible][0]}:"
            " expected a target that some noise meets under this accountant"
        )
    is_needless = value_high <= 0  # private with next to no noise: an empty bracket at the edge
    return np.where(is_needless, high, low), high, value_low, value_high
