"""What every mechanism promises: one table, the same tests for each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.mechanisms import additive, bounded, discrete, local, selection, vector
from dpjax.mechanisms.sparse_vector import above_threshold
from dpjax.mechanisms.staircase import staircase

REALS = jnp.linspace(-3.0, 3.0, 24).reshape(4, 6)
COUNTS = jnp.arange(24, dtype=np.int16).reshape(4, 6)
FLAGS = COUNTS % 5 == 0
MECHANISMS = {
    "laplace": (additive.laplace, REALS, {}),
    "gaussian": (additive.gaussian, REALS, {}),
    "truncated_laplace": (bounded.truncated_laplace, REALS, {"bound": 2.0}),
    "bounded_laplace": (bounded.bounded_laplace, REALS, {"lower": -4.0, "upper": 4.0}),
    "staircase": (staircase, REALS, {"sensitivity": 1.0, "gamma": 0.3}),
    "l2_laplace": (vector.l2_laplace, REALS, {}),
    "linf_laplace": (vector.linf_laplace, REALS, {}),
    "discrete_laplace": (discrete.discrete_laplace, COUNTS, {}),
    "discrete_gaussian": (discrete.discrete_gaussian, COUNTS, {}),
    "k_ary_response": (local.k_ary_response, COUNTS % 6, {"num_categories": 6}),
    "randomized_response": (local.randomized_response, FLAGS, {}),
    "symmetric_unary": (local.symmetric_unary, FLAGS, {}),
    "optimized_unary": (local.optimized_unary, FLAGS, {}),
    "exponential_mechanism": (selection.exponential_mechanism, REALS, {}),
    "permute_and_flip": (selection.permute_and_flip, REALS, {}),
    "report_noisy_max": (selection.report_noisy_max, REALS, {}),
    "above_threshold": (above_threshold, REALS, {"threshold": 1.0, "threshold_scale": 0.5}),
}
CHOICES = ("exponential_mechanism", "permute_and_flip", "report_noisy_max", "above_threshold")
FLOATS = [name for name, (_, value, _) in MECHANISMS.items() if value is REALS]
ALL = pytest.mark.parametrize("name", MECHANISMS)


def parts(name):
    """The mechanism with what is not its scale, and a value."""
    mechanism, value, parameters = MECHANISMS[name]
    return functools.partial(mechanism, **parameters), value


@ALL
def test_jit_is_eager_compiles_once_for_all_scales_and_keeps_shape_and_dtype(key, name):
    mechanism, value = parts(name)
    count = 0

    @jax.jit
    def compiled(scale):
        nonlocal count
        count += 1
        return mechanism(jax.random.clone(key), value, scale=scale)

    jitted = [compiled(scale) for scale in np.geomspace(1e-3, 1e3, 25)]
    assert count == 1
    eager = mechanism(key, value, scale=1e3)
    np.testing.assert_allclose(eager, jitted[-1], rtol=1e-6, atol=1e-6)
    assert eager.shape == (value.shape[:-1] if name in CHOICES else value.shape)
    assert eager.dtype == (np.int32 if name in CHOICES else value.dtype)


@pytest.mark.slow
@ALL
def test_vmap_is_a_loop_whatever_the_scales_beside_it(key, name):
    mechanism, value = parts(name)
    scales = jnp.array([0.4, 1.0, 6.0, 0.0, 1e-38, 1e38, jnp.inf, jnp.nan])
    keys = jax.random.split(key, len(scales))
    lanes = jax.vmap(lambda key, scale: mechanism(key, value, scale=scale))(
        jax.random.clone(keys), scales
    )
    for i in range(3):
        alone = mechanism(jax.random.clone(keys[i]), value, scale=scales[i])
        np.testing.assert_allclose(lanes[i], alone, rtol=1e-6, atol=1e-6)
    if name in FLOATS and name not in CHOICES:
        assert np.isnan(lanes[7]).all()


RBG = [("rbg", name) for name in ("discrete_laplace", "discrete_gaussian", "k_ary_response")]


@pytest.mark.slow
@pytest.mark.parametrize(("impl", "name"), [("threefry2x32", name) for name in MECHANISMS] + RBG)
def test_entries_and_keys_are_independent(key, name, impl):
    mechanism, value = parts(name)
    value = jnp.broadcast_to(value[1], (3000, 6))
    keys = [jax.random.key(seed, impl=impl) for seed in (1, 2)]
    one, two = (np.asarray(mechanism(k, value, scale=1.0), np.float64) for k in keys)
    columns = np.concatenate([one.reshape(3000, -1), two.reshape(3000, -1)], axis=1)
    columns = columns[:, columns.std(axis=0) > 0]
    if name in ("l2_laplace", "linf_laplace"):  # entries of one vector share its radius
        columns = columns[:, [0, 6]]
    correlation = np.corrcoef(columns.T) - np.eye(columns.shape[1])
    assert np.abs(correlation).max() < 6 / np.sqrt(3000)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FLOATS if name not in CHOICES])
@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_narrow_floats_are_float32_rounded(key, name, dtype):
    mechanism, value = parts(name)
    value = value.astype(dtype)
    narrow = mechanism(key, value, scale=1.0)
    wide = mechanism(jax.random.clone(key), value.astype(np.float32), scale=1.0)
    assert narrow.dtype == value.dtype
    assert np.array_equal(narrow, wide.astype(dtype))


@ALL
def test_legacy_keys_are_refused(name):
    mechanism, value = parts(name)
    with pytest.raises(TypeError, match=r"^key = uint32\[2\]: expected one typed key"):
        mechanism(jnp.zeros(2, np.uint32), value, scale=1.0)
