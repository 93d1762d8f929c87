"""What JAX says of a function that it cannot trace, in one line."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def traceable(name: str) -> Iterator[None]:
    """Call a user's mechanism of this name inside.

    Raises:
        TypeError: it works on arrays of NumPy, or branches in Python on values.

    >>> import jax.numpy as jnp, numpy as np
    >>> with traceable("mine"):
    ...     jax.jit(lambda x: np.sin(x))(1.0)
    Traceback (most recent call last):
    ...
    TypeError: mechanism = mine: expected a function that JAX can trace, got \
TracerArrayConversionError; write it with jax.numpy and jax.random in place of numpy, without \
Python's if on values, and wrap it in dpjax.per_trial if it answers a single value
    """
    try:
        yield
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise TypeError(
            f"mechanism = {name}: expected a function that JAX can trace, got"
            f" {type(error).__name__}; write it with jax.numpy and jax.random in place of numpy,"
            " without Python's if on values, and wrap it in dpjax.per_trial if it answers a single"
            " value"
        ) from error
