"""Every mechanism of dpjax beside the vectorised NumPy way of doing the same, for the benchmark.

A case is a release, what is measured of it, and a NumPy function that draws as many of the same.
NumPy draws in single precision where its generator does and the law is kept.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]

SIZE = 16  # entries of a vector, options, queries and categories
PEOPLE = 1024  # in one survey of a local mechanism
SCORES = np.arange(SIZE, dtype=np.float32)
FLIP, OWN = 1 / (1 + np.e), np.e / (np.e + SIZE - 1)
FLIP_UNARY = 1 / (1 + np.exp(0.5))
GAUSSIAN_TABLE = np.cumsum(np.exp(-(np.arange(-12.0, 13.0) ** 2) / 2))


class Case(NamedTuple):
    """One mechanism at scale 1.

    Attributes:
        value: the true answer of one release.
        parameters: of the mechanism besides its scale.
        measure: by its name in `mechanisms_throughput`.
        way: what NumPy does, for the table.
        draw: from a generator and a number of releases to what is measured of each.
    """

    value: Any
    parameters: Mapping[str, float]
    measure: str
    way: str
    draw: Draw


def truncated(rng: np.random.Generator, size: int) -> np.ndarray:
    """By inversion."""
    u = rng.uniform(-1, 1, size)
    return -np.sign(u) * np.log1p(np.abs(u) * np.expm1(-2.0))


def bounded(rng: np.random.Generator, size: int) -> np.ndarray:
    """By inversion between the two ends' probabilities."""
    u = rng.uniform(0.5 * np.exp(-1.0), 1 - 0.5 * np.exp(-2.0), size) - 0.5
    return -np.sign(u) * np.log1p(-2 * np.abs(u))


def staircase(rng: np.random.Generator, size: int) -> np.ndarray:
    """A sign, a number of steps, a part of the step and a place in it."""
    b, gamma = np.exp(-1.0), 0.3
    high = rng.random(size) < gamma / (gamma + (1 - gamma) * b)
    u = rng.random(size)
    place = np.where(high, gamma * u, gamma + (1 - gamma) * u)
    return rng.choice([-1, 1], size) * (rng.geometric(1 - b, size) - 1 + place)


def l2_noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """A normal vector stretched to a Gamma length; its norm."""
    z = rng.standard_normal((size, SIZE), dtype=np.float32)
    length = rng.standard_gamma(SIZE, (size, 1), dtype=np.float32)
    return np.linalg.norm(z * (length / np.linalg.norm(z, axis=1, keepdims=True)), axis=1)


def linf_noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """A point of the cube times a Gamma number; its largest entry."""
    x = rng.uniform(-1, 1, (size, SIZE)) * rng.standard_gamma(SIZE + 1, (size, 1))
    return np.abs(x).max(axis=1)


def discrete_laplace(rng: np.random.Generator, size: int) -> np.ndarray:
    """The difference of two geometric numbers."""
    p = -np.expm1(-1.0)
    return (rng.geometric(p, size) - rng.geometric(p, size)).astype(np.float64)


def discrete_gaussian(rng: np.random.Generator, size: int) -> np.ndarray:
    """By inversion in a table."""
    place = np.searchsorted(GAUSSIAN_TABLE, rng.random(size) * GAUSSIAN_TABLE[-1])
    return (place - 12).astype(np.float64)


def randomized_response(rng: np.random.Generator, size: int) -> np.ndarray:
    """Uniform numbers against the chance of a lie, in surveys."""
    truth = np.ones((size, PEOPLE), bool)
    return (truth ^ (rng.random(truth.shape) < FLIP)).mean(axis=1)


def k_ary_response(rng: np.random.Generator, size: int) -> np.ndarray:
    """A lie adds 1 to k - 1; the share of the first category."""
    truth = np.zeros((size, PEOPLE), np.int32)
    other = (truth + rng.integers(1, SIZE, truth.shape, np.int32)) % SIZE
    return (np.where(rng.random(truth.shape) < OWN, truth, other) == 0).mean(axis=1)


def symmetric_unary(rng: np.random.Generator, size: int) -> np.ndarray:
    """Each bit as in randomized response; the share of the first category."""
    truth = np.broadcast_to(one_hot(), (size, PEOPLE // SIZE, SIZE))
    return (truth ^ (rng.random(truth.shape) < FLIP_UNARY)).mean(axis=1)[:, 0]


def optimized_unary(rng: np.random.Generator, size: int) -> np.ndarray:
    """Uniform numbers against each bit's chance; the share of the first category."""
    truth = np.broadcast_to(one_hot(), (size, PEOPLE // SIZE, SIZE))
    return (rng.random(truth.shape) < np.where(truth, 0.5, FLIP)).mean(axis=1)[:, 0]


def noisy_largest(noise: str) -> Draw:
    """The score lost by the largest of scores plus noise."""

    def draw(rng: np.random.Generator, size: int) -> np.ndarray:
        total = SCORES + getattr(rng, noise)(size=(size, SIZE))
        return SIZE - 1.0 - np.argmax(total, axis=1)

    return draw


def above_threshold(rng: np.random.Generator, size: int) -> np.ndarray:
    """The first score above 8, with noise on both."""
    bar = SIZE / 2 + rng.laplace(size=(size, 1))
    above = SCORES + rng.laplace(size=(size, SIZE)) >= bar
    return np.where(above.any(axis=1), np.argmax(above, axis=1), SIZE).astype(np.float64)


def one_hot() -> np.ndarray:
    """The first of the categories."""
    return np.arange(SIZE) == 0


_REAL, _WHOLE = np.zeros((), np.float32), np.zeros((), np.int32)
_VECTOR, _HOT = np.zeros(SIZE, np.float32), np.tile(one_hot(), (PEOPLE // SIZE, 1))
CASES: dict[str, Case] = {
    "laplace": Case(_REAL, {}, "error", "Generator.laplace", lambda r, n: r.laplace(size=n)),
    "gaussian": Case(
        _REAL,
        {},
        "error",
        "standard_normal, float32",
        lambda r, n: r.standard_normal(n, dtype=np.float32),
    ),
    "truncated_laplace": Case(_REAL, {"bound": 2.0}, "error", "inversion, log1p", truncated),
    "bounded_laplace": Case(
        _REAL, {"lower": -1.0, "upper": 2.0}, "error", "inversion, log1p", bounded
    ),
    "staircase": Case(
        _REAL, {"sensitivity": 1.0, "gamma": 0.3}, "error", "sign, geometric, uniform", staircase
    ),
    "l2_laplace": Case(_VECTOR, {}, "norm", "normal over norm, gamma", l2_noise),
    "linf_laplace": Case(_VECTOR, {}, "largest", "uniform times gamma", linf_noise),
    "discrete_laplace": Case(_WHOLE, {}, "error", "two geometric", discrete_laplace),
    "discrete_gaussian": Case(_WHOLE, {}, "error", "searchsorted in a table", discrete_gaussian),
    "randomized_response": Case(
        np.ones(PEOPLE, bool), {}, "share", "random < chance, xor", randomized_response
    ),
    "k_ary_response": Case(
        np.zeros(PEOPLE, np.int32),
        {"num_categories": SIZE},
        "first_share",
        "random < chance, integers, %",
        k_ary_response,
    ),
    "symmetric_unary": Case(_HOT, {}, "first_bit", "random < chance, xor", symmetric_unary),
    "optimized_unary": Case(_HOT, {}, "first_bit", "random < where", optimized_unary),
    "exponential_mechanism": Case(
        SCORES, {}, "lost", "argmax of score + gumbel", noisy_largest("gumbel")
    ),
    "report_noisy_max": Case(
        SCORES, {}, "lost", "argmax of score + laplace", noisy_largest("laplace")
    ),
    "permute_and_flip": Case(
        SCORES, {}, "lost", "argmax of score + exponential", noisy_largest("exponential")
    ),
    "above_threshold": Case(
        SCORES,
        {"threshold": SIZE / 2, "threshold_scale": 1.0},
        "place",
        "argmax of score + laplace >= bar",
        above_threshold,
    ),
}
