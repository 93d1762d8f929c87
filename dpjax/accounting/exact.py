"""The exact (epsilon, delta) of a composition, as a proven bracket around it.

>>> from dpjax.accounting import exact, loss
>>> bracket = exact.epsilon_bracket(12 * loss.gaussian(4.0) + 3 * loss.laplace(10.0), 1e-5)
>>> bool(bracket.lower <= bracket.estimate <= bracket.upper)
True
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpjax import _validate
from dpjax.accounting import (
    _easy_bounds,
    closed,
    discretized,
    integrated,
    lattice,
    rdp,
    smoothed,
)
from dpjax.accounting.composition import as_loss
from dpjax.accounting.loss import PrivacyLoss

_ROUNDING = 16 * np.finfo(float).eps
_CLEAR = 1e-15  # how near 1 a delta must be shown to be for nothing more to be asked
_SHARES = 2.0 ** -np.arange(1, 33)  # places of the bound on 1 - delta
_LEAST = -744.0  # log of about the least float
_WIDE = discretized.AIM  # relative width of a bracket from which on a grid of losses is tried
_VERY_WIDE = 5e-6  # and from which on one more release, nearly without loss
_LOOSE = 1e-4  # and from which on the best bound by Renyi divergences may be less
_LONG = 1 << 14  # nodes of a line from which on a grid of losses is tried first
_SHORT, _REST = (0, _LONG), (_LONG, np.inf)


class _Way(NamedTuple):
    """A method for brackets that are wider than its `width`."""

    width: float
    possible: Callable[[PrivacyLoss], bool]
    epsilon: Callable[..., np.ndarray]
    log_delta: Callable[..., np.ndarray]


_WAYS = (
    _Way(_WIDE, discretized.possible, discretized.epsilon, discretized.log_delta),
    _Way(
        3 * _WIDE,
        discretized.possible,
        partial(integrated.epsilon, nodes=_REST),
        partial(integrated.log_delta, nodes=_REST),
    ),
    _Way(_VERY_WIDE, smoothed.possible, smoothed.epsilon, smoothed.log_delta),
)


class Bracket(NamedTuple):
    """lower <= truth <= upper, proven; the estimate lies between and is usually far better."""

    lower: np.ndarray
    estimate: np.ndarray
    upper: np.ndarray


def epsilon(loss: PrivacyLoss, delta: Any) -> np.ndarray:
    """The smallest epsilon at which a composition is (epsilon, delta)-private, never below it.

    The upper end of `epsilon_bracket`.

    >>> from dpjax.accounting import loss
    >>> print(f"{epsilon(10 * loss.laplace(1.0), 1e-5):.6f}")
    9.989962
    """
    return epsilon_bracket(loss, delta).upper


@np.errstate(all="ignore")  # overflow to infinity and log 0 are the right limits throughout
def epsilon_bracket(loss: PrivacyLoss, delta: Any) -> Bracket:
    """Proven bounds on the smallest epsilon at which a composition is (epsilon, delta)-private.

    Args:
        loss: A composition of pairs; its grid broadcasts with delta.
        delta: In [0, 1]. 0 gives the largest loss.

    Returns:
        Bracket of arrays: exactly 0 where delta is at least the total variation, infinity where
        delta is below the mass of infinite loss. Of two directions the worse counts. Most are 1e-9
        of epsilon wide or narrower. Wider are few releases of a small sample (1e-6, up to 4e-6;
        5e-5 at q = 1e-8; 5e-3 with noise below 0.05 of the sensitivity), or one beside a release of
        few possible losses (no lower end), sums of thousands of different discrete Laplace noises
        (3e-2), and those of different discrete Gaussians (only a Chernoff bound above).

    Raises:
        ValueError: delta is outside [0, 1] or NaN; or the loss is only a bound, not a pair.
    """
    checked = _validate.probability(delta=delta)
    grid = np.broadcast_shapes(as_loss(loss).shape, checked.shape)
    flat = _flat(loss, grid)
    wanted = np.broadcast_to(checked, grid).ravel()
    best = np.zeros((3, wanted.size))
    for direction in flat.directions:
        mass = flat.infinite_mass(direction)
        most = np.minimum(mass * (1 + _ROUNDING), 1)
        given = flat.given_mass(direction)  # at which the finite part may have all its losses
        result = _epsilon(flat, direction, wanted, best[0], np.where(wanted == given, given, most))
        if np.any(mass > 0):  # delta less the mass may be far less certain than either
            result[0] = _epsilon(flat, direction, wanted, best[0], mass * (1 - _ROUNDING))[0]
        best = np.maximum(best, result)
    wide = np.flatnonzero(best[2] - best[0] > _LOOSE * best[2])
    if wide.size:
        most = rdp.epsilon(flat.take(wide), wanted[wide], conversion="optimal")
        best[1:, wide] = np.maximum(np.minimum(best[1:, wide], most), best[0, wide])
    return Bracket(*(end.reshape(grid) for end in best))


def _flat(loss: PrivacyLoss, grid: tuple[int, ...]) -> PrivacyLoss:
    """The compositions on one axis; an error for what is no pair."""
    for leak, _ in loss.terms:
        if not leak.is_pair:
            raise ValueError(
                f"loss has {leak!r}: expected pairs, of which exact composition speaks"
            )
    size = int(np.prod(grid))
    spread = PrivacyLoss(tuple((leak, np.broadcast_to(n, grid)) for leak, n in loss.terms))
    return spread.take(np.arange(size))


def delta(loss: PrivacyLoss, epsilon: Any) -> np.ndarray:
    """The smallest delta at which a composition is (epsilon, delta)-private, never below it.

    The upper end of `delta_bracket`.

    >>> from dpjax.accounting import loss
    >>> print(f"{delta(loss.gaussian(1.0), 1.0):.8f}")
    0.12693674
    """
    return delta_bracket(loss, epsilon).upper


@np.errstate(all="ignore")
def delta_bracket(loss: PrivacyLoss, epsilon: Any) -> Bracket:
    """Proven bounds on the smallest delta at which a composition is (epsilon, delta)-private.

    Args:
        loss: A composition of pairs; its grid broadcasts with epsilon.
        epsilon: At least 0; infinity leaves the mass of infinite loss.

    Returns:
        Bracket of arrays in [0, 1]. Of two directions the worse counts.

    Raises:
        ValueError: epsilon is negative or NaN; or the loss is only a bound, not a pair.
    """
    checked = _validate.non_negative_or_infinite(epsilon=epsilon)
    grid = np.broadcast_shapes(as_loss(loss).shape, checked.shape)
    flat = _flat(loss, grid)
    wanted = np.broadcast_to(checked, grid).ravel()
    best = np.zeros((3, wanted.size))
    for direction in flat.directions:
        mass = flat.infinite_mass(direction)
        result = np.zeros_like(best)
        todo = np.flatnonzero((mass < 1) & (wanted < flat.supremum(direction)))
        if todo.size:
            part = flat.take(todo)
            log_known = np.log(np.maximum(best[0] - mass, 0) / (1 - mass))[todo]
            logs = log_delta(part, direction, wanted[todo], np.maximum(log_known, _LEAST))
            result[:, todo] = np.exp(logs)
            # an upper end too small for a float is the smallest float, and not 0
            result[2, todo] = np.where(np.isneginf(logs[2]), 0, np.maximum(result[2, todo], 5e-324))
        sure = (result[2] == 0) & (mass == flat.given_mass(direction))
        sides = 1 + _ROUNDING * np.array([[-1], [0], [1]]) * ((mass > 0) & ~sure)
        best = np.maximum(best, (mass + (1 - mass) * result) * sides)
    return Bracket(*(np.clip(end, 0, 1).reshape(grid) for end in best))


def log_delta(
    loss: PrivacyLoss, direction: str, epsilon: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray:
    """Lower, estimate, upper of log delta of the finite part; flat arrays, (3, rows).

    Rows whose answer is surely not above `known` may only be bounded.
    """
    result = np.empty((3, epsilon.size))
    known = np.full(epsilon.shape, -np.inf) if known is None else known
    most = _easy_bounds.log_delta(loss, direction, epsilon)
    small = np.isfinite(known) & (most <= known)
    quick = closed.quick(loss, direction) & ~small
    near = np.where(quick, -np.inf, _near_one(loss, direction, epsilon))
    result[0], result[1:] = near, most
    clear = (result[0] > -_CLEAR) | small
    whole = ~quick & ~clear & lattice.applies(loss, direction)
    for rows, method in ((quick, closed.log_delta), (whole, lattice.log_delta)):
        if rows.any():
            part = loss.take(np.flatnonzero(rows))
            result[:, rows] = method(part, direction, epsilon[rows])
    rest = ~quick & ~clear & ~whole
    if rest.any():
        part = loss.take(np.flatnonzero(rest))
        nodes = _SHORT if discretized.possible(part) else (0, np.inf)
        options = {"best": known[rest], "nodes": nodes}
        result[:, rest] = integrated.log_delta(part, direction, epsilon[rest], **options)
    wide = ~quick & closed.possible(loss, direction) & np.isneginf(result[0]) & ~small
    if wide.any():
        part = loss.take(np.flatnonzero(wide))
        result[:, wide] = closed.log_delta(part, direction, epsilon[wide])
    result[0] = np.fmax(result[0], near)
    result[2] = np.fmax(np.fmin(result[2], most), result[0])  # NaN, infinity less infinity: none
    result[1] = np.fmax(np.fmin(result[1], result[2]), result[0])
    for way in _WAYS:
        narrow = result[2] - result[0] <= discretized.FALL * way.width
        wide = np.flatnonzero(~narrow & (result[2] > known))
        if wide.size and way.possible(loss):
            part = loss.take(wide)
            given = epsilon[wide], result[:, wide], known[wide]
            result[:, wide] = way.log_delta(part, direction, *given)
    return result


def _near_one(loss: PrivacyLoss, direction: str, epsilon: np.ndarray) -> np.ndarray:
    """A lower end of log delta that tells where delta is next to 1; (rows,)."""
    log_rest = _log_rest(loss, direction, _SHARES[:1]) + _SHARES[:1] * epsilon[:, None]
    log_rest = log_rest[:, 0] + _ROUNDING * (1 + epsilon)
    end = np.log1p(-np.exp(np.minimum(log_rest, -1)))
    return np.where(log_rest < -1, end - 4 * np.finfo(float).eps, -np.inf)  # exp(-0) would be 1


def _log_rest(loss: PrivacyLoss, direction: str, s: np.ndarray) -> np.ndarray:
    """A bound on log E[exp(-s L)], (rows, s), for s in (0, 1].

    1 - delta = E[min(1, exp(epsilon - L))] is at most exp(s epsilon) times that.
    """
    value, error = loss.cumulant_with_error(np.tile(-s, (loss.shape[0], 1)), direction)
    bound = value - np.log1p(-np.expm1(error)) + _ROUNDING * (1 + np.abs(value))
    return np.where(np.isnan(bound), np.inf, bound)


def _epsilon(
    loss: PrivacyLoss, direction: str, delta: np.ndarray, known: np.ndarray, mass: np.ndarray
) -> np.ndarray:
    """Lower, estimate, upper for one direction, whose mass of infinite loss is given; (3, rows).

    Rows whose epsilon is surely not above `known` are only bounded.
    """
    largest = np.maximum(loss.supremum(direction), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        finite = (delta - mass) / (1 - mass)
        log_delta = np.log(np.maximum(finite, 0))
    # with infinite mass m, delta = m + (1 - m) * (delta of the finite part)
    result = np.tile(np.where(finite < 0, np.inf, largest), (3, 1))
    most = np.minimum(_easy_bounds.epsilon(loss, direction, log_delta), largest)
    small = (finite > 0) & (most <= known)
    result[0, small], result[1:, small] = 0, most[small]
    result[:, (delta == 1) | (most == 0) & (finite >= 0)] = 0
    todo = np.flatnonzero((finite > 0) & (delta < 1) & ~small)
    if todo.size == 0:
        return result
    part, wanted = loss.take(todo), log_delta[todo]
    answer = np.empty((3, todo.size))
    quick = closed.quick(part, direction)
    if quick.any():
        some = part.take(np.flatnonzero(quick))
        answer[:, quick] = closed.epsilon(some, direction, wanted[quick])
    whole = ~quick & lattice.applies(part, direction)
    least = _easy_bounds.least_epsilon(part, direction, wanted)
    sure = ~quick & ~whole & (least >= largest[todo] * (1 - _WIDE / 2))
    answer[:, sure] = np.stack([least, largest[todo], largest[todo]])[:, sure]
    rest = ~quick & ~whole & ~sure
    if whole.any():
        some = part.take(np.flatnonzero(whole))
        answer[:, whole] = lattice.epsilon(some, direction, wanted[whole], known[todo][whole])
    if rest.any():
        some = part.take(np.flatnonzero(rest))
        nodes = _SHORT if discretized.possible(some) else (0, np.inf)
        options = {"best": known[todo][rest], "nodes": nodes}
        answer[:, rest] = integrated.epsilon(some, direction, wanted[rest], **options)
    answer[2] = np.fmax(np.fmin(answer[2], most[todo]), answer[0])
    answer[1] = np.minimum(answer[1], answer[2])
    wide = answer[2] - answer[0] > 1e-9 * answer[2]
    wide &= ~quick & closed.possible(part, direction)
    if wide.any():
        some = part.take(np.flatnonzero(wide))
        answer[:, wide] = closed.epsilon(some, direction, wanted[wide])
    wide = np.flatnonzero(answer[2] - answer[0] > _WIDE * answer[2])
    if wide.size:  # as in `_near_one`, for the epsilon at which its end is delta
        log_rest = _log_rest(part.take(wide), direction, _SHARES)
        least = (np.log(-np.expm1(wanted[wide]))[:, None] - log_rest) / _SHARES
        least = least.max(1) - _ROUNDING * np.abs(least).max(1)
        answer[0, wide] = np.fmin(np.fmax(answer[0, wide], least), answer[2, wide])
        answer[1, wide] = np.maximum(answer[1, wide], answer[0, wide])
    for way in _WAYS:
        below, width = known[todo], answer[2] - answer[0]
        wide = np.flatnonzero((answer[2] > below) & (width > way.width * answer[2]))
        if wide.size and way.possible(part):
            some = part.take(wide)
            given = wanted[wide], answer[:, wide], below[wide]
            answer[:, wide] = way.epsilon(some, direction, *given)
    result[:, todo] = answer
    return result
