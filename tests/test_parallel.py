"""Parallel composition: the largest over the parts, under both adjacencies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dpjax.accounting import basic, exact, loss, parallel, rdp

BINS = [loss.laplace(1.0)] * 10


@pytest.mark.parametrize("accountant", [basic.epsilon, rdp.epsilon, exact.epsilon])
def test_bins_cost_one_and_a_move_costs_two(accountant):
    bins = BINS if accountant is basic.epsilon else BINS[:3]
    assert parallel.epsilon(bins, 0, accountant=accountant) == 1
    assert parallel.epsilon(parallel.moves(bins), 0, accountant=accountant) == 2


def test_the_worst_part_counts_at_each_delta():
    parts = [5 * loss.laplace(2.0), 20 * loss.gaussian([4.0, 8.0])]
    delta = np.array([[1e-9], [1e-2]])
    each = [exact.epsilon(part, delta) for part in parts]
    expected = np.maximum(*np.broadcast_arrays(*each))
    assert expected.shape == (2, 2)
    assert_array_equal(parallel.epsilon(parts, delta, accountant=exact.epsilon), expected)


def test_a_moving_record_is_a_pair_of_parts():
    parts = [loss.gaussian(1.0), loss.gaussian(2.0), loss.gaussian(3.0)]
    moves = parallel.moves(parts)
    assert len(moves) == 3
    worst = parallel.epsilon(moves, 1e-5, accountant=exact.epsilon)
    assert_allclose(worst, exact.epsilon(parts[0] + parts[1], 1e-5), rtol=1e-12)


def test_bad_parts_are_named():
    with pytest.raises(ValueError, match=r"losses = \[\]: expected at least one"):
        parallel.epsilon([], 1e-5, accountant=exact.epsilon)
    with pytest.raises(ValueError, match="expected at least two parts"):
        parallel.moves(BINS[:1])
    with pytest.raises(ValueError, match="expected both alike"):
        parallel.moves([loss.sampled_gaussian(0.1, 1.0)] * 2)
    with pytest.raises(ValueError, match="delta = 2: expected"):
        parallel.epsilon(BINS, 2, accountant=exact.epsilon)
