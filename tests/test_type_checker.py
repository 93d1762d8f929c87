"""The type checker of the tests sees what is wrong, in functions within functions too."""

from collections.abc import Callable

import jaxtyping
import numpy as np
import pytest
import type_checker
from jaxtyping import Float

from dpjax.accounting import basic

typed = jaxtyping.jaxtyped(typechecker=type_checker.checked)


def made(kind: type) -> Callable:
    @typed
    def double(x: kind) -> kind:  # pyright: ignore[reportInvalidTypeForm]
        return x + x if x != 3 else "six"

    return double


def test_an_inner_function_is_checked_each_time_by_its_own_annotations():
    for _ in range(2):
        assert made(int)(1) == 2
        assert made(str)("a") == "aa"
        assert made(float)(1) == 2
        for kind, wrong in ((int, "a"), (str, 1), (int, 1.0), (int, 3)):
            with pytest.raises(jaxtyping.TypeCheckError, match="double"):
                made(kind)(wrong)


def test_shapes_are_checked_at_every_call():
    @typed
    def add(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return (x + y)[: 2 if x.size == 5 else None]

    for size in (1, 2, 3):
        assert add(np.zeros(size), np.ones(size)).shape == (size,)
    with pytest.raises(jaxtyping.TypeCheckError):
        add(np.zeros(3), np.ones(1))
    with pytest.raises(jaxtyping.TypeCheckError, match="return"):
        add(np.zeros(5), np.ones(5))


def test_dpjax_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError):
        basic.epsilon("12 queries", 1e-5)  # pyright: ignore[reportArgumentType]
