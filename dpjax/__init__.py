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
    from dpjax import theory as theory
    from dpjax.crossover import crossover as crossover
    from dpjax.grid import Point as Point
    from dpjax.grid import grid as grid
    from dpjax.mechanisms.additive import gaussian as gaussian
    from dpjax.mechanisms.additive import laplace as laplace
    from dpjax.simulate import simulate as simulate
    from dpjax.sweep import sweep as sweep

_HOME = {  # public name -> the module that defines it; a module itself has no second part
    "Point": "dpjax.grid:Point",
    "accounting": "dpjax.accounting",
    "crossover": "dpjax.crossover:crossover",
    "gaussian": "dpjax.mechanisms.additive:gaussian",
    "grid": "dpjax.grid:grid",
    "laplace": "dpjax.mechanisms.additive:laplace",
    "simulate": "dpjax.simulate:simulate",
    "sweep": "dpjax.sweep:sweep",
    "theory": "dpjax.theory",
}

__all__ = [
    "Point",
    "accounting",
    "crossover",
    "gaussian",
    "grid",
    "laplace",
    "simulate",
    "sweep",
    "theory",
]


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
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
