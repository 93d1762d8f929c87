"""The trade-off curve of a composition: an attacker's least error rates, as a proven bracket.

With delta(epsilon) the exact profile, the worse of the two directions, and y = exp(epsilon), the
least miss rate at a false positive rate alpha is

    f(alpha) = sup over y >= 1 of max(1 - delta - y alpha, (1 - delta - alpha) / y),

the largest curve below those of both directions (Dong, Roth, Su 2022, Section 2). Every node with
an upper bound on delta proves a line below f. Between nodes delta falls and is convex in y, as a
supremum of P(S) - y Q(S) over events S, so it lies above the chords of the neighbouring intervals,
extended. Under two such lines the suprema above are at a node or where the lines cross: that bounds
f from above. Intervals that hold the largest such value are split until the bracket is narrow.
"""

from typing import Any, NamedTuple

import numpy as np

from dpjax import _validate
from dpjax.accounting import exact
from dpjax.accounting.exact import Bracket
from dpjax.accounting.loss import PrivacyLoss

_FIRST_NODES = 65
_PARTS = 4  # of an interval that is split
_NARROW = 1e-9  # a bracket's width that needs no more nodes
_MOST_ROUNDS = 12
_MOST_NODES = 4096
_MAX_EPSILON = 600.0  # beyond, exp(epsilon) alpha is no number
_NEGLIGIBLE = 1e-14  # delta beyond the last node, over the mass of infinite loss
_ROUNDING = 1e-15


def bracket(loss: PrivacyLoss, fpr: Any) -> Bracket:
    """Least miss rate of an attacker at a false positive rate, against one composition.

    Args:
        loss: One composition of pairs, not a grid of them.
        fpr: False positive rates in [0, 1], of any shape.

    Returns:
        Bracket of arrays in [0, 1] of the shape of fpr. The lower end is the safe one: the attacker
        misses at least so often. The width is about 1e-9 or less, and more only where `exact`'s own
        bracket of delta is wide, or where losses above 600 decide.

    Raises:
        ValueError: fpr is outside [0, 1] or NaN; the loss is a grid, or only a bound.

    >>> from dpjax.accounting import loss
    >>> miss = bracket(1000 * loss.sampled_gaussian(0.01, 1.0), [0.001, 0.1])
    >>> print((1 - miss.lower).round(6), miss.upper - miss.lower < 1e-8)
    [0.004068 0.194201] [ True  True]
    """
    alpha = _validate.probability(fpr=fpr)
    if loss.shape:
        raise ValueError(f"loss has shape {loss.shape}: expected one composition, not a grid")
    profile = _profile(loss, np.linspace(0, _last_epsilon(loss), _FIRST_NODES))
    flat = alpha.ravel()
    lower, estimate, upper = np.zeros((3, flat.size))
    todo = np.arange(flat.size)
    for _ in range(_MOST_ROUNDS):
        some = flat[todo]
        lower[todo] = _below(profile, profile.delta.upper, some)
        estimate[todo] = _below(profile, profile.delta.estimate, some)
        upper[todo], where = _above(profile, some)
        is_wide = upper[todo] - lower[todo] > _NARROW
        todo, split = todo[is_wide], np.unique(where[is_wide])
        split = split[split < profile.epsilon.size - 1]
        if split.size == 0 or profile.epsilon.size > _MOST_NODES:
            break
        share = np.arange(1, _PARTS) / _PARTS
        left, right = profile.epsilon[split, None], profile.epsilon[split + 1, None]
        profile = _merged(profile, _profile(loss, (left + share * (right - left)).ravel()))
    lower = np.maximum(lower - _ROUNDING, 0)
    upper = np.clip(upper + _ROUNDING, lower, 1)
    ends = lower, np.clip(estimate, lower, upper), upper
    return Bracket(*(np.asarray(end.reshape(alpha.shape)) for end in ends))


class _Profile(NamedTuple):
    """Nodes in rising order with delta there, and a lower bound on delta beyond them."""

    epsilon: np.ndarray
    delta: Bracket
    last: float


def _last_epsilon(loss: PrivacyLoss) -> float:
    """Where hardly more of delta is left than the mass of infinite loss."""
    end = exact.epsilon(loss, min(_mass(loss) + _NEGLIGIBLE, 1.0))
    return float(min(end, _MAX_EPSILON))


def _mass(loss: PrivacyLoss) -> float:
    """Of infinite loss, in the worse direction."""
    return max(float(loss.infinite_mass(direction)) for direction in loss.directions)


def _profile(loss: PrivacyLoss, epsilon: np.ndarray) -> _Profile:
    """Delta at nodes, each once."""
    epsilon = np.unique(epsilon)
    return _Profile(epsilon, exact.delta_bracket(loss, epsilon), _mass(loss) * (1 - _ROUNDING))


def _merged(old: _Profile, new: _Profile) -> _Profile:
    """The nodes of both in order."""
    epsilon, index = np.unique(np.concatenate([old.epsilon, new.epsilon]), return_index=True)
    ends = zip(old.delta, new.delta, strict=True)
    return _Profile(epsilon, Bracket(*(np.concatenate(e)[index] for e in ends)), old.last)


def _below(profile: _Profile, delta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The highest of the lines that the nodes prove, at each alpha."""
    return _lines(np.exp(profile.epsilon), delta, alpha[:, None]).max(1)


def _lines(y: np.ndarray, delta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Max(1 - delta - y alpha, (1 - delta - alpha) / y, 0)."""
    steep, shallow = 1 - delta - y * alpha, (1 - delta - alpha) / y
    return np.maximum(np.maximum(steep, shallow), 0)


def _above(profile: _Profile, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A bound above f at each alpha, and the interval that gives it; the last one has no end."""
    y, (low, _, high) = np.exp(profile.epsilon), profile.delta
    gap = np.diff(y)
    # how steeply delta may fall right of a node (Q(S) is at most 1 - delta(0) at the first) ...
    fall = np.append(1 - low[0], (high[:-1] - low[1:]) / gap)
    # ... and how steeply it must rise left of the next
    rise = np.append(np.maximum((low[:-1] - high[1:]) / gap, 0)[1:], [0.0] * min(2, y.size))
    rise = rise[: y.size]
    end, end_low = np.append(y[1:], np.inf), np.append(low[1:], profile.last)
    with np.errstate(divide="ignore", invalid="ignore"):
        finite_end = np.where(np.isinf(end), 0, end)
        cross = (low - end_low + y * fall - finite_end * rise) / (fall - rise)
    cross = np.where(np.isfinite(cross), np.clip(cross, y, end), y)

    def bound(at: np.ndarray) -> np.ndarray:
        """The larger of the two lines under delta; nothing rises to the left of infinity."""
        from_right = end_low + np.where(rise > 0, (finite_end - at) * rise, 0)
        return np.maximum(low - (at - y) * fall, from_right)

    # the end of each interval is the start of the next, and at infinity the lines are at 0 or less
    # save for alpha 0, where they are the same from the last crossing on
    column = alpha[:, None]
    starts = _lines(y, low, column)
    crossings = _lines(cross, bound(cross), column)
    best = np.maximum(starts, crossings)
    best[:, :-1] = np.maximum(best[:, :-1], starts[:, 1:])
    return np.minimum(best.max(1), 1 - alpha), best.argmax(1)
