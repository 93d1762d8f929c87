"""From a mechanism's name and the flags to what its noise leaks."""

from collections.abc import Callable

import click
import numpy as np

from dpjax import _validate
from dpjax.accounting import loss
from dpjax.accounting.loss import PrivacyLoss


def family(
    mechanism: str, sensitivity: float, sampling_probability: float | None
) -> Callable[[np.ndarray], PrivacyLoss]:
    """From noise multipliers to the loss of one release."""
    _validate.positive(sensitivity=sensitivity)
    if mechanism.startswith("discrete"):
        if sampling_probability is not None:
            raise click.UsageError(f"--sampling-probability does not go with {mechanism} noise")
        if sensitivity != np.floor(sensitivity) or sensitivity >= 2**53:
            raise click.UsageError(
                f"--sensitivity {sensitivity:g}: expected a whole number below 2^53 for {mechanism}"
            )
        one = getattr(loss, mechanism)
        return lambda noise_multiplier: one(noise_multiplier * sensitivity, sensitivity)
    if sampling_probability is None:
        return getattr(loss, mechanism)
    sampled = getattr(loss, f"sampled_{mechanism}")
    return lambda noise_multiplier: sampled(sampling_probability, noise_multiplier)
