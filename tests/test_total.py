"""Exact totals: any order, any grouping, the same bits."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpjax.statistics import Histogram, Moments
from dpjax.sweep import total

floats = st.floats(-(2.0**100), 2.0**100, allow_subnormal=False, width=32)


def part(sums, low=-1.0, high=1.0, counts=None):
    """The moments of one coordinate with these six sums."""
    sums = np.array(sums, np.float32)
    bins = None
    if counts is not None:
        counts = np.array(counts, np.float32)
        edges = np.arange(len(counts) - 1, dtype=np.float32)
        bins = Histogram(edges, counts, np.zeros_like(counts))
    low, high, unit = map(np.float32, (low, high, 2.0))
    return Moments(low, high, unit, sums, np.zeros_like(sums), bins)


def add_all(totals):
    whole = None
    for one in totals:
        whole = total.add(whole, one)
    assert whole is not None
    return whole


def same_bits(one, other):
    return json.dumps(total.to_json(one)) == json.dumps(total.to_json(other))


@given(st.lists(st.lists(floats, min_size=6, max_size=6), min_size=1, max_size=8), st.randoms())
def test_order_and_grouping_do_not_matter(rows, random):
    totals = [total.total(part(row, *row[:2], counts=range(4))) for row in rows]
    whole = add_all(totals)
    random.shuffle(totals)
    cut = random.randint(0, len(totals))
    halves = [add_all(half) for half in (totals[:cut], totals[cut:]) if half]
    assert same_bits(whole, add_all(halves))


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30))
def test_a_sum_is_correctly_rounded(numbers):
    whole = add_all(total.total(part([x] * 6)) for x in numbers)
    exact = sum(math.floor(Fraction(x) * 2**64) for x in numbers)
    np.testing.assert_array_equal(total.moments(whole).sums, float(Fraction(exact, 2**64)))


def test_cancellation_leaves_what_is_exact():
    whole = add_all(total.total(part([x] * 6)) for x in (1e30, 1.0, -1e30, 2.0**-60))
    assert total.moments(whole).sums.tolist() == [1 + 2.0**-60] * 6


def test_moments_of_a_total_are_those_of_the_part():
    sums = [4.0, 1.0, 3.0, 5.0, 2.0, 9.0]
    one = part(sums, -3.0, 7.0, counts=[1, 0, 3])
    back = total.moments(total.total(one))
    for name in ("count", "mean", "rmse", "mae", "variance", "rmse_standard_error", "min", "max"):
        assert getattr(back, name) == getattr(one, name), name
    assert back.histogram is not None
    assert back.histogram.counts.tolist() == [1, 0, 3]


def test_negative_zero_is_zero():
    totals = [total.total(part([0.0] * 6, zero, zero)) for zero in (0.0, -0.0)]
    assert same_bits(totals[0], totals[1])


def test_infinity_and_nan_stay():
    whole = add_all(
        [total.total(part([1, np.inf, -np.inf, np.nan, 1, 1])), total.total(part([1] * 6))]
    )
    sums = total.moments(whole).sums
    np.testing.assert_array_equal(sums, [2, np.inf, -np.inf, np.nan, 2, 2])


def test_other_units_are_refused():
    one = total.total(part([1] * 6))
    with pytest.raises(ValueError, match=r"units = 2.0, 4.0: expected the same"):
        total.add(one, total.Total(**{**vars(one), "unit": np.array(4.0)}))


@given(st.lists(floats, min_size=6, max_size=6))
def test_json_loses_nothing(sums):
    for counts in (None, [1, 2]):
        one = total.total(part(sums, *sums[:2], counts=counts))
        back = total.from_json(json.loads(json.dumps(total.to_json(one))))
        assert back is not None
        assert same_bits(one, back)
        assert back.sums.dtype == object
    assert total.from_json(total.to_json(None)) is None
