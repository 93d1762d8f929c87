"""The laws of the mechanisms: error, density, tails and probabilities, in float64 NumPy.

What a simulation must agree with. Parameters are those of the mechanism of the same name; noise is
centred on 0, and errors are in the units of `scale`.

    >>> from dpjax import theory
    >>> float(theory.Gaussian(scale=2.5).rmse)
    2.5
"""

from dpjax.theory import local as local
from dpjax.theory import selection as selection
from dpjax.theory.additive import Gaussian as Gaussian
from dpjax.theory.additive import Laplace as Laplace
from dpjax.theory.bounded import BoundedLaplace as BoundedLaplace
from dpjax.theory.bounded import ClampedLaplace as ClampedLaplace
from dpjax.theory.bounded import TruncatedLaplace as TruncatedLaplace
from dpjax.theory.bounded import truncation as truncation
from dpjax.theory.discrete import DiscreteGaussian as DiscreteGaussian
from dpjax.theory.discrete import DiscreteLaplace as DiscreteLaplace
from dpjax.theory.staircase import Staircase as Staircase
from dpjax.theory.staircase import staircase_gamma as staircase_gamma
from dpjax.theory.vector import L2Laplace as L2Laplace
from dpjax.theory.vector import LinfLaplace as LinfLaplace
