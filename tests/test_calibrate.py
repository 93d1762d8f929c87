import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from dpjax.accounting import basic, calibrate, exact, gaussian, loss, rdp

CLASSIC = functools.partial(rdp.epsilon, conversion="classic")
EPSILON = st.floats(-2, 2).map(lambda x: 10.0**x)
DELTA = st.floats(-12, -1).map(lambda x: 10.0**x)
ACCOUNTANTS = (basic.epsilon, basic.best_of, rdp.epsilon, CLASSIC, exact.epsilon)


def counting(accountant):
    """The accountant, and the list its calls are noted in."""
    calls = []

    def counted(loss, delta):
        calls.append(1)
        return accountant(loss, delta)

    return counted, calls


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_never_past_the_target_and_within_a_billionth(accountant):
    rng = np.random.default_rng(9)
    epsilon, delta = 10 ** rng.uniform(-2, 2, 200), 10 ** rng.uniform(-12, -1, 200)
    counted, calls = counting(accountant)

    def family(noise):
        return 12 * loss.gaussian(noise)

    noise = calibrate.noise_multiplier(family, epsilon, delta, accountant=counted)
    assert len(calls) < 50
    answer = accountant(family(noise), delta)
    assert np.all(answer <= epsilon)
    assert np.all(answer >= epsilon * (1 - 1e-9))


@hypothesis.given(EPSILON, DELTA, st.integers(1, 1000))
@hypothesis.settings(max_examples=8)
def test_scalar_targets_meet_the_closed_forms(epsilon, delta, count):
    def gaussians(noise):
        return count * loss.gaussian(noise)

    noise = calibrate.noise_multiplier(gaussians, epsilon, delta, accountant=exact.epsilon)
    least = np.sqrt(count) * gaussian.noise_multiplier(epsilon, delta)
    np.testing.assert_allclose(noise, least, rtol=1e-9)
    noise = calibrate.noise_multiplier(gaussians, epsilon, delta, accountant=CLASSIC)
    slack = np.log(1 / delta)
    rho = (epsilon / (np.sqrt(slack + epsilon) + np.sqrt(slack))) ** 2
    np.testing.assert_allclose(noise, np.sqrt(count / (2 * rho)), rtol=1e-9)


def test_laplace_under_basic_composition():
    noise = calibrate.noise_multiplier(
        lambda m: 30 * loss.laplace(m), [0.1, 1, 10], 0, accountant=basic.epsilon
    )
    np.testing.assert_allclose(noise, [300, 30, 3], rtol=1e-11)
    assert np.all(30 / noise <= [0.1, 1, 10])


def test_known_noise():
    noise = calibrate.noise_multiplier(loss.gaussian, 8, 1e-5, accountant=exact.epsilon)
    np.testing.assert_allclose(noise, 0.60022907, rtol=2e-8)
    noise = calibrate.noise_multiplier(loss.gaussian, 1, 1e-6, accountant=rdp.epsilon)
    np.testing.assert_allclose(noise, 4.530877117, rtol=1e-6)  # dp-accounting 0.6, a fine grid


def test_a_family_of_two_mechanisms():
    def family(noise):
        return 3 * loss.gaussian(noise) + 2 * loss.laplace(2 * noise)

    noise = calibrate.noise_multiplier(family, [1, 2], [1e-5, 1e-6], accountant=rdp.epsilon)
    answer = rdp.epsilon(family(noise), [1e-5, 1e-6])
    assert np.all(answer <= [1, 2])
    np.testing.assert_allclose(answer, [1, 2], rtol=1e-9)


def test_a_jump_and_a_dent_are_met_from_the_private_side():
    def stairs(privacy_loss, delta):  # epsilon in whole units
        return np.ceil(rdp.epsilon(privacy_loss, delta))

    noise = calibrate.noise_multiplier(loss.gaussian, 2.5, 1e-5, accountant=stairs)
    assert stairs(loss.gaussian(noise), 1e-5) == 2
    assert stairs(loss.gaussian(noise * (1 - 1e-9)), 1e-5) == 3

    def wavy(privacy_loss, delta):  # not monotone in the noise
        ((leak, _),) = privacy_loss.terms
        return 1 / leak.noise_multiplier * (1 + 0.5 * np.sin(20 * leak.noise_multiplier))

    target = np.geomspace(0.1, 3, 40)
    noise = calibrate.noise_multiplier(loss.gaussian, target, 1e-5, accountant=wavy)
    assert np.all(wavy(loss.gaussian(noise), 1e-5) <= target)


def test_no_noise_where_none_is_needed():
    for family in (lambda m: 0 * loss.gaussian(m), lambda m: 0 * loss.laplace(m)):
        assert calibrate.noise_multiplier(family, 1, 1e-5, accountant=rdp.epsilon) == 0
    assert calibrate.noise_multiplier(loss.gaussian, 1, 1, accountant=rdp.epsilon) == 0
    mixed = calibrate.noise_multiplier(loss.gaussian, 1, [1e-5, 1], accountant=exact.epsilon)
    np.testing.assert_allclose(mixed, [3.7306316, 0], rtol=1e-7)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_most_queries(accountant):
    noise = np.array([0.5, 5.0, 20.0, 1e3])
    counted, calls = counting(accountant)
    count = calibrate.max_count(loss.gaussian(noise), 1, 1e-5, accountant=counted)
    assert len(calls) < 50
    assert count[0] == 0
    assert np.all(accountant(count * loss.gaussian(noise), 1e-5) <= 1)
    assert np.all(accountant((count + 1) * loss.gaussian(noise), 1e-5) > 1)


def test_most_queries_in_closed_form_and_up_to_an_end():
    count = calibrate.max_count(loss.laplace(64.0), [1, 2], 0, accountant=basic.epsilon)
    assert count.tolist() == [64, 128]
    count = calibrate.max_count(loss.laplace(64.0), 1, 0, accountant=basic.epsilon, up_to=10)
    assert count == 10
    count = calibrate.max_count(loss.laplace(np.inf), 1, 0, accountant=basic.epsilon)
    assert count == 10**9


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 1e-5, "target_epsilon = 0: expected a finite number above 0"),
        (-1, 1e-5, "target_epsilon = -1: expected"),
        (np.nan, 1e-5, "target_epsilon = nan: expected"),
        (np.inf, 1e-5, "target_epsilon = inf: expected"),
        (1, -1e-5, "target_delta = -1e-05: expected a number in [0, 1]"),
        (1, np.nan, "target_delta = nan: expected"),
        (1, 0, "target_epsilon = 1.0 with target_delta = 0.0: expected a target that some noise"),
    ],
)
def test_bad_targets_are_named(epsilon, delta, message):
    with pytest.raises(ValueError, match="expected") as error:
        calibrate.noise_multiplier(loss.gaussian, epsilon, delta, accountant=rdp.epsilon)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    if "with" not in message:
        with pytest.raises(ValueError, match="expected"):
            calibrate.max_count(loss.gaussian(1.0), epsilon, delta, accountant=rdp.epsilon)


def test_a_target_beyond_the_least_noise_tried_still_gets_some():
    noise = calibrate.noise_multiplier(loss.laplace, 1e40, 1e-5, accountant=basic.epsilon)
    assert 0 < basic.epsilon(loss.laplace(noise), 1e-5) <= 1e40
