"""One release of a Poisson sample: its delta from that of the release without sampling."""

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

    For remove, delta is q delta_1(log(1 + (exp(epsilon) - 1) / q)); for add, with the rest
    r = (exp(-epsilon) - 1 + q) / q above 0, it is q r exp(epsilon) delta_1(-log r).
    """
    q = sampling_probability
    if direction == "remove":
        near = np.log1p(np.expm1(np.minimum(epsilon, 1)) / q)
        far = epsilon + np.log(-np.expm1(-epsilon) / q + np.exp(-epsilon))
        inner, scale = np.where(epsilon < 1, near, far), q
    else:
        rest = np.maximum(np.expm1(-epsilon) / q + 1, 0)
        inner, scale = -np.log(rest), q * rest * np.exp(np.minimum(epsilon, 700))
    value = inside(np.where(np.isfinite(inner), inner, np.inf))
    return np.where(scale > 0, np.log(scale) + value, -np.inf)


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
