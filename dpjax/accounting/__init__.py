"""From what mechanisms leak to (epsilon, delta): float64 NumPy on the host, no JAX.

An accountant is any function `(loss, delta) -> epsilon` whose answer is safe to claim. Submodules
are loaded on first use:

    loss        what releases leak: gaussian(m), laplace(m), ...; count * loss, loss + loss
    bounds      losses of which only a bound is known: zcdp(rho), bounded_range(epsilon), ...
    basic       basic, advanced and optimal composition
    rdp         the Rényi curve of a loss and its conversion to (epsilon, delta)
    exact       the (epsilon, delta) of a loss with a certified bracket
    gaussian    closed forms of Gaussian noise
    parallel    the largest epsilon over disjoint parts
    events      losses from the events of the package dp-accounting
    calibrate   the least noise that meets a target
    zcdp        zero-concentrated differential privacy
    gdp         Gaussian differential privacy, and its central limit approximation
    risk        a guarantee as an attacker's error rates
    tradeoff    the exact trade-off curve of a composition, with a certified bracket
    filters     rules that hold for adaptively chosen queries
    ledger      a budget spent query by query under such a rule
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpjax.accounting import basic as basic
    from dpjax.accounting import bounds as bounds
    from dpjax.accounting import calibrate as calibrate
    from dpjax.accounting import events as events
    from dpjax.accounting import exact as exact
    from dpjax.accounting import filters as filters
    from dpjax.accounting import gaussian as gaussian
    from dpjax.accounting import gdp as gdp
    from dpjax.accounting import ledger as ledger
    from dpjax.accounting import loss as loss
    from dpjax.accounting import parallel as parallel
    from dpjax.accounting import rdp as rdp
    from dpjax.accounting import risk as risk
    from dpjax.accounting import tradeoff as tradeoff
    from dpjax.accounting import zcdp as zcdp

__all__ = [
    "basic",
    "bounds",
    "calibrate",
    "events",
    "exact",
    "filters",
    "gaussian",
    "gdp",
    "ledger",
    "loss",
    "parallel",
    "rdp",
    "risk",
    "tradeoff",
    "zcdp",
]


def __getattr__(name: str) -> ModuleType:
    """Load a submodule on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'dpjax.accounting' has no attribute {name!r}")
    return importlib.import_module(f"dpjax.accounting.{name}")


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted({*globals(), *__all__})
