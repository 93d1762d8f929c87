import hypothesis
import hypothesis.strategies as st
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from scipy import optimize

from dpjax.accounting import exact, gaussian, loss, rdp

DELTA = 1e-5
DELTAS = st.floats(-30, -0.3).map(lambda x: 10.0**x)
NOISE = st.floats(-1, 3).map(lambda x: 10.0**x)


@pytest.mark.parametrize(
    ("noise", "count", "improved", "at", "classic", "classic_at"),
    [
        (0.1, 1, 96.035271, 1.4717, 97.985259, 1.480),
        (1, 1, 4.728387, 5.432, 5.2985259, 5.799),
        (10, 100, 4.728387, 5.432, 5.2985259, 5.799),
        (100, 1, 0.030821, 338.3, 0.048035259, 480.9),
        (1000, 1, 0.002318, 2690, 0.0047990259, 4800),
        (20, 1000, 8.07836, 3.852, 8.8371356, 4.035),
    ],
)
def test_best_real_order_of_gaussians(noise, count, improved, at, classic, classic_at):
    queries = count * loss.gaussian(noise)
    best = rdp.optimum(queries, DELTA)
    np.testing.assert_allclose(best.epsilon, improved, rtol=3e-4 if noise > 99 else 2e-7)
    np.testing.assert_allclose(best.order, at, rtol=2e-4)
    best = rdp.optimum(queries, DELTA, conversion="classic")
    np.testing.assert_allclose(best.epsilon, classic, rtol=3e-8)
    np.testing.assert_allclose(best.order, classic_at, rtol=3e-4)


@hypothesis.given(NOISE, DELTAS, st.integers(1, 10**6))
def test_classic_gaussian_is_the_zcdp_closed_form(noise, delta, count):
    rho = count / (2 * noise**2)
    epsilon, order = rdp.optimum(count * loss.gaussian(noise), delta, conversion="classic")
    np.testing.assert_allclose(epsilon, rho + 2 * np.sqrt(-rho * np.log(delta)), rtol=1e-13)
    np.testing.assert_allclose(order - 1, np.sqrt(-np.log(delta) / rho), rtol=1e-6)


@pytest.mark.parametrize(
    ("e0", "count", "improved", "at", "classic"),
    [
        (0.1, 10, 0.990190, 107, 1.0),
        (0.1, 20, 1.689673, 14.9, 1.922172),
        (0.1, 1000, 18.575632, 2.50, 19.685981),
        (0.5, 50, 18.326950, 2.82, 19.315447),
        (1, 1, 0.999980, 5e4, 1.000001),
        (1, 20, 19.314185, 4.94, 19.848290),
        (5, 50, 239.789055, 1.90, 241.230131),
        (0.01, 1000, 1.303473, 14.4, 1.561430),
    ],
)
def test_best_real_order_of_laplace(e0, count, improved, at, classic):
    queries = count * loss.laplace(1 / e0)
    best = rdp.optimum(queries, DELTA)
    np.testing.assert_allclose(best.epsilon, improved, rtol=1e-6)
    if count > 1:
        np.testing.assert_allclose(best.order, at, rtol=3e-3)
    pure = count * e0
    answer = rdp.epsilon(queries, DELTA, conversion="classic")
    np.testing.assert_allclose(answer, min(classic, pure), rtol=1e-6)


@pytest.mark.parametrize("conversion", ["classic", "improved", "optimal"])
def test_the_order_reaches_infinity(conversion):
    queries = 7 * loss.laplace(2.0)
    best = rdp.optimum(queries, [0, 1e-300], conversion=conversion)
    assert best.epsilon[0] == 3.5
    assert best.order[0] == np.inf
    assert best.epsilon[1] <= 3.5
    # one classic Laplace at a small delta: no finite order beats the pure guarantee
    assert rdp.optimum(loss.laplace(1.0), 1e-9, conversion="classic").order == np.inf


def test_a_pure_guarantee_is_not_exceeded():
    # orders up to 63 alone say more than 1 of one Laplace query at epsilon 1
    orders = np.arange(2, 64)
    curve = rdp.divergence(loss.laplace(1.0), orders)
    assert rdp.to_epsilon(orders, curve, delta=DELTA).min() > 1
    count = np.arange(1, 200)
    for conversion in rdp.CONVERSIONS[:2]:
        assert np.all(rdp.epsilon(count * loss.laplace(1.0), DELTA, conversion=conversion) <= count)


def test_no_grid_of_orders_beats_the_search():
    # orders 2..64 alone are 3.8 times too big here
    queries = loss.gaussian(100.0)
    orders = np.arange(2, 65)
    on_grid = rdp.to_epsilon(orders, rdp.divergence(queries, orders), delta=DELTA).min()
    np.testing.assert_allclose(on_grid, 0.104182, rtol=1e-5)
    fine = 1 + np.geomspace(1e-3, 1e6, 400_001)
    for queries in (loss.gaussian(100.0), loss.gaussian(0.2), 30 * loss.laplace(3.0)):
        for conversion in ("classic", "improved"):
            curve = rdp.divergence(queries, fine)
            best = rdp.to_epsilon(fine, curve, delta=DELTA, conversion=conversion).min()
            answer = rdp.epsilon(queries, DELTA, conversion=conversion)
            assert answer <= best
            np.testing.assert_allclose(answer, best, rtol=1e-8)


@hypothesis.given(NOISE, NOISE, DELTAS, st.integers(0, 300), st.integers(1, 300))
@hypothesis.settings(max_examples=12)
def test_exact_is_below_optimal_improved_and_classic(noise, laplace, delta, some, count):
    queries = count * loss.gaussian(noise) + some * loss.laplace(laplace)
    answers = [rdp.epsilon(queries, delta, conversion=c) for c in reversed(rdp.CONVERSIONS)]
    assert np.all(np.diff(answers) >= -1e-12 * np.array(answers[1:]))
    # what is left when the Laplace queries are thrown away is still below
    assert gaussian.epsilon(delta, mu=np.sqrt(count) / noise) <= answers[0] * (1 + 1e-12)


@hypothesis.given(st.floats(1.01, 200), st.floats(-4, 1.5).map(lambda x: 10.0**x), DELTAS)
def test_optimal_is_attained_by_a_pair_of_two_outcomes(order, divergence, delta):
    # an independent route: among two-outcome pairs of this divergence, none has a larger epsilon,
    # and one comes as close as a fine search can tell
    answer = float(rdp.to_epsilon(order, divergence, delta=delta, conversion="optimal"))

    def epsilon_of(log_odds):
        p = delta + (1 - delta) / (1 + np.exp(-log_odds))

        def excess(log_q):
            first = order * np.log(p) - (order - 1) * log_q
            rest = order * np.log1p(-p) - (order - 1) * np.log1p(-np.exp(log_q))
            return np.logaddexp(first, rest) / (order - 1) - divergence

        if not p < 1 - 1e-15:
            return np.log1p(-delta) + divergence
        if excess(np.log(p) - 1e-15) > 0:
            return -np.inf
        low = (order * np.log(p)) / (order - 1) - divergence - 1e-9
        log_q = optimize.brentq(excess, low, np.log(p), xtol=1e-14)
        return np.log(p - delta) - log_q

    log_odds = np.linspace(np.log(delta) - 10, 34, 300)
    found = max(0, np.log1p(-delta) + divergence, *map(epsilon_of, log_odds))
    assert answer >= found - 1e-7 * (1 + found)
    assert answer <= found + 2e-2 * (1 + found)


@hypothesis.given(NOISE, DELTAS)
@hypothesis.settings(max_examples=6)
def test_delta_inverts_epsilon(noise, delta):
    queries = 3 * loss.gaussian(noise) + 2 * loss.laplace(noise)
    for conversion in ("classic", "improved"):
        epsilon = rdp.epsilon(queries, delta, conversion=conversion)
        hypothesis.assume(epsilon > 1e-3)
        back = rdp.delta(queries, epsilon, conversion=conversion)
        np.testing.assert_allclose(back, delta, rtol=1e-8 * max(1, -np.log(delta)))


@pytest.mark.parametrize(
    ("order", "value"),
    [
        (1000, 0.9993066596),
        (1.5, 0.51288351),
        (2, 0.61912363),
        (10, 0.9286829),
        (100, 0.99304915),
        (1e4, 0.99993068),
    ],
)
def test_curve_of_unit_laplace(order, value):
    np.testing.assert_allclose(rdp.divergence(loss.laplace(1.0), order), value, rtol=1e-7)


def test_curve_at_both_ends():
    laplace = loss.laplace(1.0)
    np.testing.assert_allclose(rdp.divergence(laplace, 1 + 1e-9), 0.36787944, rtol=1e-7)
    np.testing.assert_allclose(rdp.divergence(laplace, 1.000001), 0.36787977, rtol=2e-8)
    np.testing.assert_allclose(rdp.divergence(laplace, 1), np.exp(-1), rtol=1e-11)
    assert rdp.divergence(laplace, np.inf) == 1
    assert rdp.divergence(loss.gaussian(1.0), np.inf) == np.inf
    np.testing.assert_allclose(rdp.divergence(loss.laplace(1e-3), 2), 999.59453, rtol=1e-8)
    np.testing.assert_allclose(rdp.divergence(loss.laplace(0.02), 64), 49.98912, rtol=1e-7)
    curve = rdp.divergence(12 * laplace, np.geomspace(1.001, 1e6, 50))
    assert np.all(np.diff(curve) > 0)


@pytest.mark.parametrize("order", [1.25, 2, 7.5, 64])
def test_curve_agrees_with_an_integral(order):
    def power(x):
        log_p, log_q = -abs(x - 1) / 1.7, -abs(x) / 1.7
        return mp.exp(order * log_p + (1 - order) * log_q) / (2 * 1.7)

    value = mp.log(mp.quad(power, [-mp.inf, 0, 1, mp.inf])) / (order - 1)
    np.testing.assert_allclose(rdp.divergence(loss.laplace(1.7), order), float(value), rtol=1e-12)


@pytest.mark.parametrize("order", [1.5, 4, 32])
@pytest.mark.parametrize("divergence", [0.01, 0.3, 5.0])
def test_single_orders_agree_with_dp_accounting(order, divergence):
    theirs, _ = rdp_privacy_accountant.compute_epsilon([order], [divergence], DELTA)
    ours = rdp.to_epsilon(order, divergence, delta=DELTA)
    if divergence > 0.01:  # below, theirs also uses a bound through the total variation
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert ours >= theirs * (1 - 1e-12)


def test_edges():
    empty = 0 * loss.gaussian(1.0)
    assert rdp.epsilon(empty, [0, 1e-5, 1]).tolist() == [0, 0, 0]
    assert rdp.epsilon(loss.gaussian(1.0), [0, 1]).tolist() == [np.inf, 0]
    assert rdp.epsilon(loss.gaussian([0.0, np.inf]), 1e-5).tolist() == [np.inf, 0]
    np.testing.assert_allclose(rdp.epsilon(loss.gaussian([0.0, 1.0]), 1e-5)[1], 4.728387, rtol=1e-7)
    assert rdp.delta(loss.laplace(1.0), [1.0, np.inf]).tolist() == [0, 0]
    assert rdp.delta(loss.gaussian(1.0), 0) <= 1
    assert rdp.epsilon(loss.gaussian(1000.0), 1e-3) < 0.005
    assert rdp.epsilon(loss.gaussian(1000.0), 0.5) == 0


@pytest.mark.parametrize("conversion", ["classic", "improved", "optimal"])
def test_extremes_give_numbers(conversion):
    noise = np.array([1e-2, 1.0, 1e6])[:, None, None]
    count = np.array([0, 1, 10**9])[:, None]
    delta = np.array([0, 1e-300, 1e-30, 1e-5, 0.9, 1])
    for build in (loss.gaussian, loss.laplace):
        epsilon = rdp.epsilon(count * build(noise), delta, conversion=conversion)
        assert epsilon.shape == (3, 3, 6)
        assert not np.any(np.isnan(epsilon))
        assert np.all(epsilon >= 0)
        assert np.all(epsilon[..., 1:] <= epsilon[..., :-1])
        assert np.all(epsilon[1:] <= epsilon[:-1])
        assert np.all(np.isfinite(epsilon[..., 1:]))


def test_zcdp_is_what_the_classic_conversion_says():
    np.testing.assert_allclose(
        rdp.epsilon(12 * loss.gaussian(np.sqrt(12.0)), DELTA, conversion="classic"),
        0.5 + 2 * np.sqrt(-0.5 * np.log(DELTA)),
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rdp.divergence(loss.gaussian(1.0), 0.5), "order = 0.5: expected a number of at"),
        (lambda: rdp.to_epsilon(1, 1, delta=0.1), "order = 1: expected a finite number above 1"),
        (lambda: rdp.divergence(loss.gaussian(1.0), np.nan), "order = nan: expected"),
        (lambda: rdp.epsilon(loss.gaussian(1.0), -0.1), "delta = -0.1: expected"),
        (lambda: rdp.epsilon(loss.gaussian(1.0), np.nan), "delta = nan: expected"),
        (lambda: rdp.delta(loss.gaussian(1.0), -1), "epsilon = -1: expected"),
        (
            lambda: rdp.epsilon(loss.gaussian(1.0), 0.1, conversion="best"),
            "conversion = 'best': expected one of classic, improved, optimal",
        ),
        (lambda: rdp.to_epsilon(np.inf, 1, delta=0.1), "order = inf: expected"),
        (lambda: rdp.to_epsilon(2, -1, delta=0.1), "divergence = -1: expected"),
        (
            lambda: rdp.to_delta(2, 1, epsilon=0.1, conversion="optimal"),
            "conversion = 'optimal': expected one of classic, improved",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("conversion", rdp.CONVERSIONS)
@pytest.mark.parametrize(("q", "count", "delta"), [(0.003, 10, 0.003), (0.003, 99, 0.02)])
def test_rounding_near_order_1_is_no_bound(q, count, delta, conversion):
    # the best order of "optimal" is near 1 here, where the divergence falls below its rounding
    steps = count * loss.sampled_gaussian(q, 0.5)
    bracket = exact.epsilon_bracket(steps, delta)
    assert rdp.epsilon(steps, delta, conversion=conversion) >= bracket.lower


def test_optimal_holds_next_to_the_largest_loss_at_a_tiny_delta():
    """There it is tight, and a difference of two logs near log delta."""
    count, each = 200, 1 / 1155965.6199576082
    composition = count * loss.randomized_response(1 / each)
    epsilon = count * each * (1 - 1e-8)
    with mp.workdps(50):
        most = count / mp.mpf(1 / each)
        chance = (1 / (1 + mp.exp(-most / count))) ** count
        delta = float(-chance * mp.expm1(mp.mpf(epsilon) - most))
    assert rdp.epsilon(composition, delta, conversion="optimal") >= epsilon
