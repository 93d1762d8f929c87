"""What commands that simulate share; this module loads JAX."""

import contextlib
from functools import partial
from typing import Any

import click
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import dpjax
from dpjax import _validate
from dpjax.cli.output import one_line
from dpjax.simulate import as_pytree, as_value

_TRIED = 1000  # answers of each neighbour
_MOST_WHOLE = 2**31 - 1  # JAX would wrap larger ones
_UNTRACED = (
    jax.errors.JAXTypeError,
    jax.errors.JAXIndexError,
    jax.errors.UnexpectedTracerError,
)


def key_of(seed: int) -> Array:
    """The key of a seed below 2^32; larger ones collide without x64."""
    if not 0 <= _validate.count(seed=seed) < 2**32:
        raise ValueError(f"seed = {seed}: expected a whole number below 2^32")
    return jax.random.key(np.uint32(seed))


def points_at(scales: dict[tuple[str, float, int], Any]) -> list[dpjax.Point]:
    """The points of a sweep: the error of each mechanism on a true answer of 0."""
    points = []
    for (mechanism, epsilon, queries), (scale, _) in scales.items():
        whole = mechanism.startswith("discrete")
        points.append(
            dpjax.Point(
                {"mechanism": mechanism, "epsilon": epsilon, "queries": queries},
                partial(getattr(dpjax, mechanism), scale=scale),
                np.int32(0) if whole else 0.0,
            )
        )
    return points


def _whole(value: Any) -> bool:
    """Whether it is a list of whole numbers, as an array of the host."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def tried(
    name: str, mechanism: Any, values: tuple[Any, Any], seed: int
) -> tuple[tuple[Array, Array], float, list[str]]:
    """Some trials of a user's mechanism on both neighbours.

    Returns:
        The values as arrays that it takes, the share of its answers that are NaN, and remarks on
        the answers. As in `simulate`, Python ints are floats, lists of them too, and integers to a
        mechanism that takes no floats.

    Raises:
        click.UsageError: it cannot be traced, raises, or its answers are of no use.
    """
    try:
        arrays = [as_value(value.astype(float) if _whole(value) else value) for value in values]
        answers = [_answers(mechanism, array, seed) for array in arrays]
    except _UNTRACED as error:
        raise click.UsageError(
            f"{name} cannot be traced by JAX ({type(error).__name__}): expected jax.numpy and"
            " jax.random in place of numpy, and no Python if on values; --per-trial"
            " (dpjax.per_trial) if it answers a single value"
        ) from error
    except (Exception, SystemExit) as error:  # whatever a user's function raises
        if isinstance(error, TypeError) and all(type(v) is int or _whole(v) for v in values):
            if max(np.max(np.abs(np.asarray(value, float))) for value in values) > _MOST_WHOLE:
                raise click.UsageError(
                    f"{name} takes whole numbers: expected --value and --neighbour of at most"
                    f" {_MOST_WHOLE}, as int32"
                ) from error
            whole: Any = tuple(as_value(np.asarray(value)) for value in values)
            with contextlib.suppress(click.UsageError):
                return tried(name, mechanism, whole, seed)
        text = f"{name} raised {type(error).__name__}: {one_line(error)}"
        raise click.UsageError(text) from error
    single = f"{name} (with --per-trial, dpjax.per_trial, if it answers a single value)"
    missing = []
    for one, again in answers:
        if not isinstance(one, np.ndarray) or one.dtype.kind not in "iufb":
            raise click.UsageError(f"{name}: expected one array of numbers as the answer")
        if one.shape[:1] != (_TRIED,):
            raise click.UsageError(
                f"{single} answers {_TRIED} trials with shape {list(one.shape)}: expected trials in"
                " front"
            )
        missing.append(np.isnan(one).mean() if one.dtype.kind == "f" else 0.0)
        if missing[-1] == 1:
            raise click.UsageError(f"{name} answers NaN in every trial: expected numbers")
        same, varied = np.array_equal(one, again, equal_nan=True), np.any(one != one[:1])
        if same and varied:
            raise click.UsageError(
                f"{name} gives the same answers to two keys: expected noise from the key, by"
                " jax.random and not by numpy.random or random"
            )
        if not same and not varied:
            raise click.UsageError(
                f"{single} gives all trials of a key the same answer: expected independent noise"
            )
    return (arrays[0], arrays[1]), float(np.mean(missing)), _remarks(*(one for one, _ in answers))


def _remarks(one: np.ndarray, other: np.ndarray) -> list[str]:
    """What is odd about answers to both neighbours, though it can be audited."""
    if np.any(one != one[:1]) or np.any(other != other[:1]):
        return []
    if np.array_equal(one, other):
        return ["every answer is the same, on both neighbours: it says nothing"]
    return [
        "every answer to one neighbour is the same: expected noise from the key, by jax.random"
        " (numpy.random and random give one number, while JAX traces the function)"
    ]


def _answers(mechanism: Any, value: Array, seed: int) -> list[Any]:
    """The answers to many trials, by each of two keys."""
    many = jnp.broadcast_to(value, (_TRIED, *value.shape))
    ask = jax.jit(as_pytree(mechanism))
    found = [jax.tree.map(np.asarray, ask(key, many)) for key in jax.random.split(key_of(seed))]
    jax.effects_barrier()  # so that what it prints has come out
    return found
