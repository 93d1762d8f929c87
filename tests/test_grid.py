"""Points of a grid: their order, names and keys."""

import zlib

import jax
import numpy as np

import dpjax
from dpjax.sweep.grid import point_key, point_name


def test_row_major_with_the_last_axis_fastest():
    points = dpjax.grid(lambda a, b: lambda key, value: (a, b), a=["x", "y"], b=[1, 2, 3])
    assert [point.name for point in points[:4]] == ["a=x/b=1", "a=x/b=2", "a=x/b=3", "a=y/b=1"]
    for point in points:
        assert point.mechanism(None, None) == tuple(point.coordinates.values())


def test_numpy_numbers_have_the_names_of_python_s():
    assert point_name({"a": np.float64(0.1), "b": np.int64(3)}) == point_name({"a": 0.1, "b": 3})


def test_a_key_is_the_fold_of_the_name_s_hash(key):
    expected = jax.random.fold_in(key, np.uint32(zlib.crc32(b"study/epsilon=0.1")))
    assert point_key(key, {"epsilon": 0.1}, "study") == expected
    unnamed = jax.random.fold_in(key, np.uint32(zlib.crc32(b"epsilon=0.1")))
    assert point_key(key, {"epsilon": 0.1}) == unnamed
    assert expected != unnamed
