"""Checks of arguments on the host: one line with the argument, its value and what was expected.

Each check takes its argument by name and gives it back as a NumPy value ready for use:

    >>> scale = positive(scale=2)
    >>> positive(scale=-1)
    Traceback (most recent call last):
    ...
    ValueError: scale = -1: expected a finite number above 0

Numbers are accepted as Python numbers, NumPy arrays and concrete JAX arrays; booleans, strings and
None are a TypeError, NaN is always a ValueError. Values inside traced code are never checked.
"""

from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np


def real(**argument: Any) -> np.ndarray:
    """A number or an array of numbers, infinities included, as float64."""
    name, value, array = _numbers(argument, "a number")
    return _require(name, value, array, ~np.isnan(array), "a number")


def finite(**argument: Any) -> np.ndarray:
    """A number or an array of finite numbers, as float64."""
    name, value, array = _numbers(argument, "a finite number")
    return _require(name, value, array, np.isfinite(array), "a finite number")


def positive(**argument: Any) -> np.ndarray:
    """Finite and above 0, as float64."""
    name, value, array = _numbers(argument, "a finite number above 0")
    ok = np.isfinite(array) & (array > 0)
    return _require(name, value, array, ok, "a finite number above 0")


def non_negative(**argument: Any) -> np.ndarray:
    """Finite and at least 0, as float64."""
    name, value, array = _numbers(argument, "a finite number of at least 0")
    ok = np.isfinite(array) & (array >= 0)
    return _require(name, value, array, ok, "a finite number of at least 0")


def non_negative_or_infinite(**argument: Any) -> np.ndarray:
    """At least 0, infinity included, as float64."""
    name, value, array = _numbers(argument, "a number of at least 0")
    return _require(name, value, array, array >= 0, "a number of at least 0")


def probability(**argument: Any) -> np.ndarray:
    """In [0, 1], both ends included, as float64."""
    name, value, array = _numbers(argument, "a number in [0, 1]")
    return _require(name, value, array, (array >= 0) & (array <= 1), "a number in [0, 1]")


def open_probability(**argument: Any) -> np.ndarray:
    """In (0, 1), neither end included, as float64."""
    name, value, array = _numbers(argument, "a number in (0, 1)")
    return _require(name, value, array, (array > 0) & (array < 1), "a number in (0, 1)")


def count(**argument: Any) -> np.ndarray:
    """Whole and at least 0, as int64; whole floats such as 1e9 are taken, fractions are not."""
    expected = "a whole number of at least 0"
    name, value, array = _numbers(argument, expected)
    ok = (array >= 0) & (array < 2.0**63) & (array == np.floor(array))
    _require(name, value, array, ok, expected)
    return np.asarray(value).astype(np.int64)  # not by way of float64, which rounds above 2^53


def positive_count(**argument: Any) -> int:
    """One whole number of at least 1, as an int."""
    expected = "a whole number of at least 1"
    name, value, array = _numbers(argument, expected)
    ok = (array >= 1) & (array < 2.0**63) & (array == np.floor(array)) & (array.ndim == 0)
    _require(name, value, array, ok, expected)
    return int(value)


def one_of(options: Collection[str], **argument: Any) -> str:
    """One of the named options."""
    name, value = _only(argument)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(options)}")
    return value


def _only(argument: dict[str, Any]) -> tuple[str, Any]:
    """The one named argument of a check."""
    if len(argument) != 1:
        raise TypeError(f"a check takes one argument by name, got {len(argument)}")
    return next(iter(argument.items()))


def _numbers(argument: dict[str, Any], expected: str) -> tuple[str, Any, np.ndarray]:
    """Name, value as given, and value as float64."""
    name, value = _only(argument)
    try:
        array = np.asarray(value)
    except ValueError:  # ragged lists
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" and array.dtype.name not in ("bfloat16", "float8_e4m3fn"):
        raise TypeError(f"{name} = {_short(value)}: expected {expected}")
    return name, value, array.astype(np.float64)


def _require(
    name: str, value: Any, array: np.ndarray, ok: np.ndarray | np.bool_, expected: str
) -> np.ndarray:
    """The array if every entry is in order, else the error for the first that is not."""
    if not np.all(ok):
        _fail(name, value, array, np.broadcast_to(ok, array.shape), expected)
    return array


def _fail(name: str, value: Any, array: np.ndarray, ok: np.ndarray, expected: str) -> NoReturn:
    """Raise for the first entry out of order."""
    if array.ndim == 0:
        raise ValueError(f"{name} = {_short(value)}: expected {expected}")
    index = tuple(int(i) for i in np.argwhere(~ok)[0])
    where = ", ".join(map(str, index))
    raise ValueError(f"{name}[{where}] = {np.asarray(value)[index]}: expected {expected}")


def _short(value: Any) -> str:
    """The value on one line of bounded length."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
