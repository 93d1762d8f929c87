"""Group privacy: a sensitivity that is as many times as the group has records."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpjax.accounting import exact, loss


def test_a_group_has_its_sensitivity():
    queries = 3 * loss.gaussian(8.0) + 2 * loss.laplace(6.0)
    group = queries.group([1, 2, 4])
    for size, epsilon in zip([1, 2, 4], exact.epsilon(group, 1e-5), strict=True):
        expected = 3 * loss.gaussian(8.0 / size) + 2 * loss.laplace(6.0 / size)
        assert_allclose(epsilon, exact.epsilon(expected, 1e-5), rtol=1e-9)
    assert_allclose((7 * loss.laplace(np.inf)).group(5).supremum("both"), 0)


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_bad_sizes_are_named(size):
    with pytest.raises(ValueError, match=r"size = .*: expected a whole number"):
        loss.gaussian(1.0).group(size)


def test_other_leaks_are_refused_by_name():
    with pytest.raises(ValueError, match="loss has a PoissonGaussian: expected Gaussian or"):
        (loss.gaussian(1.0) + loss.sampled_gaussian(0.1, 1.0)).group(2)
