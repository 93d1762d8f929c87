"""The textbook samplers word by word: their numbers, their reach, and who can give an answer."""

import jax
import numpy as np
import pytest

from experiments import floating_point, textbook


@pytest.fixture(scope="module")
def outcomes():
    return {name: textbook.all_noise(name) for name in textbook.SAMPLERS}


@pytest.mark.parametrize(
    ("name", "low", "high"), [("laplace", -15.53692, 16.635532), ("gaussian", -5.419983, 5.220113)]
)
def test_all_numbers_are_there_and_no_others(outcomes, key, name, low, high):
    numbers = outcomes[name]
    assert numbers.size == 2**23
    assert np.all(np.diff(numbers) > 0)  # 2^23 different ones, never 0
    assert numbers[[0, -1]] == pytest.approx([low, high], abs=1e-6)
    drawn = np.asarray(textbook.SAMPLERS[name](key, (20_000,), np.float32))
    assert np.isin(drawn, numbers).all()


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_search_agrees_with_the_list_of_all_numbers(outcomes, name):
    answers = outcomes[name][::40_000]
    assert textbook.is_possible(answers, 0.0, 1.0, name, "float32").all()
    found = textbook.is_possible(answers, 1.0, 1.0, name, "float32")
    np.testing.assert_array_equal(found, np.isin(answers, np.float32(1) + outcomes[name]))
    assert 0 < np.mean(found) < 0.5


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_search_finds_every_answer_in_float64_on_its_own_side(key, name):
    with jax.enable_x64(True):
        drawn = np.asarray(textbook.SAMPLERS[name](key, (500,), np.float64))
    assert textbook.is_possible(drawn, 0.0, 1.0, name, "float64").all()
    assert textbook.is_possible(drawn + 1.0, 1.0, 1.0, name, "float64").all()
    assert np.mean(textbook.is_possible(drawn, 1.0, 1.0, name, "float64")) < 0.3


@pytest.mark.parametrize(
    ("name", "scale", "one", "other"),
    [
        ("gaussian", 1.0, 5.0e-6, 1.216e-5),
        ("gaussian", 0.5, None, 6.4e-4),
        ("gaussian", 0.3, None, 2.96e-2),
        ("gaussian", 2.0, None, 1.2e-6),
        ("gaussian", 10.0, None, 1.2e-7),
        ("laplace", 1.0, 2.4e-7, 1.2e-7),
        ("laplace", 0.2, 1.3e-5, 4.4e-6),
        ("laplace", 0.1, 2.0e-3, 6.6e-4),
    ],
)
def test_shares_beyond_the_neighbour_s_reach(outcomes, name, scale, one, other):
    """Known from an enumeration of all uniforms, to the digits that are given."""
    found = sorted(floating_point.beyond_reach(outcomes[name], scale))
    expected = sorted(x for x in (one, other) if x is not None)
    np.testing.assert_allclose(found[-len(expected) :], expected, rtol=0.04)


def test_comparison_of_small_lists():
    row = floating_point.compared(np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0, 3.0]), 0)
    assert row["share_betraying"] == 0.25
    assert row["share_betraying_neighbour"] == 0.25
    assert row["delta_exact"] == 0.5
    row = floating_point.compared(np.array([0.0, 0.0]), np.array([0.0, 1.0]), np.log(2.0))
    assert row["delta_exact"] == pytest.approx(0.5)  # one direction: 1 - 2 / 2 = 0
    assert row["share_betraying"] == 0


def test_remedies_are_the_same_on_device_and_host(outcomes):
    answers = outcomes["laplace"][::1000] + np.float32(1)
    for step, bound in floating_point.REMEDIES.values():
        host = floating_point.remedied(answers, step, bound)
        device = floating_point.remedied(jax.numpy.asarray(answers), step, bound)
        np.testing.assert_array_equal(host, np.asarray(device))
        assert np.all(np.diff(host) >= 0)
