"""Losses as JSON: what comes back is what was saved, and nothing else is taken."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import bounds, loss, saved

INF = float("inf")
CASES = {
    "nothing": loss.PrivacyLoss(),
    "gaussian": 12 * loss.gaussian(0.1),
    "mixed": 3 * loss.laplace([1 / 3, INF, 0.0]) + loss.sampled_gaussian(0.01, [[1.0], [2.0]]),
    "grid of counts": np.array([[1], [2**53 + 1]]) * loss.gaussian([1.0, 2.0]),
    "empty": loss.gaussian(np.zeros((2, 0))),
    "sum": 5 * (np.array([1, 2, 0]) * loss.sampled_gaussian([0.1, 0.2, 0.3], [[1.0], [2.0]])).sum(1)
    + loss.laplace(2.0),
    "sum of all": loss.laplace([[1.0, 2.0], [3.0, 4.0]]).sum(),
    "lattices": 2 * loss.discrete_laplace([0.5, 3.0], 2) + loss.discrete_gaussian([[2.0]], [1, 4]),
    "responses": 3 * loss.approximate([0.1, 2.0], 1e-6)
    + loss.k_ary_response(1.0, [3, 10], adjacency="add_remove")
    + loss.optimized_unary([1.0, 0.0]),
    "removed": loss.sampled_laplace([0.1, 1.0], 2.0),
    "replaced": loss.sampled_gaussian(0.1, [1.0, 2.0], adjacency="replace_one")
    + loss.sampled_laplace(0.1, 1.0, adjacency="replace_one")
    + loss.subset_gaussian(0.1, 3.0)
    + loss.subset_laplace([0.1, 0.0], 3.0),
    "noise with bounds": loss.truncated_laplace(1.0, [2.0, INF]) + loss.bounded_laplace(1.0, 4.0),
    "shuffled": 3 * loss.shuffled([0.5, 1.0], [[10], [1000]]),
    "sampled tables": loss.sampled([0.1, 1.0], loss.discrete_laplace(2.0, [3]))
    + 2 * loss.sampled(0.1, loss.discrete_gaussian([0.5, 2.0], 2))
    + loss.truncated_discrete_gaussian(3.0, 1, [2, INF])
    + loss.sampled(0.5, loss.approximate([0.1, INF], 1e-6)),
    "mixtures": 2 * loss.gaussian_mixture([1.0, INF], [0, 1, 2], [[0.5, 0.25, 0.25], [0, 1, 0]])
    + loss.gaussian_mixture([1.0, 2.0], [[0, 1], [2, 3]], [0.5, 0.5]).sum(),
    "zcdp": 7 * bounds.zcdp([0.0, 0.5]) + bounds.bounded_range(0.3),
    "curve": 2 * bounds.renyi_curve([2, 4, INF], [[0.1, 0.2, 0.5], [0.1, 0.2, INF]]),
    "sum of curves": bounds.renyi_curve([2, 4], [[0.1, 0.2], [0.3, 0.4]]).sum()
    + loss.staircase([0.5, 2.0], 0.3).sum(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_round_trip(name):
    given = CASES[name]
    text = given.to_json()
    back = loss.from_json(text)
    assert back.shape == given.shape
    assert back.directions == given.directions
    assert back.to_json() == text
    assert json.loads(text, parse_constant=pytest.fail)  # no NaN or Infinity, which are not JSON
    for direction in given.directions:
        for t in (np.array([0.5, 3.0]), np.array([1 + 2j]))[: 1 + given.is_pair]:
            # the count of a sum moves to its parts, and rounds there
            values = back.cumulant(t, direction), given.cumulant(t, direction)
            assert_allclose(*values, rtol=1e-15)
        assert_array_equal(back.supremum(direction), given.supremum(direction))
        assert_array_equal(back.infinite_mass(direction), given.infinite_mass(direction))


def test_every_family_is_in_a_case():
    text = "".join(case.to_json() for case in CASES.values())
    assert [name for name in saved.FAMILIES if f'"family": "{name}"' not in text] == []


def test_counts_keep_all_their_bits():
    back = loss.from_json(CASES["grid of counts"].to_json())
    assert [count.tolist() for _, count in back.terms] == [[[1], [2**53 + 1]]]


def document(**changes):
    term = {"family": "gaussian", "noise_multiplier": 1.0, "count": 1, **changes}
    term = {key: value for key, value in term.items() if value is not None}
    return json.dumps({"dpjax_privacy_loss": 1, "terms": [term]})


BAD = {
    "": "expected a privacy loss as JSON",
    "[" * 100_000: "nesting too deep",
    "[1, 2]": "expected an object with dpjax_privacy_loss, terms",
    '{"terms": []}': "expected an object with dpjax_privacy_loss, terms",
    '{"dpjax_privacy_loss": 2, "terms": []}': "dpjax_privacy_loss = 2: expected version 1",
    '{"dpjax_privacy_loss": true, "terms": []}': "dpjax_privacy_loss = True: expected version 1",
    '{"dpjax_privacy_loss": 1, "terms": {}}': "expected an object with",
    '{"dpjax_privacy_loss": 1, "terms": [7]}': "term = 7: expected an object with a family",
    document(family="exotic"): "family = 'exotic': expected one of gaussian, laplace",
    document(family=None): "family = None: expected one of",
    document(family=["gaussian"]): "expected one of",
    document(noise_multiplier=None): "gaussian has count: expected count, noise_multiplier",
    document(extra=1): "gaussian has count, extra, noise_multiplier: expected",
    document(noise_multiplier=-1): "noise_multiplier = -1: expected a number of at least 0",
    document(noise_multiplier=float("nan")): "noise_multiplier = nan: expected a number",
    document(count=-1): "count = -1: expected a whole number",
    document(count=0.5): "count = 0.5: expected a whole number",
    document(noise_multiplier=[1, 2], count=[1, 2, 3]): "gaussian: expected shapes that broadcast",
    document(sum=True): "sum = True: expected true, and an axis to sum",
    document(noise_multiplier=[1], sum=1): "sum = 1: expected true, and an axis to sum",
    document()[:-9]: "expected a privacy loss as JSON",
    document(family="response", noise_multiplier=None, epsilon=1, num_categories=1, delta=0): (
        "num_categories = 1: expected at least 2"
    ),
    document(
        **{"family": "sampled_discrete_gaussian", "noise_multiplier": None},
        **{"sampling_probability": 0.1, "scale": 1.0, "sensitivity": 1, "whole_bound": 1.5},
    ): "whole_bound = 1.5: expected a whole number or infinity",
    document(
        **{"family": "gaussian_mixture", "noise_multiplier": None, "scale": 1.0},
        **{"sensitivities": [0, 1], "probabilities": [0.5, 0.4]},
    ): "expected a sum of 1",
    document(
        **{"family": "gaussian_mixture", "noise_multiplier": None, "scale": 1.0},
        **{"sensitivities": [0, 1, 2], "probabilities": [0.5, 0.5]},
    ): "gaussian_mixture: expected shapes that broadcast",
    document(family="truncated_laplace", bound=0.5): "bound = 0.5: expected at least 1",
    document(family="renyi_curve", noise_multiplier=None, orders=[3, 2], divergences=[1, 1]): (
        "expected rising numbers above 1"
    ),
    document(family="renyi_curve", noise_multiplier=None, orders=[2, 3], divergences=[1]): (
        "divergences have shape"
    ),
    document(family="discrete_laplace", noise_multiplier=None, scale=1, sensitivity=0.5): (
        "sensitivity = 0.5: expected a whole number"
    ),
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_junk_is_named_in_one_line(text):
    with pytest.raises(ValueError, match=BAD[text]) as caught:
        loss.from_json(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["1", True, {"a": 1}, [1, "x"]])
def test_parameters_that_are_no_numbers(value):
    with pytest.raises(TypeError, match=r"noise_multiplier = .*: expected a number"):
        loss.from_json(document(noise_multiplier=value))


@pytest.mark.parametrize("value", [None, b"{}", 3, ["{}"]])
def test_what_is_no_text_is_named(value):
    with pytest.raises(TypeError, match=r"text = .*: expected a privacy loss as JSON text"):
        loss.from_json(value)


def test_terms_that_do_not_broadcast():
    text = json.dumps(
        {
            "dpjax_privacy_loss": 1,
            "terms": [
                {"family": "gaussian", "noise_multiplier": [1, 2], "count": 1},
                {"family": "laplace", "noise_multiplier": [1, 2, 3], "count": 1},
            ],
        }
    )
    with pytest.raises(ValueError, match="broadcast"):
        loss.from_json(text)
