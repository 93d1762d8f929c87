"""What commands that simulate share; this module loads JAX."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import dpjax
from dpjax import _validate


def key_of(seed: int) -> Array:
    """The key of a seed below 2^32; larger ones collide without x64."""
    if not 0 <= _validate.count(seed=seed) < 2**32:
        raise ValueError(f"seed = {seed}: expected a whole number below 2^32")
    return jax.random.key(np.uint32(seed))


def points_at(scales: dict[tuple[str, float, int], Any]) -> list[dpjax.Point]:
    """The points of a sweep: the error of each mechanism on a true answer of 0."""
    points = []
    for (mechanism, epsilon, queries), (scale, _) in scales.items():
        whole = mechanism.startswith("discrete")
        points.append(
            dpjax.Point(
                {"mechanism": mechanism, "epsilon": epsilon, "queries": queries},
                partial(getattr(dpjax, mechanism), scale=scale),
                np.int32(0) if whole else 0.0,
                error,
            )
        )
    return points


def error(answer: Array, value: Array) -> Array:
    """The error as a float, of whole answers too."""
    return (answer - value).astype(jnp.float32)
