import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from dpjax.accounting import basic, exact, gaussian, loss

TANH = functools.partial(basic.advanced, form="tanh")
ACCOUNTANTS = (basic.epsilon, basic.advanced, TANH, basic.best_of)
EPSILON = st.floats(-3, 1).map(lambda x: 10.0**x)
DELTA = st.floats(-12, -0.1).map(lambda x: 10.0**x)


def pure(e0):
    return loss.laplace(1 / np.asarray(e0))


@pytest.mark.parametrize(
    ("e0", "count", "advanced", "tanh"),
    [
        (0.1, 10, 1.6226, 1.56739),
        (0.1, 100, 5.85024, 5.29811),
        (0.1, 1000, 25.6914, 20.1701),
        (0.5, 50, 33.1834, 23.0883),
        (1, 1, 6.51681, 5.26064),
        (1, 100, 219.813, 94.197),
        (5, 50, 37022.9, 416.307),
        (0.01, 1000, 1.61793, 1.56743),
        (1, 500, 966.4392, None),
    ],
)
def test_published_values(e0, count, advanced, tanh):
    queries = count * pure(e0)
    np.testing.assert_allclose(basic.epsilon(queries, 1e-5), count * e0, rtol=1e-14)
    np.testing.assert_allclose(basic.advanced(queries, 1e-5), advanced, rtol=1e-5)
    if tanh is not None:
        np.testing.assert_allclose(TANH(queries, 1e-5), tanh, rtol=1e-5)
    assert basic.best_of(queries, 1e-5) <= count * e0


def test_advanced_may_exceed_basic():
    np.testing.assert_allclose(basic.advanced(2 * pure(0.5), 0.1), 2.16615, rtol=1e-5)
    assert basic.best_of(2 * pure(0.5), 0.1) == 1
    count = np.arange(1, 200)
    leads = basic.advanced(count * pure(0.1), 1e-5) < basic.epsilon(count * pure(0.1), 1e-5)
    assert count[leads][0] == 29
    leads = basic.advanced(count * pure(0.5), 1e-5) < basic.epsilon(count * pure(0.5), 1e-5)
    assert count[leads][0] == 187
    # from log 2 up it never does, however many queries
    count = 10 ** np.arange(10)
    for e0 in (np.log(2), 1.0):
        queries = count * pure(e0)
        assert np.all(basic.advanced(queries, 1e-5) > basic.epsilon(queries, 1e-5))


@hypothesis.given(EPSILON, DELTA, st.integers(1, 10_000))
@hypothesis.settings(max_examples=12)
def test_equal_queries_given_as_a_list_or_as_a_count(e0, delta, count):
    some = count // 3
    apart = some * pure(e0) + (count - some) * pure(e0)
    for accountant in ACCOUNTANTS:
        whole = accountant(count * pure(e0), delta)
        np.testing.assert_allclose(accountant(apart, delta), whole, rtol=1e-12)


@hypothesis.given(EPSILON, EPSILON, DELTA, st.integers(0, 1000), st.integers(0, 1000))
@hypothesis.settings(max_examples=12)
def test_different_queries_agree_with_the_formulas(first, second, delta, many, more):
    each = np.array([first] * many + [second] * more)
    queries = many * pure(first) + more * pure(second)
    squares = np.sqrt(2 * np.sum(each**2) * np.log(1 / delta))
    expected = {
        basic.epsilon: np.sum(each),
        basic.advanced: np.sum(each * (np.exp(each) - 1)) + squares,
        TANH: np.sum(each * np.tanh(each / 2)) + squares,
    }
    for accountant, value in expected.items():
        np.testing.assert_allclose(accountant(queries, delta), value, rtol=1e-11)
    logarithm = basic.advanced(queries, delta, form="logarithm")
    spread = 2 * np.sum(each**2) * np.log(np.e + np.sqrt(np.sum(each**2)) / delta)
    np.testing.assert_allclose(
        logarithm, np.sum(each * np.tanh(each / 2)) + np.sqrt(spread), rtol=1e-11
    )
    least = min(logarithm, *expected.values())
    np.testing.assert_allclose(basic.best_of(queries, delta), least, rtol=1e-11)


def test_gaussians_share_delta_by_the_named_split():
    queries = 10 * loss.gaussian(8.0) + 5 * loss.laplace(4.0)
    each = gaussian.epsilon(1e-5 / 10, mu=1 / 8)
    np.testing.assert_allclose(basic.epsilon(queries, 1e-5), 10 * each + 5 / 4, rtol=1e-12)
    each = gaussian.epsilon(0.5e-5 / 10, mu=1 / 8)
    drift = 10 * each * np.expm1(each) + 5 / 4 * np.expm1(1 / 4)
    spread = np.sqrt(2 * (10 * each**2 + 5 / 16) * np.log(1 / 0.5e-5))
    np.testing.assert_allclose(basic.advanced(queries, 1e-5), drift + spread, rtol=1e-12)


def test_rules_are_compared_at_one_total_delta():
    # ten Gaussians of (1, 1e-5) each: basic composition spends delta 1e-4, and so must the rest
    queries = 10 * loss.gaussian(float(gaussian.noise_multiplier(1, 1e-5)))
    np.testing.assert_allclose(basic.epsilon(queries, 1e-4), 10, rtol=1e-9)
    np.testing.assert_allclose(exact.epsilon(queries, 1e-4), 3.129968, rtol=1e-6)


@hypothesis.given(st.floats(-0.5, 3).map(lambda x: 10.0**x), DELTA, st.integers(1, 1000))
@hypothesis.settings(max_examples=12)
def test_no_rule_is_below_the_exact_gaussian(noise, delta, count):
    truth = gaussian.epsilon(delta, mu=np.sqrt(count) / noise)
    for accountant in ACCOUNTANTS:
        assert accountant(count * loss.gaussian(noise), delta) >= truth


@hypothesis.given(EPSILON, DELTA)
@hypothesis.settings(max_examples=12)
def test_one_basic_gaussian_is_exact(e0, delta):
    noise = float(gaussian.noise_multiplier(e0, delta))
    np.testing.assert_allclose(basic.epsilon(loss.gaussian(noise), delta), e0, rtol=1e-9)


def test_edges():
    for accountant in ACCOUNTANTS:
        assert accountant(10 * pure(0.1), [0, 1]).tolist() == [1, 0]  # no slack: basic
        assert accountant(10 * loss.gaussian(1.0), [0, 1]).tolist() == [np.inf, 0]
        assert accountant(0 * loss.gaussian(1.0), [0, 1e-5]).tolist() == [0, 0]
        assert accountant(0 * loss.gaussian(1.0) + 3 * pure(1.0), 0) == 3
        assert accountant(loss.laplace([0.0, np.inf]), 1e-5).tolist() == [np.inf, 0]
        assert accountant(loss.gaussian([0.0, np.inf]), 1e-5).tolist() == [np.inf, 0]
        huge = accountant(10**9 * pure([1e-6, 1e4]), 1e-30)
        assert not np.any(np.isnan(huge))
        assert np.all(huge > 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: basic.epsilon(pure(1.0), 2), "delta = 2: expected a number in [0, 1]"),
        (lambda: basic.advanced(pure(1.0), np.nan), "delta = nan: expected"),
        (
            lambda: basic.advanced(pure(1.0), 0.1, form="drv"),
            "form = 'drv': expected one of exponential, tanh, logarithm",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_optimal_is_below_the_other_rules_and_above_the_truth(delta):
    queries = np.array([1, 10, 1000, 10**6]) * loss.laplace([[3.0], [30.0], [300.0]])
    answer = basic.optimal(queries, delta)
    assert np.all(answer <= basic.best_of(queries, delta) * (1 + 1e-12))
    assert np.all(exact.epsilon_bracket(queries, delta).lower <= answer)


def test_optimal_knows_only_the_guarantees():
    mixed = 3 * loss.laplace(5.0) + 7 * loss.approximate(0.4, 1e-7)
    guarantees = 3 * loss.pure(0.2) + 7 * loss.approximate(0.4, 1e-7)
    np.testing.assert_allclose(
        basic.optimal(mixed, 1e-5), exact.epsilon(guarantees, 1e-5), rtol=1e-12
    )
    assert basic.optimal(mixed, 1e-7) == np.inf
    assert basic.optimal(loss.laplace([5.0, np.inf]), 0.0).tolist() == [0.2, 0.0]
    gaussians = basic.optimal(np.array([10, 1000]) * loss.gaussian(40.0), 1e-5)
    assert np.all(gaussians > exact.epsilon(np.array([10, 1000]) * loss.gaussian(40.0), 1e-5))
