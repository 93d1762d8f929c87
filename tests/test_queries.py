"""Every claim of a sensitivity against an exhaustive search, and queries on awkward records."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax import postprocess, queries
from dpjax.sensitivity import ADJACENCIES, worst_change

NORMS = (1, 2, math.inf)
NUMBERS = st.floats(-1e3, 1e3, allow_subnormal=False)
INTERVALS = st.tuples(NUMBERS, NUMBERS).filter(lambda ends: ends[1] - ends[0] > 1e-3)


def search(query, domain, adjacency, norm):
    return worst_change(query, domain, adjacency=adjacency, norm=norm).size


def keeps_its_claims(query, domain, *, tight=True):
    """The search finds no more than is claimed and, where the domain is rich enough, as much."""
    for adjacency, norm in itertools.product(query.claims, NORMS):
        claim = query.sensitivity(adjacency, norm=norm)
        found = search(query, domain, adjacency, norm)
        assert found <= claim * (1 + 1e-12)
        if tight:
            assert found == pytest.approx(claim, rel=1e-9)


@given(ends=INTERVALS)
@settings(max_examples=8)
def test_sums_keep_their_claims(ends):
    lower, upper = ends
    domain = [lower - 1, upper + 1, (lower + upper) / 2, math.nan, math.inf]
    keeps_its_claims(queries.bounded_sum(lower, upper), domain)
    keeps_its_claims(queries.sum_and_count(lower, upper), domain)


@given(ends=INTERVALS, people=st.integers(1, 3))
@settings(max_examples=8)
def test_means_keep_their_claims(ends, people):
    query = queries.bounded_mean(*ends, num_records=people)
    domain = [ends[0] - 1, ends[1] + 1, 0.0, math.nan]

    def padded(records):  # to the public number of records
        return query([*records, *[0.0] * people][:people])

    assert search(padded, domain, "replace_one", 1) == pytest.approx(
        query.sensitivity("replace_one", norm=1), rel=1e-9
    )


@given(p=st.floats(0, 1), candidates=st.lists(NUMBERS, min_size=1, max_size=4, unique=True))
@settings(max_examples=8)
def test_quantile_scores_keep_their_claims(p, candidates):
    query = queries.quantile_scores(p, candidates)
    domain = [-1e4, 1e4, *candidates[:2]]
    keeps_its_claims(query, domain, tight=False)
    for adjacency in ADJACENCIES:
        claim = query.sensitivity(adjacency, norm=math.inf)
        assert search(query, domain, adjacency, math.inf) == pytest.approx(claim)


@given(edges=st.lists(NUMBERS, min_size=2, max_size=5, unique=True).map(sorted))
@settings(max_examples=8)
def test_histograms_keep_their_claims(edges):
    domain = [edges[0] - 1, *np.add(edges[:-1], edges[1:]) / 2, edges[-1], edges[-1] + 1]
    keeps_its_claims(queries.histogram(edges), domain)


@given(bound=st.floats(1e-3, 1e3))
@settings(max_examples=8)
def test_vector_sums_keep_their_claims(bound):
    query = queries.norm_bounded_sum(2, bound=bound)
    domain = [(9e9, 9e9), (-9e9, -9e9), (bound, 0.0), (0.0, 0.0), (math.nan, 1.0), (1e-6, 1e-6)]
    keeps_its_claims(query, domain, tight=False)
    for adjacency, norm in itertools.product(ADJACENCIES, (1, 2)):
        claim = query.sensitivity(adjacency, norm=norm)
        found = worst_change(query, domain, adjacency=adjacency, norm=norm, max_records=2).size
        assert found == pytest.approx(claim, rel=1e-9)


def test_counts_keep_their_claims():
    keeps_its_claims(queries.count(lambda ages: ages > 60), [20, 60, 61, 99])


def test_the_search_finds_a_wrong_claim():
    halved = queries.bounded_sum(0, 3)  # integer halves once claimed 1 for bounds (0, 3)
    assert search(halved, [0, 3], "replace_one", 1) == 3 > 2 * (3 // 2)
    half = queries.sum_and_count(0, 3).sensitivity("add_remove", norm=math.inf)
    assert half == 1.5
    change = worst_change(max, [1, 5, 7], adjacency="replace_one", norm=1, max_records=1)
    assert change == (6.0, (1,), (7,))


def test_the_search_reports_what_is_not_a_number():
    change = worst_change(
        lambda records: float(np.sum(records)), [0.0, math.nan, 1.0], adjacency="add_remove", norm=1
    )
    assert math.isnan(change.size)
    assert change.neighbour[-1] is math.nan or np.isnan(change.neighbour[-1])


def test_a_mean_of_private_number_has_no_claim_under_add_remove():
    query = queries.bounded_mean(0, 1, num_records=4)
    with pytest.raises(ValueError, match=r"^adjacency = 'add_remove': expected replace_one, since"):
        query.sensitivity("add_remove", norm=1)
    with pytest.raises(ValueError, match=r"^records = 3 records: expected num_records = 4$"):
        query([0, 1, 1])
    assert query.sensitivity("replace_one", norm=2) == 0.25


def test_both_answers_of_a_release_count_at_once():
    query = queries.sum_and_count(-1, 1)  # the sum changes by up to 1 and the count by 1
    assert query.sensitivity("add_remove", norm=2) == math.sqrt(2)
    assert query.sensitivity("add_remove", norm=1) == 2


def test_disjoint_bins():
    query = queries.histogram(np.arange(11))
    assert query.sensitivity("add_remove", norm=1) == 1
    assert query.sensitivity("replace_one", norm=1) == 2
    assert query.sensitivity("replace_one", norm=2) == math.sqrt(2)


def test_no_missing_or_infinite_record_passes_a_clip():
    clipped = queries.clip([math.nan, math.inf, -math.inf, 5], lower=2, upper=3)
    assert clipped.tolist() == [2, 3, 2, 3]
    vectors = [[math.nan, 1], [math.inf, 0], [1e300, 1e300], [5e-324, 0], [0, 0]]
    shortened = queries.clip_norm(vectors, bound=1)
    assert np.isfinite(shortened).all()
    assert np.all(np.linalg.norm(shortened, axis=1) <= 1)
    assert shortened[2].tolist() == pytest.approx([math.sqrt(0.5)] * 2)


def test_small_numbers_in_half_precision_are_clipped():
    vector = np.full((1, 4), 1e-6, np.float16)  # squares underflow to 0 in half precision
    norm = np.linalg.norm(queries.clip_norm(vector, bound=1e-6))
    assert norm == pytest.approx(1e-6, rel=1e-12)
    assert norm <= 1e-6


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20), st.floats(1e-6, 1e6)
)
def test_no_norm_is_above_its_bound(vectors, bound):
    assert np.all(np.linalg.norm(queries.clip_norm(vectors, bound=bound), axis=1) <= bound)


def test_one_more_record_counts_however_many_there_are():
    many = np.ones(2**24 + 1, np.float32)
    assert np.float32(2**24) + np.float32(1) == 2**24  # where a float32 counter stops
    assert queries.count(lambda x: x > 0)(many) == 2**24 + 1
    assert queries.bounded_sum(0, 1)(many[:1000]) == 1000
    big = [1e16, 1.0, -1e16]
    assert queries.bounded_sum(-1e17, 1e17)(big) == 1  # in whatever order
    assert queries.bounded_sum(-1e17, 1e17)(sorted(big)) == 1


def test_the_mean_comes_back_from_sum_and_count():
    records = [0.5, 2.5, 40.0]
    total, number = np.asarray(queries.sum_and_count(0, 3)(records))
    mean = postprocess.mean_from_sum_and_count(total, number, lower=0, upper=3)
    assert mean == pytest.approx(2.0)


def test_the_median_scores_best():
    candidates = np.arange(11.0)
    scores = queries.quantile_scores(0.5, candidates)([1, 2, 7, 8, 9])
    assert candidates[np.argmax(scores)] == 7
    assert scores.max() == 0


@pytest.mark.parametrize(
    "build",
    [
        lambda: queries.bounded_sum(3, 3),
        lambda: queries.bounded_sum(0, math.inf),
        lambda: queries.bounded_mean(0, 1, num_records=0),
        lambda: queries.histogram([0]),
        lambda: queries.histogram([0, 0]),
        lambda: queries.quantile_scores(1.5, [0]),
        lambda: queries.norm_bounded_sum(2, bound=0),
        lambda: queries.bounded_sum(0, 1).sensitivity("add", norm=1),
        lambda: queries.bounded_sum(0, 1).sensitivity("add_remove", norm=3),
    ],
)
def test_bad_arguments_are_named(build):
    with pytest.raises(ValueError, match=r"^\w+(\[\d\])? = .*: expected "):
        build()
