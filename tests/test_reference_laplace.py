"""The exact accountant on Laplace noise against reference values; see tests/data."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpjax import curves
from dpjax.accounting import exact, loss, rdp

DATA = json.loads((Path(__file__).parent / "data" / "laplace_exact.json").read_text())
ACCOUNTANT = {
    "exact": exact.epsilon,
    "classic_rdp": functools.partial(rdp.epsilon, conversion="classic"),
}


def cases(topic):
    (block,) = (block for block in DATA if block["topic"] == topic)
    return block["cases"]


def test_delta_of_one_release():
    inputs = [case["inputs"] for case in cases("laplace.delta")]
    scale, epsilon = np.array([(case["b"], case["eps"]) for case in inputs], float).T
    bracket = exact.delta_bracket(loss.laplace(scale), epsilon)
    expected = [case["expected"] for case in cases("laplace.delta")]
    assert_allclose(bracket.estimate, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("case", cases("crossover.int_tight_laplace"), ids=lambda c: c["inputs"])
def test_first_query_at_which_the_gaussian_is_ahead_of_exact_laplace(case):
    """Behind just before and ahead at the first k; the scan of all k is the reference's."""
    budget = case["inputs"]["eps"], case["inputs"]["delta"]
    laplace = curves.calibrated("laplace", *budget, accountant=exact.epsilon)
    for rule, first in case["expected"].items():
        if first != "none":
            k = np.array([first - 1, first])
            gaussian = curves.gaussian(*budget, accountant=ACCOUNTANT[rule])
            assert (gaussian(k) <= laplace(k)).tolist() == [False, True]
