"""Whole-number noise: against its law, at the ends of its dtype, and far into the tails."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import accepts, whole_noise
from scipy import optimize, special

from dpjax import theory
from dpjax.mechanisms import discrete

LAWS = {
    discrete.discrete_laplace: theory.DiscreteLaplace,
    discrete.discrete_gaussian: theory.DiscreteGaussian,
}
MECHANISMS = pytest.mark.parametrize("mechanism", LAWS)


@MECHANISMS
@pytest.mark.parametrize("scale", [0.5, 3.9, 4.0, 30.0])
def test_law_and_its_power(key, mechanism, scale):
    noise = np.asarray(mechanism(key, jnp.zeros(400_000, int), scale=scale))
    for factor in (2 / 3, 1, 1.5):
        law = LAWS[mechanism](scale * factor)
        p_value = whole_noise(noise, law.probability, int(8 * scale) + 2)
        assert accepts(p_value) is (factor == 1)


@MECHANISMS
def test_variance_is_that_of_the_law(key, mechanism):
    noise = np.asarray(mechanism(key, jnp.zeros(1_000_000, int), scale=0.5), np.float64)
    square = noise**2
    error = square.std() / np.sqrt(noise.size)
    assert abs(square.mean() - LAWS[mechanism](0.5).variance) < 5 * error
    assert abs(square.mean() - 0.25) > 20 * error  # what a continuous law would have


@MECHANISMS
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("scale", [1e3, 1e9, 1e30, np.inf])
def test_noise_saturates_and_never_wraps(key, mechanism, dtype, scale):
    info = np.iinfo(dtype)
    value = jnp.asarray([info.min, info.min + 3, info.max // 2, info.max - 3, info.max], dtype)
    answer = np.asarray(mechanism(key, jnp.tile(value, (20_000, 1)), scale=scale))
    assert answer.dtype == dtype
    law = LAWS[mechanism](min(scale, 1e38))
    for start, column in zip(np.asarray(value), answer.T, strict=True):
        for end, room in ((info.min, int(start) - info.min), (info.max, info.max - int(start))):
            share = 0.5 * float(law.tail(room - 1)) if room else 0.5 + 0.5 * law.probability(0)
            hits = np.sum(column == end)
            spread = np.sqrt(column.size * share * (1 - share)) + 1
            assert abs(hits - column.size * share) < 6 * spread


@MECHANISMS
def test_int32_of_large_scale_has_no_spikes(key, mechanism):
    scale = 1e9 if mechanism is discrete.discrete_laplace else 5e8
    noise = np.asarray(mechanism(key, jnp.zeros(200_000, np.int32), scale=scale), np.float64)
    inside = np.abs(noise) < 2**31 - 1
    law = LAWS[mechanism](scale)
    share = float(law.tail(2**31 - 2))
    assert abs(np.mean(~inside) - share) < 6 * np.sqrt(share / noise.size)
    assert np.unique(noise[inside], return_counts=True)[1].max() < 20


@MECHANISMS
def test_edges_of_the_scale(key, mechanism):
    value = jnp.arange(100, dtype=np.int16)
    assert np.array_equal(mechanism(key, value, scale=0), value)
    ends = {-(2**15), 2**15 - 1}
    scales = jnp.array([0.0, 1e-30, 1.0, 1e30, np.inf, np.nan])
    answers = jax.vmap(lambda scale: mechanism(jax.random.clone(key), value, scale=scale))(scales)
    assert np.array_equal(answers[:2], np.stack([value, value]))
    for saturated in np.asarray(answers[3:]):
        assert set(saturated.tolist()) == ends


@MECHANISMS
def test_noise_does_not_depend_on_the_value(key, mechanism):
    shift = mechanism(key, jnp.full(1000, 40, np.int16), scale=7.0)
    noise = mechanism(jax.random.clone(key), jnp.zeros(1000, np.int32), scale=7.0)
    assert np.array_equal(shift, noise + 40)


@MECHANISMS
def test_scales_broadcast_each_with_its_law(key, mechanism):
    scales = jnp.array([[0.5], [4.0], [50.0]])
    noise = np.asarray(mechanism(key, jnp.zeros(300_000, int), scale=scales))
    for row, scale in zip(noise, [0.5, 4.0, 50.0], strict=True):
        assert accepts(whole_noise(row, LAWS[mechanism](scale).probability, int(8 * scale) + 2))


@pytest.mark.slow
@MECHANISMS
def test_int64_uses_float64(key, mechanism):
    with jax.enable_x64(True):
        noise = np.asarray(mechanism(key, jnp.zeros(1000, np.int64), scale=1e12))
        same = np.asarray(mechanism(jax.random.clone(key), jnp.zeros(99, np.int32), scale=3.0))
    assert noise.dtype == np.int64
    assert 0.5e12 < np.abs(noise).mean() < 2e12
    assert np.any(noise % 2 == 1)  # single numbers are told apart, far above 2^24
    assert np.array_equal(same, mechanism(jax.random.clone(key), jnp.zeros(99, int), scale=3.0))


@pytest.mark.parametrize("scale", [0.05, 0.3, 2.0, 100.0, 1e5])
def test_laplace_tails_reach_as_far_as_the_draws(monkeypatch, key, scale):
    levels = 10.0 ** -np.arange(0.5, 18, 0.25)
    drawn = (jnp.asarray(-np.log(levels), np.float32), jnp.zeros(levels.size, np.uint32))
    monkeypatch.setattr(discrete._transforms, "exponential", lambda *_: drawn)
    law = theory.DiscreteLaplace(scale)
    size, _ = discrete._laplace_magnitude(key, levels.shape, jnp.full(1, scale, np.float32))
    for m, level in zip(np.asarray(size, np.float64), levels, strict=True):
        # P(|X| >= m) straddles the level that gives m
        assert law.tail(m) * (1 - 1e-5) <= level <= law.tail(m - 1) * (1 + 1e-5)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 3.99])
def test_table_reaches_as_far_as_the_draws(monkeypatch, key, scale):
    levels = 10.0 ** -np.arange(0.01, 18, 0.25)
    half = (jnp.asarray(levels / 2, np.float32), jnp.zeros(levels.size, np.uint32))
    monkeypatch.setattr(discrete._transforms, "half_uniform", lambda *_: half)
    law = theory.DiscreteGaussian(scale)
    size, _ = discrete._small_gaussian(key, levels.shape, jnp.full(1, scale, np.float32))
    for m, level in zip(np.asarray(size, np.float64), levels, strict=True):
        assert law.tail(m) * (1 - 2e-6) <= level <= law.tail(m - 1) * (1 + 2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [4.0, 4.5, 7.0, 20.0])
@pytest.mark.parametrize(("reach", "error"), [(6.66, 2e-8), (9.4, 3.5e-6)])
def test_stretched_normal_noise_has_the_tails_claimed(scale, reach, error):
    law = theory.DiscreteGaussian(scale)
    with jax.enable_x64(True):

        def stretched(z):
            return scale * float(discrete._stretched(jnp.float64(z), jnp.float64(scale)))

        for m in range(1, int(reach * scale), 3):
            z = optimize.brentq(lambda z, m=m: stretched(z) - (m - 0.5), 0, 12, xtol=1e-15)
            assert special.erfc(z / np.sqrt(2)) == pytest.approx(law.tail(m - 1), rel=error)


def test_coefficients_of_the_stretch():
    # Two of them by hand: z/24 from f'/24, and (2 z^3 - 11 z)/5760 at second order.
    assert discrete._STRETCH[1] == (-1 / 24,)
    assert discrete._STRETCH[2] == (-11 / 5760, float(Fraction(2, 5760)))


@MECHANISMS
def test_continuous_values_are_refused(key, mechanism):
    for value in (1.5, jnp.zeros(3), True, jnp.array([True])):
        with pytest.raises(TypeError, match=r"^value = .*: expected integers$"):
            mechanism(key, value, scale=1.0)
    with pytest.raises(ValueError, match=r"^scale = -1: expected a number of at least 0$"):
        mechanism(key, 3, scale=-1)
