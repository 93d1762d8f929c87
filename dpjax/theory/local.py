"""The laws of local mechanisms: how reports support a category, and what an estimate then errs by.

A report supports the person's own category with probability `own` and each other one with
probability `other`. From n reports the frequency of a category is estimated without bias as
(supporting share - other) / (own - other): see `postprocess.debiased_frequency`.

    >>> law = k_ary_response(scale=1.0, num_categories=3)
    >>> round(float(law.own), 8)
    0.57611688
    >>> round(float(optimized_unary(scale=1 / 2).variance()), 8)  # 4 e^2 / (e^2 - 1)^2
    0.72406166
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpjax import _validate
from dpjax.theory.additive import Float64


@dataclass(frozen=True, eq=False)
class Support:
    """How a report supports categories: a "pure" protocol of Wang, Blocki, Li and Jha 2017.

    Attributes:
        own: probability that a report supports the person's own category.
        other: probability that it supports some other given category; below `own`.
    """

    own: Float64
    other: Float64

    def variance(self, frequency: ArrayLike = 0.0) -> Float64:
        """Of the estimated frequency times the number of people, in a population held fixed.

        other (1 - other) / (own - other)^2 + frequency (1 - own - other) / (own - other) (Wang et
        al. 2017, Theorem 2). Divide by the number of people for the variance of the estimate.

        Args:
            frequency: true share of the category, in [0, 1].
        """
        frequency = _validate.probability(frequency=frequency)
        own, other = self.own, self.other
        with np.errstate(divide="ignore"):
            gap = own - other
            return other * (1 - other) / gap**2 + frequency * (1 - own - other) / gap


def randomized_response(scale: ArrayLike) -> Support:
    """Truth with probability 1 / (1 + exp(-1 / scale)) (Warner 1965).

    Args:
        scale: 1 / epsilon, finite and above 0.
    """
    rate = 1 / _validate.positive(scale=scale)
    return Support(special.expit(rate)[()], special.expit(-rate)[()])


def k_ary_response(scale: ArrayLike, num_categories: ArrayLike) -> Support:
    """Truth with weight exp(1 / scale) against 1 for each other category.

    Args:
        scale: 1 / epsilon, finite and above 0.
        num_categories: at least 2.
    """
    weight = np.exp(-1 / _validate.positive(scale=scale))
    total = 1 + (_validate.count(num_categories=num_categories) - 1) * weight
    return Support((1 / total)[()], (weight / total)[()])


def symmetric_unary(scale: ArrayLike) -> Support:
    """Each bit by randomized response at twice the scale.

    Args:
        scale: 1 / epsilon, finite and above 0.
    """
    return randomized_response(2 * _validate.positive(scale=scale))


def optimized_unary(scale: ArrayLike) -> Support:
    """The own bit by a fair coin, each other by randomized response.

    Args:
        scale: 1 / epsilon, finite and above 0.
    """
    other = randomized_response(scale).other
    return Support(np.full_like(other, 0.5)[()], other)
