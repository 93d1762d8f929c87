"""The tables on what goes wrong between theorem and program, against theory and known values."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dpjax.accounting import gaussian
from dpjax.audit import counting
from experiments import gaussian_out_of_range, table

FIGURES = Path(__file__).parent.parent / "figures"
DELTA = 1e-5


def load(name):
    experiment = import_module(f"experiments.{name}")
    return table.read(FIGURES / f"{name}.csv", experiment.COLUMNS), experiment


# Sensitivity


def test_proof_comes_near_the_truth_and_stays_below_the_limit():
    rows, _ = load("sensitivity_underestimated")
    assert np.all(rows["epsilon_proven"] <= rows["epsilon_limit"])
    # 27 bounds at 95 %: more than 7 above the truth would have probability 1e-4
    assert np.sum(rows["epsilon_proven"] > rows["epsilon_true"]) <= 7
    laplace = rows.where(design="laplace")
    np.testing.assert_allclose(laplace["epsilon_true"], laplace["factor"])
    assert np.all(laplace["epsilon_proven"] > 0.97 * laplace["epsilon_true"])
    assumed = rows.where(audit="gaussian")
    assert np.all(assumed["epsilon_proven"] > 0.97 * assumed["epsilon_true"])


def test_an_underestimated_sensitivity_is_contradicted_from_a_quarter_on():
    rows, _ = load("sensitivity_underestimated")
    caught = rows["epsilon_proven"] > rows["epsilon_claimed"]
    np.testing.assert_array_equal(caught, rows["factor"] > 1)


# Range of the customary formula


def test_customary_formula_breaks_where_theory_says_and_the_parametric_audit_sees_it():
    rows, _ = load("gaussian_out_of_range")
    unsafe = float(gaussian.customary_unsafe_epsilon(DELTA))
    customary, exact = (rows.where(design=design) for design in gaussian_out_of_range.DESIGNS)
    broken = customary["epsilon"] > unsafe
    np.testing.assert_array_equal(customary["epsilon_true"] > customary["epsilon"], broken)
    caught = customary["epsilon_assumed_gaussian"] > customary["epsilon"]
    # with so many trials all of them, but where even the parametric audit's reach ends
    reach = customary["limit_assumed_gaussian"] > customary["epsilon"]
    np.testing.assert_array_equal(caught, broken & reach)
    np.testing.assert_allclose(exact["epsilon_true"], exact["epsilon"], rtol=1e-8)
    assert np.sum(exact["epsilon_assumed_gaussian"] > exact["epsilon"]) <= 5


def test_counting_leaves_epsilon_20_undecided():
    rows, _ = load("gaussian_out_of_range")
    twenty = rows.where(design="gaussian_customary", epsilon=20.0)
    assert twenty["epsilon_assumed_gaussian"][0] > 20
    assert twenty["epsilon_counted"][0] < twenty["limit_counted"][0] < 20
    assert 1e12 < twenty["trials_to_contradict"][0] < 4e12
    assert np.all(rows["epsilon_counted"] <= rows["limit_counted"])
    assert np.all(np.isnan(rows.where(design="gaussian_exact")["trials_to_contradict"]))


def test_trials_to_contradict_is_where_a_typical_run_does():
    mu = 1 / float(gaussian.customary_noise_multiplier(20.0, DELTA))
    needed = gaussian_out_of_range.trials_to_contradict(20.0, mu)
    assert needed is not None
    assert gaussian_out_of_range.typical_bound(needed * 1.1, mu) > 20
    assert gaussian_out_of_range.typical_bound(needed / 1.1, mu) < 20
    assert needed > counting.trials_needed(20.0, delta=DELTA, confidence=0.95)
    assert gaussian_out_of_range.trials_to_contradict(5.0, 1.0) is None  # it keeps that claim


# Floating point


def test_textbook_noise_betrays_and_remedies_end_it():
    rows, experiment = load("floating_point")
    rows = rows.where(part="support")
    for sampler in ("jax.random float32", "jax.random float64"):
        assert np.all(rows.where(sampler=sampler, remedy="none")["share_betraying"] > 0.85)
    rounded = rows.where(remedy="rounded to 1/1024")
    assert np.all((rounded["share_betraying"] > 1e-5) & (rounded["share_betraying"] < 1e-2))
    assert np.all(rows.where(remedy="snapped")["share_betraying"] == 0)
    assert np.all(rows.where(sampler="dpjax discrete")["share_betraying"] < 1e-17)
    assert set(zip(rows["sampler"], rows["remedy"], strict=True)) == set(experiment.IMPLEMENTATIONS)


def test_audit_by_bits_contradicts_floats_and_lets_remedies_pass():
    rows, _ = load("floating_point")
    rows = rows.where(part="support").having("epsilon_proven")
    caught = rows["epsilon_proven"] > rows["epsilon_claimed"]
    floats = rows["sampler"] == "dpjax float32"
    floats |= (
        (rows["sampler"] == "jax.random float32")
        & (rows["noise"] == "laplace")
        & (rows["remedy"] == "none")
    )
    np.testing.assert_array_equal(caught, floats)


@pytest.mark.parametrize(
    "name", ["sensitivity_underestimated", "gaussian_out_of_range", "floating_point"]
)
def test_reading_is_a_few_sentences_without_a_missing_number(name):
    rows, experiment = load(name)
    text = experiment.reading(rows)
    assert "nan" not in text
    assert 2 <= text.count(". ") + text.endswith(".") <= 3
