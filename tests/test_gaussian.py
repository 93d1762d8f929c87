import hypothesis
import hypothesis.strategies as st
import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dpjax.accounting import gaussian

RNG = np.random.default_rng(20240229)
DELTAS = st.one_of(
    st.floats(-300, -0.05).map(lambda x: 10.0**x), st.floats(1e-14, 0.5).map(lambda x: 1 - x)
)


def true_log_delta(epsilon, mu):
    """Balle and Wang's formula with digits to spare for its cancellation."""
    with mp.workdps(120 + max(0, int(-2 * np.log10(mu)))):
        epsilon, mu = mp.mpf(float(epsilon)), mp.mpf(float(mu))
        x = epsilon / mu - mu / 2
        upper = mp.erfc(x / mp.sqrt(2)) / 2
        lower = mp.exp(epsilon) * mp.erfc((x + mu) / mp.sqrt(2)) / 2
        return mp.log(upper - lower)


def true_log(x):
    with mp.workdps(60):
        return mp.log(mp.mpf(x))


def rounding(epsilon, mu, log_delta):
    """A few ulp of the answer and of x = epsilon/mu - mu/2, seen through log delta."""
    x = epsilon / mu - mu / 2
    through_x = 10 + (epsilon / mu + mu / 2) * (1 + abs(x))
    return 1e-15 * min(1, -log_delta) * through_x - 4e-16 * log_delta


def extreme_points(count):
    mu = 10 ** RNG.uniform(-8, 3, count)
    beside = np.abs(mu**2 / 2 + mu * RNG.normal(0, 5, count))  # where delta is of order 1
    far = mu * 10 ** RNG.uniform(-6, 2.6, count)
    return np.where(RNG.random(count) < 0.5, beside, far), mu


def test_log_delta_matches_120_digits_everywhere():
    epsilons, mus = extreme_points(300)
    answers = gaussian.log_delta(epsilons, mu=mus)
    for epsilon, mu, answer in zip(epsilons, mus, answers, strict=True):
        truth = true_log_delta(epsilon, mu)
        allowed = rounding(epsilon, mu, float(truth)) + 1e-110
        assert abs(answer - truth) <= allowed, (epsilon, mu)
    assert answers.min() < -30_000  # the sample reaches deltas no double can hold
    assert answers.max() > -1e-20


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1.0, 50.0, 1e4])
def test_log_delta_is_smooth_across_its_branches(epsilon):
    # relative steps of 1e-9 around every switch of formula: the slope must not jump
    mu = np.geomspace(1e-3, 1e3, 20_001)
    slope = np.diff(gaussian.log_delta(epsilon, mu=mu)) / np.diff(np.log(mu))
    finite = slope[np.isfinite(slope)]
    assert np.all(finite >= 0)
    assert np.all(np.diff(finite) <= 1e-9 * (1 + np.abs(finite[:-1])))  # concave in log mu


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (0, 0.38292492),
        (0.5, 0.23842171),
        (1, 0.12693674),
        (2, 0.020923636),
        (5, 5.7937217e-7),
        (6, 2.7878598e-9),
        (10, 9.8127058e-23),
        (20, 2.6647067e-86),
    ],
)
def test_delta_of_unit_noise(epsilon, delta):
    np.testing.assert_allclose(gaussian.delta(epsilon, mu=1), delta, rtol=5e-8)


@hypothesis.given(DELTAS, st.floats(-6, 3).map(lambda x: 10.0**x))
@hypothesis.settings(max_examples=150)
def test_epsilon_is_never_below_the_truth_and_tight(delta, mu):
    epsilon = float(gaussian.epsilon(delta, mu=mu))
    target = true_log(delta)
    if epsilon == 0:
        total_variation = mp.erf(mp.mpf(mu) / (2 * mp.sqrt(2)))
        assert total_variation <= mp.mpf(delta) * (1 + mp.mpf(1e-14))
        return
    assert true_log_delta(epsilon, mu) <= target
    # the push to the safe side is of the size of rounding
    slack = rounding(epsilon, mu, float(target))
    less = max(epsilon * (1 - 1e-12) - 1e-14 * mu, 0)
    assert true_log_delta(less, mu) > target - 20 * slack


@hypothesis.given(st.floats(-8, 5).map(lambda x: 10.0**x) | st.just(0.0), DELTAS)
@hypothesis.settings(max_examples=150)
def test_mean_shift_is_never_above_the_truth_and_tight(epsilon, delta):
    mu = float(gaussian.mean_shift(epsilon, delta))
    assert true_log_delta(epsilon, mu) <= true_log(delta)
    assert true_log_delta(epsilon, mu * (1 + 1e-12)) > true_log(delta)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10, 100])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10])
def test_round_trip(epsilon, delta):
    noise = gaussian.noise_multiplier(epsilon, delta)
    np.testing.assert_allclose(gaussian.delta(epsilon, mu=1 / noise), delta, rtol=1e-10)
    np.testing.assert_allclose(gaussian.epsilon(delta, mu=1 / noise), epsilon, rtol=1e-11)


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact", "customary", "true_delta"),
    [
        (0.01, 1e-5, 243.78544, 484.48053, 2.52e-10),
        (0.1, 1e-5, 30.749566, 48.448053, 2.64e-9),
        (1, 1e-5, 3.7306316, 4.8448053, 4.11e-8),
        (1, 1e-2, 1.8778756, 3.1075115, 1.36e-4),
        (8, 1e-5, 0.60022907, 0.60560066, 7.97e-6),
        (10, 1e-5, 0.49988862, 0.48448053, 2.27e-5),
        (50, 1e-5, 0.14976061, 0.096896105, 0.586),
        (1000, 1e-6, 0.024850367, 0.0052988, 1.0),
    ],
)
def test_least_and_customary_noise(epsilon, delta, exact, customary, true_delta):
    np.testing.assert_allclose(gaussian.noise_multiplier(epsilon, delta), exact, rtol=5e-8)
    np.testing.assert_allclose(
        gaussian.customary_noise_multiplier(epsilon, delta), customary, rtol=5e-6
    )
    np.testing.assert_allclose(gaussian.customary_delta(epsilon, delta), true_delta, rtol=5e-3)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 1e-5, 1e-2, 0.5, 1 - 1e-12])
def test_customary_rule_is_safe_below_its_threshold_and_not_above(delta):
    threshold = gaussian.customary_unsafe_epsilon(delta)
    below = threshold * np.linspace(0.001, 1 - 1e-9, 400)
    assert np.all(gaussian.customary_delta(below, delta) <= delta * (1 + 1e-12))
    above = threshold * np.geomspace(1 + 1e-6, 100, 400)
    mu = 1 / gaussian.customary_noise_multiplier(above, delta)
    assert np.all(gaussian.log_delta(above, mu=mu) > np.log(delta))


def test_edges_of_epsilon():
    assert gaussian.epsilon(0, mu=1) == np.inf
    assert gaussian.epsilon(0, mu=0) == 0
    assert gaussian.epsilon(1, mu=[0, 1, np.inf]).tolist() == [0, 0, 0]
    assert gaussian.epsilon(1e-5, mu=np.inf) == np.inf
    # at or above the total variation the answer is exactly 0
    assert gaussian.epsilon([1e-3, 0.1, 0.4], mu=1 / np.array([1000, 10, 1])).tolist() == [0, 0, 0]
    np.testing.assert_allclose(gaussian.epsilon(0.3829, mu=1), 8.0777e-5, rtol=1e-4)
    assert gaussian.epsilon(special.erf(1 / np.sqrt(8)) * (1 + 1e-15), mu=1) == 0
    # zero noise beside unit noise: the other lane is not disturbed
    assert gaussian.epsilon(1e-5, mu=[np.inf, 1]).tolist() == [
        np.inf,
        float(gaussian.epsilon(1e-5, mu=1)),
    ]


def test_edges_of_delta_and_of_the_noise():
    assert gaussian.log_delta(1, mu=0) == -np.inf
    assert gaussian.log_delta([0, 1, np.inf], mu=np.inf).tolist() == [0, 0, 0]
    assert gaussian.log_delta(np.inf, mu=1) == -np.inf
    assert gaussian.log_delta(1e300, mu=1e-300) == -5e299  # below the floats, and yet no 0
    assert gaussian.mean_shift(1, [0, 1]).tolist() == [0, np.inf]
    assert gaussian.noise_multiplier(1, [0, 1]).tolist() == [np.inf, 0]
    assert gaussian.mean_shift(np.inf, [0, 0.5]).tolist() == [0, np.inf]
    np.testing.assert_allclose(gaussian.noise_multiplier(0, 1e-5), 39894.2, rtol=1e-6)


def test_noise_and_epsilon_cannot_be_swapped_in_silence():
    with pytest.raises(TypeError, match="positional argument"):
        gaussian.delta(1.0, 0.25)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional argument"):
        gaussian.epsilon(1e-5, 0.25)  # type: ignore[misc]
    np.testing.assert_allclose(gaussian.delta(1, mu=1 / 4.2246789), 1e-6, rtol=1e-6)
    np.testing.assert_allclose(gaussian.delta(4.2246789, mu=1), 1.9012772e-5, rtol=1e-6)


def test_monotone_over_a_wide_grid():
    noise = np.geomspace(0.05, 1e3, 60)[:, None]
    count = np.geomspace(1, 1e5, 60)
    epsilon = gaussian.epsilon(1e-5, mu=np.sqrt(count) / noise)
    assert np.all(np.diff(epsilon, axis=0) < 0)
    assert np.all(np.diff(epsilon, axis=1) > 0)
    by_delta = gaussian.epsilon(np.geomspace(1e-300, 0.3, 200), mu=1)
    assert np.all(np.diff(by_delta) < 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian.epsilon(2, mu=1), "delta = 2: expected a number in [0, 1]"),
        (lambda: gaussian.epsilon(np.nan, mu=1), "delta = nan: expected a number in [0, 1]"),
        (lambda: gaussian.delta(-1, mu=1), "epsilon = -1: expected a number of at least 0"),
        (lambda: gaussian.delta(1, mu=[1, -2]), "mu[1] = -2: expected a number of at least 0"),
        (lambda: gaussian.noise_multiplier(np.nan, 0.1), "epsilon = nan: expected"),
        (lambda: gaussian.customary_noise_multiplier(0, 0.1), "epsilon = 0: expected"),
        (lambda: gaussian.customary_noise_multiplier(np.inf, 0.1), "epsilon = inf: expected"),
        (lambda: gaussian.customary_noise_multiplier(1, 0), "delta = 0: expected"),
        (lambda: gaussian.customary_unsafe_epsilon(1.0), "delta = 1.0: expected"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)


def test_the_largest_arguments_give_numbers():
    mu = np.array([1e12, 1e24, 1e100])
    np.testing.assert_allclose(gaussian.epsilon(1e-5, mu=mu), mu * (mu / 2 + 4.2649), rtol=1e-9)
    assert gaussian.delta(1e155, mu=1.0) == 0
    assert gaussian.delta(1e300, mu=1.0) == 0
