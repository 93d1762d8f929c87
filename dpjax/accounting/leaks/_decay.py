"""How fast a smooth law's characteristic function falls: a bound from a floor under its density."""

import numpy as np

_LEVELS = 24
_RATIO = 1.5  # of neighbouring levels, at most


def log_decay_of_floor(points: np.ndarray, log_floor: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A bound on log |E exp(i z X)| for every z >= y, falling in y.

    Around its highest cell the floor is a stack of intervals, one on top of the other: the law is
    a mixture of uniform laws with weights b_j and lengths l_j, and a rest. Hence
    |E exp(izX)| <= 1 - sum b_j (1 - sinc(z l_j / 2)), and sinc has the falling envelope below.

    Args:
        points: Ends of the cells, monotone; (rows, cells + 1).
        log_floor: Log of a number that the density is never below, in each cell; (rows, cells).
        y: Non-negative; (rows, nodes).

    Returns:
        (rows, nodes), at most 0.
    """
    cells = log_floor.shape[1]
    index = np.arange(cells)
    top = log_floor.argmax(1)[:, None]
    right = np.minimum.accumulate(np.where(index >= top, log_floor, np.inf), 1)
    left = np.minimum.accumulate(np.where(index <= top, log_floor, np.inf)[:, ::-1], 1)
    highest = log_floor.max(1)
    # a floor of small range has levels all the way down
    ratio = np.minimum((highest - log_floor.min(1)) / (_LEVELS - 1), np.log(_RATIO))
    heights = np.exp(highest[:, None] - ratio[:, None] * np.arange(_LEVELS))
    heights[:, -1] *= 0.999  # the lowest cell is on the stack's foot, whatever the rounding
    thickness = -np.diff(heights, axis=1, append=0)
    total = np.zeros(y.shape)
    for j in range(_LEVELS):
        level = np.log(heights[:, j : j + 1])
        first = cells - (left >= level).sum(1, keepdims=True)
        last = (right >= level).sum(1, keepdims=True)
        ends = np.take_along_axis(points, np.concatenate([first, last], 1), 1)
        length = np.abs(np.diff(ends))
        weight = thickness[:, j : j + 1] * length * (1 - 1e-12)
        total += weight * (1 - _sinc_envelope(y * length / 2))
    return np.log1p(-np.minimum(total, 1 - 1e-300))


def _sinc_envelope(u: np.ndarray) -> np.ndarray:
    """Sup of |sin v / v| over v >= u: the side lobes are below 0.2173 and below 1 / v."""
    with np.errstate(divide="ignore", invalid="ignore"):
        main = np.where(u == 0, 1, np.sin(u) / u)
        return np.where(u < 2.6, np.maximum(main, 0.2173), np.minimum(0.2173, 1 / u))
