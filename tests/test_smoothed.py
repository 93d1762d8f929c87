"""Long compositions of tables, alone and through `exact`: the truth by a lattice and by an FFT."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpjax.accounting import exact, loss, smoothed

FAMILIES = {
    "laplace": loss.discrete_laplace(3.0, 2),
    "gaussian": loss.discrete_gaussian(4.0, 1),
}


def alone(function, composition, direction, wanted):
    """What it says with nothing known before."""
    row = composition.take(np.array([0]))
    zero = -np.inf if function is smoothed.log_delta else 0.0
    known = np.array([[zero], [np.inf], [np.inf]])
    return function(row, direction, np.array([wanted]), known)[:, 0]


@pytest.mark.parametrize("direction", ["remove", pytest.param("add", marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_all_is_what_the_lattice_says(family, direction):
    release = FAMILIES[family]
    table, count, delta = loss.sampled(1.0, release), 60, 1e-6
    truth = exact.epsilon_bracket(count * release, delta)
    lower, middle, upper = alone(smoothed.epsilon, count * table, direction, np.log(delta))
    assert lower <= truth.upper
    assert truth.lower <= upper
    assert upper - lower < 1e-4 * upper
    assert_allclose(middle, truth.estimate, rtol=1e-5)
    epsilon = float(truth.estimate) * 0.9  # between two losses of the lattice, or near one
    truth = exact.delta_bracket(count * release, epsilon)
    lower, middle, upper = alone(smoothed.log_delta, count * table, direction, epsilon)
    assert lower <= np.log(truth.upper)
    assert np.log(truth.lower) <= upper
    assert upper - lower < 2e-3


def test_a_shift_of_the_smoothing_keeps_the_ends_apart(monkeypatch):
    """Coarser smoothing gives wider brackets around narrower ones."""
    composition = 200 * loss.sampled(0.05, loss.discrete_laplace(1.5, 2))
    ends = []
    for fine in (2.0**-13, 2.0**-9, 2.0**-6):
        monkeypatch.setattr(smoothed, "_FINE", np.array([fine]))
        ends.append(alone(smoothed.epsilon, composition, "remove", np.log(1e-5)))
    lower, _, upper = np.transpose(ends)
    assert np.all(np.diff(lower) < 0)
    assert np.all(np.diff(upper) > 0)
    assert upper[0] - lower[0] < 1e-6 * upper[0] < 1e-3 * (upper[2] - lower[2])


def by_transform(q, laws, count, epsilon, size=1 << 20, half=12.0):
    """Delta of a sum by a plain FFT of losses shared between two points of a grid each."""
    with_record, without = laws
    mixed = (1 - q) * without + q * with_record
    losses, step = np.log(mixed / without), 2 * half / size
    place = np.floor(losses / step).astype(int)
    share = np.expm1(-(losses - place * step)) / np.expm1(-step)  # the mean of exp(-l) is kept
    ring = np.zeros(size)
    np.add.at(ring, place % size, mixed * (1 - share))
    np.add.at(ring, (place + 1) % size, mixed * share)
    total = np.fft.irfft(np.fft.rfft(ring) ** count, size)
    at = step * ((np.arange(size) + size // 2) % size - size // 2)
    above = at > epsilon
    return float(-(total[above] * np.expm1(epsilon - at[above])).sum())


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_a_plain_transform_lies_within(count):
    q, d, scale = 0.05, 2, 2.0
    x = np.arange(-40, 43.0)
    laws = [np.exp(-(((x - centre) / scale) ** 2) / 2) for centre in (d, 0)]
    laws = [law / law.sum() for law in laws]
    composition = count * loss.sampled(q, loss.discrete_gaussian(scale, d))
    epsilon = float(exact.epsilon(composition, 1e-5))
    truth = by_transform(q, laws, count, epsilon)
    bracket = exact.delta_bracket(composition, epsilon)
    assert bracket.lower * (1 - 1e-6) <= truth <= bracket.upper * (1 + 1e-5)
    assert bracket.upper - bracket.lower < 1e-4 * truth


def test_grids_and_sums_with_other_losses():
    steps = np.array([20, 50, 0]) * loss.sampled(0.1, loss.discrete_laplace([[2.0], [3.0]], 2))
    brackets = exact.epsilon_bracket(steps + loss.gaussian(8.0), 1e-6)
    assert brackets.upper.shape == (2, 3)
    assert np.all(brackets.upper - brackets.lower <= 1e-5 * brackets.upper)
    assert_allclose(brackets.upper[0, 2], exact.epsilon(loss.gaussian(8.0), 1e-6), rtol=1e-6)
    one = 50 * loss.sampled(0.1, loss.discrete_laplace(3.0, 2)) + loss.gaussian(8.0)
    assert_allclose(brackets.upper[1, 1], exact.epsilon(one, 1e-6), rtol=1e-9)


def test_one_release_is_not_smoothed():
    table = loss.sampled(0.1, loss.discrete_laplace(2.0, 2))
    assert smoothed.possible(2 * table)
    assert not smoothed.possible(table)
    assert smoothed.possible(loss.gaussian([1.0, 2.0]).sum())


def test_a_line_that_falls_slowly_is_smoothed():
    composition, delta = 38 * loss.sampled_gaussian(0.00405, 0.367), 1.9e-3
    lower, _, upper = alone(smoothed.epsilon, composition, "remove", np.log(delta))
    assert upper - lower < 5e-6 * upper
    bracket = exact.epsilon_bracket(composition, delta)
    assert bracket.lower <= upper
    assert lower <= bracket.upper
