"""Vector noise: its norm, its direction and its entries against their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, kolmogorov_smirnov

from dpjax import theory
from dpjax.mechanisms import vector

LAWS = {vector.l2_laplace: theory.L2Laplace, vector.linf_laplace: theory.LinfLaplace}
NORMS = {vector.l2_laplace: 2, vector.linf_laplace: np.inf}
MECHANISMS = pytest.mark.parametrize("mechanism", LAWS)


@MECHANISMS
@pytest.mark.parametrize("dimension", [1, 3, 10])
def test_law_of_the_norm_and_its_power(key, mechanism, dimension):
    noise = np.asarray(mechanism(key, jnp.zeros((50_000, dimension)), scale=2.0), np.float64)
    norms = np.linalg.norm(noise, ord=NORMS[mechanism], axis=1)
    for factor in (2 / 3, 1, 1.5):
        law = LAWS[mechanism](2.0 * factor, dimension)
        p_value = kolmogorov_smirnov(norms, lambda x, law=law: 1 - law.norm_tail(x))
        assert accepts(p_value) is (factor == 1)


@MECHANISMS
@pytest.mark.parametrize("dimension", [1, 4])
def test_errors_of_an_entry(key, mechanism, dimension):
    noise = np.asarray(mechanism(key, jnp.zeros((200_000, dimension)), scale=0.5), np.float64)
    law = LAWS[mechanism](0.5, dimension)
    for column in noise.T:
        for sample, truth in ((column**2, law.rmse**2), (np.abs(column), law.mae), (column, 0)):
            error = sample.std() / np.sqrt(sample.size)
            assert abs(sample.mean() - truth) < 5 * error


def test_one_dimension_is_laplace(key):
    law = theory.Laplace(3.0)
    for mechanism in LAWS:
        noise = np.asarray(mechanism(jax.random.clone(key), jnp.zeros((100_000, 1)), scale=3.0))
        found = kolmogorov_smirnov(
            noise, lambda x: np.where(x < 0, law.tail(-x) / 2, 1 - law.tail(x) / 2)
        )
        assert accepts(found)
        assert LAWS[mechanism](3.0, 1).rmse == pytest.approx(law.rmse)
        assert LAWS[mechanism](3.0, 1).mae == pytest.approx(law.mae)


def test_directions_are_uniform(key):
    noise = np.asarray(vector.l2_laplace(key, jnp.zeros((100_000, 2)), scale=1.0))
    angle = np.arctan2(noise[:, 1], noise[:, 0])
    assert accepts(kolmogorov_smirnov(angle, lambda x: (x + np.pi) / (2 * np.pi)))
    radius = np.linalg.norm(noise, axis=1)
    assert abs(np.corrcoef(radius, np.cos(4 * angle))[0, 1]) < 5 / np.sqrt(radius.size)


@MECHANISMS
def test_scaling_and_edges(key, mechanism):
    value = jnp.zeros((500, 3))
    noise = mechanism(key, value, scale=1.0)
    assert np.array_equal(8 * noise, mechanism(jax.random.clone(key), value, scale=8.0))
    assert np.array_equal(mechanism(jax.random.clone(key), value + 2, scale=0.0), value + 2)
    lanes = jax.vmap(lambda scale: mechanism(jax.random.clone(key), value, scale=scale))(
        jnp.array([0.0, 1e30, jnp.inf, jnp.nan])
    )
    assert np.all(np.isinf(lanes[2]))
    assert np.all(np.isnan(lanes[3]))
    rows = mechanism(jax.random.clone(key), jnp.zeros(3), scale=jnp.array([0.0, 1.0]))
    assert rows.shape == (2, 3)
    assert np.all(np.asarray(rows[0]) == 0)
    for bad in (1.0, jnp.zeros((2, 0)), jnp.zeros(3, int)):
        with pytest.raises(TypeError, match=r"^value = "):
            mechanism(key, bad, scale=1.0)
