"""Parallel composition: releases of disjoint parts of the data cost the most of one part.

A record lies in one part. One more or one less changes what is released of that part alone, so that
the whole is as private as its least private part: the largest epsilon at the delta wanted, by any
accountant. The parts must be fixed by public rules for as long as they are composed, and each part
composes over time by itself.

A record that is replaced by another may leave one part and join another. Then two parts change:
their losses add up, and `moves` lists all such sums.

    >>> from dpjax.accounting import basic, loss
    >>> bins = [loss.laplace(1.0)] * 10  # ten disjoint bins, each counted once
    >>> print(epsilon(bins, 0, accountant=basic.epsilon))
    1.0
    >>> print(epsilon(moves(bins), 0, accountant=basic.epsilon))
    2.0
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.accounting.composition import PrivacyLoss, as_loss


def epsilon(
    losses: Sequence[PrivacyLoss], delta: ArrayLike, *, accountant: Callable[..., np.ndarray]
) -> Float64[np.ndarray, "*grid"]:
    """The largest epsilon of some losses of which one is suffered: that of disjoint parts.

    Args:
        losses: What is released of each part, all rounds together; at least one.
        delta: In [0, 1]; broadcasts with the losses' grids.
        accountant: A function `(loss, delta) -> epsilon`.

    Returns:
        Epsilon, on the side of the accountant.

    Raises:
        ValueError: There is no loss, or delta is outside [0, 1] or NaN.
        TypeError: One of the losses is none.

    Source: McSherry 2009, on parallel composition, for pure epsilon.
    """
    delta = _validate.probability(delta=delta)
    answers = [accountant(each, delta) for each in _checked(losses)]
    return np.asarray(np.max(np.stack(np.broadcast_arrays(*answers)), axis=0))


def moves(losses: Sequence[PrivacyLoss]) -> list[PrivacyLoss]:
    """The sum of each two different parts' losses: what a record that moves between them suffers.

    This is for adjacency replace_one, where each loss is that of a record added to or removed from
    the part. A record that is replaced within its part moves nothing where the parts are bins and
    the releases their counts; in general it suffers the part's own loss under replace_one, which is
    then one more loss to take the largest of.

    Args:
        losses: What is released of each part, at least two, each alike in both directions: one part
            sees a removal while the other sees an addition.

    Raises:
        ValueError: There are fewer than two, or a loss differs between its directions.
        TypeError: One of the losses is none.
    """
    checked = _checked(losses)
    if len(checked) < 2:
        raise ValueError(f"losses = {len(checked)} of them: expected at least two parts")
    for each in checked:
        if each.directions != ("both",):
            raise ValueError(f"losses have directions {each.directions}: expected both alike")
    return [one + other for one, other in itertools.combinations(checked, 2)]


def _checked(losses: Sequence[PrivacyLoss]) -> list[PrivacyLoss]:
    """A list of losses, with at least one in it."""
    checked = [as_loss(each) for each in losses]
    if not checked:
        raise ValueError("losses = []: expected at least one")
    return checked
