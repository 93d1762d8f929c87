"""`dpjax calibrate`: the least noise for a budget, or the most releases for a noise."""

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from dpjax.accounting import calibrate
from dpjax.accounting.loss import PrivacyLoss
from dpjax.cli import options
from dpjax.cli.output import ImpossibleWish, emit, number, table, up
from dpjax.cli.releases import family
from dpjax.plan.designs import ACCOUNTANTS

_MOST = 10**15  # releases that are tried


@click.command(cls=options.Command)
@options.mechanism
@click.option("--epsilon", type=options.NUMBER, required=True, help="Total budget, above 0.")
@options.delta
@click.option("--count", type=options.WHOLE, help="How many releases, up to 9.2e18.  [default: 1]")
@click.option(
    "--noise-multiplier",
    type=options.NUMBER,
    help="In place of --count: how many releases of this noise the budget allows, up to 1e15.",
)
@click.option(
    "--accountant",
    "accountants",
    type=options.Name(ACCOUNTANTS),
    multiple=True,
    help="Who counts; may be repeated.  [default: renyi-improved and exact]",
)
@options.output
def command(
    mechanism: str,
    sensitivity: float,
    sampling_probability: float | None,
    epsilon: float,
    delta: float,
    count: int | None,
    noise_multiplier: float | None,
    accountants: tuple[str, ...],
    form: str | None,
) -> None:
    """Find the least noise, or the most releases, that a budget (epsilon, delta) allows.

    Noise is rounded up and counts down, so that the budget is kept.

    \b
    Noise for twelve counts, and how many counts a noise allows:
      dpjax calibrate --mechanism gaussian --epsilon 1 --delta 1e-5 --count 12
      dpjax calibrate --mechanism gaussian --epsilon 1 --delta 1e-5 --noise-multiplier 20
    """
    if count is not None and noise_multiplier is not None:
        raise click.UsageError("give either --count or --noise-multiplier")
    release = family(mechanism, sensitivity, sampling_probability)
    names = tuple(dict.fromkeys(accountants)) or ("renyi_improved", "exact")
    if noise_multiplier is not None:
        rows = [_most(release, noise_multiplier, epsilon, delta, name) for name in names]
    else:
        rows = [_least(release, count or 1, epsilon, delta, name) for name in names]
    for row in rows:
        row["scale"] = row["noise_multiplier"] * sensitivity
    result = {
        "mechanism": mechanism,
        "sensitivity": sensitivity,
        "sampling_probability": sampling_probability,
        "epsilon": epsilon,
        "delta": delta,
        "designs": rows,
    }
    wanted = "most releases" if noise_multiplier is not None else "least noise"
    head = f"{wanted} of {mechanism} at epsilon {epsilon:g}, delta {delta:g}"
    columns = ("accountant", "count", "noise_multiplier", "scale", "epsilon")
    shown = [row | {name: up(row[name]) for name in columns[2:]} for row in rows]
    lines = table(columns, [[row[name] for name in columns] for row in shown])
    if any(row["is_capped"] for row in rows):
        lines += ["", f"more than {_MOST:g} releases are not tried: the budget may allow more"]
    emit(form, "calibrate", result, rows, [head, "", *lines])


def _least(
    release: Callable[[np.ndarray], PrivacyLoss],
    count: int,
    epsilon: float,
    delta: float,
    name: str,
) -> dict[str, Any]:
    """The least noise for a number of releases."""
    accountant = ACCOUNTANTS[name]
    try:
        noise = calibrate.noise_multiplier(
            lambda m: count * release(m), epsilon, delta, accountant=accountant
        )
    except ValueError as error:
        if "some noise meets" not in str(error):
            raise
        wish = "a delta above 0, or Laplace noise" if delta == 0 else "a larger epsilon"
        raise ImpossibleWish(
            f"no noise meets epsilon {epsilon:g} with delta {delta:g} under {name}; nearest"
            f" possible: {wish}"
        ) from error
    spent = float(accountant(count * release(noise), delta))
    return {
        "accountant": name,
        "count": count,
        "noise_multiplier": float(noise),
        "epsilon": spent,
        "is_capped": False,
    }


def _most(
    release: Callable[[np.ndarray], PrivacyLoss],
    noise: float,
    epsilon: float,
    delta: float,
    name: str,
) -> dict[str, Any]:
    """The most releases of a noise."""
    accountant = ACCOUNTANTS[name]
    one = release(np.asarray(noise))
    count = int(calibrate.max_count(one, epsilon, delta, accountant=accountant, up_to=_MOST))
    if count == 0:
        alone = float(accountant(one, delta))
        wish = "a delta above 0" if np.isinf(alone) and noise > 0 else f"more noise than {noise:g}"
        raise ImpossibleWish(
            f"not even one release: its epsilon is {number(alone)} under {name}; nearest possible:"
            f" {wish}" + ("" if np.isinf(alone) else ", or that epsilon")
        )
    return {
        "accountant": name,
        "count": count,
        "noise_multiplier": noise,
        "epsilon": float(accountant(count * one, delta)),
        "is_capped": count == _MOST,
    }
