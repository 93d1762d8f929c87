"""Counting between edges against NumPy, for even and uneven edges and odd numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpjax.binning import count_between

EDGES = {
    "even": np.linspace(-3, 3, 13),
    "nearly even": np.linspace(-3, 3, 13) + 0.1 * np.sin(np.arange(13)),
    "two": np.array([-0.5, 0.25]),
    "geometric": np.geomspace(1e-6, 10, 40),
    "clustered": np.sort(np.r_[np.linspace(-3, 3, 5), 1.0 + np.arange(60) * 1e-6]),
    "far": np.array([1e30, 2e30, 3e30]),
}
counts = jax.jit(count_between)


@pytest.mark.parametrize("name", EDGES)
@given(seed=st.integers(0, 2**32 - 1))
def test_counts_are_those_of_numpy(name: str, seed: int) -> None:
    edges = EDGES[name].astype(np.float32)
    rng = np.random.default_rng(seed)
    near = rng.choice(edges, 200)  # on the edges and one step to either side
    x = np.concatenate(
        [
            rng.normal(0, 2, 400).astype(np.float32),
            near,
            np.nextafter(near, np.float32(np.inf)),
            np.nextafter(near, np.float32(-np.inf)),
            np.array([0.0, -0.0, 1e38, -1e38, np.inf, -np.inf], np.float32),
        ]
    )
    x[np.abs(x) < 1e-37] = 0.0  # XLA takes subnormal numbers for 0
    kept = rng.random(x.size) < 0.7
    place = np.searchsorted(edges, x, side="right")
    for mask in (None, kept):
        truth = np.bincount(place if mask is None else place[mask], minlength=edges.size + 1)
        np.testing.assert_array_equal(counts(jnp.asarray(x), jnp.asarray(edges), mask), truth)


@pytest.mark.parametrize("name", EDGES)
def test_nan_is_counted_below(name: str) -> None:
    edges = jnp.asarray(EDGES[name], jnp.float32)
    assert counts(jnp.full(7, jnp.nan), edges)[0] == 7
