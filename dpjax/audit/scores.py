"""Scores: what makes one number of an answer, so that events are intervals of it.

Any function of the answer alone is a fair score, for a guarantee survives post-processing; a bad
one only finds less. Scores take answers with trials in front.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array

from dpjax.simulate import as_pytree

_MOST_COLUMNS = 512  # of a vector whose covariances are fitted; beyond, its variances only


def itself(answers: Array) -> Array:
    """A scalar answer: a float as it is, whole numbers and bools as floats (exact to 2^24)."""
    return answers if jnp.issubdtype(answers.dtype, jnp.floating) else answers.astype(float)


def linear(weights: Array, center: Array, answers: Array) -> Array:
    """A weighted sum of the entries of a vector answer."""
    return jnp.sum((_rows(answers) - center[None]) * weights[None], axis=1)


def fit_linear(answers: Array, others: Array) -> Partial:
    """Fisher's linear discriminant between two samples of vectors, as a score.

    The weights are S^-1 (mean - mean), S the pooled covariance: most powerful where the answers are
    normal, and large along whatever was left without noise. The floor under S's eigenvalues keeps
    directions that a small sample has not seen from deciding.

    Args:
        answers: (trials, ...) of one world.
        others: (trials, ...) of the other.
    """
    one, two = (np.asarray(each, np.float64).reshape(len(each), -1) for each in (answers, others))
    middle = (one.mean(axis=0) + two.mean(axis=0)) / 2
    apart = one.mean(axis=0) - two.mean(axis=0)
    rest = np.concatenate([one - one.mean(axis=0), two - two.mean(axis=0)])
    columns = rest.shape[1]
    floor = np.mean(rest**2) * (columns / len(rest) + 1e-6) or 1.0
    if columns <= _MOST_COLUMNS:
        covariance = rest.T @ rest / len(rest) + floor * np.eye(columns)
        weights = np.linalg.solve(covariance, apart)
    else:
        weights = apart / (np.mean(rest**2, axis=0) + floor)
    size = np.sqrt(np.mean((rest @ weights) ** 2) + np.square(apart @ weights)) or 1.0
    return Partial(linear, jnp.asarray(weights / size, float), jnp.asarray(middle, float))


def trailing_zeros(answers: Array) -> Array:
    """A code of sign, exponent and the number of trailing zeros of a float's fraction.

    Noise added to 1 has the last bit of a number near 1, whatever is left when both nearly cancel;
    noise added to 0 has the last bit of the noise. The zeros at the end tell them apart
    (Mironov 2012).
    """
    word, kind = _word(answers)
    fraction = word & kind.type((1 << jnp.finfo(answers.dtype).nmant) - 1)
    # the lowest bit set, with one above the fraction so that there is one
    marked = fraction | kind.type(1 << jnp.finfo(answers.dtype).nmant)
    lowest = marked & (~marked + kind.type(1))
    zeros = lax.population_count(lowest - kind.type(1))
    return _with_exponent(answers, zeros, jnp.finfo(answers.dtype).nmant + 1)


def lowest_bits(answers: Array) -> Array:
    """A code of sign, exponent and the last four bits of a float's fraction.

    Noise on a grid, however safe, keeps the last bits of what it was added to, if that was not put
    on the grid first.
    """
    word, kind = _word(answers)
    return _with_exponent(answers, word & kind.type(15), 16)


CODES = (trailing_zeros, lowest_bits)
"""What an audit of representations looks at."""


def _word(answers: Array) -> tuple[Array, np.dtype]:
    """The bits of floats as whole numbers, and their type."""
    kind = np.dtype(f"uint{jnp.finfo(answers.dtype).bits}")
    return lax.bitcast_convert_type(answers, kind), kind


def _with_exponent(answers: Array, number: Array, numbers: int) -> Array:
    """One code of sign, exponent and a number below `numbers`; whole, and below 2^17."""
    word, kind = _word(answers)
    exponent = (word << kind.type(1)) >> kind.type(jnp.finfo(answers.dtype).nmant + 1)
    code = exponent.astype(np.int32) * numbers + number.astype(np.int32)
    return jnp.where(jnp.signbit(answers), -1 - code, code).astype(np.float32)


def then(first: Callable[[Any], Any], second: Callable[[Any], Array]) -> Partial:
    """One score after another."""
    return Partial(_then, as_pytree(first), as_pytree(second))  # equal ones share compilations


def _then(first: Partial, second: Partial, answers: Any) -> Array:
    """The second of the first of the answers."""
    return second(first(answers))


def _unchanged(answers: Array) -> Array:
    """The answers."""
    return answers


def _rows(answers: Array) -> Array:
    """Vectors of floats, one for each trial."""
    return itself(answers).astype(float).reshape(answers.shape[0], -1)


def choose(
    samples: tuple[Any, Any], score: Callable[[Any], Any] | None, *, float_bits: bool
) -> Partial:
    """The score of an audit: the user's, or by the shape of the answers; floats for `float_bits`.

    Args:
        samples: answers of each world, trials in front.
        score: the user's, or None.
        float_bits: whether to look at representations.

    Raises:
        TypeError: representations of what is no float; answers that are no single array or
            complex, without a score; a complex score.
        ValueError: representations of vectors; a score that does not give one number a trial.
    """
    if score is not None:
        chosen = as_pytree(score)
    elif len(leaves := jax.tree.leaves(samples[0])) != 1 or leaves[0] is not samples[0]:
        raise TypeError("mechanism(key, value) gives several arrays: expected one, or a score")
    elif jnp.iscomplexobj(samples[0]):
        raise TypeError(
            "mechanism(key, value) gives complex numbers: expected real ones, or a score"
        )
    elif np.ndim(samples[0]) > 1 and not float_bits:
        chosen = fit_linear(*samples)
    else:
        chosen = Partial(_unchanged)
    shape = jax.eval_shape(chosen, samples[0])
    trials = np.shape(jax.tree.leaves(samples[0])[0])[0]
    if not hasattr(shape, "dtype") or shape.shape != (trials,):
        raise ValueError(
            f"score(answers) = {list(getattr(shape, 'shape', []))}: expected one number for each of"
            f" {trials} trials"
        )
    if jnp.issubdtype(shape.dtype, jnp.complexfloating):
        raise TypeError(f"score(answers) is {shape.dtype}: expected real numbers")
    if not float_bits:
        return then(chosen, itself)
    if not jnp.issubdtype(shape.dtype, jnp.floating):
        raise TypeError(f"float_bits = True: expected floats to look at, got {shape.dtype}")
    return chosen
