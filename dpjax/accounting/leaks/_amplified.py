"""One release of a Poisson sample: its delta and its loss, from the release without sampling."""

from collections.abc import Callable

import numpy as np
from scipy import special


@np.errstate(all="ignore")  # log 0, and overflow to infinity, are the right limits throughout
def log_delta_of_sample(
    epsilon: np.ndarray,
    sampling_probability: np.ndarray,
    direction: str,
    inside: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Log delta, with `inside` that of the release itself (Balle et al. 2018, Theorem 2).

    For remove, delta is q delta_1(log(1 + (exp(epsilon) - 1) / q)); for add, with the share
    a = 1 - (1 - q) exp(epsilon) above 0, it is a delta_1(epsilon + log(q / a)).
    """
    q = sampling_probability
    low = epsilon < 1
    if direction == "remove":
        near = np.log1p(np.expm1(np.minimum(epsilon, 1)) / q)
        far = epsilon + np.log(-np.expm1(-epsilon) / q + np.exp(-epsilon))
        inner, log_share = np.where(low, near, far), np.log(q)
    else:  # from 1 on q is near 1, so that 1 - q is precise, and exp(-epsilon) - 1 + q is not
        log_rest = np.log1p(np.maximum(np.expm1(-np.minimum(epsilon, 1)) / q, -1))
        far = np.log1p(np.maximum((q - 1) * np.exp(np.minimum(epsilon, 700)), -1))
        log_share = np.where(low, np.log(q) + epsilon + log_rest, far)
        inner = np.where(low, -log_rest, epsilon + np.log(q) - far)
    value = inside(np.where(np.isfinite(inner), inner, np.inf))
    return np.where(np.isneginf(log_share), -np.inf, log_share + value)


def place_of_loss(level: np.ndarray, sampling_probability: np.ndarray) -> np.ndarray:
    """The z at which log(1 - q + q exp(z)) has a value; -infinity below its least."""
    q = sampling_probability
    near = np.log(np.maximum(np.expm1(np.minimum(level, 1)) / q + 1, 0))
    far = level - np.log(q) + np.log1p(-(1 - q) * np.exp(-np.maximum(level, 1)))
    return np.where(level < 1, near, far)


def log_mixed_ratio(z: np.ndarray, sampling_probability: np.ndarray) -> np.ndarray:
    """log(1 - q + q exp(z)), precise where it is small."""
    q = sampling_probability
    small = (z < 1) & (-q * np.expm1(np.minimum(z, 0)) < 0.5)
    with np.errstate(divide="ignore"):
        near = np.log1p(q * np.expm1(np.where(small, z, 0)))
        return np.where(small, near, np.logaddexp(np.log1p(-q), np.log(q) + z))


def posterior(z: np.ndarray, sampling_probability: np.ndarray) -> np.ndarray:
    """The slope of `log_mixed_ratio`, q exp(z) / (1 - q + q exp(z))."""
    with np.errstate(divide="ignore"):
        return np.asarray(special.expit(special.logit(sampling_probability) + z))
