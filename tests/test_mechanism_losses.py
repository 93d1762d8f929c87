"""The losses of further mechanisms, against their laws: sums, enumerations and the worst ratio."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax import theory
from dpjax.accounting import bounds, exact, loss, rdp

INF = float("inf")
T = np.array([0.3, 1.0, 4.0])


def of_atoms(p, q):
    """Cumulants at T of two lists of chances."""
    p, q = np.asarray(p), np.asarray(q)
    return np.log((p * (p / q) ** T[:, None]).sum(1))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_staircase_is_the_integral_over_its_density(epsilon, gamma):
    law = theory.Staircase(scale=1 / epsilon, sensitivity=1.0, gamma=gamma)
    reach = np.ceil(45 / epsilon)
    x = np.arange(-reach, reach, 1e-3) + 5e-4  # of cells on which the density is constant

    def cumulant(shift):
        p, q = law.density(x), law.density(x - shift)
        return np.log((p * (p / q) ** T[:, None]).sum(1) * 1e-3)

    leak = loss.staircase(1 / epsilon, gamma)
    assert_allclose(leak.cumulant(T, "both"), cumulant(1.0), rtol=1e-9)
    for shift in (0.1, 0.4, 0.9):
        assert np.all(cumulant(shift) <= leak.cumulant(T, "both") + 1e-12)
    assert leak.supremum("both") == epsilon


def test_staircase_edges():
    gamma = np.array([0.0, 0.5, 1.0])
    edges = loss.staircase([[0.0], [1e-4], [INF]], gamma)
    assert_array_equal(edges.infinite_mass("both"), [[1] * 3, [0] * 3, [0] * 3])
    assert_array_equal(exact.epsilon(edges, 0), [[INF] * 3, [1e4] * 3, [0] * 3])
    assert_allclose(
        exact.epsilon(50 * loss.staircase(2.0, 0.5), 1e-6), exact.epsilon(50 * loss.pure(0.5), 1e-6)
    )
    assert np.all(np.diff(exact.epsilon(50 * loss.staircase(2.0, [0.5, 0.6, 0.9]), 1e-6)) < 0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_unary_encodings_are_their_enumerations(epsilon):
    flip, half = 1 / (1 + np.exp(epsilon)), 1 / (1 + np.exp(epsilon / 2))

    def law(value, if_true, if_false):
        """Chances of the answers for a one-hot value among three."""
        chance = [if_true if i == value else if_false for i in range(3)]
        answers = itertools.product([0, 1], repeat=3)
        return [
            np.prod([c if a else 1 - c for c, a in zip(chance, x, strict=True)]) for x in answers
        ]

    symmetric = of_atoms(law(0, 1 - half, half), law(1, 1 - half, half))
    assert_allclose(loss.symmetric_unary(1 / epsilon).cumulant(T, "both"), symmetric, rtol=1e-12)
    optimized = of_atoms(law(0, 0.5, flip), law(1, 0.5, flip))
    assert_allclose(loss.optimized_unary(1 / epsilon).cumulant(T, "both"), optimized, rtol=1e-12)


def test_unary_edges():
    for family in (loss.symmetric_unary, loss.optimized_unary):
        assert_array_equal(exact.epsilon(family([0.0, 1e-3, INF]), 0), [INF, 1000, 0])
        assert_allclose(exact.epsilon(family(0.5), 0), 2)
    # the better encoding leaks less than its epsilon allows
    assert exact.epsilon(100 * loss.optimized_unary(2.0), 1e-6) < exact.epsilon(
        100 * loss.pure(0.5), 1e-6
    )


@pytest.mark.parametrize(("noise", "bound"), [(0.5, 1.0), (1.0, 3.0), (5.0, 8.0)])
def test_truncated_laplace_is_the_integral_over_its_density(noise, bound):
    law = theory.TruncatedLaplace(scale=noise, bound=bound)
    x = np.arange(1 - bound, bound, 1e-5) + 5e-6
    p, q = np.asarray(law.density(x)), np.asarray(law.density(x - 1))
    finite = p.sum() * 1e-5
    leak = loss.truncated_laplace(noise, bound)
    assert_allclose(leak.infinite_mass("both"), 1 - finite, rtol=1e-6)
    sums = (p * (p / q) ** T[:, None]).sum(1) * 1e-5 / finite
    assert_allclose(leak.cumulant(T, "both"), np.log(sums), rtol=1e-7)
    epsilon = np.array([0.0, 0.4 / noise])
    delta = 1 - finite + np.maximum(p - np.exp(epsilon[:, None]) * q, 0).sum(1) * 1e-5
    assert_allclose(exact.delta(leak, epsilon), delta, rtol=1e-6)
    (term, _), *_ = leak.terms
    losses = np.array([-2.0, -0.3, 0.0, 0.4, 0.9]) / noise
    tails, ratio = term.tails(losses, "both"), np.log(p / q) - 1e-9
    for i, each in enumerate(losses):
        above = p[ratio > each].sum() * 1e-5 / finite, q[ratio > each].sum() * 1e-5 / finite
        assert_allclose((tails.p_above[i], tails.q_above[i]), above, atol=1e-4)


def test_truncated_laplace_keeps_its_promise_and_its_limits():
    delta, noise = 1e-4, np.array([0.5, 2.0])
    bound = theory.truncation(noise, 1.0, delta)
    leak = loss.truncated_laplace(noise, bound)
    assert_allclose(leak.infinite_mass("both"), delta, rtol=1e-9)
    assert np.all(exact.epsilon(leak, 2 * delta) < 1 / noise)  # what (epsilon, delta) does not say
    plain = 20 * loss.laplace(2.0)
    assert_allclose(
        exact.epsilon(20 * loss.truncated_laplace(2.0, INF), 1e-6), exact.epsilon(plain, 1e-6), 1e-6
    )
    edges = loss.truncated_laplace([0.0, INF, INF], [2.0, 2.0, INF])
    assert_allclose(edges.infinite_mass("both"), [1, 0.25, 0], rtol=1e-15)
    assert_array_equal(edges.cumulant(1.0, "both"), 0)  # of what is finite
    many = 1000 * loss.truncated_laplace(15.0, 250.0)
    lower, estimate, upper = exact.epsilon_bracket(many, 1e-3)
    assert lower <= estimate <= upper <= lower * (1 + 1e-6)
    assert upper < exact.epsilon(
        1000 * loss.approximate(1 / 15, many.terms[0][0].infinite_mass("both")), 1e-3
    )
    with pytest.raises(ValueError, match=r"bound = 0\.5: expected at least 1"):
        loss.truncated_laplace(1.0, 0.5)


@pytest.mark.parametrize(("noise", "width"), [(0.5, 1.0), (2.0, 10.0), (1.0, 1.5), (3.0, 0.5)])
def test_bounded_laplace_is_the_largest_log_ratio(noise, width):
    values = np.linspace(0, width, 31)
    x = np.linspace(0, width, 401)
    mass = 1 - (np.exp(-values / noise) + np.exp((values - width) / noise)) / 2
    log_density = -np.abs(x - values[:, None]) / noise - np.log(mass)[:, None]
    near = np.abs(values[:, None] - values) <= 1 + 1e-12
    ratio = (log_density[:, None] - log_density[None]).max(-1)[near].max()
    epsilon = loss.bounded_laplace(noise, width).supremum("both")
    assert ratio <= epsilon * (1 + 1e-12)
    assert_allclose(ratio, epsilon, rtol=0.02)
    assert min(1, width) / noise <= epsilon <= 2 * min(1, width) / noise * (1 + 1e-12)


def test_bounded_laplace_edges():
    edges = loss.bounded_laplace([0.0, 1e-4, 1.0, INF, 1.0], [1.0, 5.0, 0.0, 1.0, 1e6])
    expected = [INF, 1e4 + np.log(2), 0, 0, 1 + np.log1p(-np.expm1(-1))]
    assert_allclose(edges.supremum("both"), expected, rtol=1e-12)


SCORES = np.array([[3.0, 1.0, 0.0, 2.5], [2.0, 2.0, 1.0, 1.5], [2.0, 0.0, -1.0, 1.5]])


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_selection_leaks_no_more_than_is_claimed(scale):
    pairs = [(0, 1, False), (1, 0, False), (0, 2, True), (2, 0, True)]  # the last moves all down
    for a, b, monotone in pairs:
        for law, family in (
            (theory.selection.permute_and_flip, loss.permute_and_flip),
            (theory.selection.report_noisy_max, loss.report_noisy_max),
        ):
            p, q = law(SCORES[a], scale), law(SCORES[b], scale)
            most = family(scale, 1.0, monotone=monotone).supremum("both")
            assert np.max(np.log(p / q)) <= most + 1e-9
        p, q = (theory.selection.exponential_mechanism(SCORES[i], scale) for i in (a, b))
        claim = bounds.exponential_mechanism(scale, 1.0, monotone=monotone)
        assert np.all(of_atoms(p, q) <= claim.cumulant(T, "both") + 1e-12)


def test_only_the_exponential_mechanism_has_the_smaller_rho():
    many = 10_000 * bounds.exponential_mechanism(40.0, 1.0)
    one = bounds.exponential_mechanism(2.0, 1.0), loss.permute_and_flip(2.0, 1.0)
    assert one[0].cumulant(1.0, "both") < 2 / 8 < one[1].cumulant(1.0, "both")
    assert rdp.epsilon(many, 1e-6) < 0.6 * rdp.epsilon(
        10_000 * loss.permute_and_flip(40.0, 1.0), 1e-6
    )
    with pytest.raises(ValueError, match="expected pairs"):
        exact.epsilon(many, 1e-6)


def test_above_threshold_adds_both_noises():
    assert_allclose(loss.above_threshold(4.0, 2.0, 1.0).supremum("both"), 1.0)
    assert_allclose(loss.above_threshold(4.0, 2.0, 1.0, monotone=True).supremum("both"), 0.75)
    edges = loss.above_threshold([0.0, INF, 4.0], [2.0, INF, 2.0], [1.0, 1.0, 0.0])
    assert_array_equal(edges.supremum("both"), [INF, 0, 0])


@pytest.mark.parametrize(
    "bad",
    [
        lambda: loss.staircase(1.0, 1.5),
        lambda: loss.staircase(-1.0, 0.5),
        lambda: loss.bounded_laplace(1.0, INF),
        lambda: loss.permute_and_flip(float("nan"), 1.0),
        lambda: loss.above_threshold(1.0, -1.0, 1.0),
        lambda: bounds.exponential_mechanism(1.0, -1.0),
    ],
)
def test_bad_arguments_are_named(bad):
    with pytest.raises(
        ValueError,
        match=r"^(gamma|noise_multiplier|width|scale|threshold_scale|sensitivity) = .*: expected",
    ):
        bad()
