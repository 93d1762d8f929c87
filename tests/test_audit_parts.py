"""The parts of an audit: bounds from counts, events, scores, and counting in blocks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpjax
from dpjax.audit import counting, events, outcomes, scores, worlds
from dpjax.simulate import as_pytree, as_seed, as_value

# Bounds from counts


@given(st.integers(1, 10**12), st.floats(0, 1), st.floats(1e-9, 0.4))
def test_bounds_leave_each_binomial_tail_the_level(trials, share, level):
    hits = round(share * trials)
    lower, upper = counting.clopper_pearson(hits, trials, level=level)
    assert 0 <= lower <= hits / trials <= upper <= 1
    # scipy's tails lose digits in trials beyond 10^9
    rtol = 1e-6 if trials < 10**9 else 1e-3
    if hits:
        np.testing.assert_allclose(stats.binom.sf(hits - 1, trials, lower), level, rtol=rtol)
    if hits < trials:
        np.testing.assert_allclose(stats.binom.cdf(hits, trials, upper), level, rtol=rtol)


def test_limits_at_a_thousand_to_ten_million_trials():
    limits = counting.limit([1e3, 1e4, 1e5, 1e6, 1e7], delta=0, confidence=0.95)
    np.testing.assert_allclose(limits, [5.60, 7.90, 10.21, 12.51, 14.81], atol=0.005)


def test_laplace_counts_of_a_hundred_thousand_trials():
    bound = counting.epsilon_lower_bound(50_000, 1e5, 18_394, 1e5, delta=0, confidence=0.95)
    assert bound == pytest.approx(0.98072, abs=5e-6)


@given(st.floats(0, 30), st.floats(0, 0.9), st.floats(0.5, 0.999))
def test_trials_needed_is_where_the_limit_is_the_claim(epsilon, delta, confidence):
    needed = float(counting.trials_needed(epsilon, delta=delta, confidence=confidence))
    fewer, more = np.floor(needed), np.ceil(needed)
    if fewer >= 1:
        assert counting.limit(fewer, delta=delta, confidence=confidence) <= epsilon + 1e-9
    assert counting.limit(more, delta=delta, confidence=confidence) >= epsilon - 1e-9


def test_delta_is_taken_from_the_likelier_side():
    options = {"confidence": 0.95}
    none = counting.epsilon_lower_bound(500, 1000, 100, 1000, delta=0, **options)
    some = counting.epsilon_lower_bound(500, 1000, 100, 1000, delta=0.2, **options)
    lower, _ = counting.clopper_pearson(500, 1000, level=0.025)
    assert some == pytest.approx(none + np.log1p(-0.2 / lower), rel=1e-12)
    assert counting.epsilon_lower_bound(500, 1000, 100, 1000, delta=0.6, **options) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((11, 10, 0, 10), "successes = 11, trials = 10: expected 0 to trials >= 1"),
        ((0, 0, 0, 10), "successes = 0, trials = 0: expected 0 to trials >= 1"),
        ((1.5, 10, 0, 10), "successes = 1.5: expected a whole number of at least 0"),
    ],
)
def test_counts_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        counting.epsilon_lower_bound(*arguments, delta=0, confidence=0.95)


# Events


def pure(lower, upper):
    return counting.log_ratio(lower, upper, 0.0)


def test_the_right_tail_is_chosen_of_known_counts():
    edges = np.append(np.arange(1.0, 10), np.full(events.EDGES - 9, np.inf))
    counts = np.zeros((2, events.EDGES + 1), int)
    counts[0, :10], counts[1, :10] = 1000, np.where(np.arange(10) < 7, 1300, 300)
    event, bins, likelier, _ = events.choose(
        counts, counts, edges, pure, trials=30_000, level=0.025
    )
    assert str(event) == "score >= 7, likelier on value"
    assert np.flatnonzero(bins[:10]).tolist() == [7, 8, 9]
    assert likelier == 0


def test_scattered_bins_are_found_and_written_as_intervals():
    edges = np.append(np.arange(1.0, 10), np.full(events.EDGES - 9, np.inf))
    counts = np.zeros((2, events.EDGES + 1), int)
    counts[1, :10], counts[0, :10] = 1000, np.where(np.isin(np.arange(10), [0, 4, 5, 9]), 50, 1600)
    event, _, likelier, _ = events.choose(counts, counts, edges, pure, trials=30_000, level=0.025)
    assert event.intervals == ((-np.inf, 1.0), (4.0, 6.0), (9.0, np.inf))
    assert str(event) == "score < 1 or 4 <= score < 6 or score >= 9, likelier on neighbour"
    assert likelier == 1


def bound_of(hits, likelier):
    return counting.epsilon_lower_bound(
        hits[likelier], 20_000, hits[1 - likelier], 20_000, delta=0, confidence=0.95
    )


def test_counts_that_chose_the_event_would_claim_too_much_and_others_do_not():
    """What the split of the trials is for: identical worlds, 60 times, bins without any order."""
    rng = np.random.default_rng(0)
    edges = np.append(np.arange(1.0, 200), np.full(events.EDGES - 199, np.inf))
    wrong = right = 0
    for _ in range(60):
        counts, fresh = rng.multinomial(20_000, np.full(200, 1 / 200), size=(2, 2))
        padded = np.hstack([counts, np.zeros((2, events.EDGES + 1 - 200), int)])
        _, bins, likelier, _ = events.choose(
            padded, padded, edges, pure, trials=20_000, level=0.025
        )
        own, other = (each[:, bins[:200]].sum(axis=1) for each in (counts, fresh))
        wrong += bound_of(own, likelier) > 0
        right += bound_of(other, likelier) > 0
    limit = stats.binom.isf(1e-6, 60, 0.05)
    assert right <= limit < wrong


def test_edges_take_in_atoms_tails_and_whatever_is_not_finite():
    rng = np.random.default_rng(1)
    sample = np.clip(rng.normal(size=10_000), -1, 1).astype(np.float32)
    sample[:3] = np.nan, np.inf, -np.inf
    edges = events.edges_between((sample, sample + np.float32(0.5)))
    assert edges.shape == (events.EDGES,)
    assert edges.dtype == np.float32
    finite = edges[np.isfinite(edges)]
    assert np.all(np.diff(finite) > 0)
    for atom in np.array([-1, 1, -0.5, 1.5], np.float32):
        assert {atom, np.nextafter(atom, np.float32(np.inf))} <= set(finite.tolist())
    nothing = events.edges_between((np.full(5, np.nan, np.float32), np.zeros(0, np.float32)))
    assert np.all(np.isinf(nothing))


# Scores


def test_linear_score_finds_the_direction_without_noise():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(5000, 1))
    one = jnp.asarray(np.hstack([noise, noise, rng.normal(size=(5000, 1))]), float)
    two = jnp.asarray(one + jnp.array([[0.01, 0.0, 0.0]]))
    score = scores.fit_linear(one, two)
    apart = np.asarray(score(one)) - np.asarray(score(two))
    assert np.min(np.abs(apart)) > np.std(np.asarray(score(one)))


def test_linear_score_of_equal_or_constant_samples_is_finite():
    same = jnp.zeros((50, 4))
    assert np.all(np.asarray(scores.fit_linear(same, same)(same)) == 0)
    wide = jnp.ones((20, 600))
    apart = np.asarray(scores.fit_linear(wide, wide + 1)(wide))
    assert np.all(np.isfinite(apart))
    assert np.all(apart != 0)


@pytest.mark.parametrize(("dtype", "bits"), [(jnp.float32, 23), (jnp.float16, 10)])
def test_representation_tells_trailing_zeros_and_exponent(dtype, bits):
    numbers = jnp.array([1.0, 1.5, 1.75, -1.75, 2.0, 0.0, -0.0], dtype)
    code = np.asarray(scores.trailing_zeros(numbers))
    one = code[0]
    assert code[1] == one - 1  # one bit of the fraction is set: one zero less
    assert code[2] == one - 2
    assert code[3] == -1 - code[2]
    assert code[4] == one + bits + 1  # the next exponent
    assert code[5:].tolist() == [bits, -1 - bits]
    last = jnp.nextafter(jnp.ones((), dtype), jnp.full((), 2, dtype))
    assert scores.trailing_zeros(last[None])[0] == one - bits


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16])
def test_representation_tells_the_last_four_bits(dtype):
    step = jnp.finfo(dtype).eps
    numbers = 1 + jnp.arange(17, dtype=dtype) * step
    code = np.asarray(scores.lowest_bits(numbers))
    assert (code - code[0]).tolist() == [*range(16), 0]
    np.testing.assert_array_equal(scores.lowest_bits(-numbers), -1 - code)
    np.testing.assert_array_equal(scores.lowest_bits(numbers * 2), code + 16)


# Outcomes


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16])
def test_different_floats_have_different_names(dtype):
    numbers = jnp.arange(2.0**15, dtype=np.float32).astype(dtype)
    names = np.asarray(outcomes.name(numbers))
    assert np.unique(names).size == np.unique(np.asarray(numbers, float)).size
    assert np.unique(names >> 8).size > 0.99 * np.unique(names).size  # in the table, too


def test_outcomes_seen_are_told_from_new_ones(key):
    one, two = jax.random.split(key)
    rounded = as_pytree(rounded_laplace)
    both = [worlds.World(as_seed(k), rounded, as_value(v)) for k, v in ((one, 0.0), (two, 40.25))]
    told = []
    score = outcomes.seen(both, jax.tree_util.Partial(outcomes.name), 70_000, told.append)
    assert sum(told) == 2 * 70_000
    answers = jnp.array([0.0, 1.5, 40.25, 41.75, 20.1], np.float32)
    assert np.asarray(score(answers)).tolist() == [1, 1, 2, 2, 0]


def rounded_laplace(key, value):
    return value + jnp.round(dpjax.laplace(key, jnp.zeros_like(value), scale=1.0) * 2) / 2


@pytest.mark.parametrize("outcomes_there_are", [10, 1000, 10**6])
def test_support_is_estimated(outcomes_there_are):
    sample = np.random.default_rng(3).integers(0, outcomes_there_are, 20_000).astype(np.uint32)
    assert outcomes.support(sample) == pytest.approx(outcomes_there_are, rel=0.5)
    assert outcomes.support(np.arange(50)) == np.inf


# Counting in blocks


def test_counts_are_those_of_the_answers_at_any_number_of_trials(key):
    mechanism = as_pytree(functools.partial(dpjax.laplace, scale=1.0))
    one, two = jax.random.split(key)
    both = [worlds.World(as_seed(k), mechanism, as_value(v)) for k, v in ((one, 0.0), (two, 3.0))]
    edges = np.append(np.linspace(-2, 2, 9), np.full(events.EDGES - 9, np.inf)).astype(np.float32)
    trials = 2 * 65_536 + 777
    counts = worlds.count(both, jax.tree_util.Partial(scores.itself), edges, trials)
    for world, counted in zip(both, counts, strict=True):
        answers = np.concatenate(list(worlds.sample(world, trials)))[:trials]
        expected = np.bincount(np.searchsorted(edges[:9], answers, side="right"), minlength=10)
        np.testing.assert_array_equal(counted[:10], expected)
        assert counted.sum() == trials


@pytest.mark.parametrize("blocks", [0, 1, 255, 256, 257, 512])
def test_ranges_cover_each_trial_once(blocks):
    world = worlds.World(jnp.zeros(2, np.uint32), as_pytree(dpjax.laplace), as_value(0.0))
    for tail in (0, 5):
        covered = []
        for which, start, stop, rest in worlds._ranges([world, world], blocks * 65_536 + tail):
            assert 0 < stop - start + (rest > 0) <= worlds.CHUNK + 1
            assert rest == 0 or stop == blocks
            covered += [(which, block) for block in range(start, stop)] + [(which, "tail")] * (
                rest > 0
            )
        expected = [(w, b) for w in (0, 1) for b in [*range(blocks), *(["tail"] * (tail > 0))]]
        assert sorted(covered, key=str) == sorted(expected, key=str)


def test_values_that_float32_cannot_tell_apart_are_refused(key):
    with pytest.raises(ValueError, match="are the same in float32"):
        dpjax.audit(
            key, functools.partial(dpjax.laplace, scale=1.0), 2**24, 2**24 + 1, 100, delta=0.0
        )


def test_neighbours_may_have_unequal_numbers_of_records(key):
    def count(key, records):
        return records.shape[1] + jax.random.laplace(key, records.shape[:1])

    found = dpjax.audit(key, count, np.zeros(3), np.zeros(4), 100_000, delta=0.0)
    assert 0.9 < found.epsilon <= 1.0


def test_complex_answers_are_refused(key):
    with pytest.raises(TypeError, match="complex"):
        dpjax.audit(key, lambda key, value: jax.lax.complex(value, value), 0.0, 1.0, 100, delta=0.0)
