"""Tests of samplers against laws, at a named chance of failing a right sampler."""

from collections.abc import Callable

import numpy as np
from scipy import stats

FAILURE = 1e-6  # of each test, were the sampler right


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of counts under probabilities; cells below 10 expected are joined."""
    counts, probabilities = np.ravel(counts), np.ravel(probabilities)
    np.testing.assert_allclose(probabilities.sum(), 1, atol=1e-9)
    expected = counts.sum() * probabilities
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < 10:  # the sum is rare too: into the largest cell
            largest = int(np.argmax(expected[:-1]))
            counts[largest] += counts[-1]
            expected[largest] += expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    statistic = np.sum((counts - expected) ** 2 / expected)
    return float(stats.chi2.sf(statistic, len(counts) - 1)) if len(counts) > 1 else 1.0


def whole_noise(noise: np.ndarray, probability: Callable, reach: int) -> float:
    """The p-value of whole numbers under a law on the integers; one cell beyond +-reach."""
    x = np.arange(-reach, reach + 1)
    inside = probability(x)
    counts = np.bincount(noise[np.abs(noise) <= reach] + reach, minlength=x.size)
    rest = max(1 - inside.sum(), 0.0)
    return chi_square(np.append(counts, noise.size - counts.sum()), np.append(inside, rest))


def kolmogorov_smirnov(sample: np.ndarray, distribution: Callable) -> float:
    """The p-value of a sample under a continuous distribution function (ties are harmless)."""
    return float(stats.kstest(np.ravel(sample).astype(np.float64), distribution).pvalue)


def accepts(p_value: float) -> bool:
    """Whether a sampler passes."""
    return p_value > FAILURE
