import numpy as np
from scipy import optimize

from dpjax.accounting._roots import bracketed_root


def solve(function, low, high, tolerance=1e-12):
    calls = []

    def counted(x):
        calls.append(1)
        return np.asarray(function(x))

    ends = bracketed_root(counted, low, high, function(low), function(high), tolerance)
    return (*ends, len(calls))


def test_many_roots_at_once_from_both_sides():
    target = np.geomspace(1e-8, 1e8, 50)
    low, high, calls = solve(lambda x: np.sinh(x) - target, np.full(50, -1.0), np.full(50, 30.0))
    assert np.all(np.sinh(low) - target <= 0)
    assert np.all(np.sinh(high) - target > 0)
    np.testing.assert_allclose(low, np.arcsinh(target), rtol=1e-11, atol=1e-11)
    assert calls < 30


def test_agrees_with_brentq_on_a_hard_one():
    def function(x):
        return x**19 - 0.3

    low, high, calls = solve(function, np.array(-1.0), np.array(4.0))
    root = optimize.root_scalar(function, bracket=(-1.0, 4.0), xtol=1e-14).root
    assert low - 1e-13 <= root <= high + 1e-13
    assert high - low < 1e-11
    assert calls < 40


def test_jumps_flats_and_infinities_are_bisected():
    edge = 0.123456789
    for below, above in ((-1.0, 1.0), (-1.0, np.inf), (-np.inf, 1.0), (-np.inf, np.inf)):
        low, high, _ = solve(lambda x, b=below, a=above: np.where(x > edge, a, b), -5.0, 5.0)
        assert low <= edge < high
        assert high - low < 1e-11


def test_down_to_rounding():
    low, high, _ = solve(lambda x: x**2 - 2, 0.0, 2.0, tolerance=0.0)
    assert low**2 <= 2 < high**2
    assert high - low <= 2e-15
