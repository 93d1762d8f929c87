"""Post-processing: what may be done to an answer at no cost to the budget.

A function of a private answer alone is as private as the answer (Dwork and Roth 2014, Proposition
2.1): none of these spends epsilon or delta, whatever the accountant. They may not look at the data
again. All are pure, keep the dtype of floats, and work on JAX and NumPy arrays alike; NaN stays.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from dpjax.theory.local import Support


def clamp(answer: ArrayLike, *, lower: ArrayLike, upper: ArrayLike) -> Array:
    """Move answers outside of [lower, upper] to its nearer end; costs no budget.

    Less error where the truth lies inside, at the price of bias near the ends: see
    `theory.ClampedLaplace`.

    Args:
        answer: a private answer.
        lower: in its units; -infinity for none.
        upper: at least `lower`; infinity for none.

    >>> clamp(jnp.array([-3.0, 4.0, 12.0]), lower=0, upper=10).tolist()
    [0.0, 4.0, 10.0]
    """
    return jnp.clip(jnp.asarray(answer), lower, upper)


def to_whole(answer: ArrayLike) -> Array:
    """Round to the nearest whole number, halves to even, as a float; costs no budget.

    >>> to_whole(jnp.array([2.4, -0.6])).tolist()
    [2.0, -1.0]
    """
    return jnp.round(jnp.asarray(answer))


def debiased_frequency(supporting_share: ArrayLike, *, law: Support) -> Array:
    """Estimate a frequency without bias from the share of reports that support a category.

    (share - other) / (own - other) (Wang, Blocki, Li and Jha 2017, Equation 1); for randomized
    response (m + p - 1) / (2 p - 1) with p the chance of the truth. Costs no budget. The answer may
    lie outside of [0, 1]; clamping it brings bias back.

    Args:
        supporting_share: in [0, 1]: of the people, how many reports support the category.
        law: of the mechanism, from `theory.local`.

    >>> from dpjax.theory import local
    >>> law = local.randomized_response(scale=1.0)
    >>> round(float(debiased_frequency(law.own, law=law)), 6)  # all are true: share own
    1.0
    """
    share = jnp.asarray(supporting_share)
    share = share if jnp.issubdtype(share.dtype, jnp.floating) else share.astype(float)
    return (share - float(law.other)) / float(law.own - law.other)


def mean_from_sum_and_count(
    total: ArrayLike, count: ArrayLike, *, lower: ArrayLike, upper: ArrayLike
) -> Float[Array, "..."]:
    """Estimate a mean from a private centred sum and a private count; costs no budget.

    (lower + upper) / 2 + total / count, clamped, with a count below 1 taken as 1: for the two
    answers of `queries.sum_and_count`. The estimate is biased where the count is small.

    Args:
        total: private sum of record - (lower + upper) / 2.
        count: private number of records.
        lower: least value of a record.
        upper: greatest value of a record.

    >>> float(mean_from_sum_and_count(-20.0, 10.0, lower=0, upper=10))
    3.0
    """
    middle = (jnp.asarray(lower) + jnp.asarray(upper)) / 2
    mean = jnp.asarray(total) / jnp.maximum(jnp.asarray(count), 1) + middle
    return clamp(mean, lower=lower, upper=upper)
