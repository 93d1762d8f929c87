"""dpjax: a laboratory for differential privacy.

Mechanisms and simulation run on whatever JAX runs on; accounting is float64 NumPy and needs no JAX.
Public names are loaded on first use (PEP 562), so that `import dpjax.accounting` loads no JAX.
Its floating-point noise is for simulation and not safe for releasing real data.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpjax import accounting as accounting
    from dpjax import plan as plan
    from dpjax import postprocess as postprocess
    from dpjax import queries as queries
    from dpjax import sensitivity as sensitivity
    from dpjax import theory as theory
    from dpjax.audit import audit as audit
    from dpjax.audit import audit_gaussian as audit_gaussian
    from dpjax.crossover import crossover as crossover
    from dpjax.mechanisms.additive import gaussian as gaussian
    from dpjax.mechanisms.additive import laplace as laplace
    from dpjax.mechanisms.bounded import bounded_laplace as bounded_laplace
    from dpjax.mechanisms.bounded import truncated_laplace as truncated_laplace
    from dpjax.mechanisms.discrete import discrete_gaussian as discrete_gaussian
    from dpjax.mechanisms.discrete import discrete_laplace as discrete_laplace
    from dpjax.mechanisms.local import k_ary_response as k_ary_response
    from dpjax.mechanisms.local import optimized_unary as optimized_unary
    from dpjax.mechanisms.local import randomized_response as randomized_response
    from dpjax.mechanisms.local import symmetric_unary as symmetric_unary
    from dpjax.mechanisms.selection import exponential_mechanism as exponential_mechanism
    from dpjax.mechanisms.selection import permute_and_flip as permute_and_flip
    from dpjax.mechanisms.selection import report_noisy_max as report_noisy_max
    from dpjax.mechanisms.sparse_vector import above_threshold as above_threshold
    from dpjax.mechanisms.staircase import staircase as staircase
    from dpjax.mechanisms.vector import l2_laplace as l2_laplace
    from dpjax.mechanisms.vector import linf_laplace as linf_laplace
    from dpjax.simulate import per_trial as per_trial
    from dpjax.simulate import simulate as simulate
    from dpjax.sweep import sweep as sweep
    from dpjax.sweep.grid import Point as Point
    from dpjax.sweep.grid import grid as grid

_HOME = {  # public name -> the module that defines it; a module itself has no second part
    "Point": "dpjax.sweep.grid:Point",
    "above_threshold": "dpjax.mechanisms.sparse_vector:above_threshold",
    "accounting": "dpjax.accounting",
    "audit": "dpjax.audit:audit",
    "audit_gaussian": "dpjax.audit:audit_gaussian",
    "bounded_laplace": "dpjax.mechanisms.bounded:bounded_laplace",
    "crossover": "dpjax.crossover:crossover",
    "discrete_gaussian": "dpjax.mechanisms.discrete:discrete_gaussian",
    "discrete_laplace": "dpjax.mechanisms.discrete:discrete_laplace",
    "exponential_mechanism": "dpjax.mechanisms.selection:exponential_mechanism",
    "gaussian": "dpjax.mechanisms.additive:gaussian",
    "grid": "dpjax.sweep.grid:grid",
    "k_ary_response": "dpjax.mechanisms.local:k_ary_response",
    "l2_laplace": "dpjax.mechanisms.vector:l2_laplace",
    "laplace": "dpjax.mechanisms.additive:laplace",
    "linf_laplace": "dpjax.mechanisms.vector:linf_laplace",
    "optimized_unary": "dpjax.mechanisms.local:optimized_unary",
    "per_trial": "dpjax.simulate:per_trial",
    "permute_and_flip": "dpjax.mechanisms.selection:permute_and_flip",
    "plan": "dpjax.plan",
    "postprocess": "dpjax.postprocess",
    "queries": "dpjax.queries",
    "randomized_response": "dpjax.mechanisms.local:randomized_response",
    "report_noisy_max": "dpjax.mechanisms.selection:report_noisy_max",
    "sensitivity": "dpjax.sensitivity",
    "simulate": "dpjax.simulate:simulate",
    "staircase": "dpjax.mechanisms.staircase:staircase",
    "sweep": "dpjax.sweep:sweep",
    "symmetric_unary": "dpjax.mechanisms.local:symmetric_unary",
    "theory": "dpjax.theory",
    "truncated_laplace": "dpjax.mechanisms.bounded:truncated_laplace",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]  # it reads the imports


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'dpjax' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value  # after the import, which binds the submodule of the same name
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `dpjax.simulate` the function: importing the submodule would bind the module there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name, "").endswith(f":{name}"):
            return  # the function is loaded on first use, or is there
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
