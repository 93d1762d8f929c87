"""The type checker that pyproject.toml has put on every function of dpjax."""

from collections.abc import Callable

import beartype

# As in PEP 484, and as pyright has it, a float takes an int: NumPy's ArrayLike counts on it.
_check = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
_checked: dict[object, Callable] = {}


def checked(signature: Callable) -> Callable:
    """Beartype, once for each signature.

    jaxtyping has an empty function of the same name and annotations checked in place of the real
    one. A function within a function is decorated anew at every call of the outer one, and
    beartype takes a millisecond to write and compile what checks it.
    """
    annotations = tuple(signature.__annotations__.items())
    key = signature.__module__, signature.__qualname__, signature.__code__, annotations
    if key not in _checked:
        _checked[key] = _check(signature)
    return _checked[key]
