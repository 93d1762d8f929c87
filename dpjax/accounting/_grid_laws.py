"""One release's loss brought to a grid, from above and from below.

The delta of a law, as a function of v = exp(epsilon), is F(v) = E[(1 - v exp(-L))_+], convex and
falling; and the delta of a sum is E[(1 - v x_1 x_2 ...)_+], convex and falling in each
x_i = exp(-L_i). So the deltas of sums are above (below) the true ones if each law's own F is, and
laws on the grid points v_i = exp(l_i) are those whose F is linear between them.

- From above: the chords of F. The mass of a cell between two points is spread to both, its mean of
  x kept: "connect the dots" (Doroshenko et al. 2022, Section 3).
- From below: at each point the lower one of the tangents of F in the middles of the two cells
  around it. A chord between such values lies below the tangent between them, and so below F.
  With p and q the chances under P and Q of the losses between two middles, the tangents differ at
  v_i by d_i = p_i - v_i q_i, and the slopes between the points give the masses. Where F bends too
  sharply for the grid, masses come out negative; leaving out such points lowers F further.

Both mistakes are of second order in the grid's step where the law is smooth, or has its atoms on
the grid. Atoms beside the grid can leave no tangents: then every loss is moved left to a point.

Above the grid's end b, where F is F(exp(b)) + (exp(b) - v) Q(L > b) for v up to exp(b), the losses
go to b and to infinity. That is F itself while the other losses of the sum leave no v above exp(b),
and never below it. From below one release after another is cut so, beside true or cut ones, whose
losses have the same least; only then what is finite of each goes to the grid.
"""

from typing import NamedTuple

import numpy as np

from dpjax.accounting.leaks import Cells, Leak

_UNIT = np.finfo(float).eps
_NARROW = 0.05  # a cell with more than this share is worth a shift of the grid
_SLIVER = 1e-13  # relative distance within which a loss lies on a point
_CELLS, _SHIFTS, _TRIES = 24, 4, 128  # of the search for cells where a law is sharp
_ATOM = 1e-3  # steps around a point that an atom on it may miss it by
_SWEEPS = 200


class Law(NamedTuple):
    """Masses on start + step * (0, 1, ...) and at infinity, and the losses' rounding.

    It bounds F up to exp(end).
    """

    start: float
    step: float
    masses: np.ndarray
    end: float
    infinite: float
    slip: float


def cells(leak: Leak, direction: str, edges: np.ndarray) -> tuple[Cells, float]:
    """The cells between edges, and the losses' rounding.

    A difference of tails errs by their own errors: it is taken on the side where they are smaller.
    """

    def between(above: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = above[:-1] < 0.5, above[:-1]
        mass = np.where(low, high - above[1:], below[1:] - below[:-1])
        tail = np.where(low, high, below[1:])
        units = 8 - 4 * np.log(np.maximum(tail, 1e-300))
        error = (_UNIT * units + 2 * tails.wrong) * tail + 1e-300
        return np.maximum(mass, 0), error

    tails = leak.tails(edges, direction)
    slip = float(np.max(tails.slip[np.isfinite(tails.slip)], initial=0))
    p, q = between(tails.p_above, tails.p_below), between(tails.q_above, tails.q_below)
    fine = leak.cells(edges, direction)
    if fine is None:
        return Cells(*p, *q), slip
    finer = fine.p_error < p[1], fine.q_error < q[1]  # not beside a tail's end, nor of NaN
    p, q = (
        [np.where(better, f, plain) for f, plain in zip(new, old, strict=True)]
        for better, new, old in zip(finer, (fine[:2], fine[2:]), (p, q), strict=True)
    )
    return Cells(*p, *q), slip


def aligned(leak: Leak, direction: str, start: float, step: float, size: int) -> float:
    """The start of the grid, moved so that a law narrower than its step has its mean on it."""
    points = start + step * np.arange(size)
    some, _ = cells(leak, direction, np.append(points - step / 2, points[-1] + step / 2))
    most = _sharpest(leak, direction, points, step, some.p)
    if most is None:
        return start
    offset = -np.log(some.q[most] / some.p[most]) - points[most]
    for _ in range(_SHIFTS):
        start += float(np.clip(np.nan_to_num(offset), -step / 2, step / 2))
        near = start + step * np.arange(most, min(most + _CELLS, size))
        _, offset = _balanced(leak, direction, near, step)
        if not abs(offset) > 1e-6 * step:
            break
    return start


def _sharpest(
    leak: Leak, direction: str, points: np.ndarray, step: float, p: np.ndarray
) -> int | None:
    """The first of few points that the law bends at; None where it is smooth, or has an atom."""
    most = int(np.argmax(p))
    if not p[most] > _NARROW:
        return None
    above, _ = _above(leak, direction, points[most] + step * _ATOM * np.array([-1, 1]))
    return None if p[most] - (above[0] - above[1]) < _NARROW else most


def _balanced(
    leak: Leak, direction: str, points: np.ndarray, step: float
) -> tuple[np.ndarray, float]:
    """Lower edges of cells, one about each point, whose means of exp(-l) lie on the points.

    They are found from the right. The first cell has no lower edge to choose: the second answer is
    how far right of its point its mean lies.
    """
    places = np.linspace(points[0] - step, points[-1] + step / 2, len(points) * _TRIES + 1)
    above = np.stack(_above(leak, direction, places))
    edges = points - step / 2
    last, p_last, q_last = places[-1], *above[:, -1]
    for i in range(len(points) - 1, 0, -1):
        low, high = np.searchsorted(places, (points[i] - step, min(points[i], last)))
        p, q = above[:, low : high + 1]
        excess = (p - p_last) - np.exp(points[i]) * (q - q_last)
        rises = np.append(excess > 0, True)
        right = min(max(int(np.argmax(rises)), 1), len(excess) - 1)
        share = np.clip(excess[right - 1] / (excess[right - 1] - excess[right]), 0, 1)
        share = np.nan_to_num(share)
        edges[i] = last = places[low + right - 1] + share * (places[1] - places[0])
        p_last, q_last = (v[right - 1] + share * (v[right] - v[right - 1]) for v in (p, q))
    p, q = above[:, 0]
    return edges, float(-np.log((q - q_last) / (p - p_last)) - points[0])


def _above(leak: Leak, direction: str, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P and Q above some losses."""
    tails = leak.tails(losses, direction)
    return tails.p_above, tails.q_above


def spread(leak: Leak, direction: str, start: float, step: float, size: int) -> Law:
    """From above: cells between the points, each spread to both ends."""
    points = start + step * np.arange(size)
    (p, p_error, q, q_error), slip = cells(leak, direction, points)
    tails = leak.tails(points[[0, -1]], direction)
    p = p + p_error
    ratio = np.exp(np.minimum(points[:-1] + np.log(q / p), 0))
    share = (1 - ratio) / -np.expm1(-step)  # of the right end, to keep the mean of exp(-l)
    share = share + (p_error / p + q_error / np.maximum(q, 1e-300) + 8 * _UNIT) / step
    share = np.where(np.isnan(share), 1, np.clip(share, 0, 1))
    masses = np.zeros(size)
    masses[:-1] += p * (1 - share)
    masses[1:] += p * share
    masses[0] += tails.p_below[0]
    above, log_q = float(tails.p_above[1]), float(np.log(tails.q_above[1]))
    above = above * (1 + _UNIT * (4 - 2 * np.log(max(above, 1e-300))) + tails.wrong) + 1e-300
    wrong = tails.wrong + _UNIT * (12 + 4 * abs(points[-1]) + 6 * abs(log_q))
    at_end = max(0.0, min(float(np.exp(points[-1] + log_q)) * (1 - wrong), above))  # 0 if NaN
    masses[-1] += at_end
    infinite = (above - at_end) + 4 * _UNIT * above
    return Law(start, step, masses, np.inf, infinite, slip)


def gathered(leak: Leak, direction: str, start: float, step: float, size: int) -> Law:
    """From below: the lower ones of the tangents in the middles of the cells.

    The end is the last point but one, which may have an atom.
    """
    points = start + step * np.arange(size)
    edges = np.append(points[:-2] - step / 2, points[-2] - _SLIVER * max(abs(points[-2]), step))
    (p, p_error, q, q_error), slip = cells(leak, direction, np.append(edges, np.inf))
    most = _sharpest(leak, direction, points, step, p)
    if most is not None and most + _CELLS < size - 2:  # better cells
        near = slice(most, most + _CELLS)
        edges[near] = _balanced(leak, direction, points[near], step)[0]
        edges[most] = points[most] - step
        edges[:most] = np.minimum(edges[:most], edges[most])
        (p, p_error, q, q_error), slip = cells(leak, direction, np.append(edges, np.inf))
    p, q = np.maximum(p - p_error, 0), q + q_error  # less of P and more of Q is below
    end = float(points[-2])
    last, infinite = _at_end(p[-1], q[-1], end)
    slip += _SLIVER * max(abs(points[-2]), step)
    p, q, points = p[:-1], q[:-1], points[:-2]
    # the last cell takes in those before it until its mean is not left of its point
    p_above, q_above = np.cumsum(p[::-1])[::-1], np.cumsum(q[::-1])[::-1]
    right_of = np.flatnonzero(p_above >= np.exp(points) * q_above)
    if not right_of.size:
        return Law(start, step, np.zeros(size), end, 0.0, slip)
    kept = int(right_of[-1])
    p, q = (np.append(mass[:kept], mass[kept:].sum()) for mass in (p, q))
    points = points[: kept + 1]
    log_q = np.log(q)
    vq = np.exp(points + log_q)
    error = _UNIT * (8 * p + (8 + 2 * np.abs(points) + 2 * np.abs(log_q)) * vq)
    d = p - vq
    right, left = np.maximum(d, 0) + error, np.minimum(d, 0) - error  # of the point, off F
    right[-1], left[-1] = max(d[-1] - error[-1], 0), 0  # beyond, F is 0
    gap = np.append(right[1:] + left[:-1], 0)
    gain, loss = np.append(0, gap[:-1]) / -np.expm1(-step), gap / np.expm1(step)
    masses = vq + gain - loss - 8 * _UNIT * (vq + np.abs(gain) + np.abs(loss))
    masses = np.append(masses, np.zeros(size - 2 - masses.size))
    masses = np.append(_without_negative(np.append(masses, last), step), 0)
    return Law(start, step, masses, end, infinite, slip)


def _at_end(p: float, q: float, end: float) -> tuple[float, float]:
    """What of P lies at the grid's end, for all of Q there, and at infinity, from below."""
    log_q = np.log(q)
    last = min(p, float(np.exp(end + log_q)) * (1 + 4 * _UNIT * (2 + abs(end) + abs(log_q))))
    return last, max(float((p - last) - 4 * _UNIT * p), 0.0)


def moved_left(leak: Leak, direction: str, start: float, step: float, size: int, c: float) -> Law:
    """From below, of first order: cells gathered at their means of exp(-l), and those moved left.

    The grid itself is shifted by what costs the least under the tilt exp(c l).
    """
    points = start + step * np.arange(size)
    (p, p_error, q, q_error), slip = cells(leak, direction, np.append(points - step / 2, np.inf))
    p = np.maximum(p - p_error, 0)
    past = -np.log((q + q_error) / p) - points - 4 * _UNIT * np.abs(points)  # right of the point
    past = np.where(np.isnan(past), -step, past)
    order = np.argsort(past)
    left, weight = past[order], (p * np.exp(c * (points - points[-1])))[order]
    weight = weight / max(weight.sum(), 1e-300)
    cost = np.maximum(-left, 0) + step * (np.cumsum(weight) - weight)
    shift = max(-float(left[np.argmin(cost)]), 0.0)
    far = past < -shift  # not even that far left of their point: to the next one
    masses = np.where(far, 0, p)
    masses[:-1] += np.where(far, p, 0)[1:]
    end, infinite = float(points[-1] - shift), 0.0
    if not far[-1]:
        masses[-1], infinite = _at_end(p[-1], q[-1] + q_error[-1], end)
    return Law(start - shift, step, masses, end, infinite, slip)


def _without_negative(masses: np.ndarray, step: float) -> np.ndarray:
    """Points of negative mass left out, the mass moved to those around; all 0 if that fails."""
    index = np.arange(masses.size)
    left_out = np.zeros(masses.size, bool)
    for _ in range(_SWEEPS):
        low = np.flatnonzero(masses < 0)
        if not low.size or low[-1] == masses.size - 1:
            break
        left_out[low] = True
        before = np.maximum.accumulate(np.where(left_out, -1, index))[low]
        after = np.minimum.accumulate(np.where(left_out, masses.size, index)[::-1])[::-1][low]
        # the share that goes right, for exp(-l) to keep its mean; at an end all, for it to grow
        right = np.expm1((before - low) * step) / np.expm1((before - after) * step)
        at_end = (before < 0) | (after == masses.size - 1)
        right = np.where(at_end, np.exp((after - low) * step), right)
        moved = masses[low]
        masses[low] = 0
        np.add.at(masses, np.maximum(before, 0), np.where(at_end, 0, moved * (1 - right)))
        np.add.at(masses, after, moved * right)
    return np.zeros(masses.size) if np.any(masses < 0) else masses
