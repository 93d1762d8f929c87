"""A bracketed root for a whole array at once, keeping both ends of the bracket."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

MAX_EVALUATIONS = 90  # bisection alone would need some 60 for a double; interpolation about 10


def bracketed_root(
    function: Callable[[np.ndarray], np.ndarray],
    low: ArrayLike,
    high: ArrayLike,
    value_low: ArrayLike,
    value_high: ArrayLike,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Shrink brackets, function(low) <= 0 < function(high), to the width `tolerance` or rounding.

    The function may be infinite, flat or jump: then the steps are bisections. Either end keeps its
    sign, so the caller takes the one on the safe side. Inverse quadratic interpolation where three
    points allow it (Chandrupatla 1997, Adv. Eng. Softw. 28(3)).

    Returns:
        The last (low, high), with function(low) <= 0 < function(high) as evaluated.

    >>> low, high = bracketed_root(lambda x: x**2 - 2, 0, 2, -2, 2, 1e-12)
    >>> print(f"{low:.9f} {high - low < 1e-11}")
    1.414213562 True
    """
    a, fa, b, fb = (np.array(v, dtype=float) for v in (low, value_low, high, value_high))
    c, fc = b.copy(), fb.copy()  # the point before, on either side
    with np.errstate(all="ignore"):
        fraction = np.clip(np.nan_to_num(fa / (fa - fb), nan=0.5), 0.1, 0.9)
    for _ in range(MAX_EVALUATIONS):
        width = np.abs(b - a)
        limit = np.maximum(tolerance, 4 * np.finfo(float).eps * np.maximum(np.abs(a), np.abs(b)))
        if np.all(width <= limit):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = np.minimum(0.5 * limit / width, 0.5)
        x = a + np.clip(fraction, margin, 1 - margin) * (b - a)
        fx = np.asarray(function(x), dtype=float)
        # a is always the latest point, b the other end of the bracket, c the point dropped
        same = (fx <= 0) == (fa <= 0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        fraction = _interpolate(a, fa, b, fb, c, fc)
    a_is_low = fa <= 0
    return np.where(a_is_low, a, b), np.where(a_is_low, b, a)


def _interpolate(a, fa, b, fb, c, fc) -> np.ndarray:
    """Where to step between a (0) and b (1): by interpolation if monotone there, else halfway."""
    with np.errstate(all="ignore"):
        xi = (a - b) / (c - b)
        phi = (fa - fb) / (fc - fb)
        smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(smooth & np.isfinite(step), step, 0.5)
