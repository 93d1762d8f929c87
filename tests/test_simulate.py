"""simulate: the trials it draws, the promises of its blocks, and what it refuses."""

import importlib
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import discrete_laplace, gaussian, laplace, theory
from dpjax.simulate import BLOCK, difference, per_trial, simulate
from dpjax.statistics import Moments, merge

engine = importlib.import_module("dpjax.simulate")  # the module, not the function of its name


def jax_laplace(key: jax.Array, value: jax.Array, *, scale: float) -> jax.Array:
    """A user's own mechanism."""
    return value + jax.random.laplace(key, value.shape) * scale


def replay(seed: int, mechanism: Callable, size: int, value: float = 0.0) -> np.ndarray:
    """The answers of the first trials of a scalar value, drawn from nothing but the contract."""
    blocks = [
        mechanism(jax.random.fold_in(jax.random.key(seed), j), jnp.full(BLOCK, value))
        for j in range(-(-size // BLOCK))
    ]
    return np.concatenate(blocks)[:size].astype(np.float64)


def assert_same(a: Moments, b: Moments) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


# -- what is drawn


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [(laplace, 1), (laplace, 2 * BLOCK), (gaussian, 2 * BLOCK + 17), (jax_laplace, BLOCK + 1)],
)
def test_statistics_are_those_of_the_replayed_blocks(mechanism: Callable, size: int) -> None:
    mechanism = partial(mechanism, scale=3.0)
    moments = simulate(jax.random.key(1), mechanism, 0.0, size)
    x = replay(1, mechanism, size)
    assert moments.count == size
    assert moments.mean == pytest.approx(x.mean(), rel=1e-5, abs=1e-6)
    assert moments.variance == pytest.approx(x.var(), rel=1e-5, abs=1e-5)
    assert moments.rmse == pytest.approx(np.sqrt((x**2).mean()), rel=1e-6)
    assert moments.mae == pytest.approx(np.abs(x).mean(), rel=1e-6)
    assert moments.min == pytest.approx(x.min(), rel=1e-6)  # fused products may round otherwise
    assert moments.max == pytest.approx(x.max(), rel=1e-6)


def test_a_long_run_repeats_a_short_one_and_goes_on() -> None:
    """Sums of any range of blocks merge into the sums of the whole range."""
    seed, mechanism = (
        engine.as_seed(jax.random.key(2)),
        engine.as_pytree(partial(laplace, scale=2.0)),
    )
    value = engine.as_value(0.0)
    unit = engine.pilot(seed, mechanism, value, measure=difference)
    run = partial(engine.run_blocks, seed, mechanism, value, unit=unit)
    whole = run(0, 7, 123)
    parts = merge([run(0, 3, 0), run(3, 4, 0), run(4, 7, 123)])
    assert parts.count == whole.count == 7 * BLOCK + 123
    for name in ("mean", "rmse", "mae", "variance"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-7, abs=1e-9)
    short = simulate(jax.random.key(2), partial(laplace, scale=2.0), 0.0, 3 * BLOCK)
    assert_same(short, run(0, 3, 0))  # the first blocks of the long run, bit for bit


def test_ranges_far_out_have_their_own_trials() -> None:
    seed, mechanism = (
        engine.as_seed(jax.random.key(2)),
        engine.as_pytree(partial(laplace, scale=1.0)),
    )
    value, unit = engine.as_value(0.0), jnp.float32(1)
    run = partial(engine.run_blocks, seed, mechanism, value, unit=unit)
    far, near = run(2**31 - 3, 2**31 - 1, 0), run(0, 2, 0)
    assert far.count == near.count == 2 * BLOCK
    assert abs(far.rmse - 2**0.5) < 5 * far.rmse_standard_error
    assert far.rmse != near.rmse


def test_wide_vectors_change_no_bit() -> None:
    """`simulate` takes them where it is not traced, and must agree with what is under jit."""
    mechanism = partial(gaussian, scale=3.0)
    eager = simulate(jax.random.key(1), mechanism, 0.0, 2 * BLOCK + 17)
    traced = jax.jit(lambda key: simulate(key, mechanism, 0.0, 2 * BLOCK + 17))(jax.random.key(1))
    assert_same(eager, traced)


@pytest.mark.slow
def test_what_an_accelerator_does_is_what_a_cpu_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the rounding of sums: the same trials, whether steps come out even or not."""
    monkeypatch.setattr(engine, "WIDE", 4)
    value = engine.as_value(0.0)
    seed = engine.as_seed(jax.random.key(8))
    mechanism = engine.as_pytree(partial(laplace, scale=1.0))
    numbers = (seed, mechanism, value)
    unit, edges = jnp.float32(1), engine.as_edges([-1.0, 0.5])
    for start, stop, tail in ((0, 4, 0), (3, 8, 77), (5, 5, 1), (2**31 - 4, 2**31 - 2, 5)):
        at = jnp.asarray([start, stop, tail], np.int32)
        narrow = engine.run_blocks(*numbers, *at, unit, edges=edges)
        wide = jax.jit(partial(engine._run_wide, difference))(*numbers, *at, unit, edges)
        for name in ("count", "min", "max"):
            np.testing.assert_array_equal(getattr(wide, name), getattr(narrow, name))
        np.testing.assert_array_equal(wide.histogram.counts, narrow.histogram.counts)
        for name in ("mean", "mae", "rmse", "variance", "rmse_standard_error"):
            assert getattr(wide, name) == pytest.approx(getattr(narrow, name), rel=1e-6, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [laplace, gaussian])
def test_errors_agree_with_theory(mechanism: Callable) -> None:
    """Each within 5 standard errors: 6e-7."""
    law = {laplace: theory.Laplace, gaussian: theory.Gaussian}[mechanism](10.0)
    edges = np.linspace(-100, 100, 401)
    moments = simulate(
        jax.random.key(7), partial(mechanism, scale=10.0), 0.0, 4_000_000, edges=edges
    )
    assert abs(moments.rmse - law.rmse) < 5 * moments.rmse_standard_error
    assert abs(moments.mae - law.mae) < 5 * moments.mae_standard_error
    assert abs(moments.mean) < 5 * moments.mean_standard_error
    assert abs(moments.variance - law.rmse**2) < 5 * moments.variance_standard_error
    assert moments.histogram is not None
    assert moments.histogram.counts.sum() == 4_000_000
    for p in (0.01, 0.2, 0.5, 0.9, 0.999):
        bin_error = 0.02  # of the linear rule, bins 0.5 wide
        tolerance = 5 * moments.histogram.quantile_standard_error(p) + bin_error
        assert abs(moments.histogram.quantile(p) - law.quantile(p)) < tolerance


def test_a_constant_measure_keeps_every_digit_over_many_blocks() -> None:
    """A plain float32 sum of these would stand still at 2^24."""

    def alternating(key: jax.Array, value: jax.Array) -> jax.Array:
        first = jax.random.bernoulli(key).astype(np.float32)  # other numbers in another block
        return value + (first + jnp.arange(value.size, dtype=np.float32)) % 2 + 0.125

    moments = simulate(jax.random.key(0), alternating, 0.0, 50_000_000)
    assert moments.mean == pytest.approx(0.625, rel=1e-14)
    assert moments.rmse == pytest.approx(np.sqrt((0.125**2 + 1.125**2) / 2), rel=1e-14)
    assert moments.variance == pytest.approx(0.25, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e18])
def test_fourth_powers_stay_in_range(scale: float) -> None:
    moments = simulate(jax.random.key(3), partial(laplace, scale=scale), 0.0, 10_000)
    one = simulate(jax.random.key(3), partial(laplace, scale=1.0), 0.0, 10_000)
    for name in ("rmse", "rmse_standard_error", "mae", "mae_standard_error"):
        assert getattr(moments, name) / scale == pytest.approx(getattr(one, name), rel=1e-5)
    error = moments.variance_standard_error / scale**2
    assert error == pytest.approx(one.variance_standard_error, rel=1e-4)


def test_statistics_scale_exactly_with_powers_of_two() -> None:
    one = simulate(jax.random.key(3), partial(gaussian, scale=1.0), 0.0, 10_000)
    many = simulate(jax.random.key(3), partial(gaussian, scale=1024.0), 0.0, 10_000)
    np.testing.assert_array_equal(one.sums, many.sums)
    assert many.rmse == 1024 * one.rmse


def test_a_given_unit_changes_no_more_than_rounding() -> None:
    def run(unit: float | None = None) -> Moments:
        return simulate(jax.random.key(3), partial(laplace, scale=5.0), 0.0, 5_000, unit=unit)

    assert run(unit=3.0).rmse == pytest.approx(run().rmse, rel=1e-6)
    with pytest.raises(ValueError, match=r"^unit = 0.0: expected a finite number above 0"):
        run(unit=0.0)


def test_float64_statistics() -> None:
    with jax.enable_x64(True):
        moments = simulate(jax.random.key(3), partial(laplace, scale=1.0), 0.0, 100_000)
        assert moments.sums.dtype == np.float64
    assert abs(moments.rmse - 2**0.5) < 5 * moments.rmse_standard_error


def test_float32_draws_are_the_same_with_x64_on() -> None:
    def run() -> Moments:
        mechanism = partial(laplace, scale=np.float32(2))
        return simulate(jax.random.key(3), mechanism, np.float32(0), 1000)

    narrow = run()
    with jax.enable_x64(True):
        assert_same(run(), narrow)


def test_a_vmapped_grid_of_long_answers_needs_little_memory() -> None:
    """All of it at once would be 64 scales x 10^6 trials x 10 entries x 4 bytes = 2.56 GB."""

    def run(key: jax.Array, scale: jax.Array) -> Moments:
        return simulate(key, partial(laplace, scale=scale), jnp.zeros(10), 10**6)

    keys, scales = jax.random.split(jax.random.key(0), 64), jnp.linspace(0.1, 10, 64)
    memory = jax.jit(jax.vmap(run)).lower(keys, scales).compile().memory_analysis()
    assert memory is not None
    assert 0 < memory.temp_size_in_bytes < 20e6


# -- values, measures, mechanisms


def test_a_vector_value_has_statistics_for_every_entry() -> None:
    value = jnp.asarray([0.0, 100.0, -7.0])
    scales = jnp.asarray([1.0, 2.0, 4.0])
    moments = simulate(jax.random.key(5), partial(gaussian, scale=scales), value, 50_000)
    assert moments.rmse.shape == (3,)
    assert (np.abs(moments.rmse - scales) < 5 * moments.rmse_standard_error).all()
    assert (moments.count == 50_000).all()
    joint = np.abs(moments.mean / moments.mean_standard_error)
    assert joint.max() < 5
    assert np.unique(joint).size == 3


def test_values_longer_than_a_block_still_run() -> None:
    value = jnp.zeros(BLOCK + 1)
    assert engine.block_trials(value) == 16
    moments = simulate(
        jax.random.key(5),
        partial(gaussian, scale=1.0),
        value,
        20,
        measure=lambda answer, _: jnp.max(jnp.abs(answer), axis=-1),
    )
    assert moments.count == 20
    assert 3.5 < moments.mean < 6.5


@pytest.mark.parametrize(("size", "trials"), [(1, BLOCK), (2, BLOCK // 2), (3, BLOCK // 4)])
def test_block_size_depends_on_the_value_alone(size: int, trials: int) -> None:
    assert engine.block_trials(jnp.zeros(size)) == trials


def test_a_python_int_goes_to_mechanisms_of_floats_and_of_integers() -> None:
    """As it does where they are called by themselves."""

    def run(mechanism: Callable, value: float | jax.Array) -> Moments:
        return simulate(jax.random.key(6), partial(mechanism, scale=2.0), value, 1000)

    assert_same(run(laplace, 5), run(laplace, 5.0))
    assert_same(run(discrete_laplace, 5), run(discrete_laplace, jnp.asarray(5)))
    with pytest.raises(TypeError, match=r"value = float.*: expected integers"):
        run(discrete_laplace, 5.0)


def test_measure_says_what_is_averaged() -> None:
    def misses(answer: jax.Array, value: jax.Array) -> jax.Array:
        return jnp.abs(answer - value) > 20.0

    moments = simulate(
        jax.random.key(9), partial(laplace, scale=10.0), 5.0, 200_000, measure=misses
    )
    assert abs(moments.mean - np.exp(-2)) < 5 * moments.mean_standard_error
    assert (moments.min, moments.max) == (0.0, 1.0)


def test_per_trial_gives_every_trial_its_own_key() -> None:
    def noisy_count(key: jax.Array, value: jax.Array, *, scale: float) -> jax.Array:
        assert value.shape == ()
        return value + scale * jax.random.normal(key)

    moments = simulate(jax.random.key(4), per_trial(partial(noisy_count, scale=2.0)), 3.0, 70_000)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(4), 0), BLOCK)
    first = jax.vmap(lambda k: 2.0 * jax.random.normal(k))(keys)
    assert moments.min <= first.min()
    assert abs(moments.rmse - 2.0) < 5 * moments.rmse_standard_error


@pytest.mark.slow
def test_compiled_in_keywords_reach_the_mechanism() -> None:
    def either(key: jax.Array, value: jax.Array, *, scale: float, wide: bool) -> jax.Array:
        return laplace(key, value, scale=scale * 10 if wide else scale)

    narrow, wide = (
        simulate(jax.random.key(0), partial(either, scale=1.0, wide=wide), 0.0, 1000).rmse
        for wide in (False, True)
    )
    assert wide == pytest.approx(10 * narrow, rel=1e-6)


# -- transformations


def test_jit_equals_eager_and_vmap_equals_a_loop() -> None:
    def run(key: jax.Array, scale: jax.Array) -> Moments:
        return simulate(key, partial(laplace, scale=scale), 0.0, BLOCK + 5, edges=[-1.0, 0.0, 1.0])

    def keys() -> jax.Array:
        return jax.random.split(jax.random.key(0), 3)

    scales = jnp.asarray([0.5, 1.0, 7.0])
    loop = [run(k, s) for k, s in zip(keys(), scales, strict=True)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *loop)
    mapped = jax.jit(jax.vmap(run))(keys(), scales)
    assert_same(mapped, stacked)
    np.testing.assert_array_equal(mapped.rmse, [moments.rmse for moments in loop])


def test_grid_points_with_their_own_keys_are_independent() -> None:
    def run(key: jax.Array) -> Moments:
        return simulate(key, partial(laplace, scale=1.0), 0.0, 1000)

    means = jax.vmap(run)(jax.random.split(jax.random.key(0), 50)).mean
    assert np.unique(means).size == 50


def test_one_trace_whatever_the_numbers() -> None:
    traces = []

    def counted(key: jax.Array, value: jax.Array, *, scale: float) -> jax.Array:
        traces.append(scale)
        return laplace(key, value, scale=scale)

    for i in range(20):
        mechanism = partial(counted, scale=1.0 + i)
        simulate(jax.random.key(i), mechanism, float(i), 1000 + 70_000 * i)
    assert len(traces) == 1


# -- refusals


def test_one_noise_for_a_whole_block_is_an_error() -> None:
    def shared(key: jax.Array, value: jax.Array) -> jax.Array:
        return jax.vmap(lambda v: v + jax.random.laplace(key))(value)

    with pytest.raises(ValueError, match=r"^mechanism = shared: expected independent noise.*\n?$"):
        simulate(jax.random.key(0), shared, 0.0, 1000)
    inside = jax.jit(lambda key: simulate(key, shared, 0.0, 1000))(jax.random.key(0))
    assert np.isnan(inside.rmse)


def test_noise_from_numpy_is_drawn_once_and_is_an_error() -> None:
    def from_numpy(key: jax.Array, value: jax.Array) -> jax.Array:
        return value + np.random.laplace(size=value.shape).astype(np.float32)

    with pytest.raises(ValueError, match=r"from_numpy: expected independent noise, .* two blocks"):
        simulate(jax.random.key(0), from_numpy, 0.0, 1000)


def test_short_blocks_that_agree_by_chance_are_no_error() -> None:
    """Sixteen trials of a coin: two blocks of zeros and ones are the same now and then."""

    def mostly(key: jax.Array, value: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key, 0.8, value.shape[:1])

    seed = 634  # the first one of which this is so
    keys = [jax.random.fold_in(jax.random.key(seed), j) for j in (0, 1)]
    first, second = (mostly(key, jnp.zeros((16, 1))) for key in keys)
    np.testing.assert_array_equal(first, second)
    moments = simulate(
        jax.random.key(seed), mostly, jnp.zeros(BLOCK), 3000, measure=lambda answer, value: answer
    )
    assert abs(moments.mean - 0.8) < 5 * moments.mean_standard_error


def test_threefry_that_is_not_partitionable_is_refused() -> None:
    with (
        jax.threefry_partitionable(False),
        pytest.raises(ValueError, match=r"^jax_threefry_partitionable = False: expected True"),
    ):
        simulate(jax.random.key(0), partial(laplace, scale=1.0), 0.0, 1000)


def test_no_noise_at_all_is_no_error() -> None:
    moments = simulate(jax.random.key(0), partial(laplace, scale=0.0), 5.0, 1000)
    assert (moments.rmse, moments.mae, moments.rmse_standard_error) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators_are_refused_by_name(impl: str) -> None:
    with pytest.raises(ValueError, match=f"^key = a {impl} key: expected threefry2x32"):
        simulate(jax.random.key(0, impl=impl), partial(laplace, scale=1.0), 0.0, 10)


@pytest.mark.parametrize("num_trials", [0, -1, 1.5, float("nan"), 2**31 * BLOCK - 1])
def test_bad_trials_are_named(num_trials: float) -> None:
    with pytest.raises(ValueError, match=r"^num_trials = .*: expected "):
        simulate(jax.random.key(0), partial(laplace, scale=1.0), 0.0, num_trials)


@pytest.mark.parametrize("edges", [[1.0], [1.0, 0.0], [0.0, 0.0], [[0.0, 1.0]], [0.0, np.nan]])
def test_bad_edges_are_named(edges: list) -> None:
    with pytest.raises(ValueError, match=r"^edges"):
        simulate(jax.random.key(0), partial(laplace, scale=1.0), 0.0, 10, edges=np.array(edges))


def test_a_mechanism_that_loses_the_trials_is_named() -> None:
    with pytest.raises(ValueError, match=r"expected 65536 trials in front; dpjax\.per_trial"):
        simulate(
            jax.random.key(0),
            lambda key, value: jax.random.laplace(key, (3,)),
            0.0,
            10,
            measure=lambda answer, value: answer,
        )


def test_a_spent_key_is_reported() -> None:
    key = jax.random.key(0)
    simulate(key, partial(laplace, scale=1.0), 0.0, 10)
    with pytest.raises(jax.errors.KeyReuseError):
        jax.random.normal(key)


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
def test_a_bound_scale_out_of_range_is_named(scale: float) -> None:
    with pytest.raises(ValueError, match=r"scale = .*: expected a finite number of at least 0"):
        simulate(jax.random.key(0), partial(laplace, scale=scale), 0.0, 1000)


def test_an_empty_value_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"value = array of shape \[0\]: expected at least one"):
        simulate(jax.random.key(0), partial(laplace, scale=1.0), np.zeros(0, np.float32), 1000)
