"""The minimum of a quasi-convex function for a whole array at once."""

from collections.abc import Callable

import numpy as np

from dpjax.accounting._typing import Reals

_POLISH = (1e-2, 1e-2, 1e-3)  # steps of the last Newton rounds, in units of x
_STENCIL = np.arange(-2, 3)
_SLOPE, _CURVATURE = np.array([1, -8, 0, 8, -1]) / 12, np.array([-1, 16, -30, 16, -1]) / 12


def quasi_convex_minimum(
    function: Callable[[np.ndarray], Reals],
    low: Reals,
    high: Reals,
    step: float,
    limits: tuple[float, float] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Where a quasi-convex function (it only falls, then only rises) is least, and how low.

    The range is scanned in steps of about `step`; the neighbours of the lowest node enclose the
    minimum and are scanned again, 6 times finer each time; Newton on differences ends it, or more
    scans where it does not settle. The value is always one the function took, so the minimum of a
    family of valid bounds is a valid bound.

    Args:
        function: takes nodes of shape (*grid, n) and gives their values; NaN counts as infinity.
        low: lower end of the range scanned first, (*grid,).
        high: upper end of the range scanned first, (*grid,).
        step: spacing of the first scan, such that the function is smooth on a tenth of it.
        limits: how far the scan goes on where the function is least at an end; that range itself
            if left out.

    Returns:
        Place and value of the minimum, (*grid,); a limit where the function falls or rises
        throughout.
    """
    best, least = np.array(low, dtype=float), np.full(np.shape(low), np.inf)

    def scan(nodes: np.ndarray) -> np.ndarray:
        """Values at the nodes, the best one kept."""
        nonlocal best, least
        values = np.asarray(function(nodes))
        values = np.where(np.isnan(values), np.inf, values)
        i = np.argmin(values, axis=-1)[..., None]
        x, y = np.take_along_axis(nodes, i, -1)[..., 0], np.take_along_axis(values, i, -1)[..., 0]
        best, least = np.where(y < least, x, best), np.asarray(np.minimum(y, least))
        return values

    start, stop = np.broadcast_arrays(low, high)
    if limits is not None:
        low, high = np.asarray(limits[0]), np.asarray(limits[1])
    count = int(np.ceil(np.max(stop - start, initial=step) / step)) + 1
    spacing, leap = np.full(np.shape(start), step), 2 * step
    while np.max(spacing, initial=0) >= 0.1:
        scan(np.linspace(start, stop, count, axis=-1))
        spacing = (stop - start) / (count - 1)
        falls, rises = (best >= stop) & (stop < high), (best <= start) & (start > low)
        count = 13
        leap *= 2
        left, right = np.where(rises, leap, spacing), np.where(falls, leap, spacing)
        start, stop = np.maximum(best - left, low), np.minimum(best + right, high)
        spacing = np.where(falls | rises, step, spacing)
    newton, settled = best, np.zeros(np.shape(best), bool)
    for h in _POLISH:  # each looks at the point that the one before steps to
        centre = np.clip(newton, low + 2 * h, high - 2 * h)
        f = scan(centre[..., None] + h * _STENCIL)
        with np.errstate(all="ignore"):
            curvature = f @ _CURVATURE
            change = h * (f @ _SLOPE) / curvature
            usable = (curvature > 0) & (np.abs(change) < 0.2)
        newton = np.clip(np.where(usable, centre - change, best), low, high)
        settled = (usable & (np.abs(change) < 1e-3)) | (best == low) | (best == high)
    scan(newton[..., None])
    width = 0.1
    while width > 1e-6 and not np.all(settled | np.isinf(least)):  # where the function has a bend
        ends = np.maximum(best - width, low), np.minimum(best + width, high)
        scan(np.linspace(*ends, count, axis=-1))
        width /= 6
    return np.asarray(best), np.asarray(least)
