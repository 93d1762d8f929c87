"""Shuffled reports: the pair by enumeration, a protocol it must dominate, and its limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from dpjax.accounting import exact, loss, rdp

INF = float("inf")


def enumerated(epsilon, n):
    """P and Q of all numbers (a, b) that can be drawn from Q0 and Q1."""
    e, p, q = np.exp(epsilon), [], []
    for c in range(n):
        weight = stats.binom.pmf(c, n - 1, 1 / e)
        a = np.arange(c + 2)
        more, same = stats.binom.pmf(a - 1, c, 0.5), stats.binom.pmf(a, c, 0.5)
        p.append(weight * (e * more + same) / (1 + e))
        q.append(weight * (more + e * same) / (1 + e))
    return np.concatenate(p), np.concatenate(q)


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 1), (1.0, 5), (2.5, 40), (0.2, 80)])
def test_it_is_the_enumeration_of_its_pair(epsilon, n):
    p, q = enumerated(epsilon, n)
    leak = loss.shuffled(epsilon, n)
    for wanted in (0.0, 0.05, 0.5):
        delta = np.maximum(p - np.exp(wanted) * q, 0).sum()
        bracket = exact.delta_bracket(leak, wanted)
        assert bracket.lower * (1 - 1e-13) <= delta <= bracket.upper * (1 + 1e-13)
        assert_allclose(bracket.upper, delta, rtol=1e-9, atol=1e-30)
    t = np.array([0.5, 3.0, 40.0])
    assert_allclose(leak.cumulant(t, "both"), np.log((p * (p / q) ** t[:, None]).sum(1)), rtol=1e-9)
    line = leak.cumulant(np.array([1 + 2j]), "both")
    assert_allclose(np.exp(line), [(p * (p / q) ** (1 + 2j)).sum()], rtol=1e-9)
    (term, _), *_ = leak.terms
    tails, ratio = term.tails(np.array(0.1), "both"), np.log(p / q)
    assert_allclose((tails.p_above, tails.q_above), (p[ratio > 0.1].sum(), q[ratio > 0.1].sum()))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("n", [2, 10, 300])
def test_it_dominates_randomized_response(epsilon, n):
    lie = 1 / (1 + np.exp(epsilon))
    for ones in (0, n // 2, n - 1):  # of the other people
        count = np.arange(n + 1)
        others = np.convolve(
            stats.binom.pmf(np.arange(ones + 1), ones, 1 - lie),
            stats.binom.pmf(np.arange(n - ones), n - 1 - ones, lie),
        )
        p = np.convolve(others, [lie, 1 - lie])
        q = np.convolve(others, [1 - lie, lie])
        assert p.shape == count.shape
        for wanted in (0.0, 0.1, 0.3):
            delta = np.maximum(p - np.exp(wanted) * q, 0).sum()
            assert delta <= exact.delta(loss.shuffled(epsilon, n), wanted) * (1 + 1e-9)


# Feldman, McMillan, Talwar 2021, Theorem 3.1: for epsilon <= log(n / (16 log(2 / delta)))
@pytest.mark.parametrize(
    ("epsilon", "n", "delta"), [(2.0, 10**4, 1e-6), (4.0, 10**5, 1e-6), (0.5, 10**9, 1e-10)]
)
def test_it_is_below_the_closed_form(epsilon, n, delta):
    assert epsilon <= np.log(n / (16 * np.log(2 / delta)))
    growth = np.exp(epsilon)
    bound = 8 * np.sqrt(growth * np.log(4 / delta) / n) + 8 * growth / n
    bound = np.log1p(np.tanh(epsilon / 2) * bound)
    answer = exact.epsilon(loss.shuffled(epsilon, n), delta)
    assert 0 < answer < bound
    assert answer <= rdp.epsilon(loss.shuffled(epsilon, n), delta) < 1.2 * answer


def test_many_losses_are_gathered_from_above():
    # where the numbers of clones and the losses are many: the exact sum over all of them
    epsilon, n, wanted = 1.0, 20_000, 0.03
    p = np.exp(-epsilon)
    c = np.arange(int(n * p - 1000), int(n * p + 1000))
    own = 1 / (1 + p)
    # a above this share of c + 1 has a loss above the wanted one
    level = np.exp(wanted)
    share = (level * np.exp(epsilon) - 1) / ((np.exp(epsilon) - 1) * (1 + level))
    least = np.floor(share * (c + 1))
    more, same = stats.binom.sf(least - 1, c, 0.5), stats.binom.sf(least, c, 0.5)
    delta = own * more + (1 - own) * same - level * ((1 - own) * more + own * same)
    delta = (stats.binom.pmf(c, n - 1, p) * delta).sum()
    ours = exact.delta(loss.shuffled(epsilon, n), wanted)
    assert delta * (1 - 1e-9) <= ours <= delta * 1.01


def test_more_people_hide_more_and_more_noise_too():
    n = np.array([1, 2, 10, 100, 10_000, 10**6, 10**12])
    epsilon = exact.epsilon(loss.shuffled(1.5, n), 1e-8)
    assert epsilon[0] <= 1.5
    assert np.all(np.diff(epsilon) <= 0)
    rising = exact.epsilon(loss.shuffled([0.01, 0.5, 2.0, 5.0, 40.0, 800.0], 5000), 1e-8)
    assert np.all(np.diff(rising) > 0)
    assert np.all(rising <= [0.01, 0.5, 2.0, 5.0, 40.0, 800.0])


def test_rounds_compose():
    rounds = 50 * loss.shuffled(2.0, 10_000)
    once, fifty = exact.epsilon(loss.shuffled(2.0, 10_000), 1e-6), exact.epsilon(rounds, 1e-6)
    assert 2 * once < fifty < 50 * once
    assert fifty <= rdp.epsilon(rounds, 1e-6) * (1 + 1e-3)


def test_edges():
    edges = loss.shuffled([0.0, 1e-17, INF, 2.0], [10, 10, 10, 1])
    assert_array_equal(edges.infinite_mass("both"), [0, 0, 1, 0])
    assert_allclose(exact.epsilon(edges, 0), [0, 1e-17, INF, 2])
    assert_allclose(exact.delta(loss.shuffled(2.0, 1), 0.5), exact.delta(loss.pure(2.0), 0.5))
    for bad in (
        lambda: loss.shuffled(-1, 10),
        lambda: loss.shuffled(1, 0),
        lambda: loss.shuffled(1, 2.5),
    ):
        with pytest.raises(ValueError, match=r"^(epsilon|num_reports) = .*: expected"):
            bad()
