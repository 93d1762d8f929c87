"""A mechanism that JAX cannot trace is refused in one line, wherever it is handed in."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax.audit import audit


def of_numpy(key, value):
    return np.asarray(value) + np.random.default_rng(0).laplace(size=value.shape)


def branching(key, value):
    return value if value[0] > 3 else -value


@pytest.mark.parametrize("mechanism", [of_numpy, branching])
def test_what_cannot_be_traced_is_refused_in_a_line(mechanism):
    key = jax.random.key(0)
    point = dpjax.Point({"mechanism": "mine"}, mechanism, 0)
    for call in (
        lambda: dpjax.simulate(key, mechanism, 0.0, 100),
        lambda: dpjax.sweep(jax.random.key(1), [point], 100),
        lambda: audit(jax.random.key(2), mechanism, 0.0, 1.0, 100, delta=0.0),
    ):
        with pytest.raises(TypeError, match="expected a function that JAX can trace") as error:
            call()
        assert str(error.value).startswith(f"mechanism = {mechanism.__name__}: ")
        assert "jax.numpy" in str(error.value)
        assert "dpjax.per_trial" in str(error.value)
        assert "\n" not in str(error.value)
