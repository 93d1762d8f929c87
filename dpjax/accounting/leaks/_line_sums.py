"""Sums of exp(i n h x) over points x, n = 0, 1, 2, ...: a Fourier transform of local moments."""

from collections.abc import Iterator

import numpy as np
from scipy import fft

_DEGREE = 17  # |J_p(pi/2)| < 1e-17 from p = 18 on
_TERMS = 11  # 0.62^12 / 12!^2 < 2e-20; fewer are needed where p is large
_PARTS = 8  # sums of a cell's points, added up at the end
_UNIT = np.finfo(float).eps


def is_line(t: np.ndarray) -> bool:
    """Whether complex nodes lie evenly on one line from the real axis on, in each row; (..., n)."""
    turn = np.imag(t)
    even = turn[..., -1:] * np.linspace(0, 1, t.shape[-1])
    straight = np.iscomplexobj(t) and np.all(np.real(t) == np.real(t[..., :1]))
    return bool(straight and np.allclose(turn, even, rtol=1e-14, atol=0))


def line_sums(
    weights: np.ndarray, points: np.ndarray, step: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum over the points of weight * (exp(i n step point) - 1), for n < nodes, and its rounding.

    A point's angle step * point lies within half a cell of a place 2 pi m / G of a ring of G >= 2
    nodes places: it is 2 pi m / G + r pi / G with |r| <= 1. With u = n pi / G <= pi / 2,

        exp(i u r) = sum over p of (2 - [p = 0]) i^p J_p(u) T_p(r)      (Jacobi-Anger),

    so that each degree p takes one transform of the moments of T_p in the cells. Cell 0, where most
    of the weight may be, is added without one, with T_p(r) - T_p(0) for T_p(r), so that
    exp(...) - 1 loses nothing.

    Rounding is bounded by |T_p(r) - T_p(0)| <= p arcsin |r| and |J_p(u)| <= (u/2)^p / p!, with 16
    units of each sum in cell 0 (NumPy's pairwise sums take 11). Elsewhere it is 2.2 units of the
    sum of moduli in each of a transform's log2 G stages, and half a unit for each addition.

    Args:
        weights: Non-negative, (rows, points).
        points: (rows, points).
        step: h, (rows,).
        nodes: At least 1.

    Returns:
        The sums, complex, and a bound on what is rounded here; (rows, nodes) each.
    """
    rows = len(points)
    ring = int(np.asarray(fft.next_fast_len(2 * nodes, real=True)))
    # no larger than need be: a narrower cell 0 holds less of the weight
    angle = points * (step[:, None] * (ring / (2 * np.pi)))
    cell = np.rint(angle)
    r = 2 * (angle - cell)
    cell = cell.astype(np.int64) % ring
    inside = cell == 0
    taken, place = _numbered((cell + ring * np.arange(rows)[:, None])[~inside], rows * ring)
    place = _PARTS * place + (np.arange(points.size).reshape(points.shape) % _PARTS)[~inside]
    moments = np.zeros((rows, ring))
    u = np.pi / ring * np.arange(nodes)
    sums, size = np.zeros((2, rows, nodes), complex), np.zeros(nodes)  # of even and of odd degrees
    before, now = np.where(inside, 0.0, 1.0), r  # T_p, less T_p(0) in cell 0, for p - 1 and p
    plain_before, plain = np.ones_like(r), r
    for p, bessel in enumerate(_bessel(u)):
        terms = weights * before
        parts = np.bincount(place, terms[~inside], _PARTS * taken.size)
        moments.ravel()[taken] = parts.reshape(-1, _PARTS).sum(1)
        wave = np.asarray(fft.rfft(moments, axis=1))[:, :nodes]
        wave += np.where(inside, terms, 0).sum(1, keepdims=True)
        factor = (2 - (p == 0)) * bessel
        size += factor
        sums[p % 2] += (factor if p % 4 < 2 else -factor) * wave
        before, now = now, 2 * r * plain - before
        plain_before, plain = plain, 2 * r * plain - plain_before
    total = np.conj(sums[0]) + 1j * np.conj(sums[1])
    outside = np.where(inside, 0, weights).sum(1, keepdims=True)
    near = np.where(inside, weights * np.arcsin(np.abs(r)), 0).sum(1, keepdims=True)
    units = 2.2 * np.log2(ring) + 4 + np.bincount(place, minlength=1).max() / 2
    return total - outside, _UNIT * (16 * near * u * np.exp(u / 2) + units * outside * size)


def _numbered(index: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The different ones among indices below a size, rising, and each index's number there."""
    taken = np.zeros(size, bool)
    taken[index] = True
    return np.flatnonzero(taken), (np.cumsum(taken) - 1)[index]


def _bessel(u: np.ndarray) -> Iterator[np.ndarray]:
    """J_p(u) for p = 0, 1, ..., by its power series: 0 <= u <= pi / 2."""
    power, square = np.ones_like(u), u**2 / 4
    for p in range(_DEGREE + 1):
        total = np.ones_like(u)
        for k in range(_TERMS - p // 4, 0, -1):
            total *= square
            total *= -1 / (k * (k + p))
            total += 1
        yield power * total
        power = power * (u / (2 * (p + 1)))
