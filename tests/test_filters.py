import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from dpjax.accounting import basic, exact, gaussian, loss, rdp
from dpjax.accounting.filters import AdvancedRule, BasicRule, GaussianRule, RenyiRule

EPSILON = st.floats(0.05, 10)
DELTA = st.floats(-10, -2).map(lambda x: 10.0**x)


@hypothesis.given(EPSILON, DELTA, st.floats(1.5, 200))
@hypothesis.settings(max_examples=15)
def test_renyi_budget_converts_back_to_epsilon(epsilon, delta, order):
    try:
        rule = RenyiRule(epsilon, delta, order)
    except ValueError:  # the conversion alone costs more
        assert rdp.to_epsilon(order, 0, delta=delta) >= epsilon * (1 - 1e-12)
        return
    back = rdp.to_epsilon(order, rule.budget[0], delta=delta)
    np.testing.assert_allclose(back, epsilon, rtol=1e-11)
    assert back <= epsilon * (1 + 1e-14)
    queries = 3 * loss.gaussian(7.0) + loss.laplace(9.0)
    assert rule.cost(queries) == (float(rdp.divergence(queries, order)),)


@hypothesis.given(EPSILON, DELTA)
@hypothesis.settings(max_examples=15)
def test_advanced_budget_solves_the_theorem(epsilon, delta):
    (squares, rest) = AdvancedRule(epsilon, delta).budget
    total = np.sqrt(2 * squares * np.log(1 / delta)) + squares / 2
    np.testing.assert_allclose(total, epsilon, rtol=1e-13)
    assert rest == 0
    # for pure losses it is the zCDP filter: a Gaussian of rho = S/2 by the classic conversion
    noise = 1 / np.sqrt(squares)
    classic = rdp.epsilon(loss.gaussian(noise), delta, conversion="classic")
    np.testing.assert_allclose(classic, epsilon, rtol=1e-12)


def test_advanced_keeps_a_part_of_delta_for_masses():
    rule = AdvancedRule(1.0, 1e-5, slack=4e-6)
    np.testing.assert_allclose(rule.budget[1], 6e-6)
    assert rule.budget[0] < AdvancedRule(1.0, 1e-5).budget[0]


@hypothesis.given(EPSILON, DELTA)
def test_gaussian_budget_is_the_exact_one(epsilon, delta):
    (square,) = GaussianRule(epsilon, delta).budget
    np.testing.assert_allclose(gaussian.epsilon(delta, mu=np.sqrt(square)), epsilon, rtol=1e-11)
    assert gaussian.epsilon(delta, mu=np.sqrt(square)) <= epsilon * (1 + 1e-14)


def test_costs():
    mixed = 3 * loss.laplace(2.0) + 2 * loss.laplace(4.0)
    assert BasicRule(5).cost(mixed) == (2.0, 0.0)
    assert AdvancedRule(5, 0.1).cost(mixed) == (0.875, 0.0)
    cost = GaussianRule(1, 0.1).cost(2 * loss.gaussian(2.0) + loss.gaussian(1.0))
    np.testing.assert_allclose(cost, (1.5,))
    for rule in (BasicRule(5), AdvancedRule(5, 0.1), GaussianRule(1, 0.1), RenyiRule(5, 0.1, 4)):
        assert rule.cost(0 * loss.gaussian(1.0))[0] == 0


@hypothesis.given(EPSILON, DELTA, st.floats(2, 50), st.integers(1, 400))
@hypothesis.settings(max_examples=15)
def test_a_filter_is_no_tighter_than_the_exact_accountant_of_a_fixed_plan(
    epsilon, delta, noise, count
):
    # were the plan fixed, whatever a rule lets through is (epsilon, delta)-private, exactly
    gaussians, laplaces = count * loss.gaussian(noise), count * loss.laplace(noise)
    rules = [GaussianRule(epsilon, delta), AdvancedRule(epsilon, delta), BasicRule(epsilon)]
    for rule, queries in zip(rules, (gaussians, laplaces, laplaces), strict=True):
        if rule.cost(queries)[0] <= rule.budget[0]:
            accountant = exact.epsilon if rule is rules[0] else rdp.epsilon
            best = min(accountant(queries, delta), basic.best_of(queries, delta))
            assert best <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BasicRule(0), "epsilon = 0: expected a finite number above 0"),
        (lambda: BasicRule(1, 1.0), "delta = 1.0: expected a number in [0, 1)"),
        (lambda: AdvancedRule(1, 0), "slack = 0: expected a number in (0, 1)"),
        (lambda: AdvancedRule(1, 0.1, slack=0.2), "slack = 0.2: expected at most delta, 0.1"),
        (lambda: RenyiRule(1, 1e-5, 1.0), "order = 1.0: expected a finite number above 1"),
        (lambda: RenyiRule(1, 1e-5, 2.0), "order = 2.0: expected one whose conversion leaves some"),
        (lambda: GaussianRule(1, 0), "delta = 0: expected a number in (0, 1)"),
        (lambda: GaussianRule(np.nan, 0.1), "epsilon = nan: expected"),
        (
            lambda: GaussianRule(1, 0.1).cost(loss.laplace(1.0)),
            "loss has a Laplace: expected Gaussians only",
        ),
        (
            lambda: BasicRule(1).cost(loss.gaussian(1.0)),
            "loss has a Gaussian: expected losses with a bound",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)
