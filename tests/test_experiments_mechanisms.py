"""Vector queries, selection, local against central, clipping: their tables against the laws."""

from functools import partial
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest

import dpjax
from dpjax import theory
from dpjax.accounting import gaussian
from experiments import (
    clipping,
    local_versus_central,
    mechanisms_throughput,
    numpy_ways,
    patients,
    selection,
    table,
    vector_queries,
)

FIGURES = Path(__file__).parent.parent / "figures"
NAMES = ("vector_queries", "selection", "local_versus_central", "clipping")


def load(name):
    return table.read(FIGURES / f"{name}.csv", import_module(f"experiments.{name}").COLUMNS)


@pytest.mark.parametrize(
    ("name", "found", "law", "error"),
    [
        ("vector_queries", "error", "error_theory", "error_standard_error"),
        ("local_versus_central", "rmse", "rmse_theory", "rmse_standard_error"),
        ("clipping", "rmse", "rmse_theory", "rmse_standard_error"),
        ("selection", "right", "right_theory", "right_standard_error"),
        ("selection", "lost", "lost_theory", "lost_standard_error"),
    ],
)
def test_simulated_points_lie_on_their_laws(name, found, law, error):
    rows = load(name).having(found)
    if name == "selection":  # what happens less than a hundred times has no standard error
        often = (1 - rows["right_theory"]) * rows["trials"] > 100
        rows = table.Table({n: column[often] for n, column in rows.columns.items()})
    off = (rows[found] - rows[law]) / rows[error]
    assert len(off) >= 12
    assert np.max(np.abs(off)) < 4
    assert 0.6 < np.sqrt(np.mean(off**2)) < 1.4  # standard errors that are none would hide much


@pytest.mark.parametrize(("measure", "first"), [("rmse", 7), ("mae", 9)])
def test_gaussian_leads_from_the_dimension_that_the_laws_give(measure, first):
    rows = load("vector_queries")
    z = float(gaussian.noise_multiplier(1.0, 1e-5))
    d_star = z**2 / 2 if measure == "rmse" else 2 * z**2 / np.pi  # sqrt(2) d, or d, meets z sqrt(d)
    crossing = rows.where(part="crossing", mechanism="laplace", measure=measure)
    assert crossing["d_star"][0] == pytest.approx(d_star, rel=1e-8)
    assert crossing["dimension"][0] == first == np.ceil(d_star)
    for mechanism in ("laplace", "l2_laplace", "linf_laplace"):
        lead = rows.where(part="crossing", mechanism=mechanism, measure=measure)["dimension"][0]
        curve, other = (
            rows.where(part="curve", mechanism=m, measure=measure) for m in ("gaussian", mechanism)
        )
        ahead = curve["error_theory"] <= other["error_theory"]
        np.testing.assert_array_equal(ahead, curve["dimension"] >= lead)


def test_noise_in_its_own_norm_has_the_sensitivity_of_that_norm():
    for d in (1.0, 4.0, 9.0):
        change = np.ones(int(d))  # a person in all counts
        z = gaussian.noise_multiplier(1.0, 1e-5)
        norms = {"laplace": 1, "l2_laplace": 2, "linf_laplace": np.inf}
        for mechanism, norm in norms.items():
            scale = vector_queries.SCALES[mechanism](np.float64(d))
            assert scale == pytest.approx(np.linalg.norm(change, norm))
        assert vector_queries.SCALES["gaussian"](d) == pytest.approx(z * np.linalg.norm(change))


def test_permute_and_flip_is_never_behind_the_exponential_mechanism():
    rows = load("selection")
    better, worse = (rows.where(mechanism=m) for m in ("permute_and_flip", "exponential_mechanism"))
    assert np.all(better["lost_theory"] <= worse["lost_theory"])
    assert np.all(better["right_theory"] >= worse["right_theory"])
    weights = rows.where(mechanism="exponential_by_weights")
    np.testing.assert_array_equal(weights["right_theory"], worse["right_theory"])
    ages = patients.ages()
    assert len(ages) == selection.scores().sum() == 442
    assert selection.scores()[5] == np.sum((ages >= 50) & (ages < 60)) == selection.scores().max()


def test_people_needed_give_the_target():
    rows = load("local_versus_central").where(part="needed")
    np.testing.assert_allclose(rows["rmse_theory"], local_versus_central.TARGET, rtol=1e-7)
    people = dict(zip(rows["mechanism"], rows["people"], strict=True))
    assert people["laplace"] == pytest.approx(np.sqrt(2) / 0.01)
    law = theory.local.randomized_response(1.0)
    of_one = law.own * law.other / (law.own - law.other) ** 2  # whatever the truth
    assert people["randomized_response"] == pytest.approx(of_one / 0.01**2)


def test_what_people_say_has_the_frequency():
    for people in (100, 10_000):
        asked = local_versus_central.answers("randomized_response", people)
        category = local_versus_central.answers("k_ary_response", people)
        hot = local_versus_central.answers("optimized_unary", people)
        assert asked.mean() == (category == 0).mean() == hot[:, 0].mean() == 0.1
        assert category.max() == 15
        assert np.all(hot.sum(axis=1) == 1)


def test_the_best_bound_is_the_least_of_the_curve():
    rows = load("clipping")
    for epsilon in clipping.EPSILONS:
        best = rows.where(part="best", epsilon=epsilon)["rmse_theory"][0]
        curve = rows.where(part="curve", epsilon=epsilon)["rmse_theory"]
        assert best <= curve.min() * (1 + 1e-8)  # the CSV has nine digits
        assert curve.min() < best * 1.001
        assert curve[0] > best < curve[-1]  # within, not at an end


def test_bias_is_what_clipping_takes_from_the_mean():
    records = patients.progression()
    for bound in (50.0, 200.0, 346.0):
        expected = np.mean(np.minimum(records, bound)) - np.mean(records)
        assert clipping.bias(records, bound) == pytest.approx(expected, abs=1e-10)
    assert clipping.bias(records, records.max()) == 0
    assert clipping.scale(442, 100.0, 0.5) == pytest.approx(100 / 442 / 0.5)


# The benchmark's contestants


SQUARES = {  # mean square of what NumPy measures, by the law
    "laplace": 2.0,
    "gaussian": 1.0,
    "truncated_laplace": theory.TruncatedLaplace(1, 2).variance,
    "bounded_laplace": theory.BoundedLaplace(0, 1, -1, 2).mean_square,
    "staircase": theory.Staircase(1, 1, 0.3).variance,
    "l2_laplace": 16 * 17.0,
    "linf_laplace": 16 * 17.0,
    "discrete_laplace": theory.DiscreteLaplace(1).variance,
    "discrete_gaussian": theory.DiscreteGaussian(1).variance,
}


@pytest.mark.parametrize("name", numpy_ways.CASES)
def test_numpy_draws_from_the_law(name):
    case = numpy_ways.CASES[name]
    size = max(np.size(case.value), 1)
    rms, spread = mechanisms_throughput.numpy_way(case, size)(200_000 // size)
    if name in SQUARES:
        truth = SQUARES[name] ** 0.5
    elif case.measure in ("share", "first_share", "first_bit"):
        laws = theory.local
        people = size if case.measure != "first_bit" else numpy_ways.PEOPLE // numpy_ways.SIZE
        law = {
            "randomized_response": laws.randomized_response(1),
            "k_ary_response": laws.k_ary_response(1, numpy_ways.SIZE),
            "symmetric_unary": laws.symmetric_unary(1),
            "optimized_unary": laws.optimized_unary(1),
        }[name]
        truth = np.sqrt(law.own**2 + law.own * (1 - law.own) / people)
    elif name == "above_threshold":
        chances = theory.selection.above_threshold(numpy_ways.SCORES, 8.0, 1.0, 1.0)
        truth = np.sqrt(chances @ np.arange(17.0) ** 2)
    else:
        chances = getattr(theory.selection, name)(numpy_ways.SCORES, 1.0)
        truth = np.sqrt(chances @ (15 - numpy_ways.SCORES) ** 2)
    assert abs(rms - truth) < 5 * spread


def test_a_row_of_the_benchmark():
    row = mechanisms_throughput.measure("laplace", 200_000, repeats=2)
    assert set(row) == set(mechanisms_throughput.COLUMNS)
    assert row["rms"] == pytest.approx(2**0.5, rel=0.02)
    with pytest.raises(ValueError, match=r"--trials = 10: expected at least 1,000,000"):
        mechanisms_throughput.run(10, 0, lambda *_: None)


def test_numpy_s_way_that_is_wrong_is_refused(monkeypatch):
    case = numpy_ways.CASES["laplace"]._replace(draw=lambda rng, size: 1.1 * rng.laplace(size=size))
    monkeypatch.setitem(numpy_ways.CASES, "laplace", case)
    with pytest.raises(ValueError, match=r"^laplace: .*: expected the same"):
        mechanisms_throughput.measure("laplace", 200_000, repeats=1)


@pytest.mark.slow
def test_the_exponential_mechanism_by_weights_has_its_law(key):
    scores = np.array([0.0, 2.0, 1.0], np.float32)
    release = partial(selection.by_weights, scale=np.float32(1.5))
    found = dpjax.simulate(key, release, scores, 100_000, measure=lambda a, v: jax.nn.one_hot(a, 3))
    law = theory.selection.exponential_mechanism(scores, 1.5)
    assert np.all(np.abs(found.mean - law) < 5 * found.mean_standard_error)
