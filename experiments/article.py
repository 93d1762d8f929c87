"""The article's data, settings and printed numbers."""

import numpy as np

DELTA = 1e-5
EPSILONS = (0.1, 1.0, 10.0)

# As printed: one count at EPSILONS; the Gaussian scale is the customary sqrt(2 ln(1.25/delta))/eps.
PRINTED_RMSE = {"laplace": ("14.1", "1.4", "0.14"), "gaussian": ("48.5", "4.8", "0.48")}
PRINTED_RELATIVE = {"laplace": ("4.4 %", "0.4 %", "0.04 %"), "gaussian": ("", "", "")}


def true_count() -> int:
    """How many of the article's thousand people have the attribute: 319."""
    # The legacy generator is the article's own, so that the people are the same.
    return int(np.sum(np.random.RandomState(42).rand(1000) < 0.3))
