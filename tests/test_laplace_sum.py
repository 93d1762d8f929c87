"""The finite sum of equal Laplace releases: its brackets hold the truth and are narrow."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpjax.accounting import _laplace_tilt, closed, exact, laplace_sum, loss


def true_log_delta(noise, count, epsilon):
    """By alternating sums of powers at many digits: a uniform number is a difference of integrals.

    With I the integral from 0 and T the shift by 1, [0] + [1] + e0 Uniform(0, 1) takes f to
    (1 - e0 I + T (1 + e0 I)) f; the I^n of sinh(e0 x) are sinh or cosh less their first terms.
    """
    with mpmath.workdps(60 + int(count * (1 + 1 / noise))):
        e0 = 1 / mpmath.mpf(noise)
        s = (epsilon / e0 + count) / 2
        total = mpmath.mpf(0)
        for m in range(count, -1, -1):
            z = e0 * (m - s)
            if z <= 0:
                break
            integrals, power = [mpmath.sinh(z), mpmath.cosh(z) - 1], z
            for n in range(2, count + 1):
                integrals.append(integrals[n - 2] - power)
                power *= z / n
            signs = [1]
            for factor in [-1] * (count - m) + [1] * m:
                signs = [a + factor * b for a, b in zip([*signs, 0], [0, *signs], strict=True)]
            part = mpmath.fsum(c * r for c, r in zip(signs, integrals, strict=False))
            total += mpmath.binomial(count, m) * part
        scale = (1 - count) * mpmath.log(2) + (epsilon - count * e0) / 2
        return mpmath.log(total) + scale


POINTS = [  # noise multiplier, count, epsilon over the largest loss
    (1.0, 1, 0.3),
    (1.0, 2, 0.0),
    (100.0, 2, 0.999),
    (1.25, 3, 1 / 3),  # where a pair of atoms lies
    (0.05, 4, 1e-9),
    (1 / 300, 2, 0.4),
    (1 / 300, 3, 1 - 1e-9),
    (1 / 290, 6, 0.55),
    (0.3, 9, 0.2),
    (12.0, 17, 0.5),
    (0.4, 25, 0.97),
    (3.0, 40, 1e-3),
    (80.0, 40, 1 - 1e-7),
    (1.2, 50, 0.6),
]


@pytest.mark.parametrize(("noise", "count", "share"), POINTS)
@np.errstate(all="ignore")
def test_brackets_hold_the_truth(noise, count, share):
    composition = exact._flat(count * loss.laplace(noise), (1,))
    epsilon = share * count / noise
    ends = closed.log_delta(composition, "both", np.array([epsilon]))[:, 0]
    truth = true_log_delta(noise, count, epsilon)
    assert ends[0] <= truth <= ends[2]
    own = 2e-15 * count / max(1 - share, 1e-15)  # of the loss's rounding near its largest
    gauss = 1e-11 if noise > 1 / 16 else 1e-9  # of the weights of a long rule
    assert ends[2] - ends[0] <= gauss + own
    lower, estimate, upper = closed.epsilon(composition, "both", np.array([float(truth)]))[:, 0]
    assert lower <= estimate <= upper
    if truth < -0.5:
        assert upper - lower <= 1e-11 * max(upper, 1)
    if lower > 0:
        assert true_log_delta(noise, count, lower) >= float(truth)
    if upper < count / noise * (1 - 1e-14):
        assert true_log_delta(noise, count, upper) <= float(truth)


@pytest.mark.parametrize("log_delta", [-2, -27, -69, -690])
@pytest.mark.parametrize(("noise", "count"), [(100.0, 1000), (3000.0, 10_000), (40.0, 10_000)])
def test_any_tilt_says_the_same(noise, count, log_delta):
    tilt, start = _laplace_tilt.for_log_delta(1 / noise, count, log_delta)
    terms = laplace_sum.LaplaceSum(1 / noise, count, tilt)
    lower, epsilon, upper = terms.epsilon(log_delta, start)
    assert upper - lower <= 1e-11 * upper
    narrow = terms.log_delta(epsilon)
    assert narrow[2] - narrow[0] < 1e-10
    for share in (0.8, 1.2):
        other = laplace_sum.LaplaceSum(1 / noise, count, share * tilt).log_delta(epsilon)
        assert other[0] <= narrow[2]
        assert narrow[0] <= other[2]
        assert_allclose(other[1], narrow[1], rtol=0, atol=1e-11 + other[2] - other[0])


def test_a_tilt_that_leaves_out_what_counts_says_so():
    """Untilted, the sum has the usual losses only, and what it leaves out outweighs delta."""
    noise, count, epsilon = 30.0, 40, 1.2
    lower, _, upper, _ = laplace_sum.LaplaceSum(1 / noise, count, 0.0).log_delta(epsilon)
    truth = true_log_delta(noise, count, epsilon)
    assert lower <= truth <= upper
    far = laplace_sum.LaplaceSum(1 / noise, count, 1e9).log_delta(epsilon)
    assert far[0] <= truth <= far[2]
    assert far[2] - far[0] > 1


def test_the_slope_is_that_of_log_delta():
    terms = laplace_sum.LaplaceSum(0.25, 60, 1.5)
    at, step = 8.9, 1e-4
    rise = terms.log_delta(at + step)[1] - terms.log_delta(at - step)[1]
    assert_allclose(terms.log_delta(at)[3], rise / (2 * step), rtol=1e-6)


def test_epsilon_is_zero_from_the_total_variation_on():
    composition = exact._flat(12 * loss.laplace(3.0), (2,))
    variation = closed.log_delta(composition, "both", np.zeros(2))[2]
    answer = closed.epsilon(composition, "both", variation + np.array([1e-9, -1e-3]))
    assert np.all(answer[:, 0] == 0)
    assert np.all(answer[:, 1] > 0)


@pytest.mark.parametrize(("e0", "count"), [(1e-3, 5), (0.3, 1000), (250.0, 7)])
def test_saddles_are_inverse(e0, count):
    for log_delta in (-1.0, -30.0, -300.0):
        tilt, epsilon = _laplace_tilt.for_log_delta(e0, count, log_delta)
        if 0 < epsilon < count * e0 * (1 - 1e-6):
            assert_allclose(_laplace_tilt.for_epsilon(e0, count, epsilon), tilt, rtol=1e-6)


def test_where_the_sum_is_too_long():
    assert laplace_sum.applies(np.array([1.0]), np.array([40.0])).all()
    assert laplace_sum.applies(np.array([0.01]), np.array([10_000.0])).all()
    e0 = np.array([1.0, 1e-8, 301.0, 0.0, math.inf])
    count = np.array([10_000.0, 1e12, 2.0, 2.0, 2.0])
    assert not laplace_sum.applies(e0, count).any()


@pytest.mark.parametrize("delta", [1e-17, 1e-20, 1e-100])
def test_deltas_nearer_to_the_largest_loss_than_floats_are(delta):
    bracket = exact.epsilon_bracket(2 * loss.laplace(1.0), delta)
    assert 2 - 1e-14 <= bracket.lower <= bracket.upper <= 2
