"""Privacy losses as JSON text: families, their parameters and counts, and nothing else.

    {"dpjax_privacy_loss": 1,
     "terms": [{"family": "gaussian", "noise_multiplier": 4.0, "count": 12}]}

Arrays are nested lists, infinity is the string "infinity", and a term with "sum": true stands for
the composition along the last axis of its parameters and count (of a Rényi curve, along the last
but one of its divergences, and of a mixture of its sensitivities and probabilities).
"""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax import _validate
from dpjax.accounting.leaks import Leak
from dpjax.accounting.leaks.bound import BoundedRange, Concentrated, Curve
from dpjax.accounting.leaks.discrete import DiscreteGaussian, DiscreteLaplace
from dpjax.accounting.leaks.gaussian import Gaussian
from dpjax.accounting.leaks.gaussian_mixture import GaussianMixture
from dpjax.accounting.leaks.laplace import Laplace
from dpjax.accounting.leaks.replaced_gaussian import ReplacedGaussian, SubsetGaussian
from dpjax.accounting.leaks.replaced_laplace import ReplacedLaplace, SubsetLaplace
from dpjax.accounting.leaks.response import Response, UniformResponse
from dpjax.accounting.leaks.sampled_discrete import (
    SampledDiscreteGaussian,
    SampledDiscreteLaplace,
    SampledResponse,
)
from dpjax.accounting.leaks.sampled_gaussian import PoissonGaussian
from dpjax.accounting.leaks.sampled_laplace import PoissonLaplace
from dpjax.accounting.leaks.shuffled import Shuffled
from dpjax.accounting.leaks.summed import Summed, releases
from dpjax.accounting.leaks.truncated_laplace import TruncatedLaplace

Terms = tuple[tuple[Leak, np.ndarray], ...]

_VERSION = 1
_KEYS = {"dpjax_privacy_loss", "terms"}
FAMILIES: dict[str, type[Leak]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "discrete_gaussian": DiscreteGaussian,
    "discrete_laplace": DiscreteLaplace,
    "truncated_laplace": TruncatedLaplace,
    "response": Response,
    "uniform_response": UniformResponse,
    "sampled_gaussian": PoissonGaussian,
    "sampled_laplace": PoissonLaplace,
    "sampled_discrete_gaussian": SampledDiscreteGaussian,
    "sampled_discrete_laplace": SampledDiscreteLaplace,
    "sampled_response": SampledResponse,
    "gaussian_mixture": GaussianMixture,
    "replaced_gaussian": ReplacedGaussian,
    "replaced_laplace": ReplacedLaplace,
    "subset_gaussian": SubsetGaussian,
    "subset_laplace": SubsetLaplace,
    "shuffled": Shuffled,
    "zcdp": Concentrated,
    "bounded_range": BoundedRange,
    "renyi_curve": Curve,
}


def _at_least(least: float) -> Callable[..., np.ndarray]:
    """A check of numbers from `least` on, infinity included."""

    def check(**argument: Any) -> np.ndarray:
        array = _validate.non_negative_or_infinite(**argument)
        if np.any(array < least):
            name, value = next(iter(argument.items()))
            raise ValueError(f"{name} = {_short(value)}: expected at least {least}")
        return array

    return check


def _whole_or_infinite(**argument: Any) -> np.ndarray:
    """A check of whole numbers from 0 on, infinity included."""
    array = _validate.non_negative_or_infinite(**argument)
    if np.any(array != np.floor(array)):
        name, value = next(iter(argument.items()))
        raise ValueError(f"{name} = {_short(value)}: expected a whole number or infinity")
    return array


def _distribution(**argument: Any) -> np.ndarray:
    """A check of probabilities that add up to 1 on the last axis."""
    array = np.atleast_1d(_validate.probability(**argument))
    if np.any(np.abs(array.sum(-1) - 1) > 1e-12):
        name, value = next(iter(argument.items()))
        raise ValueError(f"{name} = {_short(value)}: expected a sum of 1")
    return array


_CHECKS: dict[str, Callable[..., np.ndarray]] = {
    "noise_multiplier": _validate.non_negative_or_infinite,
    "scale": _validate.non_negative_or_infinite,
    "epsilon": _validate.non_negative_or_infinite,
    "rho": _validate.non_negative_or_infinite,
    "divergences": _validate.non_negative_or_infinite,
    "orders": _validate.non_negative_or_infinite,
    "sensitivities": lambda **shifts: np.atleast_1d(_validate.non_negative(**shifts)),
    "probabilities": _distribution,
    "delta": _validate.probability,
    "sampling_probability": _validate.probability,
    "bound": _at_least(1),
    "whole_bound": _whole_or_infinite,
    "num_categories": _at_least(2),
    "sensitivity": lambda **whole: _validate.count(**whole).astype(np.float64),
    "num_reports": lambda **whole: _at_least(1)(**whole) + 0.0 * _validate.count(**whole),
    "count": _validate.count,
}


def dump(terms: Terms) -> str:
    """The terms of a loss as JSON text."""
    return json.dumps({"dpjax_privacy_loss": _VERSION, "terms": [_entry(*t) for t in terms]})


def load(text: Any) -> Terms:
    """The terms in a text that `dump` wrote; a ValueError of one line for anything else."""
    if not isinstance(text, str):
        raise TypeError(f"text = {_short(text)}: expected a privacy loss as JSON text")
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"text: expected a privacy loss as JSON, got {error}") from None
    except RecursionError:
        raise ValueError("text: expected a privacy loss as JSON, got nesting too deep") from None
    if not isinstance(tree, dict) or tree.keys() != _KEYS or not isinstance(tree["terms"], list):
        raise ValueError(f"text = {_short(tree)}: expected an object with {_names(_KEYS)}")
    version = tree["dpjax_privacy_loss"]
    if version is True or version != _VERSION:
        raise ValueError(f"dpjax_privacy_loss = {_short(version)}: expected version {_VERSION}")
    return tuple(_term(entry) for entry in tree["terms"])


def _entry(leak: Leak, count: np.ndarray) -> dict[str, Any]:
    """One term as a dictionary."""
    if isinstance(leak, Summed):
        inner, counts = releases(leak, count)  # the count of the whole sum is that of each release
        return {**_entry(inner, counts), "sum": True}
    families = {leak_type: name for name, leak_type in FAMILIES.items()}
    if type(leak) not in families:
        raise ValueError(f"loss has {leak!r}: expected families that JSON can hold")
    values = {f.name: np.asarray(getattr(leak, f.name)) for f in dataclasses.fields(leak)}
    plain = {name: _plain(value.tolist()) for name, value in values.items()}
    return {"family": families[type(leak)], **plain, "count": count.tolist()}


def _term(entry: Any) -> tuple[Leak, np.ndarray]:
    """One term from its dictionary."""
    if not isinstance(entry, dict):
        raise ValueError(f"term = {_short(entry)}: expected an object with a family")
    name = _validate.one_of(FAMILIES, family=entry.get("family"))
    fields = [field.name for field in dataclasses.fields(FAMILIES[name])]
    given = entry.keys() - {"family", "sum"}
    if given != {*fields, "count"}:
        raise ValueError(f"{name} has {_names(given)}: expected {_names({*fields, 'count'})}")
    values: dict[str, Any] = {key: _array(key, entry[key]) for key in given}
    count = values.pop("count")
    if "orders" in values:  # the one parameter that is no array over the grid
        values["orders"] = tuple(np.ravel(values["orders"]).tolist())
        values["divergences"] = np.atleast_1d(values["divergences"])
    leak = FAMILIES[name](**values)
    try:
        if isinstance(leak, GaussianMixture):
            np.broadcast_shapes(leak.sensitivities.shape[-1:], leak.probabilities.shape[-1:])
        shape = np.broadcast_shapes(leak.shape, count.shape)
    except ValueError as error:
        raise ValueError(f"{name}: expected shapes that broadcast, got {error}") from None
    if entry.get("sum", False) is False:
        return leak, count
    if entry["sum"] is not True or not shape:
        raise ValueError(f"sum = {_short(entry['sum'])}: expected true, and an axis to sum")
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    return Summed(leak.take(shape, positions), np.broadcast_to(count, shape)), np.asarray(1)


def _array(name: str, value: Any) -> np.ndarray:
    """A parameter with the check of its name."""
    checked = _CHECKS[name](**{name: _parsed(value)})
    return np.asarray(checked)


def _plain(value: Any) -> Any:
    """Nested lists with infinity, which JSON lacks, as a string."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return "infinity" if value == float("inf") else value


def _parsed(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return [_parsed(part) for part in value]
    return float("inf") if value == "infinity" else value


def _names(keys: Any) -> str:
    """Keys as one string."""
    return ", ".join(sorted(map(str, keys))) or "nothing"


def _short(value: Any) -> str:
    """The value on one line of bounded length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
