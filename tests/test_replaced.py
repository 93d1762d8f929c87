"""Losses of a sample when a record is replaced: against integrals, published values and edges."""

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import exact, loss, rdp

INF = float("inf")
mp: Any = mpmath.mp.clone()
mp.dps = 25


def poisson_gaussian(q, s):
    return loss.sampled_gaussian(q, s, adjacency="replace_one")


def poisson_laplace(q, b):
    return loss.sampled_laplace(q, b, adjacency="replace_one")


FAMILIES = {
    "poisson_gaussian": poisson_gaussian,
    "subset_gaussian": loss.subset_gaussian,
    "poisson_laplace": poisson_laplace,
    "subset_laplace": loss.subset_laplace,
}
EVERY = pytest.mark.parametrize("name", FAMILIES)


def densities(name, q, noise):
    """P, Q on the line as their docstrings define them, the places to cut at, and the reach."""
    q, s = mp.mpf(q), mp.mpf(noise)
    if "gaussian" in name:
        reach = 13 * s

        def law(x, mean):
            return mp.exp(-(((x - mean) / s) ** 2) / 2) / s / mp.sqrt(2 * mp.pi)

    else:
        reach = 60 * s

        def law(x, mean):
            return mp.exp(-abs(x - mean) / s) / s / 2

    if name.startswith("poisson"):
        return (
            lambda x: (1 - q) * law(x, 0) + q * law(x, 1),
            lambda x: (1 - q) * law(x, 0) + q * law(x, -1),
            [-1, 0, 1],
            reach,
        )
    # (q P + (1-q) Q, Q) for losses above 0, (P, (1-q) P + q Q) below, P and Q at -+1 by symmetry
    return (
        lambda x: q * law(x, 1) + (1 - q) * law(x, -1) if x > 0 else law(x, 1),
        lambda x: law(x, -1) if x > 0 else (1 - q) * law(x, 1) + q * law(x, -1),
        [-1, 0, 1],
        reach,
    )


def moment(name, q, noise, t):
    """E_P[exp(t L)]; what the halves lack of chance 1 is at L = 0."""
    p, other, cuts, reach = densities(name, q, noise)
    t = mp.mpmathify(t)
    reach = reach + 2 * abs(mp.re(t)) + 2
    places = [-reach, *cuts, reach]
    pieces = []
    for low, high in itertools.pairwise(places):
        pieces += mp.linspace(low, high, 8 + int(2 * abs(t)))
    pieces = sorted(set(pieces))
    both = mp.quad(lambda x: mp.mpc(p(x) * (p(x) / other(x)) ** t, p(x)), pieces, maxdegree=5)
    if mp.im(t) == 0:
        return mp.re(both) + 1 - mp.im(both)
    inside = mp.quad(lambda x: p(x) * (p(x) / other(x)) ** t, pieces, maxdegree=5)
    return inside + 1 - mp.quad(p, pieces, maxdegree=5)


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("t", [4.0, 1.5 + 1j])
@pytest.mark.parametrize(("q", "noise"), [(0.3, 0.9)])
def test_cumulant_is_the_integral_over_its_pair_within_its_error(name, q, noise, t):
    (leak, _), *_ = FAMILIES[name](q, noise).terms
    value, error = leak.cumulant_with_error(np.array([t]), "both")
    ratio = moment(name, q, noise, t) / mp.exp(mp.mpmathify(complex(value[0])))
    assert abs(ratio - 1) <= np.expm1(error[0]) + 1e-20
    cancelled = leak.cumulant(np.real([t]), "both")[0] - np.real(value[0])
    assert error[0] <= 1e-12 * max(1, abs(value[0])) * np.exp(cancelled)


@EVERY
def test_cumulant_is_a_sum_over_a_fine_grid(name):
    noise, t = 0.8, np.array([0.5, 3.0])
    p, other, *_ = densities(name, 0.2, noise)
    points = np.linspace(-20 * noise, 20 * noise, 1201)
    p, other = (np.array([float(f(x)) for x in points]) for f in (p, other))
    step = points[1] - points[0]
    kept = p > 1e-280
    sums = [(p[kept] * (p[kept] / other[kept]) ** s).sum() * step for s in (*t, 0)]
    # a rectangle rule on densities with kinks: right to a few parts in a thousand
    whole = np.log(np.array(sums[:2]) + 1 - sums[2])
    assert_allclose(FAMILIES[name](0.2, noise).cumulant(t, "both"), whole, rtol=0.02)


@EVERY
def test_both_directions_are_one(name):
    privacy_loss = FAMILIES[name]([0.01, 0.5, 1.0], 1.3)
    assert privacy_loss.directions == ("both",)
    t = np.array([-0.2, 0.7, 4.0])
    assert_allclose(
        privacy_loss.cumulant(t, "both"), privacy_loss.cumulant(-1 - t, "both"), rtol=1e-14
    )
    assert np.all(privacy_loss.cumulant(np.array([0.0, -1.0]), "both") == 0)


@EVERY
def test_decay_bounds_the_modulus(name):
    (leak, _), *_ = FAMILIES[name]([0.05, 0.9], 0.7).terms
    c, y = np.array([[0.4], [5.0]]), np.broadcast_to(np.linspace(0, 30, 60), (2, 60))
    modulus = np.real(leak.cumulant(c + 1j * y, "both") - leak.cumulant(c, "both"))
    bound = leak.log_decay(c, y, "both")
    largest_beyond = np.maximum.accumulate(modulus[:, ::-1], 1)[:, ::-1]
    assert np.all(largest_beyond <= bound + 1e-13)
    assert np.all(np.diff(bound) <= 1e-15)
    assert np.all(bound[:, -1] < -1e-4)  # and it says something


@EVERY
def test_tails_are_those_of_the_pair(name):
    (leak, _), *_ = FAMILIES[name](0.2, 0.8).terms
    end = leak.supremum("both")
    losses = np.array([-9.0, -1.0, -0.01, 0.0, 0.3, 1.2, 9.0])
    tails = leak.tails(losses, "both")
    assert_allclose(tails.p_above + tails.p_below, 1, rtol=1e-12)
    assert_allclose(tails.q_above + tails.q_below, 1, rtol=1e-12)
    # symmetry, and delta by parts: the integral of Q's tail over exp(l)
    mirrored = leak.tails(-losses, "both")
    inside = (np.abs(losses) > 0) & (np.abs(losses) != end)
    assert_allclose(tails.p_above[inside], mirrored.q_below[inside], rtol=1e-9, atol=1e-300)
    fine = np.linspace(0.3, 40, 200_001)
    q_above = leak.tails(fine, "both").q_above
    area = np.sum((q_above[1:] + q_above[:-1]) / 2 * np.diff(np.exp(fine)))
    assert_allclose(area, exact.delta(FAMILIES[name](0.2, 0.8), 0.3), rtol=1e-4)


@EVERY
@pytest.mark.parametrize("q", [0.05, 0.9])
def test_one_release_is_the_integral_of_its_profile(name, q):
    noise, level = 0.8, np.exp(0.1)
    x = np.linspace(-30, 30, 1_200_001)

    def law(mean):
        if "gaussian" in name:
            return np.exp(-(((x - mean) / noise) ** 2) / 2) / noise / np.sqrt(2 * np.pi)
        return np.exp(-np.abs(x - mean) / noise) / noise / 2

    if name.startswith("poisson"):
        p, other = (1 - q) * law(0) + q * law(1), (1 - q) * law(0) + q * law(-1)
    else:
        p, other = q * law(1) + (1 - q) * law(-1), law(-1)
    delta = np.maximum(p - level * other, 0).sum() * (x[1] - x[0])
    assert_allclose(exact.delta(FAMILIES[name](q, noise), 0.1), delta, rtol=1e-6)


@EVERY
@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.slow)])
def test_with_every_record_it_is_the_release_of_twice_the_sensitivity(name, count):
    plain = loss.gaussian if "gaussian" in name else loss.laplace
    noise = np.array([2.0, 30.0])
    t = np.array([-0.3, 0.3, 7.0, 100.0])
    whole, half = FAMILIES[name](1.0, noise), plain(noise / 2)
    assert_allclose(whole.cumulant(t, "both"), half.cumulant(t, "both"), rtol=1e-12)
    assert_allclose(exact.epsilon(count * whole, 1e-5), exact.epsilon(count * half, 1e-5), 2e-7)


@EVERY
def test_edges(name):
    edges = FAMILIES[name]([0.0, 0.0, 0.1, 0.1, 1.0], [1.0, 0.0, INF, 0.0, 0.0])
    assert_array_equal(edges.infinite_mass("both"), [0, 0, 0, 0.1, 1])
    assert_array_equal(edges.cumulant(2.0, "both"), 0)
    assert_array_equal(exact.epsilon(edges, 1e-6), [0, 0, 0, INF, INF])
    delta, truth = exact.delta(edges, 0.5), np.array([0, 0, 0, 0.1, 1])
    assert np.all((delta >= truth) & (delta <= truth * (1 + 1e-14)))  # rounding is charged
    assert_array_equal(rdp.epsilon(edges, 0.2), [0, 0, 0, 0, INF])


@pytest.mark.slow
@EVERY
def test_extremes_are_right_and_never_below_the_truth(name):
    # noise of 1e6 on Laplace takes the finest grids: seconds, and nothing new
    far = FAMILIES[name](0.1, np.array([0.01, 1e6] if "gaussian" in name else [0.01]))
    bracket = exact.epsilon_bracket(far, 1e-30)
    assert np.all((bracket.lower <= bracket.upper) & np.isfinite(bracket.upper))
    assert np.all(bracket.upper <= rdp.epsilon(far, 1e-30) * (1 + 1e-9))


@EVERY
def test_compositions_lie_between_their_bounds(name):
    steps = np.array([800, 2000]) * FAMILIES[name](0.02, 1.5)
    lower, estimate, upper = exact.epsilon_bracket(steps, 1e-6)
    assert np.all((lower <= estimate) & (estimate <= upper) & (upper <= lower * (1 + 1e-6)))
    assert np.all(upper < rdp.epsilon(steps, 1e-6))
    by_rows = [exact.epsilon(steps.take(np.array([i])), 1e-6)[0] for i in range(2)]
    assert_allclose(by_rows, upper, rtol=1e-9)


def test_replacing_costs_more_than_removing_and_less_than_both_ways():
    q, s = np.array([0.01, 0.2]), 2.0
    removed = exact.epsilon(1000 * loss.sampled_gaussian(q, s), 1e-6)
    replaced = exact.epsilon(1000 * poisson_gaussian(q, s), 1e-6)
    subset = exact.epsilon(1000 * loss.subset_gaussian(q, s), 1e-6)
    assert np.all(removed < replaced)
    assert np.all(replaced < subset)  # fixed size knows that another record takes the place


@EVERY
def test_sampling_only_helps(name):
    q = np.array([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0])
    delta = exact.delta(FAMILIES[name](q, 4.0), 0.01)
    assert delta[0] == 0
    assert np.all(np.diff(delta) >= 0)
    epsilon = rdp.epsilon(100 * FAMILIES[name](q, 4.0), 1e-6)
    assert np.all(np.diff(epsilon) >= 0)


def mixture(weights, sums, noise, x):
    """The density of a sum of a random sample, with Gaussian noise."""
    gaussians = np.exp(-(((x - np.asarray(sums)[:, None]) / noise) ** 2) / 2)
    return np.asarray(weights) @ gaussians / noise / np.sqrt(2 * np.pi)


def sample_sums(records, q, size):
    """All samples of some records: chances and sums, Poisson or of a fixed size."""
    weights, sums = [], []
    for taken in itertools.product([0, 1], repeat=len(records)):
        number = sum(taken)
        if size is None:
            weights.append(q**number * (1 - q) ** (len(records) - number))
        elif number == size:
            weights.append(1.0)
        else:
            continue
        sums.append(np.dot(taken, records))
    return np.array(weights) / np.sum(weights), sums


STEP = 0.02
KINK = STEP**2 / 8  # of a rectangle rule at a kink where the slope changes by 1 or less


def neighbours(others, size, q=0.3, noise=0.9):
    """Outputs of data that differ in one record, (2, points), and the claimed loss."""
    x = np.arange(-8, 8, STEP)
    records = [[first, *others] for first in (1.0, -1.0)]
    laws = [mixture(*sample_sums(each, q, size), noise, x) for each in records]
    claim = poisson_gaussian(q, noise) if size is None else loss.subset_gaussian(size / 4, noise)
    return np.array(laws), claim


@pytest.mark.parametrize("size", [None, 1, 2])
@pytest.mark.parametrize("others", [[1.0, 1.0, -1.0], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]])
def test_the_pairs_dominate_real_data(size, others):
    laws, claim = neighbours(others, size)
    worst = (0.0, 0.0, 0.0) if size is None else (-1.0, -1.0, -1.0)
    for wanted in (0.0, 0.3, 1.0, 2.0):
        ratio, most = np.exp(wanted), exact.delta(claim, wanted)
        found = [np.maximum(p - ratio * q, 0).sum() * STEP for p, q in (laws, laws[::-1])]
        assert max(found) <= most + ratio * KINK
        if tuple(others) == worst:
            assert max(found) >= most - ratio * KINK


@pytest.mark.slow
@pytest.mark.parametrize(("size", "others"), [(None, [0.0] * 3), (2, [-1.0] * 3), (1, [1.0] * 3)])
def test_the_pairs_dominate_two_releases_of_real_data(size, others):
    laws, claim = neighbours(others, size)
    (p, q), ratio = laws, np.exp(0.5)
    most = exact.delta(2 * claim, 0.5)
    # the worse direction may differ from one release to the next
    found = [
        np.maximum(np.outer(*one) - ratio * np.outer(*other), 0).sum() * STEP**2
        for one, other in (((p, p), (q, q)), ((q, q), (p, p)), ((p, q), (q, p)))
    ]
    assert 0.2 * most < max(found) <= most + 2 * ratio * KINK


# DPBayes/PLD-Accountant 2d9702b2, tests/test_compute_epsilon.py, adjacency by substitution
@pytest.mark.parametrize(
    ("noise", "expected"), [(1.0, 11.956857696159513), (2.0, 4.907397768991888)]
)
def test_published_dp_sgd_under_substitution(noise, expected):
    steps = 10_000 * poisson_gaussian(0.01, noise)
    assert_allclose(exact.epsilon(steps, 1e-6), expected, rtol=1e-6)


# google/differential-privacy b5b0286e, privacy_loss_mechanism_test.py, adjacency REPLACE
@pytest.mark.parametrize(
    ("noise", "q", "epsilon", "expected"),
    [
        (2.0, 0.3, 2, 2.4770380148941894e-09),
        (1.5, 0.8, 1, 0.13711260900644096),
        (0.5, 0.4, 1, 0.20752885274183325),
    ],
)
def test_published_deltas_of_one_step(noise, q, epsilon, expected):
    assert_allclose(exact.delta(poisson_gaussian(q, noise), epsilon), expected, rtol=1e-10)


def test_a_published_delta_below_epsilon_zero():
    # the same source, epsilon = -0.25: delta(-e) = 1 - exp(-e) + exp(-e) delta(e) for a mirror pair
    delta = exact.delta(poisson_gaussian(0.2, 2.0), 0.25)
    assert_allclose(-np.expm1(-0.25) + np.exp(-0.25) * delta, 0.22989794629827498, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 20])
def test_against_another_accountant(count):
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant(
        privacy_accountant.NeighboringRelation.REPLACE_ONE, 1e-3
    )
    event = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.2))
    accountant.compose(dp_event.SelfComposedDpEvent(event, count))
    upper = accountant.get_epsilon(1e-5)
    ours = exact.epsilon_bracket(count * poisson_gaussian(0.1, 1.2), 1e-5)
    assert ours.lower <= upper
    assert_allclose(ours.upper, upper, rtol=1e-4)


@pytest.mark.parametrize("family", [loss.sampled_gaussian, loss.sampled_laplace])
def test_an_unknown_adjacency_is_named(family):
    with pytest.raises(ValueError, match="adjacency = 'substitute': expected one of add_remove"):
        family(0.1, 1.0, adjacency="substitute")


@pytest.mark.parametrize("family", [loss.subset_gaussian, loss.subset_laplace])
def test_bad_arguments_are_named(family):
    with pytest.raises(ValueError, match=r"sampled_fraction = 1.5: expected a number in \[0, 1\]"):
        family(1.5, 1.0)
    with pytest.raises(ValueError, match="noise_multiplier = -1: expected"):
        family(0.5, -1)
