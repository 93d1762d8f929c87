import math

import numpy as np
import pytest

from dpjax.accounting import basic, exact, loss, rdp
from dpjax.accounting.filters import AdvancedRule, BasicRule, GaussianRule, RenyiRule
from dpjax.accounting.ledger import BudgetExceededError, Ledger


def test_ten_tenths_make_one():
    ledger = Ledger(BasicRule(1.0))
    assert ledger.how_many(loss.laplace(10.0)) == 10
    for left in range(9, -1, -1):
        ledger = ledger.spend(loss.laplace(10.0))
        assert ledger.how_many(loss.laplace(10.0)) == left
    np.testing.assert_allclose(ledger.fraction_spent, 1)
    with pytest.raises(BudgetExceededError, match=r"loss costs 0\.1, 0: expected at most"):
        ledger.spend(loss.laplace(10.0))


def test_a_ledger_is_a_value():
    start = Ledger(GaussianRule(1, 1e-5))
    after = start.spend(loss.gaussian(10.0))
    assert start.used == (0.0,)
    assert start.remaining == start.rule.budget
    assert after.remaining == after.remaining
    np.testing.assert_allclose(after.used, 0.01)
    assert len(start.spent.terms) == 0
    assert len(after.spent.terms) == 1
    # two futures of one past do not disturb each other
    left, right = after.spend(loss.gaussian(20.0)), after.spend(loss.gaussian(5.0))
    np.testing.assert_allclose([left.used[0], right.used[0]], [0.0125, 0.05])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "query"),
    [
        (BasicRule(2.0), loss.laplace(7.0)),
        (AdvancedRule(2.0, 1e-6), loss.laplace(30.0)),
        (RenyiRule(2.0, 1e-6, 12.0), loss.gaussian(25.0)),
        (GaussianRule(2.0, 1e-6), loss.gaussian(25.0)),
    ],
)
def test_how_many_is_how_many_can_be_spent(rule, query):
    ledger = Ledger(rule)
    expected = ledger.how_many(query)
    assert expected > 5
    spent = 0
    while ledger.fits(query):
        ledger, spent = ledger.spend(query), spent + 1
    assert spent == expected
    assert not Ledger(rule).fits((expected + 1) * query)
    assert Ledger(rule).fits(expected * query)
    # in hindsight, the same releases as a fixed plan cost no more
    gaussians = isinstance(rule, GaussianRule)
    accountants = (exact.epsilon,) if gaussians else (rdp.epsilon, basic.epsilon)
    hindsight = min(ledger.planned_epsilon(accountant, 1e-6) for accountant in accountants)
    assert 0 < hindsight <= 2.0 * (1 + 1e-12)


def test_a_gaussian_filter_loses_nothing_to_a_plan():
    ledger = Ledger(GaussianRule(1.0, 1e-5))
    ledger = ledger.spend(ledger.how_many(loss.gaussian(1000.0)) * loss.gaussian(1000.0))
    hindsight = ledger.planned_epsilon(exact.epsilon, 1e-5)
    np.testing.assert_allclose(hindsight, 1, rtol=1e-4)
    assert hindsight <= 1


def test_rules_differ_as_their_theorems_do():
    # adaptive queries: the Rényi filter at a good order lets through more than advanced, and that
    # more than basic, once there are many small ones
    query = loss.laplace(200.0)
    order = float(rdp.optimum(2000 * query, 1e-6).order)
    counts = [
        Ledger(rule).how_many(query)
        for rule in (BasicRule(1), AdvancedRule(1, 1e-6), RenyiRule(1, 1e-6, order))
    ]
    assert counts == sorted(counts)
    assert counts[0] == 200
    assert counts[1] > 5 * counts[0]


def test_a_free_query_always_fits():
    ledger = Ledger(BasicRule(1.0)).spend(loss.laplace(1.0))
    assert ledger.how_many(loss.laplace(np.inf)) == math.inf
    assert ledger.fits(0 * loss.laplace(1.0))
    assert not ledger.fits(loss.laplace(1e9))


def test_a_query_without_noise_never_fits():
    assert not Ledger(BasicRule(1.0, 0.1)).fits(loss.laplace(0.0))
    assert not Ledger(GaussianRule(1.0, 0.1)).fits(loss.gaussian(0.0))
    assert not Ledger(RenyiRule(1.0, 0.1, 8.0)).fits(loss.gaussian(0.0))


def test_a_grid_is_no_query():
    with pytest.raises(ValueError, match="loss is a grid of shape"):
        Ledger(BasicRule(1.0)).spend(loss.laplace([1.0, 2.0]))
