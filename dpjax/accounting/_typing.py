"""What float64 arithmetic gives: an array, or a scalar where every operand has no axes."""

import numpy as np

Reals = np.ndarray | np.float64
