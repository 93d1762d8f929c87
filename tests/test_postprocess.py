"""Post-processing keeps dtypes and NaN, and undoes the bias it is meant to undo."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import postprocess, theory


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_clamp_keeps_dtype_and_order(dtype):
    answer = jnp.array([-3, 4, 12], dtype)
    clamped = postprocess.clamp(answer, lower=0, upper=10)
    assert clamped.dtype == dtype
    assert clamped.tolist() == [0, 4, 10]


def test_missing_answers_stay_missing():
    broken = jnp.array([jnp.nan, jnp.inf, -jnp.inf])
    assert np.isnan(postprocess.clamp(broken, lower=0, upper=1)[0])
    assert postprocess.clamp(broken, lower=0, upper=1)[1:].tolist() == [1, 0]
    assert np.isnan(postprocess.to_whole(broken)[0])


def test_to_whole():
    assert postprocess.to_whole(jnp.array([0.5, 1.5, -0.4])).tolist() == [0, 2, 0]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_debiased_randomized_response(share):
    law = theory.local.randomized_response(1.0)
    p = law.own
    estimate = postprocess.debiased_frequency(share, law=law)
    assert estimate == pytest.approx((share + p - 1) / (2 * p - 1), abs=1e-6)


@pytest.mark.parametrize("frequency", [0.0, 0.25, 1.0])
def test_debiasing_inverts_the_mean_report(frequency):
    for law in (theory.local.k_ary_response(0.7, 5), theory.local.optimized_unary(0.7)):
        share = frequency * law.own + (1 - frequency) * law.other
        estimate = postprocess.debiased_frequency(share, law=law)
        assert estimate == pytest.approx(frequency, abs=1e-6)


def test_mean_from_sum_and_count():
    mean = postprocess.mean_from_sum_and_count
    records = np.array([1.0, 2.0, 9.0])
    assert mean((records - 5).sum(), 3, lower=0, upper=10) == pytest.approx(4)
    assert mean(7.0, -2.0, lower=0, upper=10) == 10  # a count below 1 is taken as 1, then clamped
    odd = mean(-0.5, 1, lower=0, upper=3)
    assert odd == 1  # the middle of (0, 3) is 1.5 and not 1
