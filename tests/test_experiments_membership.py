"""Membership: laws against other formulas, simulation against laws, and nobody beats the bound."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpjax.accounting import gaussian
from experiments import membership, table

COMMITTED = Path(__file__).parent.parent / "figures" / "membership.csv"
SHIFTED = {"laplace": stats.laplace, "gaussian": stats.norm}


@pytest.fixture(scope="module")
def committed():
    return table.read(COMMITTED, membership.COLUMNS)


def test_laws_are_those_of_answers_above_the_threshold(committed):
    for row in zip(*(committed[name] for name in
                     ("design", "scale", "threshold", "fpr_theory", "tpr_theory")),
                   strict=True):  # fmt: skip
        design, scale, threshold, fpr, tpr = row
        law = SHIFTED[design](scale=scale)
        assert fpr == pytest.approx(law.sf(threshold), rel=1e-6)
        assert tpr == pytest.approx(law.sf(threshold - 1), rel=1e-6)


def test_simulated_rates_are_within_four_standard_errors(committed):
    for name in ("fpr", "tpr", "advantage"):
        rows = committed.having(f"{name}_standard_error")
        law, error = rows[f"{name}_theory"], rows[f"{name}_standard_error"]
        off = (rows[name] - law) / error
        assert np.max(np.abs(off)) < 4  # of 132; for another seed one would be with 0.8 %
        # An advantage is no more certain than the rates that it is the difference of, and at
        # other noise, 3/2 or 2/3 of it, all these would be far off.
        assert np.std(off) == pytest.approx(1, abs=0.4)


def test_noise_of_another_scale_would_be_seen(committed):
    rows = committed.where(part="advantage")
    for i, design in enumerate(rows["design"]):
        for factor in (2 / 3, 3 / 2):
            scale = factor * rows["scale"][i]
            wrong = 1 - 2 * SHIFTED[design](scale=scale).sf(0.5)
            error = rows["advantage_standard_error"][i]
            assert abs(rows["advantage"][i] - wrong) > 5 * error


def test_nobody_beats_the_guarantee_and_laplace_meets_it_where_false_positives_are_few(committed):
    roc, best = committed.where(part="roc"), committed.where(part="advantage")
    assert np.all(roc["tpr_theory"] <= roc["tpr_bound"] * (1 + 1e-8))
    assert np.all(best["advantage_theory"] <= best["advantage_bound"])
    laplace = roc.where(design="laplace")
    few = laplace["fpr_theory"] < np.exp(-laplace["epsilon"]) / 2
    assert np.any(few)
    at_delta_0 = np.exp(laplace["epsilon"]) * laplace["fpr_theory"]
    np.testing.assert_allclose(laplace["tpr_theory"][few], at_delta_0[few], rtol=1e-8)


def test_the_largest_advantage_is_delta_at_epsilon_0(committed):
    best = committed.where(part="advantage")
    laplace, normal = (best.where(design=design) for design in ("laplace", "gaussian"))
    np.testing.assert_allclose(
        normal["advantage_theory"], gaussian.delta(0, mu=1 / normal["scale"]), rtol=1e-7
    )
    np.testing.assert_allclose(
        laplace["advantage_theory"], -np.expm1(-laplace["epsilon"] / 2), rtol=1e-7
    )
    middle = 0.5 * np.ones(len(best))
    np.testing.assert_array_equal(best["threshold"], middle)


def test_worlds_have_noise_of_their_own(committed):
    rows = committed.where(part="roc")
    rows = table.Table({
        name: column[np.isin(rows["fpr_theory"], [0.1, 0.3, 0.7])]
        for name, column in rows.columns.items()
    })  # fmt: skip
    off = [
        (rows[name] - rows[f"{name}_theory"]) / rows[f"{name}_standard_error"]
        for name in ("fpr", "tpr")
    ]
    assert len(rows) == 12
    assert abs(np.asarray(np.corrcoef(off))[0, 1]) < 0.9  # 1 were the noise shared; by chance 1e-4
