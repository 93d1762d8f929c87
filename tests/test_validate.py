"""Argument checks: what passes, what they give back, and the one line they raise."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import _validate

NUMBERS = [
    _validate.real,
    _validate.finite,
    _validate.positive,
    _validate.non_negative,
    _validate.non_negative_or_infinite,
    _validate.probability,
    _validate.open_probability,
]


@pytest.mark.parametrize("check", NUMBERS)
@pytest.mark.parametrize(
    "value",
    [0.5, np.float32(0.5), [0.25, 0.5], np.full((2, 3), 0.5), jnp.full((2,), 0.5, jnp.bfloat16)],
)
def test_numbers_come_back_as_float64_of_the_same_shape(check, value):
    checked = check(x=value)
    assert checked.dtype == np.float64
    assert checked.shape == np.shape(value)
    np.testing.assert_array_equal(checked, np.asarray(value, np.float64))


@pytest.mark.parametrize("check", [*NUMBERS, _validate.count, _validate.positive_count])
def test_nan_is_an_error_everywhere(check):
    with pytest.raises(ValueError, match=r"^x = nan: expected a"):
        check(x=np.nan)


@pytest.mark.parametrize("check", [*NUMBERS, _validate.count, _validate.positive_count])
@pytest.mark.parametrize("value", [None, "1", True, [True], 1j, object(), [[1], [1, 2]]])
def test_what_is_no_number_is_a_type_error(check, value):
    with pytest.raises(TypeError, match=r"^x = .*: expected a"):
        check(x=value)


@pytest.mark.parametrize(
    ("check", "inside", "outside"),
    [
        (_validate.real, [-np.inf, 0, np.inf], []),
        (_validate.finite, [-1e308, 0, 1e308], [-np.inf, np.inf]),
        (_validate.positive, [5e-324, 1e308], [0, -0.0, -1, np.inf]),
        (_validate.non_negative, [0, 1e308], [-5e-324, -1, np.inf]),
        (_validate.non_negative_or_infinite, [0, np.inf], [-5e-324, -np.inf]),
        (_validate.probability, [0, 1], [-5e-324, 1 + 1e-15, np.inf]),
        (_validate.open_probability, [5e-324, 1 - 1e-16], [0, 1]),
        (_validate.count, [0, 1, 1e9, 2**62], [-1, 1.5, np.inf, 2.0**63]),
        (_validate.positive_count, [1, 1e9, np.int32(7)], [0, -1, 1.5, np.inf, [1, 2]]),
    ],
)
def test_bounds(check, inside, outside):
    for value in inside:
        assert check(x=value) == value
    for value in outside:
        with pytest.raises(ValueError, match=r"^x.* = .*: expected a"):
            check(x=value)


def test_large_counts_stay_exact():
    assert _validate.count(k=2**53 + 1) == 2**53 + 1
    assert _validate.count(k=[2**53 + 1, 3]).dtype == np.int64
    assert _validate.positive_count(k=2**53 + 1) == 2**53 + 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "scale = -1: expected a finite number above 0"),
        (np.float32(-0.5), "scale = -0.5: expected a finite number above 0"),
        ([1.0, -2.0], r"scale\[1\] = -2.0: expected a finite number above 0"),
        (np.array([[1.0, 2], [0, 1]]), r"scale\[1, 0\] = 0.0: expected a finite number above 0"),
    ],
)
def test_the_first_bad_entry_is_named(value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        _validate.positive(scale=value)


def test_a_message_is_one_line_of_bounded_length():
    with pytest.raises(TypeError) as caught:
        _validate.positive(scale="\n".join("long" * 100))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 120


def test_one_of():
    assert _validate.one_of(("classic", "improved"), conversion="classic") == "classic"
    for value in ("best", None, 3):
        with pytest.raises(ValueError, match=r"^conversion = .*: expected one of classic, impr"):
            _validate.one_of(("classic", "improved"), conversion=value)


def test_a_check_takes_one_argument():
    with pytest.raises(TypeError, match="one argument by name"):
        _validate.positive(a=1, b=2)
