"""Compositions on a grid of losses: brackets hold what closed forms, lines and others say."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm

from dpjax.accounting import _grid_laws, discretized, exact, gaussian, integrated, loss
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.gaussian_mixture import GaussianMixture
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace

DATA = Path(__file__).parent / "data"
SAMPLED = loss.sampled_gaussian(0.01, 1.0)


@pytest.fixture
def coarse(monkeypatch):
    """Grids that take milliseconds; a coarse grid's bracket must hold as well."""
    monkeypatch.setattr(discretized, "_FIRST", 1 << 12)
    monkeypatch.setattr(discretized, "_MOST", 1 << 15)


def cases(file, topic):
    blocks = json.loads((DATA / file).read_text())
    return [case for block in blocks if block["topic"] == topic for case in block["cases"]]


def epsilon(composition, direction, delta, most=1e4):
    known = np.array([[0.0], [0.0], [most]])
    flat = exact._flat(composition, (1,))
    return discretized.epsilon(flat, direction, np.log([delta]), known)[:, 0]


def log_delta(composition, direction, at):
    known = np.array([[-np.inf], [-10.0], [0.0]])
    flat = exact._flat(composition, (1,))
    return discretized.log_delta(flat, direction, np.array([at]), known)[:, 0]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("case", cases("sampled_gaussian.json", "sgm.delta_one_step"))
def test_one_step_meets_its_closed_form(case, direction):
    q, s, e = (float(case["inputs"][name]) for name in ("q", "sigma", "eps"))
    truth = case["expected"][direction]
    if truth < 1e-100:
        return
    lower, middle, upper = np.exp(log_delta(loss.sampled_gaussian(q, s), direction, e))
    assert lower <= middle <= upper
    assert lower * (1 - 1e-9) <= truth <= upper * (1 + 1e-9)  # as far as the truth is known


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-100])
@pytest.mark.parametrize("mu", [0.05, 1.0, 8.0])
def test_gaussians_meet_their_closed_form(mu, delta):
    truth = gaussian.epsilon(delta, mu=mu * np.sqrt(7))
    lower, middle, upper = epsilon(7 * loss.gaussian(1 / mu), "both", delta)
    assert lower <= truth <= upper * (1 + 1e-13)
    assert upper - lower <= 1e-4 * upper
    assert_allclose(middle, truth, rtol=1e-6)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("case", cases("laplace_composed.json", "laplace.compose_eps"))
def test_composed_laplace_has_its_atoms_on_the_grid(case):
    b, k, d = (case["inputs"][name] for name in ("b", "k", "delta"))
    lower, _, upper = epsilon(k * loss.laplace(b), "both", d, most=k / b)
    assert lower <= case["lower"] * (1 + 1e-15)
    assert case["upper"] * (1 - 1e-15) <= upper
    # very near the largest loss the tilt is so steep that this way shows nothing
    assert upper - lower <= 1e-3 * upper or upper > 0.99 * k / b


@pytest.mark.usefixtures("coarse")
def test_the_line_lies_within(monkeypatch):
    monkeypatch.setattr(discretized, "_MOST", 1 << 16)
    for composition in (
        50 * SAMPLED,
        10 * loss.laplace(1.0) + 3 * loss.laplace(2.3) + loss.gaussian(3.0),
        20 * SAMPLED + 2 * loss.gaussian(2.0),
    ):
        for direction in composition.directions:
            flat = exact._flat(composition, (1,))
            with np.errstate(all="ignore"):
                line = integrated.epsilon(flat, direction, np.log([1e-6]), best=0)[:, 0]
            lower, _, upper = epsilon(composition, direction, 1e-6)
            assert lower <= line[2]
            assert line[0] <= upper
            assert upper - lower <= 2e-3 * upper  # 65,536 points


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    "leak",
    [
        PoissonGaussian(np.array([0.01]), np.array([1.0])),
        PoissonGaussian(np.array([0.3]), np.array([0.5])),
        PoissonLaplace(np.array([0.01]), np.array([1.0])),
        PoissonLaplace(np.array([1e-6]), np.array([3.0])),
        GaussianMixture(np.array([0.8]), np.array([[0.0, 1, 2]]), np.array([[0.7, 0.2, 0.1]])),
    ],
)
def test_one_law_lies_between_its_two_on_the_grid(leak, direction):
    """Their deltas bracket the release's own, and the gap falls with the square of the step."""
    top = float(leak.supremum(direction)[0])
    other = {"remove": "add", "add": "remove"}[direction]
    low = -min(float(leak.supremum(other)[0]), 8.0)
    high = min(top, 8.0)
    gaps = []
    for size in (1 << 10, 1 << 13):
        step = (high - low) / size
        at = low + (high - low) * np.array([0.21, 0.4, 0.63, 0.97])
        grid = (leak, direction, low - step, step, size + 3)
        with np.errstate(all="ignore"):
            below, above = _grid_laws.gathered(*grid), _grid_laws.spread(*grid)
        truth = np.exp(leak.log_delta_once(np.maximum(at, 0), direction))
        points = low + step * np.arange(-1, size + 2)
        gain = np.maximum(-np.expm1(np.maximum(at, 0)[:, None] - points), 0)
        under, over = (gain @ law.masses + law.infinite for law in (below, above))
        assert np.all(at <= below.end)
        assert np.all(under <= truth * (1 + 1e-9) + 1e-15)
        assert np.all(truth * (1 - 1e-9) <= over + 1e-15)
        assert np.all(below.masses >= 0)
        gaps.append(over - under)
    assert np.all(gaps[1] <= gaps[0] / 20 + 2e-11)  # and what the tails round


def test_two_different_laplace_mechanisms_by_hand():
    """Largest loss e1 + e2; delta falls below the atoms' share P = 1/4 just before it."""
    composition = loss.laplace(1.0) + loss.laplace(2.5)
    bracket = exact.delta_bracket(composition, 1.0)
    # E[(1 - exp(1 - a - b))_+] over the atom or density of a = L1 and b = L2, by quadrature
    e1, e2, n = 1.0, 0.4, 20_000
    a = -e1 + 2 * e1 * (np.arange(n) + 0.5) / n
    first = np.exp((a - e1) / 2) / 4 * (2 * e1 / n)
    once = np.array([log_once(1.0 - x, e2) for x in (e1, -e1)])
    truth = once @ [0.5, np.exp(-e1) / 2] + first @ log_once(1.0 - a, e2)
    assert_allclose(bracket.estimate, truth, rtol=1e-6)
    assert bracket.lower <= truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) <= bracket.upper


def log_once(epsilon, e0):
    """Delta of one Laplace release at any epsilon: 1 - exp((epsilon - e0) / 2) on (-e0, e0)."""
    below = -np.expm1(np.minimum(epsilon, -e0))
    return np.where(epsilon < -e0, below, np.maximum(-np.expm1((epsilon - e0) / 2), 0))


def test_ten_steps_of_the_sampled_gaussian():
    """A line of 20,000 nodes gave 0.59234945; dp-accounting 0.6's upper bound is 0.5923494512."""
    bracket = exact.epsilon_bracket(10 * SAMPLED, 1e-6)
    assert bracket.lower <= 0.5923494512
    assert abs(bracket.estimate - 0.59234945) <= 6e-9
    assert bracket.upper - bracket.lower <= 1e-6 * bracket.upper


def test_a_sum_of_different_releases_is_their_total():
    q, b = [0.01, 0.02, 0.03], [1.0, 1.5, 2.0]
    together = exact.epsilon_bracket(loss.sampled_laplace(q, b).sum(), 1e-6)
    parts = [loss.sampled_laplace(*pair) for pair in zip(q, b, strict=True)]
    apart = exact.epsilon_bracket(parts[0] + parts[1] + parts[2], 1e-6)
    assert together.upper - together.lower <= 1e-7 * together.upper
    assert_allclose(together, apart, rtol=1e-7)


@pytest.mark.slow
def test_dp_accountings_upper_bounds_are_not_below():
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    for k in (3, 20):
        accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-5)
        event = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
        accountant.compose(dp_event.SelfComposedDpEvent(event, k))
        theirs = accountant.get_epsilon(1e-6)
        bracket = exact.epsilon_bracket(k * SAMPLED, 1e-6)
        assert bracket.lower <= theirs
        assert_allclose(bracket.estimate, theirs, rtol=1e-5)
        assert bracket.upper - bracket.lower <= 3e-6 * bracket.upper


@pytest.mark.slow
@pytest.mark.usefixtures("coarse")
@settings(max_examples=4, deadline=None)
@given(
    log_q=st.floats(-4, 0),
    log_s=st.floats(-0.5, 2),
    k=st.integers(1, 40),
    log_d=st.floats(-30, -1),
)
def test_ordered_and_monotone(log_q, log_s, k, log_d):
    composition = k * loss.sampled_gaussian(10**log_q, 10**log_s)
    for direction in ("remove", "add"):
        some = epsilon(composition, direction, 10**log_d)
        assert 0 <= some[0] <= some[1] <= some[2]
        less = epsilon(composition, direction, 10 ** (log_d - 1))
        more = epsilon(2 * composition, direction, 10**log_d)
        assert some[0] <= min(less[2], more[2])


@pytest.mark.usefixtures("coarse")
def test_edges():
    both = 3 * SAMPLED + 0 * loss.laplace(1.0)
    assert_allclose(epsilon(both, "remove", 0.5), 0)  # above the total variation
    assert not discretized.possible(loss.PrivacyLoss(((object_without_tails(), np.array(1)),)))
    lower, _, upper = epsilon(both, "remove", 1e-250)
    assert 0 < lower <= upper
    assert_allclose(epsilon(both, "remove", 1e-299, most=50.0), [0, 0, 50])  # tails underflow


def object_without_tails():
    from dpjax.accounting.leaks import Leak

    return Leak()


def test_a_law_that_bends_within_a_step():
    # at q = 1e-4 half of a step's losses lie within 1e-5 of the least, and the rest reaches to 10
    q, s, at = 1e-4, 0.5, 0.0095
    leak = PoissonGaussian(np.array(q), np.array(s))

    def once(epsilon):
        """Delta of one step; below 0 by the other direction."""
        remove, add = (leak.log_delta_once(np.abs(epsilon), way) for way in ("remove", "add"))
        return np.where(epsilon < 0, -np.expm1(epsilon) + np.exp(epsilon + add), np.exp(remove))

    x, h = np.linspace(-6, 8, 100_001, retstep=True)
    mixture = (1 - q) * np.exp(-(x**2) / 2 / s**2) + q * np.exp(-((x - 1) ** 2) / 2 / s**2)
    losses = np.log1p(q * np.expm1((2 * x - 1) / (2 * s**2)))
    truth = h / s / np.sqrt(2 * np.pi) * np.sum(mixture * once(at - losses))
    lower, middle, upper = exact.delta_bracket(2 * loss.sampled_gaussian(q, s), at)
    assert lower * (1 - 1e-8) <= truth <= upper * (1 + 1e-8)
    assert upper - lower <= 1e-5 * upper
    assert abs(middle - truth) <= 1e-5 * truth


@pytest.mark.parametrize(
    ("leak", "direction", "start", "step", "size"),
    [
        (Gaussian(np.array([8.6])), "both", -10.85, 0.5168, 26),
        (PoissonGaussian(np.array([0.01]), np.array([4.0])), "add", 0.01005 - 0.6, 0.003, 202),
        (PoissonGaussian(np.array([1e-8]), np.array([2.0])), "add", 1e-8 - 1.5e-6, 1e-9, 1502),
    ],
)
def test_a_grid_that_reaches_beyond_all_mass_stays_below(leak, direction, start, step, size):
    """Its last cells have their means far left of the last points."""
    with np.errstate(all="ignore"):
        law = _grid_laws.gathered(leak, direction, start, step, size)
    points = start + step * np.arange(size)
    between = start + step * np.arange(0, size - 2, 0.4)
    found = np.maximum(-np.expm1(between[:, None] - points), 0) @ law.masses + law.infinite
    with np.errstate(all="ignore"):
        tails = leak.tails(between, direction)
    truth = tails.p_above - np.exp(between) * tails.q_above
    assert np.all(found <= truth + 1e-15)


def test_a_window_in_the_wrong_place_bounds_nothing():
    # far from the answer what lies outside is all there is, though its share underflows
    known = np.array([[0.0], [0.0], [1e-3]])
    flat = exact._flat(1000 * loss.sampled_laplace(1.0, 1e6), (1,))
    truth = exact.epsilon_bracket(1000 * loss.laplace(1e6), 1e-30)
    lower, _, upper = discretized.epsilon(flat, "remove", np.log([1e-30]), known)[:, 0]
    assert lower <= truth.upper
    assert upper >= truth.lower > 3e-4


def two_by_quadrature(q, scale, epsilon):
    """Delta of two samples of Gaussian noise, "remove", as an integral over the first one."""
    x = np.linspace(-14 * scale, 1 + 14 * scale, 40_001)
    z = (2 * x - 1) / (2 * scale**2)
    density = norm.pdf(x, 0, scale) * (1 - q) + norm.pdf(x, 1, scale) * q
    level = epsilon - np.log1p(q * np.expm1(z))  # what the second one may lose
    odds = np.maximum((np.expm1(level) + q) / q, 0)
    with np.errstate(divide="ignore"):
        place = scale**2 * np.log(odds) + 0.5
    p = (1 - q) * norm.sf(place, 0, scale) + q * norm.sf(place, 1, scale)
    return float((density * (p - np.exp(level) * norm.sf(place, 0, scale))).sum() * (x[1] - x[0]))


@pytest.mark.parametrize(("q", "scale"), [(1e-6, 3.0), (1e-5, 0.7), (1e-2, 1.0)])
def test_two_small_samples_meet_the_integral_over_one(q, scale):
    """One release may lose hundreds of times epsilon, and only its chance counts."""
    composition = 2 * loss.sampled_gaussian(q, scale)
    bracket = exact.epsilon_bracket(composition, 1e-3 * q)
    width = 2e-6 + 4e-11 / q  # of differences of chances next to 1
    assert bracket.upper - bracket.lower <= width * bracket.upper
    delta = exact.delta_bracket(composition, bracket.estimate)
    truth = two_by_quadrature(q, scale, float(bracket.estimate))
    error = 1e-14 / q  # of the quadrature's own
    assert delta.lower * (1 - error) <= truth <= delta.upper * (1 + error)
    assert delta.upper - delta.lower <= 10 * width * delta.upper


def test_few_steps_of_a_tiny_sample_scale_with_it():
    """Epsilon over q tends to a limit as q and delta over q do."""
    ratios = []
    for q in (1e-4, 1e-6):
        bracket = exact.epsilon_bracket(5 * loss.sampled_gaussian(q, 1.0), 1e-2 * q)
        ratios.append(bracket.estimate / q)
        assert bracket.upper - bracket.lower <= 2e-5 * bracket.upper
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-2)
