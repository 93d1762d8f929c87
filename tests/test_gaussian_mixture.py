"""Gaussian noise on a sum that a record moves at random: quadrature, published values, limits."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special
from test_reference import agrees

from dpjax.accounting import exact, loss, rdp

INF = float("inf")
FILE = Path(__file__).parent / "data" / "families.json"
BLOCKS = {block["topic"]: block for block in json.loads(FILE.read_text())}
DIRECTIONS = ("remove", "add")


def log_delta(leak, epsilon, direction) -> Any:
    ((term, _),) = leak.terms
    return term.log_delta_once(np.asarray(float(epsilon)), direction)


def one_delta(std, sensitivities, probs, adjacency, eps):
    direction = {"REM": "remove", "ADD": "add"}[adjacency]
    return np.exp(log_delta(loss.gaussian_mixture(std, sensitivities, probs), eps, direction))


@pytest.mark.parametrize(
    "case", BLOCKS["public.pld_mixture_gaussian_delta"]["cases"], ids=lambda case: str(case)
)
def test_agrees_with_the_reference(case):
    tol = BLOCKS["public.pld_mixture_gaussian_delta"]["tol"]
    assert agrees(one_delta(**case["inputs"]), case["expected"], tol)


def test_a_composition_agrees_with_the_reference():
    (case,) = BLOCKS["public.pld_accountant"]["cases"]
    five = 3 * loss.gaussian_mixture(1.0, [0, 1, 2], [0.2, 0.6, 0.2])
    five += 2 * loss.gaussian_mixture(2.0, [0, 2, 3], [0.33, 0.34, 0.33])
    bracket = exact.epsilon_bracket(five, case["inputs"]["delta"])
    assert agrees(bracket.estimate, case["expected"], BLOCKS["public.pld_accountant"]["tol"])
    assert bracket.upper - bracket.lower < 1e-6 * bracket.upper
    assert bracket.upper <= rdp.epsilon(five, 1e-6)


MIXTURES: dict[str, tuple[float, list[float], list[float]]] = {
    "sampled": (1.0, [0, 1], [0.99, 0.01]),
    "three": (0.7, [0, 1, 2], [0.5, 0.3, 0.2]),
    "no zero": (2.0, [0.5, 1, 3], [0.2, 0.3, 0.5]),
    "rare": (0.5, [3, 0, 1], [1e-9, 0.9, 0.1 - 1e-9]),
}


def laws(scale, shifts, p) -> tuple[Any, Any]:
    """log B / A and A at abscissas."""
    s, weight = np.array(shifts, float), np.array(p)

    def level(x):
        z = s * (2 * np.asarray(x)[..., None] - s) / (2 * scale**2)
        return special.logsumexp(z, -1, b=weight)

    return level, lambda x: np.exp(-((x / scale) ** 2) / 2) / (scale * np.sqrt(2 * np.pi))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_its_moments_are_integrals(mixture, direction):
    leak = loss.gaussian_mixture(*MIXTURES[mixture])
    ((term, _),) = leak.terms
    level, density = laws(*MIXTURES[mixture])
    scale = MIXTURES[mixture][0]
    for t in (-0.6, 0.4, 3.0, 12.0):
        power = t + 1 if direction == "remove" else -t
        # of exp(power l) A, which peaks between 0 and power times the largest shift
        reach = abs(power) * max(MIXTURES[mixture][1]) + 12 * scale
        x = np.linspace(-reach, reach, 1 << 16)
        log_f = power * level(x) - ((x / scale) ** 2) / 2
        truth = special.logsumexp(log_f) + np.log(
            2 * reach / (x.size - 1) / (scale * np.sqrt(2 * np.pi))
        )
        assert_allclose(leak.cumulant(t, direction), truth, rtol=1e-11, atol=1e-13)
        value, error = term.cumulant_with_error(np.array([t]), direction)
        assert_allclose(value[0], truth, rtol=0, atol=error[0] + 2e-13 * (1 + abs(truth)))
    power = 1 + 3j if direction == "remove" else -3j
    f = np.exp(power * level(x)) * density(x)
    turned = np.exp(leak.cumulant(np.array([3j]), direction))
    assert_allclose(turned, integrate.trapezoid(f, x), rtol=1e-11)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_its_delta_and_tails_are_integrals(mixture, direction):
    ((term, _),) = loss.gaussian_mixture(*MIXTURES[mixture]).terms
    level, density = laws(*MIXTURES[mixture])
    scale = MIXTURES[mixture][0]
    x = np.linspace(-12 * scale, 12 * scale + 3, 1 << 18)
    a, ratio = density(x), level(x)
    b = a * np.exp(ratio)
    p, q = (b, a) if direction == "remove" else (a, b)
    above = ratio if direction == "remove" else -ratio
    for epsilon in (0.0, 0.003, 0.5, 4.0):
        truth = integrate.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x)
        value = np.exp(log_delta(loss.gaussian_mixture(*MIXTURES[mixture]), epsilon, direction))
        assert_allclose(value, truth, rtol=1e-7, atol=1e-13)
        tails = term.tails(np.array(epsilon), direction)
        sums = [
            law[side].sum() * (x[1] - x[0])
            for law in (p, q)
            for side in (above > epsilon, above <= epsilon)
        ]
        assert_allclose(tails[:4], sums, atol=2e-5)
        assert tails.slip < 1e-13


@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
def test_two_shifts_are_a_sample(scale):
    mixture = loss.gaussian_mixture(3 * scale, [0, 3], [0.98, 0.02])
    sample = loss.sampled_gaussian(0.02, scale)
    real, line = np.array([0.01, 0.5, 3.0, 40.0, 1e4]), 2 + 1j * np.linspace(0, 30, 40)
    for direction in DIRECTIONS:
        ours, theirs = (leak.cumulant(real, direction) for leak in (mixture, sample))
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-17)
        ours, theirs = (leak.cumulant(line, direction) for leak in (mixture, sample))
        common = np.real(theirs[0])
        assert_allclose(np.exp(ours - common), np.exp(theirs - common), rtol=1e-11, atol=1e-13)
        for e in (1e-4, 0.02, 1.0):
            deltas = [log_delta(leak, e, direction) for leak in (mixture, sample)]
            assert_allclose(*deltas, rtol=1e-11)
        assert_allclose(mixture.supremum(direction), sample.supremum(direction))
    for count in (1000,):
        ours, theirs = (exact.epsilon_bracket(count * leak, 1e-6) for leak in (mixture, sample))
        assert ours.lower <= theirs.upper
        assert theirs.lower <= ours.upper
        assert_allclose(ours.upper, theirs.upper, rtol=1e-6)


def test_parts_of_one_shift_are_one():
    t = np.array([0.5, 7.0])
    whole = loss.gaussian_mixture(1.5, [0, 2], [0.7, 0.3])
    parts = loss.gaussian_mixture(1.5, [2, 0, 2, 9], [0.1, 0.7, 0.2, 0.0])
    for direction in DIRECTIONS:
        assert_allclose(whole.cumulant(t, direction), parts.cumulant(t, direction), rtol=1e-12)
    sure = loss.gaussian_mixture(3.0, [0.0, 2.0], [0.0, 1.0])
    assert_allclose(sure.cumulant(t, "add"), loss.gaussian(1.5).cumulant(t, "both"), rtol=1e-12)


def test_edges():
    for nothing in (
        loss.gaussian_mixture(1.0, [0.0, 0.0], [0.5, 0.5]),
        loss.gaussian_mixture(INF, [0.0, 1.0], [0.5, 0.5]),
        loss.gaussian_mixture(0.0, [0.0, 1.0], [1.0, 0.0]),
    ):
        assert exact.epsilon(5 * nothing, 0.0) == exact.delta(5 * nothing, 0.0) == 0
    far = loss.gaussian_mixture([1e200, 1e-200], [0.0, 1.0], [0.5, 0.5])
    assert_array_equal(far.infinite_mass("remove"), [0, 0.5])
    assert rdp.epsilon(far, 1e-6)[0] < 1e-6
    bare = loss.gaussian_mixture(0.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25])
    sample = loss.sampled_gaussian(0.5, 0.0)
    for direction in DIRECTIONS:
        assert bare.infinite_mass(direction) == sample.infinite_mass(direction)
        assert bare.supremum(direction) == sample.supremum(direction)
        assert_allclose(bare.cumulant(2.0, direction), sample.cumulant(2.0, direction))
    assert exact.delta(loss.gaussian_mixture(0.0, [1.0, 2.0], [0.5, 0.5]), 3.0) == 1
    grid = loss.gaussian_mixture([[1.0], [2.0]], [[0, 1], [0, 2], [1, 2]], [0.5, 0.5])
    assert grid.shape == (2, 3)
    t = np.array([0.5, 3.0])
    one = loss.gaussian_mixture(2.0, [0, 2], [0.5, 0.5])
    assert_allclose(grid.cumulant(t, "add")[1, 1], one.cumulant(t, "add"), rtol=1e-14)
    assert_allclose(grid.sum(1).cumulant(t, "add"), grid.cumulant(t, "add").sum(1), rtol=1e-14)
    bracket = exact.epsilon_bracket(one, [0.0, 5e-324, 1e-300, 1e-30, 0.1])
    assert np.all(np.diff(bracket.upper) < 0)
    assert bracket.upper[0] == INF
    assert exact.delta(one, 1e6) == 5e-324


@pytest.mark.parametrize(
    ("scale", "shifts", "p", "message"),
    [
        (-1.0, [0, 1], [0.5, 0.5], "scale = -1.0: expected a number of at least 0"),
        (1.0, [0, -1], [0.5, 0.5], "sensitivities"),
        (1.0, [0, INF], [0.5, 0.5], "sensitivities"),
        (1.0, [0, 1], [0.5, 0.6], "expected a sum of 1"),
        (1.0, [0, 1], [1.0], "probabilities have shape"),
        (1.0, [], [], "probabilities have shape"),
    ],
)
def test_what_is_no_mixture_is_named(scale, shifts, p, message):
    with pytest.raises(ValueError, match=message):
        loss.gaussian_mixture(scale, shifts, p)
