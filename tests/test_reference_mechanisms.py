"""The laws of the mechanisms against reference values: one test, one adapter a topic.

Each block of tests/data/mechanisms.json holds a topic, its tolerance, the paper of its law, and
cases that were computed at 32 digits or more by series, closed forms, enumeration and quadrature.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from dpjax import theory

BLOCKS = json.loads((Path(__file__).parent / "data" / "mechanisms.json").read_text())
CASES = [(block, case) for block in BLOCKS for case in block["cases"]]
SELECT = theory.selection


def noise(law, **names):
    """The named numbers of a law, under the names of the reference."""
    return {name: getattr(law, attribute) for name, attribute in names.items()}


def discrete_laplace(eps, sensitivity):
    law = theory.DiscreteLaplace(sensitivity / eps)
    return noise(law, variance="variance", mean_abs="mae") | {
        "p0": law.probability(0),
        "p1": law.probability(-1),
        "tail_ge_5": law.tail(4),
    }


def discrete_gaussian(sigma):
    law = theory.DiscreteGaussian(sigma)
    return noise(law, variance="variance", mean_abs="mae", log_normalizer="log_normalizer") | {
        "p0": law.probability(0),
        "p1": law.probability(-1),
    }


def staircase_optimum(eps, sensitivity):
    scale = sensitivity / eps
    gammas = [theory.staircase_gamma(scale, sensitivity, measure=m) for m in ("mae", "rmse")]
    for_mae, for_variance = (theory.Staircase(scale, sensitivity, gamma) for gamma in gammas)
    laplace = theory.Laplace(scale)
    return {
        "gamma_abs": gammas[0],
        "mean_abs": for_mae.mae,
        "variance_at_gamma_abs": for_mae.variance,
        "gamma_var": gammas[1],
        "variance": for_variance.variance,
        "mean_abs_at_gamma_var": for_variance.mae,
        "laplace_mean_abs": laplace.mae,
        "laplace_variance": laplace.variance,
    }


def expected_gap(scores, eps):
    laws = (SELECT.exponential_mechanism, SELECT.permute_and_flip, SELECT.report_noisy_max)
    names = ("exponential_mechanism", "permute_and_flip", "rnm_laplace")
    return {
        name: SELECT.expected_gap(scores, law(scores, 2 / eps))
        for name, law in zip(names, laws, strict=True)
    }


def k_ary(eps, k):
    law = theory.local.k_ary_response(1 / eps, k)
    return noise(law, p="own", q="other") | {
        "variance_f0": law.variance(),
        "variance_f0.2": law.variance(0.2),
        "noise_only_variance_f0.2": law.variance(0.2),
    }


def optimized_unary(eps):
    law = theory.local.optimized_unary(1 / eps)
    return noise(law, p="own", q="other") | {
        "variance_f0": law.variance(),
        "sue_variance_f0": theory.local.symmetric_unary(1 / eps).variance(),
    }


def binary(eps):
    law = theory.local.randomized_response(1 / eps)
    return {"p_truth": law.own, "estimator_variance_per_user": law.variance()}


def truncated(eps, delta, sensitivity):
    scale = sensitivity / eps
    bound = theory.truncation(scale, sensitivity, delta)
    law = theory.TruncatedLaplace(scale, bound)
    return {"A": bound, "mean_abs": law.mae, "variance": law.variance}


ANSWERS = {
    "bounded_laplace.clamped": lambda value, b, lower, upper: noise(
        theory.ClampedLaplace(value, b, lower, upper),
        mean="mean",
        mse="mean_square",
        variance="variance",
        p_lower="at_lower",
        p_upper="at_upper",
    ),
    "bounded_laplace.resampled": lambda value, b, lower, upper: noise(
        theory.BoundedLaplace(value, b, lower, upper),
        mean="mean",
        variance="variance",
        acceptance="acceptance",
    ),
    "discrete_gaussian.moments": discrete_gaussian,
    "discrete_laplace.moments": discrete_laplace,
    "ldp.binary_rr": binary,
    "ldp.krr": k_ary,
    "ldp.oue": optimized_unary,
    "public.geometric_variance": lambda eps, sensitivity: (
        theory.DiscreteLaplace(sensitivity / eps).variance
    ),
    "select.exponential_mechanism": lambda scores, eps, sensitivity: SELECT.exponential_mechanism(
        scores, 2 * sensitivity / eps
    ),
    "select.exponential_mechanism_monotone": lambda scores, eps, sensitivity: (
        SELECT.exponential_mechanism(scores, sensitivity / eps)
    ),
    "select.expected_gap": expected_gap,
    "select.permute_and_flip": lambda scores, eps, sensitivity: SELECT.permute_and_flip(
        scores, 2 * sensitivity / eps
    ),
    "select.report_noisy_max_laplace": lambda scores, eps, scale: SELECT.report_noisy_max(
        scores, scale
    ),
    "staircase.moments": lambda eps, gamma: noise(
        theory.Staircase(1 / eps, 1, gamma), mean_abs="mae", variance="variance"
    ),
    "staircase.optimum": staircase_optimum,
    "svt.above_threshold": lambda queries, threshold, eps, threshold_scale, query_scale: (
        SELECT.above_threshold(queries, threshold, query_scale, threshold_scale)
    ),
    "truncated_laplace.moments": truncated,
}
ELSEWHERE = {"olh_variance_f0"}  # local hashing, of another mechanism


def label(value):
    """A test's name: the topic, then the inputs."""
    return value.get("topic") or ",".join(f"{k}={v}" for k, v in value["inputs"].items())


@pytest.mark.parametrize(("block", "case"), CASES, ids=label)
def test_reference_value(block, case):
    answer, expected = ANSWERS[block["topic"]](**case["inputs"]), case["expected"]
    tolerance = {"rtol": block["tol"].get("rel", 0), "atol": block["tol"].get("abs", 0)}
    if not isinstance(expected, dict):
        np.testing.assert_allclose(answer, expected, **tolerance)
        return
    assert set(answer) == set(expected) - ELSEWHERE
    for name, number in answer.items():
        np.testing.assert_allclose(number, expected[name], err_msg=name, **tolerance)


def test_every_topic_has_cases():
    assert {block["topic"] for block in BLOCKS} == set(ANSWERS)
