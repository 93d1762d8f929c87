"""The noise laws against SciPy, mpmath, quadrature and stored values."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dpjax import theory

LAWS = [theory.Laplace, theory.Gaussian]
SCIPY = {theory.Laplace: stats.laplace, theory.Gaussian: stats.norm}
PROBABILITIES = [1e-300, 1e-20, 1e-3, 0.25, 0.5, 0.5 + 1e-12, 0.75, 0.95, 0.999, 1 - 1e-12]

REFERENCE = json.loads((Path(__file__).parent / "data" / "noise_laws.json").read_text())["cases"]
ANSWERS = {  # one adapter a topic
    "laplace.error": lambda b: {
        "mean_abs": theory.Laplace(b).mae,
        "variance": theory.Laplace(b).variance,
        "rmse": theory.Laplace(b).rmse,
    },
    "laplace.quantile": lambda b, p: theory.Laplace(b).quantile(p),
    "laplace.abs_quantile": lambda b, p: theory.Laplace(b).abs_quantile(p),
}


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["id"])
def test_stored_values(case):
    answer = ANSWERS[case["topic"]](**case["inputs"])
    assert answer == pytest.approx(
        case["expected"], rel=case["tol"]["rel"], abs=case["tol"].get("abs", 0.0)
    )


def test_scale_is_sensitivity_over_epsilon():
    noise = theory.Laplace(scale=2 / 0.5)
    assert (noise.variance, noise.mae) == (32.0, 4.0)
    assert noise.abs_quantile(0.95) == pytest.approx(4 * np.log(20), rel=1e-14)


def test_accuracy_follows_its_probability():
    assert theory.Laplace(1).abs_quantile(0.95) == pytest.approx(2.995732, abs=1e-6)
    assert theory.Gaussian(1).abs_quantile(0.95) == pytest.approx(1.959964, abs=1e-6)
    for law in LAWS:
        assert np.all(np.diff(law(1).abs_quantile([0.5, 0.9, 0.95, 0.99])) > 0)


def test_gaussian_tail_far_out():
    one_sided = theory.Gaussian(1).log_tail(40) - np.log(2)
    assert one_sided == pytest.approx(-804.60844, abs=1e-5)
    assert theory.Gaussian(1).tail(40) == 0.0  # 1e-350 is below the smallest float64
    assert theory.Gaussian(1).tail(5.42) > 0  # where one minus a float32 distribution is 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("x", [0.0, 1e-12, 1e-3, 0.5, 0.999, 1.0, 1.001, 3.0, 12.0, 40.0, 1e4, 1e8])
def test_log_tail_against_mpmath(law, x):
    with mpmath.workdps(40):
        tail = mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) if law is theory.Gaussian else None
        truth = float(mpmath.log(tail) if tail is not None else -mpmath.mpf(x))
    assert law(1).log_tail(x) == pytest.approx(truth, rel=1e-14, abs=0)
    assert law(2.5).log_tail(2.5 * x) == pytest.approx(truth, rel=1e-14, abs=0)


@pytest.mark.parametrize("law", LAWS)
def test_against_scipy(law):
    scale = np.array([[1e-3], [1.0], [7.5], [1e6]])
    x = scale * np.array([-30, -2, -0.1, 0, 1e-9, 0.5, 3, 30])
    ours, theirs = law(scale), SCIPY[law](scale=scale)
    np.testing.assert_allclose(ours.rmse, theirs.std(), rtol=1e-14)
    np.testing.assert_allclose(ours.variance, theirs.var(), rtol=1e-14)
    np.testing.assert_allclose(ours.density(x), theirs.pdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.log_density(x), theirs.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(ours.tail(np.abs(x)), 2 * theirs.sf(np.abs(x)), rtol=1e-12)
    np.testing.assert_allclose(
        ours.quantile(PROBABILITIES), theirs.ppf(PROBABILITIES), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("law", LAWS)
def test_errors_are_moments_of_the_density(law):
    noise = law(0.7)

    def moment(power):
        return 2 * integrate.quad(lambda x: x**power * noise.density(x), 0, 40, epsabs=1e-13)[0]

    assert moment(0) == pytest.approx(1, rel=1e-10)
    assert noise.mae == pytest.approx(moment(1), rel=1e-10)
    assert noise.variance == pytest.approx(moment(2), rel=1e-10)
    assert noise.rmse == pytest.approx(np.sqrt(moment(2)), rel=1e-10)


@pytest.mark.parametrize("law", LAWS)
@given(
    scale=st.floats(1e-100, 1e100), p=st.floats(1e-12, 1 - 1e-12), tail=st.floats(1e-280, 1 - 1e-12)
)
def test_round_trips(law, scale, p, tail):
    noise = law(scale)
    quantile, abs_quantile = noise.quantile(p), noise.abs_quantile(p)
    one_sided = noise.tail(abs(quantile)) / 2
    assert (1 - one_sided if quantile > 0 else one_sided) == pytest.approx(p, rel=1e-10)
    assert 1 - noise.tail(abs_quantile) == pytest.approx(p, rel=1e-10, abs=1e-15)
    assert noise.tail(noise.inverse_tail(tail)) == pytest.approx(tail, rel=1e-10)


@pytest.mark.parametrize("law", LAWS)
@given(scale=st.floats(1e-300, 1e300), x=st.floats(allow_nan=False))
def test_nothing_leaves_its_range(law, scale, x):
    noise = law(scale)
    assert 0 <= noise.tail(x) <= 1
    assert noise.log_tail(x) <= 0
    assert noise.density(x) >= 0


@pytest.mark.parametrize("law", LAWS)
def test_edges(law):
    noise = law(3.0)
    assert (noise.quantile(0), noise.quantile(0.5), noise.quantile(1)) == (-np.inf, 0, np.inf)
    assert (noise.abs_quantile(0), noise.abs_quantile(1)) == (0, np.inf)
    assert (noise.inverse_tail(0), noise.inverse_tail(1)) == (np.inf, 0)
    assert (noise.tail(-np.inf), noise.tail(-1), noise.tail(0), noise.tail(np.inf)) == (1, 1, 1, 0)
    assert (noise.log_tail(-1), noise.log_tail(np.inf)) == (0, -np.inf)
    assert (noise.density(np.inf), noise.density(-np.inf)) == (0, 0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0, -1, np.nan, np.inf, [1.0, -2.0]])
def test_bad_scale_is_named(law, scale):
    with pytest.raises(ValueError, match=r"^scale.* = .*: expected a finite number above 0$"):
        law(scale)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("p", [-0.1, 1.5, np.nan])
def test_bad_probability_is_named(law, p):
    for function in (law(1).quantile, law(1).abs_quantile):
        with pytest.raises(ValueError, match=r"^p = .*: expected a number in \[0, 1\]$"):
            function(p)
    with pytest.raises(ValueError, match=r"^probability = "):
        law(1).inverse_tail(p)
    with pytest.raises(ValueError, match=r"^x = nan: expected a number$"):
        law(1).tail(np.nan)
