import dataclasses
import functools

import numpy as np
import pytest
from scipy import optimize

from dpjax import curves
from dpjax.accounting import basic, exact, gaussian, loss, rdp
from dpjax.crossover import crossover, crossover_map
from dpjax.curves import ErrorCurve

DELTA = 1e-5
CLASSIC = functools.partial(rdp.epsilon, conversion="classic")


def real(value):
    assert value is not None
    return value


def curve(error, *, measure="rmse", takes_real=True):
    return ErrorCurve(error, measure, takes_real)


@pytest.mark.parametrize(
    ("accountant", "k_star", "first"),
    [(CLASSIC, 12.008, 13), (rdp.epsilon, 8.18, 9), (exact.epsilon, 6.96, 7)],
)
def test_the_article_at_epsilon_1(accountant, k_star, first):
    challenger = curves.gaussian(1.0, DELTA, accountant=accountant)
    found = crossover(curves.laplace_basic(1.0), challenger, up_to=1000)
    np.testing.assert_allclose(real(found.k_star), k_star, atol=5e-3)
    assert found.first_integer == first


@pytest.mark.parametrize("measure", ["rmse", "mae", "quantile"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_closed_form_under_every_error_measure(measure, epsilon):
    level = 0.9 if measure == "quantile" else None
    options = {"measure": measure, "level": level}
    challenger = curves.gaussian(epsilon, DELTA, accountant=exact.epsilon, **options)
    found = crossover(curves.laplace_basic(epsilon, **options), challenger, up_to=1000)
    laplace, normal = {
        "rmse": (np.sqrt(2), 1),
        "mae": (1, np.sqrt(2 / np.pi)),
        "quantile": (-np.log(0.1), 1.6448536269514722),
    }[measure]
    sigma = gaussian.noise_multiplier(epsilon, DELTA)
    k_star = (normal * sigma * epsilon / laplace) ** 2  # laplace k / epsilon = normal sqrt(k) sigma
    np.testing.assert_allclose(real(found.k_star), k_star, rtol=1e-9)
    assert found.first_integer == np.ceil(k_star)


@pytest.mark.slow
def test_a_grid_is_the_same_as_one_by_one():
    epsilon, delta = np.geomspace(0.1, 10, 3)[:, None], np.array([1e-9, 1e-5])
    found = crossover_map(
        curves.laplace_basic(epsilon), curves.gaussian(epsilon, delta, accountant=CLASSIC), up_to=99
    )
    assert found.k_star.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            budget = float(epsilon[i, 0]), float(delta[j])
            challenger = curves.gaussian(*budget, accountant=CLASSIC)
            one = crossover(curves.laplace_basic(budget[0]), challenger, up_to=99)
            np.testing.assert_allclose(found.k_star[i, j], real(one.k_star), rtol=1e-10)
            assert found.first_integer[i, j] == one.first_integer


def test_laplace_calibrated_by_basic_is_the_closed_form():
    k = np.array([1, 2, 7, 100])
    calibrated = curves.calibrated("laplace", 0.5, 0.0, accountant=basic.epsilon)
    np.testing.assert_allclose(calibrated(k), curves.laplace_basic(0.5)(k), rtol=1e-11)
    np.testing.assert_allclose(calibrated(k), np.sqrt(2) * k / 0.5, rtol=1e-11)


def test_calibrated_gaussian_follows_the_root_law_where_the_accountant_composes():
    k = np.array([1, 3, 50])
    calibrated = curves.calibrated("gaussian", 1.0, DELTA, accountant=rdp.epsilon)
    law = curves.gaussian(1.0, DELTA, accountant=rdp.epsilon)
    np.testing.assert_allclose(calibrated(k), law(k), rtol=1e-9)
    # basic composition splits the budget: there the law does not hold, and asking for it is refused
    with pytest.raises(ValueError, match="expected one that reads the whole composition"):
        curves.gaussian(1.0, DELTA, accountant=basic.epsilon)


def test_whole_numbers_only_where_a_curve_is_known_at_them_only():
    incumbent = curves.calibrated("laplace", 1.0, DELTA, accountant=rdp.epsilon)
    challenger = curves.gaussian(1.0, DELTA, accountant=rdp.epsilon)
    found = crossover(incumbent, challenger, up_to=20)
    k = np.arange(1, 21)
    behind = k[challenger(k) > incumbent(k)]
    assert found == (None, behind.max() + 1)
    assert real(found.first_integer) >= 9  # Laplace under a better accountant holds out no shorter


RULES = {
    "basic": basic.epsilon,
    "advanced": basic.advanced,
    "optimal": basic.optimal,
    "renyi": rdp.epsilon,
    "classic": CLASSIC,
    "exact": exact.epsilon,
}


# each rule once on either side, but for exact Laplace and the optimal rule for Gaussians, which
# take seconds
QUICK = [
    ("basic", "classic"),
    ("advanced", "basic"),
    ("optimal", "advanced"),
    ("renyi", "exact"),
    ("classic", "renyi"),
]
PAIRS = [
    pytest.param(
        *(h, c, "rmse", 3 if h == "exact" or c == "optimal" else 8),
        marks=() if (h, c) in QUICK else pytest.mark.slow,
    )
    for h in RULES
    for c in RULES
]
OTHER_MEASURES = [("optimal", "renyi", "mae", 8), ("advanced", "exact", "quantile", 8)]


@pytest.mark.parametrize(("holding", "challenging", "measure", "most"), PAIRS + OTHER_MEASURES)
def test_every_pair_as_by_calibrating_both(holding, challenging, measure, most):
    epsilon, delta, k = np.array([0.7, 3.0]), 1e-3, np.arange(1, most + 1)[:, None]
    options = {"measure": measure, "level": 0.95 if measure == "quantile" else None}
    laplace = curves.calibrated("laplace", epsilon, delta, accountant=RULES[holding], **options)
    normal = curves.calibrated("gaussian", epsilon, delta, accountant=RULES[challenging], **options)
    error = laplace(k)
    last = np.max(np.where(normal(k) > error, k, 0), axis=0)
    found = crossover_map(laplace, normal, up_to=most)
    np.testing.assert_array_equal(found.first_integer, np.where(last == most, np.nan, last + 1))
    # and with the roles exchanged, the Laplace errors as calibrated before
    last = np.max(np.where(normal(k) < error, k, 0), axis=0)
    laplace = dataclasses.replace(laplace, error=lambda k: error)
    found = crossover_map(normal, laplace, up_to=most)
    np.testing.assert_array_equal(found.first_integer, np.where(last == most, np.nan, last + 1))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_design_ties_with_itself(mechanism):
    design = curves.calibrated(mechanism, 1.0, DELTA, accountant=rdp.epsilon)
    assert crossover(design, design, up_to=50) == (None, 1)
    uncalibrated = dataclasses.replace(design, allows=None)
    assert crossover(design, uncalibrated, up_to=50) == (None, 1)
    assert crossover(uncalibrated, design, up_to=50) == (None, 1)


def test_advanced_composition_against_basic():
    # basic leads up to 28 at 0.1 a query, and for ever from log 2 a query up
    def spent(rule, e0):
        return curve(lambda k: rule(k * loss.laplace(1 / e0), DELTA), takes_real=False)

    for e0, first in ((0.1, 29), (0.5, 187), (np.log(2), None), (1.0, None)):
        found = crossover(spent(basic.epsilon, e0), spent(basic.advanced, e0), up_to=10_000)
        assert found == (None, first)


def test_curves_that_cross_more_than_once_are_followed_to_the_last_crossing():
    wave = curve(lambda k: 100 + 5 * np.cos(k / 3) - k / 60)
    found = crossover(curve(lambda k: 100.0 + 0 * k), wave, up_to=300)
    k = np.arange(1, 301)
    assert found.first_integer == k[5 * np.cos(k / 3) - k / 60 > 0].max() + 1
    n = real(found.first_integer)
    root = float(optimize.brentq(lambda k: 5 * np.cos(k / 3) - k / 60, n - 1, n))  # type: ignore[arg-type]
    np.testing.assert_allclose(real(found.k_star), root, rtol=1e-9)
    assert 100 < n < 300


def test_no_crossover_is_a_value_and_not_the_end():
    low, high = curve(lambda k: 1.0 + 0 * k), curve(lambda k: 2.0 + 0 * k)
    assert crossover(low, high, up_to=50) == (None, None)
    assert crossover(high, low, up_to=50) == (None, 1)  # leads from the start
    assert crossover(low, low, up_to=50) == (None, 1)  # no worse from the start
    late = curve(lambda k: 100.0 / k)
    assert crossover(low, late, up_to=99) == (None, None)
    assert crossover(low, late, up_to=100) == (100.0, 100)  # a tie at 100 counts
    found = crossover(low, curve(lambda k: 99.5 / k), up_to=200)
    np.testing.assert_allclose(real(found.k_star), 99.5)


def test_the_scan_goes_over_blocks():
    found = crossover(curve(lambda k: 1.0 + 0 * k), curve(lambda k: 12_345.5 / k), up_to=20_000)
    np.testing.assert_allclose(real(found.k_star), 12_345.5)
    assert found.first_integer == 12_346


def test_gaussian_k_star_has_a_closed_form_under_the_classic_conversion():
    epsilon = np.geomspace(0.01, 20, 50)
    challenger = curves.gaussian(epsilon, DELTA, accountant=CLASSIC)
    found = crossover_map(curves.laplace_basic(epsilon), challenger, up_to=1000)
    slack = np.log(1 / DELTA)
    k_star = (np.sqrt(slack + epsilon) + np.sqrt(slack)) ** 2 / 4
    np.testing.assert_allclose(found.k_star, k_star, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: crossover(curve(np.sqrt), curve(np.sqrt, measure="mae"), up_to=9),
            "challenger measures mae: expected rmse, as the incumbent does",
        ),
        (
            lambda: crossover(curves.laplace_basic([1.0]), curve(np.sqrt), up_to=9),
            "a grid of curves (1,): expected single curves",
        ),
        (lambda: crossover(curve(np.sqrt), curve(np.sqrt), up_to=0), "up_to = 0: expected"),
        (lambda: curves.laplace_basic(0.0), "epsilon = 0.0: expected"),
        (lambda: curves.laplace_basic(1.0, measure="mse"), "measure = 'mse': expected one of"),
        (lambda: curves.laplace_basic(1.0, measure="quantile"), "level = None: expected"),
        (lambda: curves.laplace_basic(1.0, level=0.5), "level = 0.5: expected None"),
        (
            lambda: curves.gaussian(1.0, 0.0, accountant=rdp.epsilon),
            "target_epsilon = 1.0 with target_delta = 0.0: expected",
        ),
        (
            lambda: curves.calibrated("gamma", 1.0, 0.1, accountant=rdp.epsilon),
            "mechanism = 'gamma': expected one of laplace, gaussian",
        ),
        (
            lambda: curves.calibrated("laplace", 1.0, 0.1, accountant=rdp.epsilon)([1.5]),
            "k[0] = 1.5: expected a whole number",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="expected") as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("k", [-1, 0, float("nan")])
def test_a_curve_refuses_k_out_of_range(k):
    with pytest.raises(ValueError, match=r"k = .*: expected a finite number above 0"):
        curves.laplace_basic(1.0)(k)
