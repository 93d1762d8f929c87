"""Zero-concentrated differential privacy: a Rényi divergence of at most rho times the order.

`count` releases add up to count rho, whatever they are. Gaussian noise has rho =
1 / (2 noise_multiplier^2) exactly, so rho-zCDP converts as the Gaussian of that rho does under
`rdp`. A mechanism of the same rho may leak more than that Gaussian: `exact` is not for it. Source:
Bun and Steinke 2016.
"""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from dpjax import _validate
from dpjax.accounting import calibrate, loss, rdp
from dpjax.accounting.loss import PrivacyLoss


def epsilon(
    rho: ArrayLike, *, delta: ArrayLike, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """Smallest epsilon that rho-zCDP proves at delta, an upper bound.

    Args:
        rho: at least 0; infinity gives infinity.
        delta: in [0, 1]; 0 gives infinity unless rho is 0.
        conversion: "classic", which is rho + 2 sqrt(rho log(1/delta)), "improved" or "optimal".

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{epsilon(0.5, delta=1e-5):.6f}")
    4.728387

    Source: Bun and Steinke 2016, Proposition 1.3; Canonne, Kamath, Steinke 2020, Corollary 13.
    """
    return rdp.epsilon(_gaussian(rho), delta, conversion=conversion)


def delta(
    rho: ArrayLike, *, epsilon: ArrayLike, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """Smallest delta that rho-zCDP proves at epsilon, an upper bound: "classic" or "improved".

    >>> print(f"{delta(0.05, epsilon=0.25):.6f}")
    0.081773
    """
    return rdp.delta(_gaussian(rho), epsilon, conversion=conversion)


def rho(
    epsilon: ArrayLike, delta: ArrayLike, *, conversion: str = "improved"
) -> Float64[np.ndarray, "*grid"]:
    """Largest rho that proves (epsilon, delta): to be spent query by query.

    Args:
        epsilon: finite and above 0.
        delta: in (0, 1).
        conversion: "classic", "improved" or "optimal".

    Returns:
        rho, from below to a relative 1e-11.

    Raises:
        ValueError: an argument outside its range or NaN.

    >>> print(f"{rho(1, 1e-5):.8f} {rho(1, 1e-5, conversion='classic'):.8f}")
    0.03055660 0.02081994
    """
    epsilon = _validate.positive(epsilon=epsilon)
    delta = _validate.open_probability(delta=delta)

    def accountant(privacy_loss: PrivacyLoss, delta: np.ndarray) -> np.ndarray:
        return rdp.epsilon(privacy_loss, delta, conversion=conversion)

    noise = calibrate.noise_multiplier(loss.gaussian, epsilon, delta, accountant=accountant)
    return np.asarray((1 - 1e-12) / (2 * noise**2))


def of_pure(epsilon: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """The rho of any epsilon-private mechanism, epsilon tanh(epsilon / 2): at most epsilon^2 / 2.

    It is attained by randomized response as the order goes to 1.

    >>> print(f"{of_pure(1):.8f}")
    0.46211716

    Source: Bun and Steinke 2016, Proposition 1.4, sharpened to the divergence of order 1.
    """
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    return np.asarray(epsilon * np.tanh(epsilon / 2))


def of_bounded_range(epsilon: ArrayLike) -> Float64[np.ndarray, "*grid"]:
    """The rho of an epsilon-bounded-range mechanism, such as the exponential one: epsilon^2 / 8.

    Permute-and-flip and report-noisy-max with Laplace noise are not of bounded range: `of_pure`.

    >>> print(f"{of_bounded_range(1):.3f}")
    0.125

    Source: Cesar and Rogers 2021, Lemma 3.2.
    """
    epsilon = _validate.non_negative_or_infinite(epsilon=epsilon)
    return np.asarray(epsilon**2 / 8)


def _gaussian(rho: ArrayLike) -> PrivacyLoss:
    """The Gaussian with the same Rényi curve."""
    rho = _validate.non_negative_or_infinite(rho=rho)
    with np.errstate(divide="ignore"):
        return loss.gaussian(1 / np.sqrt(2 * rho))
