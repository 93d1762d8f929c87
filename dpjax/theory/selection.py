"""The laws of selection: the chance of each option, exactly, in float64.

    >>> exponential_mechanism([0.0, 1.0], scale=1.0).round(4)
    array([0.2689, 0.7311])
    >>> permute_and_flip([0.0, 1.0], scale=1.0).round(4)
    array([0.1839, 0.8161])

Scores are (*release, options) and may hold -infinity for options that are never chosen; `scale` is
finite, above 0, and broadcasts against the releases.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.theory.additive import Float64

Probabilities = Float[np.ndarray, "*release options"]

_FAR = 800.0  # scales below the best where a probability underflows
_NODES = special.roots_legendre(16)


def exponential_mechanism(
    scores: ArrayLike, scale: ArrayLike, log_weights: ArrayLike = 0.0
) -> Probabilities:
    """Proportional to exp(score / scale + log_weight) (McSherry and Talwar 2007, Definition 2)."""
    log_weights = np.asarray(log_weights, np.float64)
    usable = np.where(log_weights > -np.inf, np.asarray(scores, np.float64), -np.inf)
    return special.softmax(-_gaps(usable, scale) + log_weights, axis=-1)


def permute_and_flip(scores: ArrayLike, scale: ArrayLike) -> Probabilities:
    """w_i times the integral over t in [0, 1] of prod_(j != i) (1 - w_j t), w = exp(-gap / scale).

    That is the chance that score plus exponential noise is largest, with t = exp(-noise of the
    best) (Ding et al. 2021). A polynomial of t: enough Gauss-Legendre nodes are exact; for many
    options about sqrt(options) of them do, as the integrand then falls like exp(-t sum w).
    """
    weights = np.exp(-_gaps(scores, scale))
    options = weights.shape[-1]
    nodes, parts = special.roots_legendre(min(options // 2 + 1, int(12 * options**0.5) + 30))
    factors = np.log1p(-weights[..., None] * (nodes + 1) / 2)  # (*release, options, nodes)
    others = factors.sum(axis=-2, keepdims=True) - factors
    return weights * (np.exp(others) @ (parts / 2))


def report_noisy_max(scores: ArrayLike, scale: ArrayLike) -> Probabilities:
    """The integral of f(x - score_i) prod_(j != i) F(x - score_j) for Laplace noise, by panels."""
    gaps = _gaps(scores, scale)
    rows = [_noisy_max(row) for row in gaps.reshape(-1, gaps.shape[-1])]
    return np.reshape(rows, gaps.shape)


def above_threshold(
    scores: ArrayLike, threshold: float, scale: float, threshold_scale: float
) -> Probabilities:
    """The chance that each query of one release is the first above, and last that none is.

    The integral over the noisy threshold of the chance that the queries before are below and this
    one above (Dwork and Roth 2014, Algorithm 1), by panels between the kinks.

    Args:
        scores: the true answers in order, finite, (queries,).
        threshold: in the same units.
        scale: of the Laplace noise on each query, finite and above 0.
        threshold_scale: of that on the threshold, finite and above 0.
    """
    scores = _validate.finite(scores=scores)
    scale = float(_validate.positive(scale=scale))
    threshold_scale = float(_validate.positive(threshold_scale=threshold_scale))
    steps = np.arange(-45.0, 46.0)
    edges = np.append(scores[:, None] + scale * steps, threshold + threshold_scale * steps)
    reach = threshold + threshold_scale * steps[[0, -1]]
    edges = np.unique(np.clip(edges, *reach))

    def chances(x: np.ndarray) -> np.ndarray:
        z = (x - scores[:, None]) / scale  # (queries, x)
        below = np.cumsum(_log_below(z), axis=0)
        before = np.concatenate([np.zeros((1, x.size)), below])
        here = np.concatenate([_log_below(-z), np.zeros((1, x.size))])
        density = -np.abs(x - threshold) / threshold_scale - np.log(2 * threshold_scale)
        return np.exp(before + here + density)

    return _panels(chances, edges)


def expected_gap(scores: ArrayLike, probabilities: ArrayLike) -> Float64:
    """Mean of how far the chosen score lies below the highest."""
    scores, probabilities = np.asarray(scores, np.float64), np.asarray(probabilities, np.float64)
    gaps = scores.max(axis=-1, keepdims=True) - scores
    return np.where(probabilities > 0, gaps * probabilities, 0.0).sum(axis=-1)


def _gaps(scores: ArrayLike, scale: ArrayLike) -> np.ndarray:
    """(highest score - score) / scale."""
    scores = _validate.real(scores=scores)
    scale = _validate.positive(scale=scale)
    highest = scores.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(scores == highest, 0.0, highest - scores) / scale[..., None]


def _noisy_max(gaps: np.ndarray) -> np.ndarray:
    """Report noisy max for one release, scores being minus the gaps."""
    near = gaps < _FAR
    scores = -gaps[near]
    grid = np.arange(scores.min() - 45, 46 + np.log(scores.size))
    edges = np.unique(np.append(scores, grid))

    def chances(x: np.ndarray) -> np.ndarray:
        z = x - scores[:, None]  # (options, x)
        below = _log_below(z)
        others = below.sum(axis=0) - below
        return np.exp(others - np.abs(z)) / 2

    result = np.zeros_like(gaps)
    result[near] = _panels(chances, edges)
    return result


def _log_below(z: np.ndarray) -> np.ndarray:
    """Log of P(noise <= z) for Laplace noise of scale 1."""
    far = np.exp(-np.abs(z)) / 2
    return np.where(z < 0, z - np.log(2), np.log1p(-far))


def _panels(
    chances: Callable[[np.ndarray], np.ndarray], edges: Sequence | np.ndarray
) -> np.ndarray:
    """The integral of (outcomes, x) over x, by 16 Gauss-Legendre nodes between each two edges."""
    edges = np.asarray(edges)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + _NODES[0])
    weights = half * _NODES[1]
    blocks = np.array_split(np.arange(x.shape[0]), -(-x.shape[0] // 256))  # bounds the memory
    return np.sum([chances(x[b].ravel()) @ weights[b].ravel() for b in blocks], axis=0)
