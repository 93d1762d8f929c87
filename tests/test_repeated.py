"""The best of many runs: published values, the package's bound, and a selection it must cover."""

import json
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.testing import assert_allclose
from scipy import special
from test_reference import agrees

from dpjax.accounting import basic, bounds, exact, loss, rdp
from dpjax.accounting._repeated_losses import _log_inverse_stop
from dpjax.accounting.leaks.bound import Curve

INF = float("inf")
FILE = Path(__file__).parent / "data" / "families.json"
(BLOCK,) = (
    b for b in json.loads(FILE.read_text()) if b["topic"] == "public.repeat_and_select_pure"
)


@pytest.mark.parametrize("case", BLOCK["cases"], ids=lambda case: str(case["inputs"]))
def test_agrees_with_the_reference(case):
    best = bounds.repeat_and_select(
        loss.pure(case["inputs"]["eps"]), case["inputs"]["mean"], case["inputs"]["shape"]
    )
    assert agrees(basic.epsilon(best, 0.0), case["expected"], BLOCK["tol"])


@pytest.mark.parametrize("shape", [0.0, 0.3, 1.0, 40.0, INF])
@pytest.mark.parametrize("release", [loss.gaussian(4.0), 30 * loss.laplace(20.0)], ids=str)
def test_it_is_the_package_s_bound_on_its_orders(release, shape):
    best = bounds.repeat_and_select(release, 20.0, shape)
    ((curve, _),) = best.terms
    assert isinstance(curve, Curve)
    orders = np.array(curve.orders[:-1])
    own = rdp.divergence(release, orders)
    bound = rdp_privacy_accountant._compute_rdp_repeat_and_select
    theirs = np.array(bound(list(orders), list(own), 20.0, shape))
    ours = curve.divergences[:-1]
    assert np.all(ours <= theirs * (1 + 1e-9))
    if np.isfinite(shape):  # they take delta from these orders, and not the best of all
        assert_allclose(ours[orders < 1e3], theirs[orders < 1e3], rtol=1e-3)


def generating(mean, shape):
    """The slope of the generating function of the number of runs."""
    if np.isinf(shape):
        return lambda x: mean * np.exp(mean * (x - 1))
    stop = np.exp(-_log_inverse_stop(np.array(mean), np.array(shape)))
    if shape == 0:
        return lambda x: (1 - stop) / (1 - (1 - stop) * x) / -np.log(stop)
    scale = shape * (1 - stop) / (stop**-shape - 1)
    return lambda x: scale * (1 - (1 - stop) * x) ** (-shape - 1)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 7.0, INF])
@pytest.mark.parametrize("mean", [1.5, 30.0])
def test_it_covers_the_largest_of_gaussian_answers(mean, shape):
    """Where the answer is its own score, that of K runs has the density G'(F(x)) f(x)."""
    sigma = 3.0
    x = np.linspace(-12 * sigma, 12 * sigma, 20_001)
    slope = generating(mean, shape)
    assert_allclose(slope(np.array(1.0)), mean, rtol=1e-9)  # the mean number of runs
    laws = []
    for centre in (0.0, 1.0):
        f = np.exp(-(((x - centre) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
        laws.append(slope(special.ndtr((x - centre) / sigma)) * f)
    best = bounds.repeat_and_select(loss.gaussian(sigma), mean, shape)
    for order in (1.5, 4.0, 20.0):
        for p, q in (laws, laws[::-1]):
            moment = (p * np.exp((order - 1) * np.log(p / q))).sum() * (x[1] - x[0])
            truth = np.log(moment) / (order - 1)
            assert -1 < truth <= rdp.divergence(best, order)  # Poisson may give no output


def test_it_rises_with_the_number_of_runs_and_composes():
    base = loss.gaussian(5.0)
    best = bounds.repeat_and_select(base, [1.0, 10.0, 100.0], [[0.0], [1.0], [INF]])
    assert best.shape == (3, 3)
    epsilon = rdp.epsilon(best, 1e-6)
    assert np.all(np.diff(epsilon, axis=1) > 0)
    assert np.all(epsilon >= rdp.epsilon(base, 1e-6))
    assert np.all(rdp.epsilon(2 * best, 1e-6) > epsilon)
    several = bounds.repeat_and_select(loss.gaussian([5.0, 6.0]), 10.0, 1.0)
    assert_allclose(rdp.epsilon(several, 1e-6)[0], epsilon[1, 1], rtol=1e-12)
    # one run for sure: a shape of 0 doubles at most, as the bound knows no better
    assert epsilon[0, 0] < 2 * rdp.epsilon(base, 1e-6)


def test_edges():
    assert rdp.epsilon(bounds.repeat_and_select(loss.pure(0.0), 5.0, 1.0), 0.0) == 0
    assert rdp.epsilon(bounds.repeat_and_select(loss.pure(INF), 5.0, 1.0), 0.1) == INF
    with pytest.raises(ValueError, match="expected pairs"):
        exact.epsilon(bounds.repeat_and_select(loss.pure(1.0), 5.0, 1.0), 0.1)
    for mean, shape, message in (
        (0.5, 1.0, "mean = 0.5"),
        (2.0, -0.1, "shape = -0.1"),
        (INF, 1.0, "mean"),
    ):
        with pytest.raises(ValueError, match=message):
            bounds.repeat_and_select(loss.pure(1.0), mean, shape)
    with pytest.raises(TypeError, match="release = 2: expected a privacy loss"):
        bounds.repeat_and_select(2, 2.0, 1.0)
