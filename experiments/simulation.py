"""Simulated noise of a mechanism at one grid point, each point with a key of its own."""

import functools
from collections.abc import Callable, Mapping

import jax
import numpy as np

import dpjax
from dpjax.statistics import Moments
from dpjax.sweep.grid import point_key as key_at

MECHANISMS = {"laplace": dpjax.laplace, "gaussian": dpjax.gaussian}


def point_key(seed: int, experiment: str, coordinates: Mapping[str, str | float]) -> jax.Array:
    """The key of one grid point, as a sweep named after the experiment has it."""
    return key_at(jax.random.key(seed), coordinates, experiment)


def noise(key: jax.Array, mechanism: str, scale: float, trials: int) -> Moments:
    """Moments of the noise, in the answer's units.

    Simulated on an answer of 0, where float32 is finest: the noise does not depend on the answer.
    """
    return dpjax.simulate(key, _release(mechanism, scale), 0.0, trials)


def histogram(
    key: jax.Array, mechanism: str, scale: float, trials: int, edges: np.ndarray
) -> np.ndarray:
    """How many trials have noise from one edge, in units of scale, up to the next."""
    scaled = np.float32(scale * edges)
    counted = dpjax.simulate(key, _release(mechanism, scale), 0.0, trials, edges=scaled).histogram
    assert counted is not None  # there are edges
    return counted.counts[1:-1]  # without what lies beyond the edges


def _release(mechanism: str, scale: float) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """The mechanism at a scale."""
    return functools.partial(MECHANISMS[mechanism], scale=np.float32(scale))
