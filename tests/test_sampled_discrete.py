"""A sample's release by discrete noise or response: both laws by enumeration, and limits."""

import json
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from numpy.testing import assert_allclose, assert_array_equal
from test_reference import agrees, name

from dpjax.accounting import basic, calibrate, exact, loss, rdp
from dpjax.accounting.leaks import sampled_discrete
from dpjax.accounting.leaks.sampled_discrete import SampledResponse, discrete_gaussian_laws
from dpjax.accounting.loss import PrivacyLoss

INF = float("inf")
FILE = Path(__file__).parent / "data" / "families.json"
TOPICS = {
    "public.pld_discrete_laplace_delta",
    "public.subsampled_discrete_laplace_param",
    "public.truncated_discrete_gaussian_delta",
    "public.truncated_discrete_gaussian_std",
}
BLOCKS = [block for block in json.loads(FILE.read_text()) if block["topic"] in TOPICS]


def of_one_direction(leak, adjacency, eps):
    direction = {"REM": "remove", "ADD": "add"}[adjacency]
    ((term, _),) = leak.terms
    mass = leak.infinite_mass(direction)
    return mass + (1 - mass) * np.exp(term.log_delta_once(np.asarray(float(eps)), direction))


def least_rate(sensitivity, q, eps):
    scale = calibrate.noise_multiplier(
        lambda scale: loss.sampled(q, loss.discrete_laplace(scale, sensitivity)),
        eps,
        0.0,
        accountant=basic.epsilon,
    )
    return 1 / scale


def deviation(sigma, truncation):
    """As the noise around 0 when nothing is moved but for what the bound cuts off."""
    x = np.arange(-truncation, truncation + 1)
    laws = discrete_gaussian_laws(float(sigma), 1.0, float(truncation))
    p = np.append(laws.a_alone, np.exp(laws.log_a))  # from -truncation on
    return np.sqrt(p @ x**2)


ADAPTERS = {
    "public.pld_discrete_laplace_delta": lambda param, sensitivity, q, adjacency, eps: (
        of_one_direction(
            loss.sampled(q, loss.discrete_laplace(1 / param, sensitivity)), adjacency, eps
        )
    ),
    "public.subsampled_discrete_laplace_param": least_rate,
    "public.truncated_discrete_gaussian_delta": (
        lambda sigma, sensitivity, truncation, q, adjacency, eps: of_one_direction(
            loss.sampled(q, loss.truncated_discrete_gaussian(sigma, sensitivity, truncation)),
            adjacency,
            eps,
        )
    ),
    "public.truncated_discrete_gaussian_std": deviation,
}
CASES = [(block, case) for block in BLOCKS for case in block["cases"]]


@pytest.mark.parametrize(("block", "case"), CASES, ids=name)
def test_agrees_with_the_reference(block, case):
    assert agrees(ADAPTERS[block["topic"]](**case["inputs"]), case["expected"], block["tol"])


def moved(weight, d, reach):
    """A law on whole numbers from -reach on, and the same moved by d."""
    p = weight(np.arange(-reach, reach + 1.0))
    p = p / p.sum()
    return np.append(np.zeros(d), p), np.append(p, np.zeros(d))


PAIRS = {
    "laplace": (loss.discrete_laplace(1.5, 3), moved(lambda x: np.exp(-abs(x) / 1.5), 3, 150)),
    "gaussian": (loss.discrete_gaussian(2.0, 3), moved(lambda x: np.exp(-(x**2) / 8), 3, 90)),
    "sharp": (loss.discrete_gaussian(0.3, 1), moved(lambda x: np.exp(-(x**2) / 0.18), 1, 12)),
    "truncated": (
        loss.truncated_discrete_gaussian(2.0, 3, 4),
        moved(lambda x: np.exp(-(x**2) / 8), 3, 4),
    ),
    "pure": (loss.pure(0.7), np.array([[np.exp(0.7), 1], [1, np.exp(0.7)]]) / (1 + np.exp(0.7))),
    "one": (loss.discrete_laplace(1.5, 1), moved(lambda x: np.exp(-abs(x) / 1.5), 1, 150)),
    "approximate": (
        loss.approximate(0.7, 0.1),
        0.9 * np.array([[np.exp(0.7), 1, 0, 0], [1, np.exp(0.7), 0, 0]]) / (1 + np.exp(0.7))
        + 0.1 * np.eye(4)[2:],
    ),
    "three": (
        loss.k_ary_response(1.0, 3, adjacency="add_remove"),
        np.array([[np.e, 1, 1], [np.e / 3 + 2 / 3] * 3]) / (np.e + 2),
    ),
}


@pytest.mark.parametrize("q", [0.01, 0.6, 1.0])
@pytest.mark.parametrize("family", PAIRS)
def test_it_is_the_enumeration_of_its_pair(family, q):
    release, (with_record, without) = PAIRS[family]
    leak = loss.sampled(q, release)
    ((term, _),) = leak.terms
    mixed = (1 - q) * without + q * with_record
    worst = np.zeros(2)
    for direction, (p, other) in {"remove": (mixed, without), "add": (without, mixed)}.items():
        both = (p > 0) & (other > 0)
        infinite = p[~both].sum()
        assert_allclose(leak.infinite_mass(direction), infinite, rtol=1e-12, atol=1e-40)
        epsilons = np.array([0.005, 0.3])
        deltas = [np.maximum(p - np.exp(e) * other, 0).sum() for e in epsilons]
        worst = np.maximum(worst, deltas)
        p, other = p[both] / (1 - infinite), other[both] / (1 - infinite)
        if p.size == 0:
            continue
        t = np.array([0.5, 3.0, -0.7])
        truth = np.log((p * np.exp(t[:, None] * np.log(p / other))).sum(1))
        assert_allclose(leak.cumulant(t, direction), truth, rtol=1e-9, atol=1e-15)
        line = leak.cumulant(np.array([1 + 2j, 1 + 5j]), direction)
        turned = (p * np.exp(np.array([[1 + 2j], [1 + 5j]]) * np.log(p / other))).sum(1)
        assert_allclose(np.exp(line), turned, rtol=1e-9)
        if not term.has_tails:  # two losses, which lie on a lattice
            continue
        at = 0.004
        tails, ratio = term.tails(np.array(at), direction), np.log(p / other)
        sums = [law[side].sum() for law in (p, other) for side in (ratio > at, ratio <= at)]
        assert_allclose(tails[:4], sums, rtol=1e-9, atol=1e-15)
    brackets = exact.delta_bracket(leak, np.array([0.005, 0.3]))
    assert_allclose(brackets.upper, worst, rtol=1e-9, atol=1e-40)
    assert np.all(
        (brackets.lower <= worst * (1 + 1e-12)) & (worst <= brackets.upper * (1 + 1e-12) + 1e-40)
    )


@pytest.mark.parametrize(
    "family",
    ["laplace", *(pytest.param(f, marks=pytest.mark.slow) for f in ("gaussian", "truncated"))],
)
def test_three_releases_by_all_their_outcomes(family):
    q = 0.2
    release, (with_record, without) = PAIRS[family]
    mixed = (1 - q) * without + q * with_record
    keep = (mixed > 1e-9) | (without > 1e-9)
    p, other = mixed[keep], without[keep]
    three = [np.multiply.outer(np.multiply.outer(law, law), law).ravel() for law in (p, other)]
    for epsilon in (0.1, 0.8):
        bracket = exact.delta_bracket(3 * loss.sampled(q, release), epsilon)
        truth = max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in (three, three[::-1]))
        left_out = 1e-6  # of 3 releases, outcomes of less than 1e-9
        assert bracket.lower - left_out <= truth <= bracket.upper + left_out
        assert bracket.upper - bracket.lower < 2e-3 * truth


@pytest.mark.parametrize(
    "release",
    [loss.discrete_laplace([0.4, 3.0], 2), loss.discrete_gaussian(3.0, [1, 4]), loss.pure(2.0)],
    ids=["laplace", "gaussian", "pure"],
)
def test_a_sample_of_all_is_the_release_itself(release):
    everyone, t = loss.sampled(1.0, release), np.array([0.3, 2.0, 20.0])
    for direction in ("remove", "add"):
        assert_allclose(everyone.cumulant(t, direction), release.cumulant(t, "both"), rtol=1e-9)
    assert_allclose(exact.delta(everyone, 0.4), exact.delta(release, 0.4), rtol=1e-9)
    assert_allclose(rdp.epsilon(4 * everyone, 1e-5), rdp.epsilon(4 * release, 1e-5), rtol=1e-9)


def test_two_losses_stay_on_a_lattice():
    twice = loss.sampled(0.5, loss.sampled(0.2, loss.pure([0.1, 2.0])))
    once = loss.sampled(0.1, loss.pure([0.1, 2.0]))
    assert_allclose(twice.cumulant(2.0, "add"), once.cumulant(2.0, "add"), rtol=1e-12)
    brackets = exact.epsilon_bracket(1000 * once, 1e-7)
    assert np.all(brackets.upper - brackets.lower < 1e-9 * brackets.upper)
    table = SampledResponse(*(np.asarray(x) for x in (0.1, 2.0, 2.0, 0.0)))
    other = exact.epsilon_bracket(1000 * PrivacyLoss(((table, np.asarray(1)),)), 1e-7)
    assert other.lower <= brackets.upper[1]
    assert brackets.lower[1] <= other.upper
    absent = loss.k_ary_response(1.0, 3, adjacency="add_remove")
    both = loss.sampled(1.0, absent), absent
    assert_allclose(*(leak.cumulant(np.array([0.5, 4.0]), "remove") for leak in both), rtol=1e-12)
    never = loss.sampled(0.0, absent)
    assert exact.delta(never, 0.0) == 0


def test_a_sample_of_a_sample_is_a_smaller_sample():
    for release in (loss.gaussian(2.0), loss.laplace(2.0), loss.discrete_laplace(2.0, 3)):
        twice = loss.sampled(0.5, loss.sampled(0.2, release))
        once = loss.sampled(0.1, release)
        assert_array_equal(twice.cumulant(2.0, "add"), once.cumulant(2.0, "add"))
    ours, theirs = loss.sampled(0.1, loss.gaussian(2.0)), loss.sampled_gaussian(0.1, 2.0)
    assert_array_equal(ours.cumulant(3.0, "remove"), theirs.cumulant(3.0, "remove"))


@pytest.mark.parametrize("q", [1e-6, 0.1, 0.9])
def test_a_private_release_of_a_sample_is_more_private(q):
    epsilon, delta = 1.0, 1e-6
    leak = loss.sampled(q, loss.approximate(epsilon, delta))
    amplified = np.log1p(q * np.expm1(epsilon))  # Balle, Barthe, Gaboardi 2018, Theorem 8
    assert_allclose(exact.delta(leak, amplified * (1 + 1e-12)), q * delta, rtol=1e-9)
    assert exact.delta(leak, amplified * (1 - 1e-6)) > q * delta * (1 + 1e-9)


def test_a_wide_discrete_gaussian_is_a_gaussian():
    discrete = loss.sampled(0.05, loss.discrete_gaussian(60.0, 30))
    smooth = loss.sampled_gaussian(0.05, 2.0)
    for direction in ("remove", "add"):
        t = np.array([0.5, 5.0, 60.0])
        assert_allclose(discrete.cumulant(t, direction), smooth.cumulant(t, direction), rtol=1e-9)
    answers = [exact.epsilon_bracket(100 * each, 1e-6) for each in (discrete, smooth)]
    assert answers[0].lower <= answers[1].upper * (1 + 1e-4)
    assert answers[1].lower <= answers[0].upper * (1 + 1e-4)


def test_many_losses_are_spread(monkeypatch):
    """It raises what leaks, and by little."""
    families = (loss.discrete_laplace(300.0, 900), loss.discrete_gaussian(30.0, 20))
    for release in families:
        answers = []
        for table in (1 << 17, 1 << 10, 1 << 7):
            monkeypatch.setattr(sampled_discrete, "_TABLE", table)
            sampled_discrete._table.cache_clear()
            leak = loss.sampled(0.1, release)
            answers.append(exact.delta(leak, 0.05))
            value = leak.cumulant(np.array([0.5, 20.0]), "add")
            assert np.all(np.isfinite(value))
        assert answers[0] <= answers[1] <= answers[2] <= 1.1 * answers[0]
        assert answers[1] - answers[0] < (answers[2] - answers[0]) / 20
    sampled_discrete._table.cache_clear()


@pytest.mark.slow
def test_a_very_wide_discrete_gaussian_is_a_gaussian():
    discrete = loss.sampled(0.05, loss.discrete_gaussian(20_000.0, 10_000))
    smooth = loss.sampled_gaussian(0.05, 2.0)
    ours, theirs = (float(exact.epsilon(100 * each, 1e-6)) for each in (discrete, smooth))
    assert theirs * (1 - 1e-6) <= ours <= theirs * (1 + 1e-4)


def test_edges():
    nothing = (
        loss.sampled(0.0, loss.discrete_laplace(1.0, 1)),
        loss.sampled(0.5, loss.discrete_laplace(INF, 1)),
        loss.sampled(0.5, loss.discrete_gaussian(1.0, 0)),
        loss.sampled(0.5, loss.discrete_gaussian(INF, 2)),
        loss.sampled(0.5, loss.pure(0.0)),
    )
    for leak in nothing:
        assert exact.epsilon(3 * leak, 0.0) == exact.delta(3 * leak, 0.0) == 0
    for release in (
        loss.discrete_laplace(0.0, 1),
        loss.discrete_gaussian(0.0, 1),
        loss.approximate(1.0, 1.0),
        loss.pure(INF),
        loss.truncated_discrete_gaussian(1.0, 9, 4),
    ):
        bare = loss.sampled(0.25, release)
        assert_allclose(exact.delta(bare, 0.1), 0.25)
        assert_allclose(exact.delta(2 * bare, 5.0), 1 - 0.75**2)
        assert_allclose(bare.supremum("add"), -np.log(0.75))
        assert exact.epsilon(bare, 0.2) == INF
        assert exact.delta(loss.sampled(1.0, release), 1.0) == 1
    assert exact.epsilon(loss.sampled(0.1, loss.discrete_gaussian(2.0, 1)), 0.0) == INF
    assert_allclose(exact.epsilon(loss.truncated_discrete_gaussian(2.0, 1, INF), 0.0), INF)
    assert 0 < exact.epsilon(loss.sampled(0.1, loss.discrete_gaussian(2.0, 1)), 1e-300) < 400
    several = loss.sampled([[0.1], [0.3]], loss.discrete_laplace([1.0, 2.0, 4.0], 2))
    assert np.all(np.diff(exact.epsilon(several, 1e-3), axis=1) < 0)
    alone = loss.sampled(0.3, loss.discrete_laplace(4.0, 2))
    assert_allclose(exact.epsilon(several, 1e-3)[1, 2], exact.epsilon(alone, 1e-3), rtol=1e-14)


BAD = {
    "expected 1 of Gaussian, Laplace": lambda: loss.sampled(0.1, loss.shuffled(1.0, 10)),
    "release = 2 of Gaussian": lambda: loss.sampled(0.1, 2 * loss.gaussian(1.0)),
    'adjacency="add_remove"': lambda: loss.sampled(0.1, loss.k_ary_response(1.0, 3)),
    "release = nothing": lambda: loss.sampled(0.1, loss.PrivacyLoss()),
    "sampling_probability = 1.1": lambda: loss.sampled(1.1, loss.gaussian(1.0)),
    "bound = 1.5: expected a whole": lambda: loss.truncated_discrete_gaussian(1.0, 1, 1.5),
    "expected at most 4194304 different": lambda: exact.delta(
        loss.sampled(0.1, loss.discrete_gaussian(1e5, 1)), 1.0
    ),
    "sensitivity = 1e\\+07": lambda: exact.delta(
        loss.sampled(0.1, loss.discrete_laplace(1e5, 10**7)), 1.0
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_what_has_no_sample_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_a_number_is_no_release():
    with pytest.raises(TypeError, match=r"release = 0\.5: expected a privacy loss"):
        loss.sampled(0.1, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "make"),
    [
        (loss.discrete_laplace(2.0, 3), "discrete_laplace"),
        (loss.discrete_gaussian(2.0, 3), "discrete_gaussian"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dp_accounting_s_upper_bound_is_not_below(release, make):
    parameter = {"discrete_laplace": 1 / 2.0, "discrete_gaussian": 2.0}[make]
    pld = getattr(privacy_loss_distribution, f"from_{make}_mechanism")
    options = {"value_discretization_interval": 1e-4, "use_connect_dots": True}
    one = pld(parameter, 3, sampling_prob=0.1, **options)
    theirs = one.self_compose(40).get_epsilon_for_delta(1e-6)
    bracket = exact.epsilon_bracket(40 * loss.sampled(0.1, release), 1e-6)
    assert bracket.lower <= theirs
    assert_allclose(bracket.upper, theirs, rtol=1e-6)
