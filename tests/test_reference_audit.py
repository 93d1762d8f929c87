"""Bounds from counts and from one run against reference values; see tests/data/audit.json."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpjax.audit import counting, one_run

DATA = json.loads((Path(__file__).parent / "data" / "audit.json").read_text())


def clopper_pearson(successes, n, one_sided_level):
    lower, upper = counting.clopper_pearson(successes, n, level=one_sided_level)
    return {"lower": float(lower), "upper": float(upper)}


def from_counts(tp, fp, n_pos, n_neg, confidence, delta):
    """At half of the error for each bound, and at all of it for each."""
    answer = {}
    for name, level in (("alpha_over_2", (1 - confidence) / 2), ("alpha", 1 - confidence)):

        def bound(*counts, level=level):
            joint = 1 - 2 * level  # the confidence at which each bound has this level
            return float(counting.epsilon_lower_bound(*counts, delta=delta, confidence=joint))

        one_side = bound(tp, n_pos, fp, n_neg)
        answer[f"two_bounds_each_{name}"] = {
            "tpr_lower": float(counting.clopper_pearson(tp, n_pos, level=level)[0]),
            "fpr_upper": float(counting.clopper_pearson(fp, n_neg, level=level)[1]),
            "eps_lower_tpr_fpr": one_side,
            "eps_lower_best_side": max(one_side, bound(n_neg - fp, n_neg, n_pos - tp, n_pos)),
        }
    return answer


def best_threshold(shift, n_in, n_out, significance, delta):
    """Every vertex of the ROC's hull tried, with the confidence of a union bound over them."""
    out = stats.norm.ppf((np.arange(n_out) + 0.5) / n_out)
    scores = stats.norm.ppf((np.arange(n_in) + 0.5) / n_in) + shift
    thresholds = np.append(np.union1d(scores, out), np.inf)
    missed, rejected = np.searchsorted(scores, thresholds), np.searchsorted(out, thresholds)
    vertices = []
    for point in zip(missed, rejected, strict=True):  # upper hull, rejected over missed
        while len(vertices) > 1 and turns_up(vertices[-2], vertices[-1], point):
            vertices.pop()
        vertices.append(point)
    significance, best = significance / len(vertices), 0.0
    for a, b in vertices[:-1]:  # the last has no guesses
        right, guesses, canaries = int(n_in - a), int(n_in - a + n_out - b), n_in + n_out
        # at delta 0 the p-value is cheap, and no larger: so few need the whole bound
        if one_run.p_value(right, guesses, canaries, epsilon=best, delta=0.0) <= significance:
            bound = one_run.epsilon_lower_bound(
                right, guesses, canaries, delta=delta, confidence=1 - significance
            )
            best = max(best, bound)
    return {"epsilon_one_run": best}


def turns_up(a, b, c):
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


ADAPTERS = {
    "audit.clopper_pearson": clopper_pearson,
    "audit.eps_lower_cp": from_counts,
    "audit.one_run_p_value": lambda m, guesses, correct, eps, delta: one_run.p_value(
        correct, guesses, m, epsilon=eps, delta=delta
    ),
    "audit.one_run_eps": lambda m, guesses, correct, delta, p_value: one_run.epsilon_lower_bound(
        correct, guesses, m, delta=delta, confidence=1 - p_value
    ),
    "public.jaxprivacy_one_run": best_threshold,
}


def agrees(actual, expected, tol):
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        return all(agrees(actual[k], expected[k], tol) for k in expected)
    return abs(actual - expected) <= tol.get("rel", 0) * abs(expected) + tol.get("abs", 0)


def cases():
    for block in DATA:
        for case in block["cases"]:
            slow = case["inputs"].get("shift") == 1  # hundreds of thresholds to try
            yield pytest.param(block, case, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("block", "case"), list(cases()), ids=lambda value: value.get("topic") or str(value["inputs"])
)
def test_agrees_with_the_reference(block, case):
    answer = ADAPTERS[block["topic"]](**case["inputs"])
    assert agrees(answer, case["expected"], block["tol"]), answer


def test_every_adapter_has_cases():
    assert [block["topic"] for block in DATA] == list(ADAPTERS)
