import numpy as np

from dpjax.accounting._minimum import quasi_convex_minimum


def test_minima_inside_and_far_beyond_the_first_range():
    where = np.array([-39.0, -8.123, -0.5, 3.3, 25.0])

    def function(x):
        u = x - where[:, None]
        return np.log1p(u**2) + 0.1 * np.tanh(u) * u  # quasi-convex and not convex

    ends = np.full(5, -7.0), np.full(5, 7.0)
    place, value = quasi_convex_minimum(function, *ends, 2.4, (-42.0, 42.0))
    np.testing.assert_allclose(place, where, atol=1e-7)
    np.testing.assert_allclose(value, 0, atol=1e-13)


def test_a_function_that_only_falls_ends_at_the_limit():
    ends = np.array(-7.0), np.array(7.0)
    place, value = quasi_convex_minimum(lambda x: np.exp(-x), *ends, 2.4, (-42.0, 42.0))
    assert place == 42
    assert value == np.exp(-42)
    place, _ = quasi_convex_minimum(lambda x: x, *ends, 2.4)
    assert place == -7


def test_nan_is_no_minimum_and_infinity_everywhere_is_infinity():
    ends = np.array(-7.0), np.array(7.0)
    place, value = quasi_convex_minimum(
        lambda x: np.where(x > 2, np.nan, (x - 1) ** 2 + 5), *ends, 2.4
    )
    np.testing.assert_allclose([place, value], [1, 5], atol=1e-7)
    assert quasi_convex_minimum(lambda x: x + np.inf, *ends, 2.4, (-42.0, 42.0))[1] == np.inf


def test_few_nodes_are_asked_for():
    asked = []

    def function(x):
        asked.append(x.shape[-1])
        return (x - 1.7) ** 2

    quasi_convex_minimum(function, np.array(-7.0), np.array(7.0), 2.4, (-42.0, 42.0))
    assert sum(asked) < 50


def test_a_sharp_bend_is_found_too():
    where = np.array([-3.21, 0.123])

    def function(x):
        u = x - where[:, None]
        return 2 + np.where(u < 0, -u, 50 * u)

    place, value = quasi_convex_minimum(function, np.full(2, -7.0), np.full(2, 7.0), 2.4)
    np.testing.assert_allclose(place, where, atol=1e-5)
    np.testing.assert_allclose(value, 2, atol=1e-5)
