"""From a mechanism's name and the flags to what its noise leaks."""

from collections.abc import Callable
from functools import partial

import click
import numpy as np

from dpjax import _validate
from dpjax.accounting import loss
from dpjax.accounting.loss import PrivacyLoss
from dpjax.plan.workload import RANGE


def family(
    mechanism: str, sensitivity: float, sampling_probability: float | None
) -> Callable[[np.ndarray], PrivacyLoss]:
    """From noise multipliers to the loss of one release."""
    _validate.positive(sensitivity=sensitivity)
    if not RANGE[0] <= sensitivity <= RANGE[1]:
        raise click.UsageError(f"--sensitivity {sensitivity:g}: expected from 1e-100 to 1e100")
    if mechanism.startswith("discrete"):
        if sensitivity != np.floor(sensitivity) or sensitivity >= 2**53:
            raise click.UsageError(
                f"--sensitivity {sensitivity:g}: expected a whole number below 2^53 for {mechanism}"
            )
        one = getattr(loss, mechanism)
        whole = partial(_whole_numbers, one, sensitivity)
        if sampling_probability is None:
            return whole
        return lambda noise_multiplier: loss.sampled(sampling_probability, whole(noise_multiplier))
    if sampling_probability is None:
        return getattr(loss, mechanism)
    sampled = getattr(loss, f"sampled_{mechanism}")
    return lambda noise_multiplier: sampled(sampling_probability, noise_multiplier)


def _whole_numbers(
    one: Callable[..., PrivacyLoss], sensitivity: float, noise_multiplier: np.ndarray
) -> PrivacyLoss:
    """The loss of whole-number noise, which takes a scale and a sensitivity."""
    return one(noise_multiplier * sensitivity, sensitivity)
