"""Contracts of the additive mechanisms, and the laws of their noise down to the bits."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpjax import gaussian, laplace, prng
from dpjax.mechanisms import additive

MECHANISMS = [laplace, gaussian]
LAWS = {laplace: stats.laplace, gaussian: stats.norm}
both = pytest.mark.parametrize("mechanism", MECHANISMS)

GOLDEN_VERSION = "0.10.1"  # of jax, on a CPU: `mechanism(key(42), zeros(4), scale=1.0)`
GOLDEN = {
    laplace: [-0.8516095, -4.199034, 0.5548743, 0.3149589],
    gaussian: [-0.0645695, 1.4731406, -1.0522975, -0.7830878],
}


def draws(mechanism: Callable, size: int, seed: int, scale: float = 1.0) -> np.ndarray:
    answer = mechanism(jax.random.key(seed), jnp.zeros(size), scale=scale)
    return np.asarray(answer, np.float64)


# -- contracts


@pytest.mark.slow
@both
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_dtype_in_is_dtype_out(mechanism: Callable, dtype: str) -> None:
    with jax.enable_x64(dtype == "float64"):
        for scale in (2.0, 2, np.float64(2), jnp.asarray(2.0), jnp.ones(3, dtype)):
            answer = mechanism(jax.random.key(0), jnp.zeros(3, dtype), scale=scale)
            assert answer.dtype == dtype
            assert answer.shape == (3,)


@both
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("value", [3, 3.0, np.float64(3.0)])
def test_a_python_number_is_the_default_float(mechanism: Callable, x64: bool, value: float) -> None:
    with jax.enable_x64(x64):
        answer = mechanism(jax.random.key(0), value, scale=1.0)
        assert answer.dtype == (np.float64 if x64 else np.float32)
        assert answer.shape == ()


@both
@pytest.mark.parametrize("value", [jnp.arange(3), np.arange(3), np.int64(3), np.zeros(2, bool)])
def test_integers_are_refused(mechanism: Callable, value: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"^value = u?(int|bool)\d*\[\d?\]: expected floats"):
        mechanism(jax.random.key(0), value, scale=1.0)


@both
@pytest.mark.parametrize("scale", [-1.0, float("nan"), np.array([1.0, -2.0, 3.0])])
def test_a_bad_scale_is_named(mechanism: Callable, scale: float) -> None:
    with pytest.raises(ValueError, match=r"^scale(\[1\])? = "):
        mechanism(jax.random.key(0), jnp.zeros(3), scale=scale)


@both
def test_a_legacy_key_is_refused(mechanism: Callable) -> None:
    with pytest.raises(TypeError, match=r"^key = uint32\[2\]: expected one typed key"):
        mechanism(jnp.zeros(2, jnp.uint32), 0.0, scale=1.0)


@both
def test_a_spent_key_is_reported(mechanism: Callable) -> None:
    key = jax.random.key(0)
    mechanism(key, 0.0, scale=1.0)
    with pytest.raises(jax.errors.KeyReuseError):
        mechanism(key, 0.0, scale=1.0)


@both
@pytest.mark.parametrize(
    ("value", "scale", "shape"),
    [((), (), ()), ((3,), (), (3,)), ((), (3,), (3,)), ((4, 1), (3,), (4, 3)), ((0,), (), (0,))],
)
def test_value_and_scale_broadcast_to_independent_releases(
    mechanism: Callable, value: tuple, scale: tuple, shape: tuple
) -> None:
    answer = np.asarray(mechanism(jax.random.key(1), jnp.zeros(value), scale=jnp.ones(scale)))
    assert answer.shape == shape
    assert np.unique(answer).size == answer.size


@both
def test_jit_vmap_scan_and_eager_agree(mechanism: Callable) -> None:
    def keys() -> jax.Array:
        return jax.random.split(jax.random.key(0), 4)

    def scan(keys: jax.Array, values: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda _, xs: (None, release(*xs)), None, (keys, values))[1]

    values, release = jnp.arange(4.0), partial(mechanism, scale=2.0)
    eager = jnp.stack([release(k, v) for k, v in zip(keys(), values, strict=True)])
    for transformed in (jax.vmap(release), jax.jit(jax.vmap(release)), scan):
        np.testing.assert_array_equal(transformed(keys(), values), eager)


@both
def test_a_traced_scale_does_not_change_the_draw(mechanism: Callable) -> None:
    scales = jnp.asarray([0.5, 3.0, 1e6])
    traced = jax.vmap(lambda s: mechanism(jax.random.key(0), jnp.ones(5), scale=s))(scales)
    for row, scale in zip(traced, scales, strict=True):
        np.testing.assert_array_equal(row, mechanism(jax.random.key(0), jnp.ones(5), scale=scale))


@both
def test_shapes_follow_from_abstract_values(mechanism: Callable) -> None:
    value = jax.ShapeDtypeStruct((4, 1), jnp.bfloat16)
    scale = jax.ShapeDtypeStruct((3,), jnp.float32)
    out = jax.eval_shape(lambda k, v, s: mechanism(k, v, scale=s), jax.random.key(0), value, scale)
    assert (out.shape, out.dtype) == ((4, 3), jnp.bfloat16)


@both
@pytest.mark.parametrize("size", [1, 1001, 2 * prng.TILE + 11])
def test_noise_is_the_float64_formula_of_its_words(mechanism: Callable, size: int) -> None:
    runs = -(-size // (2 * prng.TILE))
    words = np.asarray(prng.words(jax.random.key(2), (runs, 2, prng.TILE))).astype(np.int64)
    rounded = (words >> 1).astype(np.float32) + np.float32(0.5)
    exponential = -np.log(rounded.astype(np.float64) / 2**31)
    if mechanism is laplace:
        expected = np.where(words & 1, -exponential, exponential)
    else:
        bits, radius = words[:, 1], np.sqrt(2 * exponential[:, 0])
        angle = ((bits >> 3) + 0.5) * np.pi / 4 / 2**29
        x = np.where(bits & 4, np.sin(angle), np.cos(angle)) * np.where(bits & 1, -1, 1)
        y = np.where(bits & 4, np.cos(angle), np.sin(angle)) * np.where(bits & 2, -1, 1)
        expected = np.stack([radius * x, radius * y], axis=1)
    for run in (mechanism, jax.jit(mechanism)):
        answer = run(jax.random.key(2), jnp.zeros(size), scale=1.0)
        np.testing.assert_allclose(answer, expected.reshape(-1)[:size], rtol=1e-5, atol=2e-6)


@both
@given(exponent=st.integers(-20, 20))
def test_noise_scales_exactly(mechanism: Callable, exponent: int) -> None:
    one = mechanism(jax.random.key(0), jnp.zeros(100), scale=1.0)
    other = mechanism(jax.random.key(0), jnp.zeros(100), scale=2.0**exponent)
    np.testing.assert_array_equal(other, one * 2.0**exponent)


@both
def test_scale_at_its_edges(mechanism: Callable) -> None:
    value = jnp.asarray([1.0, -2.5, 1e30])
    np.testing.assert_array_equal(mechanism(jax.random.key(0), value, scale=0.0), value)
    assert not np.isfinite(mechanism(jax.random.key(0), value, scale=np.inf)).any()
    traced = jax.jit(lambda s: mechanism(jax.random.key(0), value, scale=s))
    assert np.isnan(traced(np.nan)).all()
    assert traced(-1.0).shape == (3,)  # no check and no error inside traced code


@both
def test_narrow_floats_are_float32_rounded(mechanism: Callable) -> None:
    wide = mechanism(jax.random.key(0), jnp.full(100, 0.5), scale=0.3)
    narrow = mechanism(jax.random.key(0), jnp.full(100, 0.5, jnp.bfloat16), scale=0.3)
    np.testing.assert_array_equal(narrow, wide.astype(jnp.bfloat16))


@both
def test_golden_values(mechanism: Callable) -> None:
    if jax.__version__ != GOLDEN_VERSION:
        pytest.skip(f"golden values hold for jax {GOLDEN_VERSION}")
    answer = mechanism(jax.random.key(42), jnp.zeros(4), scale=1.0)
    np.testing.assert_allclose(answer, GOLDEN[mechanism], rtol=1e-6)


# -- the law: failure probability 1e-6 a test, on fixed keys


def rejects(sample: np.ndarray, law: stats.rv_continuous, scale: float) -> bool:
    return stats.kstest(sample, law(scale=scale).cdf).pvalue < 1e-6


@both
def test_the_law_is_accepted_and_two_thirds_and_three_halves_of_it_are_not(
    mechanism: Callable,
) -> None:
    sample = draws(mechanism, 1_000_000, seed=3, scale=2.0)
    assert not rejects(sample, LAWS[mechanism], 2.0)
    assert rejects(sample[:3_000], LAWS[mechanism], 2.0 * 2 / 3)
    assert rejects(sample[:3_000], LAWS[mechanism], 2.0 * 3 / 2)
    assert rejects(sample, LAWS[mechanism], 2.0 * 1.05)


@both
def test_counts_in_the_centre_and_in_the_tails(mechanism: Callable) -> None:
    law, size = LAWS[mechanism](), 4_000_000
    sample = draws(mechanism, size, seed=4)
    tails = law.isf(10.0 ** -np.arange(1, 6))  # the last cells expect 40 draws each
    edges = np.concatenate([-tails[::-1], np.linspace(-1, 1, 41) * tails[0] * 0.99, tails])
    observed = np.histogram(sample, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    expected = size * np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
    expected *= size / expected.sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-6


@both
def test_moments(mechanism: Callable) -> None:
    sample = draws(mechanism, 4_000_000, seed=5)
    law = LAWS[mechanism]()
    for power, absolute in [(1, False), (1, True), (2, False), (3, False), (4, False)]:
        values = (np.abs(sample) if absolute else sample) ** power
        truth = law.expect(lambda x, p=power, a=absolute: (abs(x) if a else x) ** p)
        spread = law.expect(lambda x, p=power: abs(x) ** (2 * p)) - truth**2
        assert abs(values.mean() - truth) < 4.9 * (spread / sample.size) ** 0.5  # 1e-6, two-sided


@both
def test_partners_and_neighbours_are_independent(mechanism: Callable) -> None:
    sample = draws(mechanism, 2 * prng.TILE * 8, seed=6).reshape(8, 2, prng.TILE)
    pairs = {
        "partners": (sample[:, 0], sample[:, 1]),
        "neighbours": (sample[..., 1:], sample[..., :-1]),
    }
    for x, y in pairs.values():
        for transform in (lambda v: v, np.abs, np.sign, lambda v: np.minimum(v**2, 9)):
            r = np.corrcoef(transform(x).ravel(), transform(y).ravel())[0, 1]
            assert abs(r) < 5.5 / np.sqrt(x.size)  # 4e-8 each


def test_standard_noise_is_a_pure_function_of_its_bits() -> None:
    """Every 32-bit pattern of one kind: extremes, symmetry and zero of both transforms."""
    f32 = np.dtype(np.float32)
    ends = jnp.asarray([0, 1, 2, 3, 2**31, 2**32 - 2, 2**32 - 1], jnp.uint32)
    size = np.asarray(additive._exponential(ends, f32))
    assert size.max() == np.float32(32 * np.log(2))  # Laplace reaches 22.18 scales
    assert size.min() == 0.0
    np.testing.assert_array_equal(size[::2][:2], size[1::2][:2])  # the sign bit has no say
    cosine, sine = additive._direction(ends, f32)
    assert np.abs(np.concatenate([cosine, sine])).max() <= 1.0
    assert np.sqrt(2 * size.max()) == pytest.approx(6.66, abs=0.01)  # normal reaches 6.66


def test_the_sign_is_fair_and_independent_of_the_size() -> None:
    """Flipping the lowest bit negates Laplace noise to the last bit: the law is symmetric."""
    f32 = np.dtype(np.float32)
    bits = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, 10_000, dtype=np.uint32))
    size = additive._exponential(bits, f32)
    plus, minus = additive._with_sign(size, bits & ~1), additive._with_sign(size, bits | 1)
    np.testing.assert_array_equal(plus, -minus)
    x, y = (np.asarray(v) for v in additive._direction(bits, f32))
    u, v = (np.asarray(v) for v in additive._direction(bits ^ 1, f32))
    np.testing.assert_array_equal((x, y), (-u, v))  # bit 0 negates the cosine, bit 1 the sine
    u, v = (np.asarray(v) for v in additive._direction(bits ^ 2, f32))
    np.testing.assert_array_equal((x, y), (u, -v))


def test_polynomials_are_exact_to_rounding() -> None:
    f32 = np.dtype(np.float32)
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 300_000, dtype=np.uint32) >> rng.integers(0, 31, 300_000).astype(
        np.uint32
    )
    size = np.asarray(additive._exponential(jnp.asarray(bits), f32), np.float64)
    number = ((bits >> 1).astype(np.float32) + np.float32(0.5)).astype(np.float64)
    truth = 31 * np.log(2) - np.log(number)
    assert np.abs(size - truth).max() < 2e-6
    assert np.abs(size - truth)[truth > 0].max() < 2e-6
    near = truth < 1  # relative to the size where that is small
    assert (np.abs(size - truth)[near] <= 3e-7 * truth[near] + 1e-12).all()
    bits = rng.integers(0, 2**32, 300_000, dtype=np.uint32)
    x, y = (np.asarray(v, np.float64) for v in additive._direction(jnp.asarray(bits), f32))
    assert np.abs(x**2 + y**2 - 1).max() < 3e-7
    angle = ((bits >> 3) + 0.5) * (np.pi / 4 / 2**29)
    small = np.minimum(np.abs(x), np.abs(y))
    assert np.abs(small - np.sin(angle)).max() < 2e-7


def test_the_distribution_function_is_right_to_1e_7() -> None:
    """The size falls as its bits rise, so its law errs by what exp(-size) does from a uniform."""
    m = np.unique(np.linspace(0, 2**31 - 1, 1_000_000).astype(np.uint32))
    m = np.concatenate([np.arange(10_000, dtype=np.uint32), m[m >= 10_000]])
    size = additive._exponential(jnp.asarray(m << 1), np.dtype(np.float32))
    share = np.exp(-np.asarray(size, np.float64))
    assert (np.diff(share) >= -1e-7).all()  # within rounding of its neighbours
    error = np.abs(share - (m + 0.5) / 2**31)
    assert error.max() < 1e-7
    assert (error / share)[1:].max() < 2e-6  # relative, in the tail too


@both
def test_float64_noise_has_the_law_and_the_bits(mechanism: Callable) -> None:
    with jax.enable_x64(True):
        size = 2 * prng.TILE + 1000
        sample = np.asarray(mechanism(jax.random.key(8), jnp.zeros(size), scale=1.0))
        short = np.asarray(mechanism(jax.random.key(8), jnp.zeros(10), scale=1.0))
    np.testing.assert_array_equal(short, sample[:10])
    assert not rejects(sample, LAWS[mechanism], 1.0)
    assert np.unique(sample).size == size  # 2^23 float32 steps would repeat 260 of them
    assert (sample != sample.astype(np.float32)).mean() > 0.99
    partners = sample[: 2 * prng.TILE].reshape(2, -1)
    assert abs(np.corrcoef(partners)[0, 1]) < 5.5 / np.sqrt(prng.TILE)


def test_float64_reaches_further() -> None:
    with jax.enable_x64(True):
        f64 = np.dtype(np.float64)
        last = additive._exponential(jnp.zeros(1, jnp.uint64), f64)
        assert float(last[0]) == pytest.approx(64 * np.log(2), rel=1e-15)
        angle = additive._direction(jnp.asarray([2**63 + 8], jnp.uint64), f64)
        assert float(angle[0][0]) ** 2 + float(angle[1][0]) ** 2 == pytest.approx(1, abs=1e-15)


def test_float32_supports_of_neighbouring_answers_differ() -> None:
    """The stated limit: low bits of float noise give the true answer away (Mironov 2012)."""
    zero = np.asarray(laplace(jax.random.key(0), jnp.zeros(100_000), scale=1.0))
    one = np.asarray(laplace(jax.random.key(1), jnp.ones(100_000), scale=1.0))
    assert np.isin(zero, one).mean() < 0.2


def test_scale_is_a_standard_deviation_and_no_variance(key):
    noise = np.asarray(additive.gaussian(key, jnp.zeros(100_000), scale=3.0), np.float64)
    assert abs(noise.var() / 9 - 1) < 5 * np.sqrt(2 / noise.size)  # 6e-7: 5 standard deviations
