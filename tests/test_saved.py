"""Losses as JSON: what comes back is what was saved, and nothing else is taken."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import loss

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
}


@pytest.mark.parametrize("saved", CASES.values(), ids=CASES)
def test_a_round_trip(saved):
    text = saved.to_json()
    back = loss.from_json(text)
    assert back.shape == saved.shape
    assert back.directions == saved.directions
    assert back.to_json() == text
    assert json.loads(text, parse_constant=pytest.fail)  # no NaN or Infinity, which are not JSON
    for direction in saved.directions:
        for t in (np.array([0.5, 3.0]), np.array([1 + 2j])):
            # the count of a sum moves to its parts, and rounds there
            values = back.cumulant(t, direction), saved.cumulant(t, direction)
            assert_allclose(*values, rtol=1e-15)
        assert_array_equal(back.supremum(direction), saved.supremum(direction))
        assert_array_equal(back.infinite_mass(direction), saved.infinite_mass(direction))


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
