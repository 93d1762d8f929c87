"""Moments and histograms against NumPy on the same trials."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax import accumulate, gaussian, simulate
from dpjax.statistics import Moments, merge

NAMES = ("mean", "variance", "rmse", "mae")
SUFFIXES = ("", "_standard_error")


def of(sample: np.ndarray, edges: np.ndarray | None = None, unit: float = 1.0) -> Moments:
    """The moments of any float32 sample of (trials, ...), by way of the accumulator."""
    block = np.full((max(16, 1 << (len(sample) - 1).bit_length()), *sample.shape[1:]), np.nan)
    block[: len(sample)] = sample
    edges = None if edges is None else edges.astype(np.float32)
    return accumulated(block.astype(np.float32), len(sample), np.float32(unit), edges)


@jax.jit
def accumulated(x: jax.Array, size: jax.Array, unit: jax.Array, edges: jax.Array | None) -> Moments:
    units = jnp.full(x.shape[1:], unit)
    lanes = accumulate.empty(len(x), x.shape[1:], x.dtype, edges)
    lanes = accumulate.add_block(lanes, x, units, edges, jnp.arange(len(x)) < size)
    count = accumulate.count(jnp.asarray(0), len(x), size, x.dtype)
    return accumulate.moments(lanes, count, units, edges)


def expected(x: np.ndarray) -> dict[str, np.ndarray]:
    """The same in plain NumPy."""
    x, n = x.astype(np.float64), len(x)
    square = x**2
    rmse = np.sqrt(square.mean(0))
    deviation = (x - x.mean(0)) ** 2

    def error(values: np.ndarray) -> np.ndarray:
        return values.std(0) / np.sqrt(n - 1) if n > 1 else np.full(values.shape[1:], np.inf)

    return {
        "mean": x.mean(0),
        "variance": x.var(0),
        "rmse": rmse,
        "mae": np.abs(x).mean(0),
        "mean_standard_error": error(x),
        "variance_standard_error": error(deviation),
        "rmse_standard_error": error(square) / (2 * np.where(rmse > 0, rmse, 1)),
        "mae_standard_error": error(np.abs(x)),
    }


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([20, 1000]), st.sampled_from([(), (3,)]))
def test_moments_are_those_of_numpy(seed: int, size: int, shape: tuple[int, ...]) -> None:
    sample = np.random.default_rng(seed).laplace(0.5, 2.0, (size, *shape)).astype(np.float32)
    moments = of(sample)
    for name, value in expected(sample).items():
        np.testing.assert_allclose(getattr(moments, name), value, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(moments.count, np.full(shape, size))
    np.testing.assert_array_equal(moments.min, sample.min(0))
    np.testing.assert_array_equal(moments.max, sample.max(0))


def test_one_trial_has_infinite_standard_errors() -> None:
    moments = of(np.array([3.0]))
    assert (moments.mean, moments.variance, moments.rmse, moments.mae) == (3.0, 0.0, 3.0, 3.0)
    for name in NAMES:
        assert getattr(moments, f"{name}_standard_error") == np.inf


def test_no_error_at_all_is_zero_and_not_nan() -> None:
    moments = of(np.zeros(100))
    for name in NAMES:
        assert getattr(moments, name) == 0.0
        assert getattr(moments, f"{name}_standard_error") == 0.0


def test_nan_is_not_hidden() -> None:
    moments = of(np.array([1.0, np.nan, 2.0]))
    assert np.isnan([getattr(moments, name) for name in NAMES]).all()
    assert np.isnan(moments.mae_standard_error)


def test_statistics_read_inside_jit_agree_with_those_outside() -> None:
    moments = of(np.random.default_rng(0).normal(1.0, 2.0, 5000))

    @jax.jit
    def read(moments: Moments) -> list[jax.Array]:
        return [getattr(moments, name + suffix) for name in NAMES for suffix in SUFFIXES]

    outside = [getattr(moments, name + suffix) for name in NAMES for suffix in SUFFIXES]
    np.testing.assert_allclose(read(moments), outside, rtol=1e-5)
    assert all(isinstance(value, np.float64) for value in outside)


@pytest.mark.slow
def test_standard_errors_are_calibrated() -> None:
    """Over 400 runs, (estimate - truth) / standard error has mean 0 and variance 1."""
    mechanism = partial(gaussian, scale=2.0)
    run = jax.jit(jax.vmap(lambda key: simulate(key, mechanism, 0.0, 2_000)))
    moments = run(jax.random.split(jax.random.key(0), 400))
    truth = {"mean": 0.0, "variance": 4.0, "rmse": 2.0, "mae": 2.0 * np.sqrt(2 / np.pi)}
    for name, value in truth.items():
        z = (getattr(moments, name) - value) / getattr(moments, f"{name}_standard_error")
        assert abs(z.mean()) < 5 / np.sqrt(400)  # 6e-7
        assert abs(z.var() - 1) < 5.5 * np.sqrt(2 / 400)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(-20, 20))
def test_merging_is_the_moments_of_all(seed: int, exponent: int) -> None:
    sample = np.random.default_rng(seed).normal(size=(48, 2)).astype(np.float32)
    edges = np.linspace(-1, 1, 5)
    parts = [
        of(sample[:16], edges),
        of(sample[16:32], edges, 2.0**exponent),
        of(sample[32:], edges),
    ]
    merged = merge(parts)
    for name, value in expected(sample).items():
        np.testing.assert_allclose(getattr(merged, name), value, rtol=1e-5, atol=1e-6)
    assert (merged.count == 48).all()
    np.testing.assert_array_equal(merged.min, sample.min(0))
    assert merged.histogram is not None
    cells = [-np.inf, *edges.astype(np.float32), np.inf]
    for column in range(2):
        counts = np.histogram(sample[:, column], cells)[0]
        np.testing.assert_array_equal(merged.histogram.counts[column], counts)


def test_merging_one_or_none() -> None:
    part = of(np.arange(5.0))
    for name in NAMES:
        assert getattr(merge([part]), name) == getattr(part, name)
    with pytest.raises(ValueError, match=r"^parts = \[\]: expected at least one"):
        merge([])
    with pytest.raises(ValueError, match=r"^parts: expected the same edges"):
        merge([part, of(np.arange(5.0), np.array([0.0, 1.0]))])


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.77, 0.999])
def test_quantiles_are_within_a_bin_and_their_error(p: float) -> None:
    sample = np.random.default_rng(1).normal(0, 1, 60_000).astype(np.float32)
    edges = np.linspace(-4, 4, 161)
    histogram = of(sample, edges).histogram
    assert histogram is not None
    assert histogram.counts.sum() == sample.size
    error = histogram.quantile_standard_error(p)
    assert abs(histogram.quantile(p) - np.quantile(sample, p)) < 0.05
    density = np.exp(-(np.quantile(sample, p) ** 2) / 2) / np.sqrt(2 * np.pi)
    assert error == pytest.approx(np.sqrt(p * (1 - p) / sample.size) / density, rel=0.35)


def test_quantiles_at_the_edges_and_beyond() -> None:
    histogram = of(np.repeat([-5.0, 0.5, 1.5, 9.0], 25), np.array([0.0, 1.0, 2.0])).histogram
    assert histogram is not None
    np.testing.assert_array_equal(histogram.counts, [25, 25, 25, 25])
    assert histogram.quantile(0.1) == -np.inf
    assert histogram.quantile(0.5) == 1.0
    assert histogram.quantile(0.375) == 0.5
    assert histogram.quantile(0.9) == np.inf
    assert histogram.quantile_standard_error(0.9) == np.inf
    for p in (0.0, 1.0, np.nan, -0.5):
        with pytest.raises(ValueError, match=r"^p = .*: expected a number in \(0, 1\)"):
            histogram.quantile(p)


def test_a_trial_on_an_edge_belongs_to_the_bin_above_it() -> None:
    histogram = of(np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])).histogram
    assert histogram is not None
    np.testing.assert_array_equal(histogram.counts, [0, 1, 2, 1])


@pytest.mark.parametrize(
    ("blocks", "tail"), [(0, 3), (1, 0), (2**16 + 1, 65_535), (2**31 - 1, 65_535)]
)
def test_counts_are_exact_beyond_float32(blocks: int, tail: int) -> None:
    count = accumulate.count(jnp.int32(blocks), 65_536, jnp.int32(tail), jnp.float32)
    assert int(count.sums) + int(count.residues) == blocks * 65_536 + tail


def test_pairs_keep_what_float32_drops() -> None:
    """10^6 additions of 0.1 to 10^7: plain float32 stands still, the pair is right to 1e-9."""

    def step(_: int, carry: tuple[accumulate.Pair, jax.Array]) -> tuple[accumulate.Pair, jax.Array]:
        pair, plain = carry
        return accumulate.add(pair, jnp.float32(0.1)), plain + jnp.float32(0.1)

    start = jnp.float32(1e7)
    pair, plain = jax.lax.fori_loop(
        0, 1_000_000, step, (accumulate.Pair(start, jnp.zeros_like(start)), start)
    )
    exact = 1e7 + 1e6 * float(np.float32(0.1))
    assert float(pair.sums) + float(pair.residues) == pytest.approx(exact, rel=1e-9)
    assert abs(float(plain) - exact) > 1e4
