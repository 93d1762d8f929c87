"""Audits end to end: no more often wrong than they say, sharp, and able to find planted faults."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.accounting import gaussian
from dpjax.audit import audit, audit_gaussian, counting

LAPLACE = functools.partial(dpjax.laplace, scale=1.0)  # epsilon 1 for a count
HALF = functools.partial(dpjax.laplace, scale=0.5)  # epsilon 2
DELTA = 1e-5


def normal(scale):
    return functools.partial(dpjax.gaussian, scale=float(scale))


def repeated(audit, repeats, *arguments, **options):
    """Audits of many seeds, not watched for keys used twice: each costs half, and one shows it."""
    with jax.debug_key_reuse(False):
        return [audit(jax.random.key(seed), *arguments, **options) for seed in range(repeats)]


def bounds(mechanism, value, neighbour, trials, repeats, **options):
    found = repeated(audit, repeats, mechanism, value, neighbour, trials, **options)
    assert all(0 <= each.epsilon <= each.limit for each in found)
    return np.array([each.epsilon for each in found])


# What the bound promises


@pytest.mark.parametrize(
    ("trials", "repeats"),
    [
        (1_000, 20),
        pytest.param(1_000, 200, marks=pytest.mark.slow),
        pytest.param(30_000, 200, marks=pytest.mark.slow),
        pytest.param(1_000_000, 200, marks=pytest.mark.slow),
    ],
)
def test_identical_worlds_are_told_apart_no_more_often_than_the_confidence_allows(trials, repeats):
    found = bounds(LAPLACE, 319.0, 319.0, trials, repeats, delta=0.0)
    assert np.sum(found > 0) <= stats.binom.isf(1e-6, repeats, 0.05)


@pytest.mark.slow
def test_identical_worlds_have_the_same_bits_as_often_as_the_confidence_says():
    found = bounds(LAPLACE, 1.0, 1.0, 3_000, 40, delta=0.0, float_bits=True)
    assert np.sum(found > 0) <= stats.binom.isf(1e-6, 40, 0.05)


@pytest.mark.slow
def test_exact_gaussian_is_contradicted_no_more_often_than_the_confidence_allows():
    exact = normal(gaussian.noise_multiplier(1.0, DELTA))
    found = bounds(exact, 0.0, 1.0, 100_000, 200, delta=DELTA)
    assert np.sum(found > 1) <= stats.binom.isf(1e-6, 200, 0.05)
    assert np.median(found) > 0.4  # and the bound is no empty one


@pytest.mark.slow
def test_parametric_bound_exceeds_the_truth_no_more_often_than_the_confidence_allows():
    found = [each.mu for each in repeated(audit_gaussian, 200, normal(0.5), 0.0, 1.0, 100_000)]
    assert np.sum(np.array(found) > 2) <= stats.binom.isf(1e-6, 200, 0.05)
    assert np.median(found) > 1.95


def test_laplace_claimed_at_1_and_run_at_2(key):
    found = audit(key, HALF, 0.0, 1.0, 1_000_000, delta=0.0)
    assert 1.9 < found.epsilon <= 2
    assert found.contradicts(1.0)
    assert not found.contradicts(2.0)
    assert found.num_trials == 750_000
    assert found.limit == counting.limit(750_000, delta=0.0, confidence=0.95)
    assert found.verdict(1.0).startswith("contradicted: (1, 0)-DP is claimed, and")
    assert found.verdict(2.0).startswith("not contradicted: ")
    share = found.hits / found.num_trials  # of the event: its law on the likelier neighbour
    (low, high), *more = found.event.intervals
    assert not more
    assert low == -np.inf or high == np.inf
    shift = 1.0 if found.event.likelier_on == "neighbour" else 0.0
    law = stats.laplace(shift, 0.5).cdf(high) - stats.laplace(shift, 0.5).cdf(low)
    assert abs(share - law) < 6 * np.sqrt(law * (1 - law) / found.num_trials)


def test_customary_sigma_at_epsilon_20(key):
    customary = normal(gaussian.customary_noise_multiplier(20.0, DELTA))
    one, two = jax.random.split(key)
    parametric = audit_gaussian(one, customary, 0.0, 1.0, 100_000)
    assert parametric.contradicts(20.0, DELTA)
    assert parametric.epsilon(DELTA) > 20
    text = parametric.verdict(20.0, DELTA)
    assert text.startswith("contradicted, assuming a Gaussian trade-off: (20, 1e-05)-DP")
    counted = audit(two, customary, 0.0, 1.0, 100_000, delta=DELTA)
    assert not counted.contradicts(20.0)
    assert counted.verdict(20.0).startswith("undecided: 75000 trials can prove at most epsilon")
    assert counted.verdict(1e6).endswith("takes more than 1e+300")
    assert f"{counting.trials_needed(20.0, delta=DELTA, confidence=0.95):.2g}" in (
        counted.verdict(20.0)
    )


def test_parametric_bound_lets_the_exact_gaussian_pass_and_says_what_it_assumes(key):
    exact = normal(gaussian.noise_multiplier(20.0, DELTA))
    found = audit_gaussian(key, exact, 0.0, 1.0, 100_000)
    assert found.verdict(20.0, DELTA).startswith("not contradicted, assuming a Gaussian trade-off")
    assert found.mu == pytest.approx(gaussian.mean_shift(20.0, DELTA), rel=0.02)
    assert found.verdict(200.0, DELTA).startswith("undecided: even assuming a Gaussian trade-off")


def test_no_noise_at_all_proves_what_so_many_trials_can_prove_and_no_more(key):
    for delta in (0.0, 0.1):
        again = jax.random.clone(key)
        found = audit(again, lambda key, value: value, 0.0, 1.0, 1000, delta=delta)
        assert found.epsilon == found.limit == counting.limit(750, delta=delta, confidence=0.95)


def test_delta_of_everything_proves_nothing(key):
    found = audit(key, lambda key, value: value, 0.0, 1.0, 1000, delta=1.0)
    assert found.epsilon == found.limit == 0


# What the counts depend on


def test_same_key_same_audit_and_another_key_another(key):
    keys = jax.random.clone(key), jax.random.clone(key), jax.random.fold_in(key, 1)
    one, two, other = (audit(each, HALF, 0.0, 1.0, 5_000, delta=0.0) for each in keys)
    assert one == two
    assert (one.hits, one.event) != (other.hits, other.event)


def test_progress_counts_the_trials_of_both_neighbours(key):
    seen = []
    audit(key, HALF, 0.0, 1.0, 70_001, delta=0.0, progress=lambda *told: seen.append(told))
    assert seen[0] == (0, 140_002)
    assert seen[-1] == (140_002, 140_002)
    assert np.all(np.diff([done for done, _ in seen]) >= 0)


# Answers of every kind


def test_whole_numbers(key):
    noisy = functools.partial(dpjax.discrete_laplace, scale=0.5)
    found = audit(key, noisy, jnp.int32(319), jnp.int32(320), 100_000, delta=0.0)
    assert 1.9 < found.epsilon <= 2


@pytest.mark.slow
def test_categories(key):
    choice = functools.partial(dpjax.k_ary_response, scale=0.5, num_categories=5)
    found = audit(key, choice, jnp.int32(3), jnp.int32(1), 100_000, delta=0.0)
    assert 1.9 < found.epsilon <= 2
    truth = {"value": 3, "neighbour": 1}[found.event.likelier_on]
    assert str(found.event).startswith(f"score = {truth}, likelier on")


# Planted faults, each beside the mechanism done right


def doubly_keyed(key, value):
    same = jax.random.clone(key)
    columns = [dpjax.laplace(k, value[:, i], scale=1.0) for i, k in enumerate((key, same))]
    return jnp.stack(columns, axis=1)


def on_the_first_only(key, value):
    return value.at[:, 0].set(dpjax.laplace(key, value[:, 0], scale=1.0))


def clipped_last(key, records):
    total = jnp.sum(records, axis=1)
    return jnp.clip(dpjax.laplace(key, total, scale=1.0), 0.0, 4.0)


def clipped_first(key, records):
    total = jnp.sum(jnp.clip(records, 0.0, 1.0), axis=1)
    return jnp.clip(dpjax.laplace(key, total, scale=1.0), 0.0, 4.0)


def on_a_grid(key, value):
    return jnp.round(dpjax.laplace(key, value, scale=1.0) * 64) / 64


SIGMA = float(gaussian.noise_multiplier(8.0, DELTA))
PAIR, SHIFTED = jnp.array([3.0, 5.0]), jnp.array([3.0, 6.0])
RECORDS, OUTLIER = jnp.array([0.5, 1.0, 0.0]), jnp.array([0.5, 1.0, 7.0])

FAULTS = {  # faulty and right: mechanism, value, neighbour, claimed epsilon, delta
    "half scale": (HALF, 0.0, 1.0, 1.0, 0.0),
    "sensitivity off by 2": (LAPLACE, 0.0, 2.0, 1.0, 0.0),
    "variance for standard deviation": (normal(SIGMA**2), 0.0, 1.0, 8.0, DELTA),
    "one key for two noises": (doubly_keyed, PAIR, SHIFTED, 1.0, 0.0),
    "noise on some coordinates only": (on_the_first_only, PAIR, SHIFTED, 1.0, 0.0),
    "clipped after the noise, not before": (clipped_last, RECORDS, OUTLIER, 1.0, 0.0),
}
RIGHT = {
    "scale": (LAPLACE, 0.0, 1.0, 1.0, 0.0),
    "sensitivity": (functools.partial(dpjax.laplace, scale=2.0), 0.0, 2.0, 1.0, 0.0),
    "standard deviation": (normal(SIGMA), 0.0, 1.0, 8.0, DELTA),
    "two noises": (LAPLACE, PAIR, SHIFTED, 1.0, 0.0),
    "clipped before": (clipped_first, RECORDS, OUTLIER, 1.0, 0.0),
}


def others_slow(names, quick):
    """The names as parameters; those that need a compilation of their own only in slow runs."""
    return [pytest.param(n, marks=[] if n in quick else [pytest.mark.slow]) for n in names]


@pytest.mark.parametrize("fault", others_slow(FAULTS, ["half scale", "one key for two noises"]))
def test_fault_is_found(key, fault):
    mechanism, value, neighbour, epsilon, delta = FAULTS[fault]
    found = audit(key, mechanism, value, neighbour, 4_000_000, delta=delta, confidence=0.999)
    assert found.contradicts(epsilon), found


@pytest.mark.parametrize("name", others_slow(RIGHT, ["scale"]))
def test_right_mechanism_passes(key, name):
    mechanism, value, neighbour, epsilon, delta = RIGHT[name]
    found = audit(key, mechanism, value, neighbour, 1_000_000, delta=delta, confidence=0.999)
    assert not found.contradicts(epsilon), found
    assert found.epsilon > 0.7 * epsilon or delta > 0  # a test that could have found more


def test_float_bits_find_textbook_noise_and_say_that_it_is_the_implementation(key):
    one, two = jax.random.split(key)
    found = audit(one, LAPLACE, 0.0, 1.0, 10_000, delta=0.0, float_bits=True)
    assert found.epsilon > 5
    assert "leak of the implementation, in the bits of floats" in found.verdict(1.0)
    assert not audit(two, LAPLACE, 0.0, 1.0, 10_000, delta=0.0).contradicts(1.0)


@pytest.mark.slow
def test_float_bits_let_noise_on_a_coarse_grid_pass(key):
    found = audit(key, on_a_grid, 0.0, 1.0, 100_000, delta=0.0, float_bits=True, confidence=0.999)
    assert 0.2 < found.epsilon <= 1


GRID = np.float32(2.0**-20)


def grid_noise_added(key, value):
    """Safe noise of scale 1 on a fine grid, and the answer not rounded to it."""
    steps = dpjax.discrete_laplace(key, jnp.zeros(value.shape, np.int32), scale=2.0**20)
    return value + steps.astype(np.float32) * GRID


def rounded_first(key, value):
    return grid_noise_added(key, jnp.round(value / GRID) * GRID)


@pytest.mark.slow
def test_float_bits_find_an_answer_off_the_grid_of_its_noise(key):
    """By the last bits: both answers have no trailing zeros to tell them apart."""
    one, two, three = jax.random.split(key, 3)
    options: dict[str, Any] = {"delta": 0.0, "confidence": 0.999}
    arguments = grid_noise_added, 0.3, 0.7, 100_000
    seen = []
    found = audit(
        one, *arguments, **options, float_bits=True, progress=lambda *told: seen.append(told)
    )
    assert found.epsilon > 0.9 * found.limit
    assert seen[-1] == (250_000, 250_000)  # 75,000 and twice 25,000, of two worlds
    assert audit(two, *arguments, **options).epsilon <= 0.4  # the sizes tell what they should
    right = audit(three, rounded_first, *arguments[1:], **options, float_bits=True)
    assert 0.2 < right.epsilon <= 0.4


def few_outcomes(key, value):
    """Laplace noise from 19 bits and a factor that scatters its 2^19 outcomes."""
    bits = jax.random.bits(key, value.shape)
    exponential = -jnp.log(((bits >> 14).astype(np.float32) + 0.5) * 2.0**-18)
    return value + (np.pi / 3) * jnp.where(bits & 1 == 1, exponential, -exponential)


@pytest.mark.slow
def test_float_bits_find_holes_in_the_support_without_any_pattern(key):
    few, many = jax.random.split(key)
    arguments = few_outcomes, 0.3, 0.7
    options: dict[str, Any] = {"delta": 0.0, "confidence": 0.999, "float_bits": True}
    assert audit(few, *arguments, 200_000, **options).epsilon < 0.4  # too few to come again
    told = []

    def progress(done, total):
        told.append((done, total))

    found = audit(many, *arguments, 10_000_000, **options, progress=progress)
    assert found.epsilon > 3
    assert str(found.event).startswith(("score = 1, likelier on v", "score = 2, likelier on n"))
    assert told[-1][0] == told[-1][1]


@pytest.mark.slow
def test_score_of_one_s_own(key):
    """A mean that does not move, and a variance that does: no linear score sees it."""

    def wider(key, value):
        return dpjax.laplace(key, jnp.zeros_like(value), scale=1.0) * value

    def largest(answer):
        return jnp.max(jnp.abs(answer), axis=1)

    arguments = wider, jnp.ones(2), 3 * jnp.ones(2), 20_000
    one, two = jax.random.split(key)
    blind = audit(one, *arguments, delta=0.0)
    seeing = audit(two, *arguments, delta=0.0, score=largest)
    assert seeing.epsilon > blind.epsilon + 0.5


# What is refused, each in one line


def shared_noise(key, value):
    return value + jax.random.laplace(key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_trials": 7}, r"num_trials = 7: expected at least 8, a quarter of them to choose"),
        ({"delta": 1.5}, r"delta = 1.5: expected a number in \[0, 1\]"),
        ({"confidence": 1}, r"confidence = 1: expected a number in \(0, 1\)"),
        ({"mechanism": functools.partial(dpjax.laplace, scale=-1.0)}, r"scale = -1.0: .*"),
        ({"mechanism": shared_noise}, r"mechanism gives the same answer for every trial.*a key"),
        ({"mechanism": lambda key, value: value[0]}, r".*= \[\]: expected 65536 trials.*many"),
        ({"score": lambda answer: answer[:, None]}, r"score\(answers\) = \[1000, 1\]: expected .*"),
        ({"neighbour": jnp.ones(2)}, r"mechanism gives answers of shape .*: expected the same"),
        ({"value": np.zeros(0)}, r"value = array of shape \[0\]: expected at least one number"),
    ],
)
def test_what_is_refused(key, change, message):
    arguments = {"mechanism": LAPLACE, "value": 0.0, "neighbour": 1.0, "num_trials": 8_000}
    with pytest.raises(ValueError, match=f"^{message}$"):
        audit(key, **(arguments | {"delta": 0.0} | change))


def test_claims_and_kinds_that_are_refused(key):
    whole = functools.partial(dpjax.discrete_laplace, scale=0.5), jnp.int32(0), jnp.int32(1)
    key, one, two = jax.random.split(key, 3)
    with pytest.raises(TypeError, match=r"^float_bits = True: expected floats to look at, got"):
        audit(key, *whole, 1000, delta=0.0, float_bits=True)
    with pytest.raises(TypeError, match=r"^mechanism.*several arrays: expected one, or a score$"):
        audit(one, lambda key, value: (value, value), 0.0, 1.0, 1000, delta=0.0)
    found = audit(two, HALF, 0.0, 1.0, 1000, delta=0.0)
    with pytest.raises(ValueError, match=r"^epsilon = -1: expected a finite number of at least 0$"):
        found.contradicts(-1)
