"""The error of a design in one number: of each query, and over all of them.

>>> from dpjax.plan.workload import equal
>>> measure = Measure("quantile", 0.95)
>>> print(f'{measure.overall(equal(3), "laplace", np.array([10.0])):.3f} {measure.name}')
29.957 quantile 0.95
"""

from dataclasses import dataclass

import numpy as np

from dpjax import _validate, curves, theory
from dpjax.plan.designs import LAWS
from dpjax.plan.workload import Workload

_LEAST_LEVEL = 1e-100  # its error squared is a float
_HALVINGS = 110  # of the logarithm of a scale, from a factor e^60 to rounding


@dataclass(frozen=True)
class Measure:
    """What is called the error of one answer.

    Attributes:
        kind: "rmse", "mae" or "quantile" (of the absolute error).
        level: from 1e-100 to below 1, which quantile; None for the others.

    Raises:
        ValueError: an unknown kind, or a level that does not belong to it.
    """

    kind: str = "rmse"
    level: float | None = None

    def __post_init__(self) -> None:
        curves.unit_error("laplace", self.kind, self.level)  # which checks them
        if self.level is not None and self.level < _LEAST_LEVEL:
            raise ValueError(f"level = {self.level}: expected at least {_LEAST_LEVEL:g}")

    @property
    def name(self) -> str:
        """On one line."""
        return self.kind if self.level is None else f"{self.kind} {self.level}"

    def named(self, error: float) -> str:
        """An error of this measure in words."""
        return f"{self.name} {error:.6g}" if self.level is None else f"{self.name} of {error:.6g}"

    def of(self, mechanism: str, scales: np.ndarray) -> np.ndarray:
        """The error at each scale."""
        if not mechanism.startswith("discrete"):
            return np.asarray(curves.unit_error(mechanism, self.kind, self.level)[0] * scales)
        law = LAWS[mechanism](scales)
        if self.level is None:
            return np.asarray(law.rmse if self.kind == "rmse" else law.mae)
        return half_width(mechanism, scales, self.level)

    def overall(self, workload: Workload, mechanism: str, scales: np.ndarray) -> float:
        """Weighted root mean square over all published numbers; of equal queries that of each."""
        size = workload.each("answers") * workload.each("weight")
        return float(np.sqrt(np.sum(size / size.sum() * self.of(mechanism, scales) ** 2)))

    def reach(
        self, workload: Workload, mechanism: str, scales: np.ndarray, error: float
    ) -> np.ndarray:
        """The scales times the largest factor that keeps the overall error at most `error`."""
        if not mechanism.startswith("discrete"):
            return scales * (error / self.overall(workload, mechanism, scales))
        middle = np.log(error / np.max(scales))
        low, high = middle - 30.0, middle + 30.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self.overall(workload, mechanism, scales * np.exp(middle)) <= error
            low, high = (middle, high) if fits else (low, middle)
            if not low < (low + high) / 2 < high:
                break
        return scales * np.exp(low)


def half_width(mechanism: str, scales: np.ndarray, confidence: float) -> np.ndarray:
    """The x with P(|noise| <= x) = confidence; the least whole one of discrete noise."""
    _validate.open_probability(confidence=confidence)
    law = LAWS[mechanism](scales)
    if mechanism != "discrete_gaussian":
        return np.asarray(law.abs_quantile(confidence))
    near = np.floor(theory.Gaussian(scales).abs_quantile(confidence))
    low, high = near - 2, near + 2
    low = np.where((low >= 0) & (law.tail(np.maximum(low, 0)) > 1 - confidence), low, -1.0)
    high = np.where(law.tail(high) <= 1 - confidence, high, np.ceil(40 * np.asarray(scales)) + 1)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        inside = law.tail(middle) <= 1 - confidence
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    return high
