"""exp and log near their zeros, for complex arguments, where the plain forms cancel."""

import numpy as np


def log1p(z: np.ndarray) -> np.ndarray:
    """log(1 + z); NumPy's own loses the real part of a small complex z."""
    if not np.iscomplexobj(z):
        return np.log1p(z)
    small = np.abs(z) < 0.5
    x, y = np.real(z), np.imag(z)
    # |1+z|^2 - 1 = 2x + x^2 + y^2 is exact where z is small; elsewhere nothing cancels
    near = 0.5 * np.log1p(np.where(small, x * (2 + x) + y * y, 0))
    far = np.log(np.where(small, 1, np.abs(1 + z)))
    return np.where(small, near, far) + 1j * np.arctan2(y, 1 + x)


def expm1_less(z: np.ndarray) -> np.ndarray:
    """exp(z) - 1 - z, by its Taylor series where the difference cancels."""
    small = np.abs(z) < 1
    s = np.where(small, z, 0)
    series = np.ones_like(s)
    for n in range(19, 2, -1):  # the first term left out is below 1e-18 of the sum
        series *= s
        series *= 1 / n
        series += 1
    return np.where(small, s * s / 2 * series, np.exp(np.where(small, 0, z)) - 1 - z)
