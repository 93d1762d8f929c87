"""The saddle of k Laplace releases: the t at which exp(K(t) - epsilon t) / (t (t + 1)) is least.

As in `contour`, but by formulas, and in the distance k e0 - epsilon from the largest loss, which
near there an epsilon no longer tells. Any tilt serves `laplace_sum`; near the saddle the sum's
error is least.
"""

import math
from collections.abc import Callable

_FAR = 80.0  # of log t
_CLOSE = 1e-7
_STEEPEST = 1e14  # over k e0


def for_epsilon(pure_epsilon: float, count: int, epsilon: float) -> float:
    """The saddle for an epsilon below k e0."""
    room = count * pure_epsilon - epsilon
    return _first(lambda t: _saddle(pure_epsilon, count, t)[0] <= room)


def for_log_delta(pure_epsilon: float, count: int, log_delta: float) -> tuple[float, float]:
    """The saddle where log delta is about the wanted one, and the epsilon, at least 0, there.

    Not where epsilon would be nearer to k e0 than floats are: the sum tells nothing left of that.
    """
    t = _first(lambda t: _saddle(pure_epsilon, count, t)[1] <= log_delta)
    t = min(t, _STEEPEST / (count * pure_epsilon))
    return t, max(count * pure_epsilon - _saddle(pure_epsilon, count, t)[0], 0.0)


def _first(reached: Callable[[float], bool]) -> float:
    """The least t that has reached."""
    low, high = -_FAR, _FAR
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _saddle(e0: float, count: int, t: float) -> tuple[float, float]:
    """The distance k e0 - epsilon whose saddle is t, and about log delta there."""
    twice = 2 * t + 1
    # the moments' factor over that of the largest loss, and two of its derivatives
    down = math.exp(-twice * e0)
    between = -math.expm1(-twice * e0) / twice
    between_1 = 2 * (e0 * down - between) / twice
    between_2 = -4 * (e0 * e0 * down + between_1) / twice
    factor = 1 + down + between
    slope = (between_1 - 2 * e0 * down) / factor
    bend = (between_2 + 4 * e0 * e0 * down) / factor - slope**2
    room = -count * slope + 1 / t + 1 / (1 + t)
    curve = count * max(bend, 0) + 1 / t**2 + 1 / (1 + t) ** 2
    log = count * math.log(factor / 2) + t * room - math.log(t) - math.log1p(t)
    return room, log - math.log(2 * math.pi * curve) / 2
