"""Simulated noise of a mechanism at one grid point, each point with a key of its own."""

import functools
import zlib
from collections.abc import Callable, Mapping

import jax
import numpy as np

import dpjax
from dpjax.statistics import Moments

MECHANISMS = {"laplace": dpjax.laplace, "gaussian": dpjax.gaussian}


def point_key(seed: int, experiment: str, coordinates: Mapping[str, str | float]) -> jax.Array:
    """The key of one grid point: the seed's key folded with a hash of the point's name.

    Independent of the other points: adding one or leaving one out changes no other.
    """
    point = "/".join([experiment, *(f"{name}={value}" for name, value in coordinates.items())])
    return jax.random.fold_in(jax.random.key(seed), np.uint32(zlib.crc32(point.encode())))


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
